package tills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/money/localtime"
)

// MaxAmount is the largest opening and the largest count, in minor units.
const MaxAmount = form.MaxAmount

// MaxNote is how many characters a note has at most.
const MaxNote = 200

// Sum is a number of movements and the sum of their amounts.
type Sum struct{ Count, Amount int64 }

// Till is the cash of a clerk from an opening to a closing. Amounts are minor units of XAF.
type Till struct {
	ID       string
	AgencyID string
	Live     bool
	// Clerk is the code of the clerk.
	Clerk string
	// Number counts the tills of the clerk in the mode, from 1.
	Number  int64
	Counter string

	OpenedAt time.Time
	// Opening is the cash that was in the till when it opened, without what no earlier till
	// counts.
	Opening int64

	// ClosedAt is zero while the till is open. The fields below are empty then.
	ClosedAt        time.Time
	Taken, Returned Sum
	Counted         int64
	// Note says why the count differs.
	Note string

	// SignedBy is the code of the clerk who signed; empty before.
	SignedBy string
	SignedAt time.Time
}

// Closed reports whether the till is closed.
func (t Till) Closed() bool { return !t.ClosedAt.IsZero() }

// Signed reports whether a second clerk has signed the till.
func (t Till) Signed() bool { return t.SignedBy != "" }

// Expected is the cash that a closed till must hold.
func (t Till) Expected() int64 { return t.Opening + t.Taken.Amount - t.Returned.Amount }

// Difference is what a closed till holds above what it must hold. It is negative when cash
// is missing.
func (t Till) Difference() int64 { return t.Counted - t.Expected() }

// Version identifies the count of a closed till and its note. It changes with either.
func (t Till) Version() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", t.Counted, t.Note))
	return hex.EncodeToString(sum[:])
}

// Movement is a movement of cash that a closed till counts.
type Movement struct {
	Kind         checkout.CashKind
	At           time.Time
	Amount       int64
	PaymentRef   string
	ServiceLabel string
	Receipt      string
	// TakenBy is the code of the clerk who took the cash. It is empty for a taking that no
	// till counts, while a rebuild runs.
	TakenBy string
}

// Who is a clerk at work in a mode.
type Who struct {
	AgencyID string
	Live     bool
	Clerk    string
	Counter  string
}

// ReadModel runs a transaction in which cash_movements has everything that was acknowledged
// for an agency: internal/sessions.Reader. It runs do again when Postgres refused the
// transaction because of another one.
type ReadModel interface {
	Transact(ctx context.Context, agencyID string, do func(context.Context, pgx.Tx) error) error
}

// Config of Tills. All fields are required.
type Config struct {
	Pool      *pgxpool.Pool
	ReadModel ReadModel
	// Now is the service's clock, UTC.
	Now func() time.Time
}

// Tills opens, closes, signs and reads tills. It is safe for concurrent use. Refusals are
// *operation.Error; any other error means that Postgres or the read model does not answer,
// and nothing has changed unless the answer was lost. Each operation may be repeated.
type Tills struct{ cfg Config }

// New makes Tills.
func New(cfg Config) (*Tills, error) {
	if cfg.Pool == nil || cfg.ReadModel == nil || cfg.Now == nil {
		return nil, errors.New("tills: Pool, ReadModel and Now are required")
	}
	return &Tills{cfg}, nil
}

const columns = `id, agency_id, livemode, clerk_code, number, counter, opened_at, opening, closed_at, taken_count, taken, returned_count, returned,
	counted, note, signed_by, signed_at`

