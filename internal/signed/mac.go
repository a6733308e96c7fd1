package signed

import (
	"crypto/sha256"
	"fmt"

	"quittance/internal/secret"
)

// MAC returns a proof of values of a row, for rows that many instances of one role write and read and
// nobody else believes. It covers the table and each value; NULL is nil. A value of a type that has no
// canonical form is a fault of the program.
func MAC(macs *secret.MACs, table string, values ...any) []byte {
	return macs.Append(nil, proved(table, values))
}

// VerifyMAC reports whether MAC made the proof for these values.
func VerifyMAC(macs *secret.MACs, mac []byte, table string, values ...any) bool {
	return macs.Verify(proved(table, values), mac)
}

// MACMadeWith returns the id of the master key with which MAC made the proof for these values; false if it did so with
// none.
func MACMadeWith(macs *secret.MACs, mac []byte, table string, values ...any) (id string, ok bool) {
	return macs.MadeWith(proved(table, values), mac)
}

// proved returns what a proof is of: a digest, so that its length is that of no other use of the key.
func proved(table string, values []any) []byte {
	out := part(part(nil, []byte("quittance proof of a row 1")), []byte(table))
	for _, v := range values {
		encoded, _, err := encode(v)
		if err != nil {
			panic(fmt.Sprintf("a proof of %s: %v", table, err))
		}
		out = part(out, encoded) // of NULL nothing; every other value begins with the letter of its type
	}
	sum := sha256.Sum256(out)
	return sum[:]
}
