package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/statements"
	"quittance/statement"
)

// Filter selects statements. Empty fields select all.
type Filter struct {
	AgencyID string
	Live     *bool
	Code     string
}

// Listed is a stored statement: accepted, or of a file that is in quarantine, was released from it, dismissed or
// withdrawn. State is accepted, quarantined, released, dismissed or withdrawn.
type Listed struct {
	Facts
	registry.StatementAccountKey
	State      statements.Verdict
	ImportID   string
	FileDigest string
	Size       int64
	Profile    string
	Actor      string
	ImportedAt time.Time

	accepted accepted
}

// accepted says where the records of an import are, and what they must say.
type accepted struct {
	id, file  string
	key       registry.StatementAccountKey
	facts     []Facts
	partition int32 // -1 if the row does not say
	from      int64
}

// List returns stored statements, by account and in the order of their import. It leaves out
// the imports that are under way or were interrupted.
func List(ctx context.Context, pool *pgxpool.Pool, f Filter) ([]Listed, error) {
	list, err := query(ctx, pool, `i.state <> 'pending' AND ($1 = '' OR i.agency_id::text = $1) AND ($2::boolean IS NULL OR i.live = $2) AND ($3 = '' OR i.code = $3)`, f.AgencyID, f.Live, f.Code)
	if err != nil {
		return nil, fmt.Errorf("listing statements: %w", err)
	}
	return list, nil
}

// Show returns the statements of an import. The error is an *operation.Error with the field id
// if there is none.
func Show(ctx context.Context, pool *pgxpool.Pool, importID string) ([]Listed, error) {
	id, err := uuid.Parse(importID)
	if err != nil {
		return nil, operation.Refuse("statement.unknown", "id", nil)
	}
	list, err := query(ctx, pool, `i.state <> 'pending' AND i.id = $1`, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && len(list) == 0:
		return nil, operation.Refuse("statement.unknown", "id", nil)
	case err != nil:
		return nil, fmt.Errorf("reading an import: %w", err)
	}
	return list, nil
}

func query(ctx context.Context, pool *pgxpool.Pool, where string, args ...any) (list []Listed, err error) {
	rows, err := pool.Query(ctx, `SELECT i.id, i.agency_id, i.live, i.code, i.state, i.digest, i.size, i.profile, i.actor, i.imported_at, i.plan -> 'statements', coalesce(i.partition, -1), coalesce(i.from_offset, 0)
		FROM statement_imports i WHERE `+where+` ORDER BY i.agency_id, i.live, i.code, i.id`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l Listed
		var id uuid.UUID
		var plan []byte
		if err := rows.Scan(&id, &l.AgencyID, &l.Live, &l.StatementAccountKey.Code, &l.State, &l.FileDigest, &l.Size, &l.Profile, &l.Actor, &l.ImportedAt, &plan, &l.accepted.partition, &l.accepted.from); err != nil {
			return nil, err
		}
		l.ImportID, l.ImportedAt = id.String(), l.ImportedAt.UTC()
		var facts []Facts
		if err := json.Unmarshal(plan, &facts); err != nil {
			return nil, err
		}
		l.accepted.id, l.accepted.file, l.accepted.key, l.accepted.facts = l.ImportID, l.FileDigest, l.StatementAccountKey, facts
		for _, f := range facts {
			one := l
			one.Facts = f
			list = append(list, one)
		}
	}
	return list, rows.Err()
}

// Coverage says which statements of an account have days of a period.
type Coverage struct {
	// Statements have the id, the page and the digest of each accepted one, sorted.
	Statements []string
	// Last is the last local day of an accepted statement, whose last page was accepted too; empty for
	// none.
	Last string
	// Pending says that an import or a withdrawal is under way or was interrupted. Quarantined are the imports in
	// quarantine, or released and not imported again, or dismissed without a signed dismissal, that have days until the end of
	// the period.
	Pending     bool
	Quarantined []string

	accepted  []accepted // those with days from the beginning of the period
	withdrawn []accepted // those with such days whose withdrawal nobody has signed
}

