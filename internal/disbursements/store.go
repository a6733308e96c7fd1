// Package disbursements is the noun of disbursement batches: the read model that the sink readmodel writes from
// disbursement.events, and the import of a file of lines.
//
// Nothing is decided by what it stores. The processor has a state of its own, verifies each signature again, and whoever
// pays a line compares it with what approvers signed.
package disbursements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/disbursement"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// Store reads and writes the read model. It is safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	reads querier // the pool, or a snapshot
	codec *schemas.Codec
	seen  *proved
}

// querier is what reads batches, their lines and their steps.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// NewStore makes a store on a migrated database. codec may be nil for a store that only deletes or tells positions.
func NewStore(pool *pgxpool.Pool, codec *schemas.Codec) *Store {
	return &Store{pool, pool, codec, &proved{}}
}

// Snapshot calls do with a store whose Batch, Lines and steps are those of one moment, so that what they say of each other can be
// compared while events arrive.
func (s *Store) Snapshot(ctx context.Context, do func(at *Store) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return do(&Store{s.pool, tx, s.codec, s.seen})
	})
}

var positions = consume.Positions{Table: "disbursement_positions", Next: "next"}

// Positions returns the stored positions of a topic by partition.
func (s *Store) Positions(ctx context.Context, topic string) (map[int32]int64, error) {
	return positions.Read(ctx, s.pool, topic)
}

// Happened is an event with its place in disbursement.events.
type Happened struct {
	Event     disbursement.Event
	Partition int32
	Offset    int64

	// As they are stored.
	batch, sealing []byte
	lines          [][]byte
	agency, roster []byte
}

// Read decodes a record of disbursement.events. Errors are those of Codec.Decode.
func (s *Store) Read(value []byte, partition int32, offset int64) (h Happened, err error) {
	var r record.DisbursementEvent
	if err := s.codec.Decode(value, &r); err != nil {
		return h, err
	}
	h = Happened{Event: batches.ToEvent(&r), Partition: partition, Offset: offset}
	encode := func(rec record.Record) (out []byte) {
		if err == nil {
			out, err = s.codec.Encode(rec)
		}
		return out
	}
	if r.Batch != nil {
		h.batch = encode(r.Batch)
	}
	if r.Sealing != nil {
		h.sealing = encode(r.Sealing)
	}
	for i := range r.Lines {
		l := r.Lines[i]
		l.Sealed = nil // a column of its own
		h.lines = append(h.lines, encode(&l))
	}
	if r.Agency != nil {
		h.agency = encode(r.Agency)
	}
	if r.Roster != nil {
		h.roster = encode(r.Roster)
	}
	return h, err
}

// Apply writes events and the positions after their records in one transaction, and until when the keys of lines of ended
// batches are kept. Rows of a later event stay as they are, so that repetition does not matter. Errors are those of consume.Positions.Apply.
func (s *Store) Apply(ctx context.Context, events []Happened, moves []consume.Move) error {
	b := &pgx.Batch{}
	ended := map[string]time.Time{}
	for i := range events {
		if err := events[i].queue(b); err != nil {
			return err
		}
		switch x := events[i].Event.Batch; {
		case x != nil && x.Status.Void(): // pays nobody: its payees would stand before those of batches that did
			b.Queue(`DELETE FROM disbursement_payees WHERE batch = $1`, x.ID)
			b.Queue(`DELETE FROM disbursement_names WHERE batch = $1`, x.ID)
			ended[x.ID] = x.EndedAt
		case x == nil || x.EndedAt.IsZero():
		case x.Status.Live(): // a line of a batch that was done is tried again
			ended[x.ID] = events[i].Event.At.Add(longestLife)
		default:
			ended[x.ID] = x.EndedAt
		}
	}
	personal.KeepLines(b, ended)
	if err := positions.Apply(ctx, s.pool, moves, b); err != nil {
		return fmt.Errorf("applying events of batches: %w", err)
	}
	return nil
}

