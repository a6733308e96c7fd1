package citizens

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// Subject is who owes dues to an agency, by the agency's own reference, in a mode.
type Subject struct {
	AgencyID string
	Live     bool
	Ref      string
}

// MaxSubjectRef is the longest reference of a subject, in bytes.
const MaxSubjectRef = 200

// CheckSubjectRef refuses what is no reference of a subject. References compare byte for
// byte. The error is an *operation.Error of the field subject.
func CheckSubjectRef(ref string) error {
	if ref == "" || len(ref) > MaxSubjectRef || !utf8.ValidString(ref) || strings.TrimSpace(ref) != ref || strings.ContainsFunc(ref, unicode.IsControl) {
		return operation.Refuse("citizen.subject_malformed", "subject", operation.Args{"most": MaxSubjectRef})
	}
	return nil
}

// Masked returns what messages and records show of the reference: the last four characters of
// one of at least eight, such as "***1001", and otherwise "***".
func (q Subject) Masked() string {
	const least, shown = 8, 4
	if runes := []rune(q.Ref); len(runes) >= least {
		return "***" + string(runes[len(runes)-shown:])
	}
	return "***"
}

// lock makes the transaction the only one that changes the links, the epoch and the verified
// contacts of the subject. A transaction takes its other locks before, and the locks of
// several subjects in their order in the database, so that no two wait for each other.
func (q Subject) lock(ctx context.Context, tx pgx.Tx) error {
	sum := sha256.Sum256([]byte("citizens|subject|" + q.AgencyID + "|" + strconv.FormatBool(q.Live) + "|" + q.Ref))
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(sum[:]))) //nolint:gosec // all bits count
	return err
}