// Cover returns the coverage of the local days from and to, such as 2026-11-30. keys verify what people have signed about files; now is the
// time of the service's clock.
func Cover(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, key registry.StatementAccountKey, from, to string, now time.Time) (Coverage, error) {
	var c Coverage
	dismissed, withdrawn, err := signedOf(ctx, pool, keys, key, now)
	if err != nil {
		return c, fmt.Errorf("reading what was decided about statements: %w", err)
	}
	list, err := query(ctx, pool, `i.agency_id::text = $1 AND i.live = $2 AND i.code = $3`, key.AgencyID, key.Live, key.Code)
	if err != nil {
		return c, fmt.Errorf("reading the statements of a period: %w", err)
	}
	for _, l := range list {
		switch l.State {
		case statements.VerdictAccepted:
			if l.Last { // a page may be missing of a statement without its last one
				c.Last = max(c.Last, l.To)
			}
			if l.To >= from && (len(c.accepted) == 0 || c.accepted[len(c.accepted)-1].id != l.ImportID) {
				c.accepted = append(c.accepted, l.accepted)
			}
			if l.From <= to && l.To >= from {
				c.Statements = append(c.Statements, fmt.Sprintf("%s page %d %s", l.ID, l.Page, l.Digest))
			}
		case statements.VerdictQuarantined, statements.Verdict(Released), statements.Verdict(Dismissed):
			if l.From <= to && !dismissed[l.ImportID] && !slices.Contains(c.Quarantined, l.ImportID) {
				c.Quarantined = append(c.Quarantined, l.ImportID)
			}
		case statements.Verdict(Withdrawn):
			if l.To >= from && !withdrawn[l.ImportID] && (len(c.withdrawn) == 0 || c.withdrawn[len(c.withdrawn)-1].id != l.ImportID) {
				c.withdrawn = append(c.withdrawn, l.accepted)
			}
		case statements.VerdictUnchanged, statements.VerdictRefused: // nothing of it counts
		default:
			c.Pending = true
		}
	}
	slices.Sort(c.Statements)
	c.Statements = slices.Compact(c.Statements) // one that was accepted again because a pending entry is gone
	withdrawing := false
	if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM statement_withdrawals w JOIN statement_imports i ON i.id = w.import_id
		WHERE w.state = 'approved' AND i.agency_id::text = $1 AND i.live = $2 AND i.code = $3)`, key.AgencyID, key.Live, key.Code).Scan(&withdrawing); err != nil {
		return c, fmt.Errorf("looking for a withdrawal: %w", err)
	}
	c.Pending = c.Pending || withdrawing
	return c, nil
}

// Covers reports whether accepted statements surely have everything of each local day of a period. The first and the last day of a
// file may be half a day, and from the day of a pending entry on a file may lack money, so a day counts within a file only, or within files that follow each other by their days and their
// balances: equal balances alone prove nothing, since an account that pays what it gets ends each time at the same. Unproved says
// whether the statements can be believed.
func (c Coverage) Covers(from, to string) bool {
	var all []Facts
	for _, a := range c.accepted {
		for _, f := range a.facts {
			if f.Undecided != "" {
				f.To = min(f.To, f.Undecided)
			}
			if f.From <= f.To {
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b Facts) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for i, first := range all {
		last := first
		for _, next := range all[i+1:] {
			if next.Balanced && last.Balanced && next.Opening == last.Closing && next.To >= last.To && next.From <= dayAfter(last.To) {
				last = next
			}
		}
		if first.From < from && to < last.To {
			return true
		}
	}
	return false
}

// dayAfter returns the next day; no day for what is none.
func dayAfter(day string) string {
	d, err := statement.ParseDay(day)
	if err != nil {
		return ""
	}
	return (d + 1).String()
}

// Below reports whether the records of all accepted statements of the coverage stand below an offset of the partition that has
// them.
func (c Coverage) Below(partition int32, offset int64) bool {
	for _, a := range c.accepted {
		end := a.from + int64(len(a.facts))
		for _, f := range a.facts {
			end += int64(f.Lines)
		}
		if a.partition != partition || end > offset {
			return false
		}
	}
	return true
}

// WithdrawnAfter returns the first local day of the statements of an account that were withdrawn after a time, and when the last of them
// was; no day for none. A row of one that nobody has signed counts, too: whoever asks doubts more then, and not less.
func WithdrawnAfter(ctx context.Context, pool *pgxpool.Pool, key registry.StatementAccountKey, after time.Time) (first string, last time.Time, err error) {
	rows, err := pool.Query(ctx, `SELECT i.plan -> 'statements', coalesce(w.decided_at, now()) FROM statement_imports i LEFT JOIN statement_withdrawals w ON w.import_id = i.id AND w.state = 'done'
		WHERE i.agency_id::text = $1 AND i.live = $2 AND i.code = $3 AND i.state = 'withdrawn' AND coalesce(w.decided_at, now()) > $4`, key.AgencyID, key.Live, key.Code, after)
	if err != nil {
		return "", last, fmt.Errorf("reading withdrawn statements: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var plan []byte
		var at time.Time
		var facts []Facts
		if err := errors.Join(rows.Scan(&plan, &at), json.Unmarshal(plan, &facts)); err != nil {
			return "", last, fmt.Errorf("reading withdrawn statements: %w", err)
		}
		for _, f := range facts {
			if first == "" || f.From < first {
				first = f.From
			}
		}
		if at.After(last) {
			last = at.UTC()
		}
	}
	return first, last, rows.Err()
}

// signedOf returns the imports of an account that a person has signed to be dismissed, and those that two people have signed
// to be withdrawn.
func signedOf(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, key registry.StatementAccountKey, now time.Time) (dismissed, withdrawn map[string]bool, err error) {
	const ofAccount = `i.agency_id::text = $1 AND i.live = $2 AND i.code = $3`
	account := []any{key.AgencyID, key.Live, key.Code}
	dismissed, withdrawn = map[string]bool{}, map[string]bool{}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		gone, err := exits(ctx, tx, ofAccount+` AND i.state = 'dismissed' AND e.verdict = 'dismissed' AND e.state = 'approved'`, account...)
		if err != nil {
			return err
		}
		back, err := withdrawals(ctx, tx, ofAccount+` AND i.state = 'withdrawn' AND w.state = 'done'`, account...)
		if err != nil {
			return err
		}
		for _, d := range gone {
			held, err := holds(d.pact.dismissed(ctx, tx, keys, now))
			if err != nil {
				return err
			}
			dismissed[d.ImportID] = dismissed[d.ImportID] || held
		}
		for _, w := range back {
			held, err := holds(w.pact.agreed(ctx, tx, keys, w.DecidedAt, now))
			if err != nil {
				return err
			}
			withdrawn[w.ImportID] = withdrawn[w.ImportID] || held
		}
		return nil
	})
	return dismissed, withdrawn, err
}
