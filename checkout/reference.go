package checkout

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"strings"
)

// References makes the numbers that people read aloud: payment_ref and notice_ref
// (docs/design/decisions.md § 8). They are unique because they come from counters. A keyed permutation
// hides the counter.
type References struct{ block cipher.Block }

// NewReferences takes the 32-byte key of the permutation. The key must never change:
// another key would issue existing numbers again.
func NewReferences(key []byte) (*References, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("reference key has %d bytes, want 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("reference key: %w", err)
	}
	return &References{block}, nil
}

const (
	paymentRefs = 100_000_000_000_000 // 14 digits, then two of check
	noticeRefs  = 10_000_000_000      // 10 digits a year
)

// PaymentRef returns the payment_ref of a counter value below 10^14: 16 digits, of which
// the last two are a check (ISO 7064 MOD 97-10). ok is false when the number is
// Luhn-valid, because it could be mistaken for a card number: take the next value.
func (r *References) PaymentRef(counter int64) (ref string, ok bool) {
	n := r.permute(counter, paymentRefs, 24, 0)
	ref = fmt.Sprintf("%014d%02d", n, 98-n%97*100%97)
	return ref, !luhn(ref)
}

// NoticeRef returns the notice_ref of a year's counter value below 10^10.
func (r *References) NoticeRef(year int, counter int64) string {
	return fmt.Sprintf("AV%04d%010d", year, r.permute(counter, noticeRefs, 17, year))
}

// Ungrouped removes what people write between the digits of a number: spaces, hyphens and
// dots.
func Ungrouped(typed string) string { return grouping.Replace(typed) }

var grouping = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", ".", "", "-", "")

// ValidPaymentRef reports whether the text has 16 digits and a correct check.
func ValidPaymentRef(ref string) bool {
	if len(ref) != 16 {
		return false
	}
	var rest int64
	for _, c := range []byte(ref) {
		if c < '0' || c > '9' {
			return false
		}
		rest = (rest*10 + int64(c-'0')) % 97
	}
	return rest == 1
}

// permute maps [0, size) onto itself with a Feistel network of two halves of the given
// bits. It repeats the network until the result lies below size.
func (r *References) permute(counter, size int64, half uint, tweak int) int64 {
	mask := uint32(1)<<half - 1
	block := new([2 * aes.BlockSize]byte) // once for all rounds: it escapes into the cipher
	n := uint64(counter)                  //nolint:gosec // counters are not negative
	for {
		left, right := uint32(n>>half)&mask, uint32(n)&mask //nolint:gosec // masked
		for round := range byte(8) {
			left, right = right, left^r.round(block, right, round, half, tweak)&mask
		}
		n = uint64(left)<<half | uint64(right)
		if n < uint64(size) { //nolint:gosec // a constant
			return int64(n) //nolint:gosec // below size
		}
	}
}

func (r *References) round(block *[2 * aes.BlockSize]byte, right uint32, round byte, half uint, tweak int) uint32 {
	in, out := block[:aes.BlockSize], block[aes.BlockSize:]
	in[0], in[1] = round, byte(half)                  //nolint:gosec // 17 or 24
	binary.BigEndian.PutUint32(in[2:], uint32(tweak)) //nolint:gosec // a year
	binary.BigEndian.PutUint32(in[6:], right)
	r.block.Encrypt(out, in)
	return binary.BigEndian.Uint32(out)
}

func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