func (h *Happened) queue(b *pgx.Batch) error {
	e := &h.Event
	for part, snapshot := range map[string][]byte{disbursement.Mode(e.Live): h.agency, partRoster: h.roster} {
		if len(snapshot) > 0 {
			b.Queue(`INSERT INTO disbursement_agencies (tenant_id, part, "offset", snapshot) VALUES ($1, $2, $3, $4)
				ON CONFLICT (tenant_id, part) DO UPDATE SET "offset" = excluded."offset", snapshot = excluded.snapshot WHERE disbursement_agencies."offset" < excluded."offset"`,
				e.TenantID, part, h.Offset, snapshot)
		}
	}
	x := e.Batch
	if x == nil {
		return nil
	}
	b.Queue(`INSERT INTO disbursement_batches (id, tenant_id, livemode, batch_ref, revision, status, held, opened_at, sequence, snapshot, sealing)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (id) DO UPDATE SET status = excluded.status, held = excluded.held, sequence = excluded.sequence, snapshot = excluded.snapshot,
			sealing = coalesce(excluded.sealing, disbursement_batches.sealing)
		WHERE disbursement_batches.sequence < excluded.sequence`,
		x.ID, x.TenantID, x.Live, x.BatchRef, x.Revision, string(x.Status), x.Held(), x.OpenedAt, x.Sequence, h.batch, orNull(h.sealing))
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		return fmt.Errorf("writing the details of an event: %w", err)
	}
	if e.Detail == nil {
		detail = []byte("{}")
	}
	b.Queue(`INSERT INTO disbursement_steps (batch, sequence, type, at, lines, detail, partition, "offset") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT DO NOTHING`, x.ID, x.Sequence, string(e.Type), e.At, len(e.Lines), detail, h.Partition, h.Offset)
	h.queueLines(b)
	return nil
}

// queueLines writes the lines of an event by one statement.
func (h *Happened) queueLines(b *pgx.Batch) {
	n := len(h.Event.Lines)
	if n == 0 {
		return
	}
	at, refs, statuses, cases, sealed := make([]int32, n), make([]string, n), make([]string, n), make([]string, n), make([][]byte, n)
	for i, l := range h.Event.Lines {
		at[i], refs[i], statuses[i], cases[i] = int32(l.Position), l.Ref, string(l.Status), string(l.Case) //nolint:gosec // below MaxLines
		if sealed[i] = l.Sealed; sealed[i] == nil {
			sealed[i] = []byte{}
		}
	}
	if h.Event.Type == disbursement.EventLinesAdded {
		// A later event may have come before, if this one was set aside.
		b.Queue(`UPDATE disbursement_lines SET sealed = l.sealed FROM unnest($2::integer[], $3::bytea[]) AS l (position, sealed)
			WHERE batch = $1 AND disbursement_lines.position = l.position AND disbursement_lines.sealed = ''`, h.Event.Batch.ID, at, sealed)
	}
	b.Queue(`INSERT INTO disbursement_lines (batch, position, line_ref, status, case_kind, sequence, snapshot, sealed)
		SELECT $1, position, line_ref, status, case_kind, $2, snapshot, sealed
		FROM unnest($3::integer[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::bytea[]) AS l (position, line_ref, status, case_kind, snapshot, sealed)
		ON CONFLICT (batch, position) DO UPDATE SET status = excluded.status, case_kind = excluded.case_kind, sequence = excluded.sequence, snapshot = excluded.snapshot
		WHERE disbursement_lines.sequence < excluded.sequence`,
		h.Event.Batch.ID, h.Event.Batch.Sequence, at, refs, statuses, cases, h.lines, sealed)
}

func orNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

const partRoster = "roster"

// ErrUnknown says that the read model has no such batch in the scope, or not yet.
var ErrUnknown = errors.New("there is no such batch, or the read model does not have it yet")

// Scope is what a reader may see: the batches of one agency, or of all.
type Scope struct {
	// TenantID is the agency's id; empty for all agencies, which operations alone may see.
	TenantID string
}

// Batch is a batch with what approvers sign.
type Batch struct {
	disbursement.Batch
	// Sealing is set from the sealing on.
	Sealing disbursement.Sealing
}

// Batch returns a batch. The error is ErrUnknown for one outside of the scope, too.
func (s *Store) Batch(ctx context.Context, in Scope, id string) (b Batch, err error) {
	var snapshot, sealing []byte
	err = s.reads.QueryRow(ctx, `SELECT snapshot, sealing FROM disbursement_batches WHERE id = $1 AND ($2 = '' OR tenant_id = $2)`, id, in.TenantID).Scan(&snapshot, &sealing)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, ErrUnknown
	}
	if err != nil {
		return b, fmt.Errorf("reading a batch: %w", err)
	}
	return s.decode(snapshot, sealing)
}