func scan(row pgx.CollectableRow) (t Till, err error) {
	var closed, signed *time.Time
	var counted *int64
	var by *string
	err = row.Scan(&t.ID, &t.AgencyID, &t.Live, &t.Clerk, &t.Number, &t.Counter, &t.OpenedAt, &t.Opening, &closed, &t.Taken.Count, &t.Taken.Amount,
		&t.Returned.Count, &t.Returned.Amount, &counted, &t.Note, &by, &signed)
	t.OpenedAt, t.ClosedAt, t.Counted, t.SignedBy, t.SignedAt = t.OpenedAt.UTC(), utc(closed), value(counted), value(by), utc(signed)
	return t, err
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func find(ctx context.Context, q querier, where string, args ...any) ([]Till, error) {
	rows, _ := q.Query(ctx, `SELECT `+columns+` FROM tills WHERE `+where, args...) // the rows return its error
	return pgx.CollectRows(rows, scan)
}

// one returns the only till that matches; ok is false for none.
func one(ctx context.Context, q querier, where string, args ...any) (t Till, ok bool, err error) {
	found, err := find(ctx, q, where, args...)
	if err != nil || len(found) == 0 {
		return Till{}, false, err
	}
	return found[0], true, nil
}

const openOf = `agency_id = $1 AND livemode = $2 AND clerk_code = $3 AND closed_at IS NULL`

// Current returns the open till of a clerk; ok is false for none.
func (s *Tills) Current(ctx context.Context, who Who) (t Till, ok bool, err error) {
	t, ok, err = one(ctx, s.cfg.Pool, openOf, who.AgencyID, who.Live, who.Clerk)
	if err != nil {
		return Till{}, false, fmt.Errorf("reading a till: %w", err)
	}
	return t, ok, nil
}

// recent is the number of tills in a list.
const recent = 20

// Recent returns the closed tills that concern a clerk, the newest first: the clerk's own, and
// those of others of the agency and mode that wait for a signature.
func (s *Tills) Recent(ctx context.Context, who Who) (own, unsigned []Till, err error) {
	own, err = find(ctx, s.cfg.Pool, `agency_id = $1 AND livemode = $2 AND clerk_code = $3 AND closed_at IS NOT NULL ORDER BY number DESC LIMIT $4`,
		who.AgencyID, who.Live, who.Clerk, recent)
	if err == nil {
		unsigned, err = find(ctx, s.cfg.Pool, `agency_id = $1 AND livemode = $2 AND clerk_code <> $3 AND closed_at IS NOT NULL AND signed_by IS NULL
			ORDER BY closed_at DESC, id LIMIT $4`, who.AgencyID, who.Live, who.Clerk, recent)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing tills: %w", err)
	}
	return own, unsigned, nil
}

// Report returns a till of the agency and mode with the movements that it counts, the oldest
// first. The refusal is till.unknown.
func (s *Tills) Report(ctx context.Context, who Who, id string) (t Till, movements []Movement, err error) {
	if t, err = get(ctx, s.cfg.Pool, who, id, ""); err != nil {
		return Till{}, nil, err
	}
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT m.kind, m.at, m.amount, m.payment_ref, m.service_label, m.receipt, coalesce(k.clerk_code, c.clerk, '')
		FROM till_movements m
		LEFT JOIN till_movements o ON o.session_id = m.session_id AND o.collection_id = m.collection_id AND o.kind = 'taken'
		LEFT JOIN tills k ON k.id = o.till_id
		LEFT JOIN cash_movements c ON c.session_id = m.session_id AND c.collection_id = m.collection_id AND c.kind = 'taken'
		WHERE m.till_id = $1 ORDER BY m.at, m.session_id, m.collection_id, m.kind DESC`, t.ID) // the rows return its error
	movements, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Movement, err error) {
		err = row.Scan(&m.Kind, &m.At, &m.Amount, &m.PaymentRef, &m.ServiceLabel, &m.Receipt, &m.TakenBy)
		return m, err
	})
	if err != nil {
		return Till{}, nil, fmt.Errorf("reading a till: %w", err)
	}
	return t, movements, nil
}

// get returns a till of the agency and mode. lock is empty or FOR UPDATE.
func get(ctx context.Context, q querier, who Who, id, lock string) (Till, error) {
	canonical, ok := form.CanonicalUUID(id)
	if !ok {
		return Till{}, operation.Refuse("till.unknown", "id", nil)
	}
	t, ok, err := one(ctx, q, `id = $1 AND agency_id = $2 AND livemode = $3 `+lock, canonical, who.AgencyID, who.Live)
	switch {
	case err != nil:
		return Till{}, fmt.Errorf("reading a till: %w", err)
	case !ok:
		return Till{}, operation.Refuse("till.unknown", "id", nil)
	}
	return t, nil
}

// record writes a step of a till to the audit table.
func (s *Tills) record(ctx context.Context, tx pgx.Tx, actor operation.Actor, action string, t Till, detail map[string]any) error {
	detail["clerk"], detail["live"], detail["number"], detail["agency_id"] = t.Clerk, t.Live, t.Number, t.AgencyID
	return operation.Record(ctx, tx, actor, s.cfg.Now(), operation.Entry{Action: action, Subject: t.ID, AgencyID: t.AgencyID, Detail: detail})
}

// Open opens the till of a clerk with the cash that is in it, without what Uncounted
// returns. A clerk whose till is open gets that till. The refusal is till.amount_out_of_range with the field opening.
func (s *Tills) Open(ctx context.Context, actor operation.Actor, who Who, opening int64) (t Till, err error) {
	if opening < 0 || opening > MaxAmount {
		return Till{}, operation.Refuse("till.amount_out_of_range", "opening", operation.Args{"most": int64(MaxAmount)})
	}
	err = s.cfg.ReadModel.Transact(ctx, who.AgencyID, func(ctx context.Context, tx pgx.Tx) error {
		var ok bool
		if t, ok, err = one(ctx, tx, openOf, who.AgencyID, who.Live, who.Clerk); err != nil || ok {
			return err
		}
		t = Till{
			ID: uuid.Must(uuid.NewV7()).String(), AgencyID: who.AgencyID, Live: who.Live, Clerk: who.Clerk, Counter: who.Counter,
			OpenedAt: s.cfg.Now(), Opening: opening,
		}
		if err := tx.QueryRow(ctx, `INSERT INTO tills (id, agency_id, livemode, clerk_code, number, counter, opened_at, opening)
			VALUES ($1, $2, $3, $4, (SELECT coalesce(max(number), 0) + 1 FROM tills WHERE agency_id = $2 AND livemode = $3 AND clerk_code = $4), $5, $6, $7)
			RETURNING number`, t.ID, t.AgencyID, t.Live, t.Clerk, t.Counter, t.OpenedAt, t.Opening).Scan(&t.Number); err != nil {
			return err
		}
		return s.record(ctx, tx, actor, "till.open", t, map[string]any{"opening": opening})
	})
	if err != nil {
		return Till{}, fmt.Errorf("opening a till: %w", err)
	}
	return t, nil
}

// Count closes the clerk's open till with the counted cash, or corrects the count of a closed
// one that is not signed. A count that differs needs a note. The same count again changes
// nothing. Refusals are till.unknown (also for the till of another clerk),
// till.amount_out_of_range with the field counted, till.note_malformed and till.note_required
// with the field note, of which the latter has the difference and closes nothing, and
// till.signed.
func (s *Tills) Count(ctx context.Context, actor operation.Actor, who Who, id string, counted int64, note string) (t Till, err error) {
	switch {
	case counted < 0 || counted > MaxAmount:
		return Till{}, operation.Refuse("till.amount_out_of_range", "counted", operation.Args{"most": int64(MaxAmount)})
	case note != "" && !form.IsLine(note, MaxNote):
		return Till{}, operation.Refuse("till.note_malformed", "note", operation.Args{"most": MaxNote})
	}
	err = s.cfg.ReadModel.Transact(ctx, who.AgencyID, func(ctx context.Context, tx pgx.Tx) error {
		if t, err = get(ctx, tx, who, id, "FOR UPDATE"); err != nil {
			return err
		}
		before := t
		switch {
		case t.Clerk != who.Clerk:
			return operation.Refuse("till.unknown", "id", nil)
		case t.Signed() && (t.Counted != counted || t.Note != note):
			return operation.Refuse("till.signed", "", operation.Args{"by": t.SignedBy})
		case t.Closed() && t.Counted == counted && t.Note == note:
			return nil
		}
		action := "till.recount"
		if !t.Closed() {
			action, t.ClosedAt = "till.close", s.cfg.Now()
			if err := s.claim(ctx, tx, who, &t); err != nil {
				return err
			}
		}
		if t.Counted, t.Note = counted, note; t.Difference() != 0 && note == "" {
			return operation.Refuse("till.note_required", "note", operation.Args{"difference": t.Difference()})
		}
		if _, err := tx.Exec(ctx, `UPDATE tills SET closed_at = $2, taken_count = $3, taken = $4, returned_count = $5, returned = $6, counted = $7, note = $8 WHERE id = $1`,
			t.ID, t.ClosedAt, t.Taken.Count, t.Taken.Amount, t.Returned.Count, t.Returned.Amount, t.Counted, t.Note); err != nil {
			return err
		}
		detail := map[string]any{"expected": t.Expected(), "counted": t.Counted, "difference": t.Difference(), "taken": t.Taken.Amount, "returned": t.Returned.Amount, "note": t.Note}
		if before.Closed() {
			detail["counted_before"], detail["note_before"] = before.Counted, before.Note
		}
		return s.record(ctx, tx, actor, action, t, detail)
	})
	if err != nil {
		return Till{}, fmt.Errorf("counting a till: %w", err)
	}
	return t, nil
}

// uncounted selects the movements of a clerk that no till counts, from the local day of the
// clerk's first till on.
const uncounted = ` FROM cash_movements m WHERE m.agency_id = $1 AND m.livemode = $2 AND m.clerk = $3 AND m.day >= $4 AND NOT EXISTS (
	SELECT 1 FROM till_movements o WHERE o.session_id = m.session_id AND o.collection_id = m.collection_id AND o.kind = m.kind)`

// sums selects the sums of movements.
const sums = `SELECT count(*) FILTER (WHERE kind = 'taken'), coalesce(sum(amount) FILTER (WHERE kind = 'taken'), 0)::bigint,
	count(*) FILTER (WHERE kind = 'returned'), coalesce(sum(amount) FILTER (WHERE kind = 'returned'), 0)::bigint`

// firstDay returns the local day of the clerk's first till; today before there is one.
func (s *Tills) firstDay(ctx context.Context, tx pgx.Tx, who Who) (string, error) {
	var first *time.Time
	err := tx.QueryRow(ctx, `SELECT min(opened_at) FROM tills WHERE agency_id = $1 AND livemode = $2 AND clerk_code = $3`, who.AgencyID, who.Live, who.Clerk).Scan(&first)
	if first == nil {
		return localtime.Day(s.cfg.Now()), err
	}
	return localtime.Day(*first), err
}

// Uncounted returns what a clerk took and gave back that no till counts yet. The next closing
// counts it.
func (s *Tills) Uncounted(ctx context.Context, who Who) (taken, returned Sum, err error) {
	err = s.cfg.ReadModel.Transact(ctx, who.AgencyID, func(ctx context.Context, tx pgx.Tx) error {
		day, err := s.firstDay(ctx, tx, who)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, sums+uncounted, who.AgencyID, who.Live, who.Clerk, day).Scan(&taken.Count, &taken.Amount, &returned.Count, &returned.Amount)
	})
	if err != nil {
		return Sum{}, Sum{}, fmt.Errorf("reading what no till counts: %w", err)
	}
	return taken, returned, nil
}

// claim gives the till all movements of its clerk that no till counts, and sums them up.
func (s *Tills) claim(ctx context.Context, tx pgx.Tx, who Who, t *Till) error {
	day, err := s.firstDay(ctx, tx, who)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO till_movements (session_id, collection_id, kind, till_id, at, amount, payment_ref, service_label, receipt)
		SELECT m.session_id, m.collection_id, m.kind, $5, m.at, m.amount, m.payment_ref, m.service_label, m.receipt`+uncounted,
		who.AgencyID, who.Live, who.Clerk, day, t.ID); err != nil {
		return err
	}
	return tx.QueryRow(ctx, sums+` FROM till_movements WHERE till_id = $1`, t.ID).Scan(&t.Taken.Count, &t.Taken.Amount, &t.Returned.Count, &t.Returned.Amount)
}

