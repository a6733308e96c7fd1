package personal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// LineKept is how long the data key of a disbursement line is kept after its batch has
// ended: 13 months, so that a return after weeks, a statement and a year's accounts still
// find the payee.
const LineKept = 397 * 24 * time.Hour

// LinePrefix begins the ids of disbursement batches and of their lines.
const LinePrefix = "dsb_"

// LineID is the id under which the data key of a line is stored: of its batch and its
// position there, from 0.
func LineID(batchID string, position int) string { return batchID + ":" + strconv.Itoa(position) }

// Payee is what a line can be found by, to be erased. At most one is set.
type Payee struct {
	// Phone is a number in any form.
	Phone string
	// Account is an IBAN or an account number in any form.
	Account string
}

// text is the text by which a data key is found; empty for none.
func (p Payee) text() string {
	if p.Account != "" {
		return accountText(p.Account)
	}
	return Canonical(p.Phone)
}

// accountText keeps accounts apart from phone numbers, which are digits alone.
func accountText(account string) string {
	if canonical := CanonicalAccount(account); canonical != "" {
		return "account " + canonical
	}
	return ""
}

// CanonicalAccount returns the form in which account numbers are compared: letters and
// digits, in capitals. It is empty for a text without any.
func CanonicalAccount(account string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, account)
}

// SealLine seals the content of a line, which is JSON. It writes one row, which is kept
// until LineKept after endsBy: the latest time at which the batch can end. KeepLines sets
// the time of its true end.
func (s *Store) SealLine(ctx context.Context, lineID string, content json.RawMessage, payee Payee, endsBy time.Time) ([]byte, error) {
	until := endsBy.Add(LineKept)
	return s.sealUntil(ctx, lineID, useLine, content, payee.text(), &until)
}

// Line opens what SealLine sealed. Errors are those of Customer.
func (s *Store) Line(ctx context.Context, lineID string, sealed []byte) (json.RawMessage, error) {
	return s.open(ctx, lineID, useLine, sealed)
}

// SealedLine is a line with its sealed content.
type SealedLine struct {
	ID     string // LineID
	Sealed []byte
}

// Lines opens the contents of lines with one query, in their order. A line that cannot be opened, because its key is deleted
// or because the bytes are not its own, has no content. Errors are those of a Postgres that is away, or wrap
// secret.ErrUnknownKey.
func (s *Store) Lines(ctx context.Context, lines []SealedLine) ([]json.RawMessage, error) {
	ids := make([]uuid.UUID, 0, len(lines))
	for _, l := range lines {
		if id, err := keyOf(l.Sealed); err == nil {
			ids = append(ids, id)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT id, sealed FROM personal_keys WHERE id = ANY($1)`, ids) // the rows return its error
	keys := make(map[uuid.UUID][]byte, len(ids))
	var id uuid.UUID
	var row []byte
	if _, err := pgx.ForEachRow(rows, []any{&id, &row}, func() error {
		keys[id] = slices.Clone(row)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("reading keys of lines: %w", err)
	}
	out := make([]json.RawMessage, len(lines))
	for i, l := range lines {
		id, err := keyOf(l.Sealed)
		if err != nil || keys[id] == nil {
			continue
		}
		out[i], err = s.openWith(keys[id], l.ID, useLine, l.Sealed)
		if err != nil && !errors.Is(err, ErrMalformed) {
			return nil, err
		}
	}
	return out, nil
}

// KeepLines adds to a transaction that the data keys of all lines of batches are kept until
// LineKept after their end, by the ids of the batches. From its end on a line can be erased.
func KeepLines(batch *pgx.Batch, ended map[string]time.Time) {
	for _, id := range slices.Sorted(maps.Keys(ended)) {
		// All ids from "id:" to "id;", the character after it.
		batch.Queue(`UPDATE personal_keys SET keep_until = $3 WHERE session_id > $1 AND session_id < $2 AND keep_until IS NOT NULL`,
			id+":", id+";", ended[id].Add(LineKept))
	}
}

// FindAccount returns the lines that pay an account, in the order of their ids, as Find does
// for phone numbers.
func (s *Store) FindAccount(ctx context.Context, account string) (lineIDs []string, err error) {
	want := accountText(account)
	if want == "" {
		return nil, operation.Refuse("personal.account_malformed", "account", nil)
	}
	return s.find(ctx, want)
}

// eraseLine deletes the data key of a line. A line whose batch has not ended is ResultOpen:
// its payee is still to be paid, or to be told why not.
func (s *Store) eraseLine(ctx context.Context, lineID string, q Request) (result Result, err error) {
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		var ended, open int
		err := tx.QueryRow(ctx, `WITH erased AS (DELETE FROM personal_keys WHERE session_id = $1 AND keep_until <= $2 RETURNING 1)
			SELECT (SELECT count(*) FROM erased), (SELECT count(*) FROM personal_keys WHERE session_id = $1 AND keep_until > $2)`,
			lineID, q.At.Add(LineKept)).Scan(&ended, &open)
		switch {
		case err != nil:
			return fmt.Errorf("deleting the key of a line: %w", err)
		case open > 0:
			result = ResultOpen
			return nil
		case ended == 0:
			result = ResultUnknown
			return nil
		}
		if q.Forget != nil {
			if err := q.Forget(ctx, tx, lineID); err != nil {
				return err
			}
		}
		result = ResultErased
		return recordErasure(ctx, tx, lineID, q, result)
	})
	if err != nil {
		return "", err
	}
	return result, nil
}