// Query selects batches. An empty condition selects all.
type Query struct {
	Live   bool
	Status disbursement.Status
	// BatchRef selects the revisions of one batch_ref.
	BatchRef string
	// Held selects those that are held, Cases those with a line that has an open case.
	Held, Cases bool
	// Before is the id of the last batch of the page before.
	Before string
	// Size is the largest number of batches, 1 to 200.
	Size int
}

// List returns the batches of a mode, the newest first.
func (s *Store) List(ctx context.Context, in Scope, q Query) (out []disbursement.Batch, err error) {
	rows, _ := s.pool.Query(ctx, `SELECT snapshot FROM disbursement_batches
		WHERE ($1 = '' OR tenant_id = $1) AND livemode = $2 AND ($3 = '' OR status = $3) AND ($4 = '' OR batch_ref = $4) AND (NOT $5 OR held) AND ($6 = '' OR id < $6)
			AND (NOT $7 OR id IN (SELECT batch FROM disbursement_lines WHERE case_kind <> ''))
		ORDER BY id DESC LIMIT $8`, in.TenantID, q.Live, string(q.Status), q.BatchRef, q.Held, q.Before, q.Cases, min(max(q.Size, 1), 200)) // the rows carry its error
	snapshots, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("listing batches: %w", err)
	}
	for _, b := range snapshots {
		var r record.Batch
		if err := s.codec.Decode(b, &r); err != nil {
			return nil, err
		}
		out = append(out, batches.ToBatch(&r))
	}
	return out, nil
}

// LineQuery selects lines of a batch. An empty condition selects all.
type LineQuery struct {
	Status disbursement.LineStatus
	// Cases selects lines with an open case.
	Cases bool
	// From is the first position.
	From int
	// Size is the largest number of lines, 1 to 1,000.
	Size int
}