// Sign records that a second clerk has counted the closed till with the same result. Seen is
// the Version of the till that the clerk saw: the signature covers the note too. A clerk who
// has signed the till may repeat it. Refusals are till.unknown, till.second_person,
// till.not_closed, till.signed, till.changed for another version, and till.count_differs with
// the field counted.
func (s *Tills) Sign(ctx context.Context, actor operation.Actor, who Who, id, seen string, counted int64) (t Till, err error) {
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if t, err = get(ctx, tx, who, id, "FOR UPDATE"); err != nil {
			return err
		}
		switch {
		case t.Clerk == who.Clerk:
			return operation.Refuse("till.second_person", "", nil)
		case !t.Closed():
			return operation.Refuse("till.not_closed", "", nil)
		case t.SignedBy == who.Clerk && t.Counted == counted:
			return nil
		case t.Signed():
			return operation.Refuse("till.signed", "", operation.Args{"by": t.SignedBy})
		case t.Version() != seen:
			return operation.Refuse("till.changed", "", nil)
		case t.Counted != counted:
			return operation.Refuse("till.count_differs", "counted", nil)
		}
		t.SignedBy, t.SignedAt = who.Clerk, s.cfg.Now()
		if _, err := tx.Exec(ctx, `UPDATE tills SET signed_by = $2, signed_at = $3 WHERE id = $1`, t.ID, t.SignedBy, t.SignedAt); err != nil {
			return err
		}
		return s.record(ctx, tx, actor, "till.sign", t, map[string]any{"by": t.SignedBy, "counted": t.Counted, "difference": t.Difference(), "note": t.Note})
	})
	if err != nil {
		return Till{}, fmt.Errorf("signing a till: %w", err)
	}
	return t, nil
}
