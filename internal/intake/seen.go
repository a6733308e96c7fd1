package intake

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/statements"
)

// earlier is the accepted statement of the same id, page and days.
type earlier struct {
	// Scoped and Nth are those of the statement.
	Scoped bool
	Nth    int
	// Most is the highest Nth of such statements, at least 1.
	Most int
}

// always is after each day from which a statement may lack money.
const always = "9999-12-31"

func nameOf(s *statements.Statement) string { return fmt.Sprintf("%s/%d", s.ID, s.Page) }

// together reports whether two periods have a day in common. A period may be unknown.
func together(from, to, from2, to2 string) bool {
	return from == "" || from2 == "" || from <= to2 && from2 <= to
}

// seen returns what is known of accepted statements for a statement of the file. last is the account's last statement before
// it, and before has the file's statements before it.
func (i *attempt) seen(ctx context.Context, tx pgx.Tx, last statements.Mark, s *statements.Statement, before map[string][]Facts) (seen statements.Seen, of earlier, err error) {
	digest := hex.EncodeToString(s.Digest[:])
	var is, until string
	var importID uuid.UUID
	// Of several statements one with the same content, or else with the same opening balance, or else the last one.
	err = tx.QueryRow(ctx, `SELECT s.digest, s.import_id, s.opening, coalesce(f ->> 'scoped', '') = 'true', coalesce((f ->> 'nth')::int, 0), max(coalesce((f ->> 'nth')::int, 1)) OVER (),
			coalesce(max(coalesce(f ->> 'undecided', $10)) FILTER (WHERE s.digest = $6) OVER (), $10)
		FROM statements s JOIN statement_imports i ON i.id = s.import_id LEFT JOIN LATERAL (SELECT f FROM jsonb_array_elements(i.plan -> 'statements') f
			WHERE f ->> 'id' = s.statement_id AND f -> 'page' = to_jsonb(s.page) AND f ->> 'digest' = s.digest LIMIT 1) f ON true
		WHERE (s.agency_id, s.live, s.code) = ($1, $2, $3) AND s.statement_id = $4 AND s.page = $5 AND ($7 = '' OR s.from_day = '' OR s.from_day <= $8 AND $7 <= s.to_day)
		ORDER BY s.digest = $6 DESC, s.opening = $9 DESC, s.number DESC LIMIT 1`, append(i.account(), s.ID, s.Page, digest, s.From, s.To, s.Opening, always)...).
		Scan(&is, &importID, &seen.Opening, &of.Scoped, &of.Nth, &of.Most, &until)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return seen, of, fmt.Errorf("looking for an earlier statement: %w", err)
	}
	seen.Earlier, seen.Same = err == nil, err == nil && is == digest
	seen.Whole = seen.Same && until < cmp.Or(s.Undecided, always)
	if seen.Same {
		i.same = importID.String()
	}
	for _, f := range before[nameOf(s)] {
		if together(f.From, f.To, s.From, s.To) {
			seen.Earlier, seen.Same = true, seen.Same || f.Digest == digest
			of = earlier{Scoped: f.Scoped, Nth: f.Nth, Most: max(of.Most, f.Nth, 1)}
		}
	}
	seen.Released, seen.BackFill = i.released, i.BackFill
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM statements WHERE (agency_id, live, code) = ($1, $2, $3) AND (from_day, to_day, opening, closing, lines) = ($4, $5, $6, $7, $8))`, append(i.account(), s.From, s.To, s.Opening, s.Closing, s.Lines)...).Scan(&seen.Twin); err != nil {
		return seen, of, fmt.Errorf("looking for a twin of the statement: %w", err)
	}
	if seen.Withdrawn, err = i.withdrawnBefore(ctx, tx, s, digest); err != nil {
		return seen, of, err
	}
	if seen.Same || !s.Dated || s.From > last.To {
		return seen, of, nil
	}
	return seen, of, i.overlap(ctx, last, s, importID, &seen)
}

// withdrawnBefore says who has withdrawn a statement with the same id, first day and content; empty for nobody.
func (i *attempt) withdrawnBefore(ctx context.Context, tx pgx.Tx, s *statements.Statement, digest string) (said string, err error) {
	err = tx.QueryRow(ctx, `SELECT format('%s and %s have withdrawn this statement, which was accepted as import %s: %s.', r.name, d.name, i.id, w.reason)
		FROM statement_imports i JOIN statement_withdrawals w ON w.import_id = i.id AND w.state = 'done' JOIN staff r ON r.id = w.requested_by JOIN staff d ON d.id = w.decided_by
		WHERE (i.agency_id, i.live, i.code) = ($1, $2, $3) AND i.state = 'withdrawn'
		AND EXISTS (SELECT FROM jsonb_array_elements(i.plan -> 'statements') f WHERE (f ->> 'id', f ->> 'from', f ->> 'digest') = ($4, $5, $6)) ORDER BY w.decided_at DESC LIMIT 1`,
		append(i.account(), s.ID, s.From, digest)...).Scan(&said)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("looking for a withdrawal: %w", err)
	}
	return said, nil
}

// overlap reads the file again, and the file of the earlier statement if there is one, and compares their lines.
func (i *attempt) overlap(ctx context.Context, last statements.Mark, s *statements.Statement, earlier uuid.UUID, seen *statements.Seen) error {
	o := statements.NewOverlap(last, s.Opening)
	readable := true
	if seen.Earlier {
		in, out := io.Pipe()
		go func() { _ = out.CloseWithError(readStored(ctx, i.cfg.Pool, i.cfg.Keys, earlier, out)) }()
		file, err := statements.Read(in, i.reader, o.Expect)
		_ = in.Close() // ends the goroutine after an error
		if err != nil && !errors.Is(err, ErrOriginal) {
			return fmt.Errorf("reading the accepted file: %w", err)
		}
		readable = err == nil && !file.Refused() // by today's profile of the account
	}
	if _, err := i.File.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	file, err := statements.Read(i.File, i.reader, o.Take)
	switch {
	case err != nil:
		return err
	case file.Digest != i.file.Digest:
		return ErrFileChanged
	}
	if o.Put(seen); !readable {
		seen.Missing = -1
	}
	return nil
}