// Lines returns lines of a batch in their order, with their sealed contents. The caller has read the batch in the scope of
// whoever asks.
func (s *Store) Lines(ctx context.Context, batch string, q LineQuery) (out []disbursement.Line, err error) {
	rows, _ := s.reads.Query(ctx, `SELECT position, snapshot, sealed FROM disbursement_lines
		WHERE batch = $1 AND position >= $2 AND ($3 = '' OR status = $3) AND (NOT $4 OR case_kind <> '')
		ORDER BY position LIMIT $5`, batch, q.From, string(q.Status), q.Cases, min(max(q.Size, 1), 1000)) // the rows carry its error
	var snapshot, sealed []byte
	var position int
	_, err = pgx.ForEachRow(rows, []any{&position, &snapshot, &sealed}, func() error {
		var r record.BatchLine
		if err := s.codec.Decode(snapshot, &r); err != nil {
			return err
		}
		l := batches.ToLine(&r)
		// A content is opened as that of this line of this batch: whoever writes Postgres puts another one here.
		l.LineKey, l.Sealed = disbursement.LineKey{Batch: batch, Position: position}, slices.Clone(sealed)
		out = append(out, l)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading lines of a batch: %w", err)
	}
	return out, nil
}

// Step is an event of a batch.
type Step struct {
	Sequence  int64
	Type      disbursement.EventType
	At        time.Time // UTC
	Lines     int       // that it changed
	Detail    map[string]string
	Partition int32 // of disbursement.events
	Offset    int64
}

// StepsAtMost is how many steps Steps returns.
const StepsAtMost = 1000

// Steps returns what happened to a batch, in order: the newest StepsAtMost steps.
func (s *Store) Steps(ctx context.Context, batch string) ([]Step, error) {
	return s.steps(ctx, "", batch, StepsAtMost)
}

// LineSteps returns what happened to one line alone, in order: the newest 100 steps. Steps of many lines, such as those that
// were sent together, are of the batch.
func (s *Store) LineSteps(ctx context.Context, batch string, position int) ([]Step, error) {
	return s.steps(ctx, ` AND lines = 1 AND detail ->> 'line' = $3`, batch, 100, strconv.Itoa(position))
}

// steps returns the newest steps of a batch that meet a condition, in order.
func (s *Store) steps(ctx context.Context, condition string, args ...any) (out []Step, err error) {
	rows, _ := s.reads.Query(ctx, `SELECT sequence, type, at, lines, detail, partition, "offset" FROM disbursement_steps
		WHERE batch = $1`+condition+` ORDER BY sequence DESC LIMIT $2`, args...) // the rows carry its error
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (x Step, err error) {
		err = row.Scan(&x.Sequence, &x.Type, &x.At, &x.Lines, &x.Detail, &x.Partition, &x.Offset)
		x.At = x.At.UTC()
		return x, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the steps of a batch: %w", err)
	}
	slices.Reverse(out)
	return out, nil
}

// PausedAccount is a payout account that is paused, or closed.
type PausedAccount struct {
	TenantID string
	Live     bool
	Code     string
	// Reason is the operator's code. Closed says that no line is tried until a person says so: the operator refuses the settings.
	Reason string
	Closed bool
	Since  time.Time // UTC
	// Batch is the one with which it was noticed. Waits says that a batch of the agency in this mode pays and is not held.
	Batch string
	Waits bool
}

// PausedAccounts returns the paused and closed accounts, the oldest pause first.
func (s *Store) PausedAccounts(ctx context.Context, in Scope) (out []PausedAccount, err error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT tenant_id, livemode, account, reason, closed, at, batch, EXISTS (
			SELECT FROM disbursement_batches w WHERE w.tenant_id = last.tenant_id AND w.livemode = last.livemode AND w.status = 'releasing' AND NOT w.held)
		FROM (
			SELECT DISTINCT ON (b.tenant_id, b.livemode, s.detail->>'account') b.tenant_id, b.livemode, s.detail->>'account' AS account,
				coalesce(s.detail->>'reason', '') AS reason, coalesce(s.detail->>'closed', '') <> '' AS closed, s.type, s.at, s.batch
			FROM disbursement_steps s JOIN disbursement_batches b ON b.id = s.batch
			WHERE s.type IN ('account.paused', 'account.open', 'account.reopened') AND ($1 = '' OR b.tenant_id = $1)
			ORDER BY b.tenant_id, b.livemode, s.detail->>'account', s."offset" DESC) last
		WHERE type <> 'account.open' ORDER BY at, account LIMIT 1000`, in.TenantID) // the rows carry its error
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a PausedAccount, err error) {
		err = row.Scan(&a.TenantID, &a.Live, &a.Code, &a.Reason, &a.Closed, &a.Since, &a.Batch, &a.Waits)
		a.Since = a.Since.UTC()
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading which accounts are paused: %w", err)
	}
	return out, nil
}

// PausedAccountsOf returns the accounts of a batch that are paused or closed.
func (s *Store) PausedAccountsOf(ctx context.Context, b disbursement.Batch) ([]PausedAccount, error) {
	all, err := s.PausedAccounts(ctx, Scope{TenantID: b.TenantID})
	return slices.DeleteFunc(all, func(a PausedAccount) bool {
		return a.Live != b.Live || !slices.ContainsFunc(b.Accounts, func(f disbursement.Funding) bool { return f.Code == a.Code })
	}), err
}

// Agency returns what is known of an agency in a mode, and its roster. Both are zero for an agency that has none.
func (s *Store) Agency(ctx context.Context, tenantID string, live bool) (a disbursement.Agency, r disbursement.Roster, err error) {
	rows, _ := s.pool.Query(ctx, `SELECT part, snapshot FROM disbursement_agencies WHERE tenant_id = $1 AND part IN ($2, $3)`, tenantID, disbursement.Mode(live), partRoster) // the rows carry its error
	var part string
	var snapshot []byte
	_, err = pgx.ForEachRow(rows, []any{&part, &snapshot}, func() error {
		if part == partRoster {
			var rec record.BatchRoster
			if err := s.codec.Decode(snapshot, &rec); err != nil {
				return err
			}
			r = batches.ToRoster(&rec)
			return nil
		}
		var rec record.BatchAgency
		if err := s.codec.Decode(snapshot, &rec); err != nil {
			return err
		}
		a = batches.ToAgency(&rec)
		return nil
	})
	if err != nil {
		return a, r, fmt.Errorf("reading an agency's policy and people: %w", err)
	}
	return a, r, nil
}
