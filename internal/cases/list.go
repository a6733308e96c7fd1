package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/identity"
	"quittance/internal/keyset"
	"quittance/internal/operation"
)

// lapsesAfter is how long a proposal waits for its approval.
const lapsesAfter = checkout.ProposalLife

// ProposalState is the state of a proposal.
type ProposalState string

// The states of a proposal.
const (
	ProposalOpen       ProposalState = "open"        // waits for another person
	ProposalApproved   ProposalState = "approved"    // waits for the processor, or for the sink cases
	ProposalCarriedOut ProposalState = "carried_out" // has closed the case
	ProposalRefused    ProposalState = "refused"     // by the processor
	ProposalRejected   ProposalState = "rejected"    // by staff
	ProposalLapsed     ProposalState = "lapsed"      // too old, or the proposer was revoked
	ProposalVoid       ProposalState = "void"        // the case was closed in another way
)

// Proposal is a resolution that staff propose for a case.
type Proposal struct {
	CaseID     string
	Number     int // within the case, from 1
	State      ProposalState
	Resolution casework.Resolution
	Reference  string
	Reason     string
	// ProposedBy and DecidedBy are ids of staff, Proposer and Decider their names. Whoever
	// decided approved or rejected it.
	ProposedBy, Proposer string
	ProposedAt           time.Time
	DecidedBy, Decider   string
	DecidedAt            time.Time
	Decision             string // why it was rejected
	Refusal              string // code of the processor's refusal
	FinishedAt           time.Time
	// Digest is that of what the people decide on; nil in a proposal of an earlier release.
	Digest []byte

	from casework.Person // who proposed it, as Show has read the person
}

const proposalColumns = `case_id, number, state, resolution, reference, reason, proposed_by, proposer, proposed_at, decided_by, decider, decided_at,
	decision, refusal, finished_at, digest`

func toProposal(r pgx.CollectableRow) (p Proposal, err error) {
	var decidedBy *string
	var decidedAt, finishedAt *time.Time
	err = r.Scan(&p.CaseID, &p.Number, &p.State, &p.Resolution, &p.Reference, &p.Reason, &p.ProposedBy, &p.Proposer, &p.ProposedAt,
		&decidedBy, &p.Decider, &decidedAt, &p.Decision, &p.Refusal, &finishedAt, &p.Digest)
	p.DecidedBy, p.DecidedAt, p.FinishedAt = value(decidedBy), value(decidedAt), value(finishedAt)
	return p, err
}

// decision returns the proposal as a decision by two people.
func (p Proposal) decision() casework.Decision {
	d := casework.Decision{ProposedBy: p.ProposedBy, ProposedAt: p.ProposedAt, Life: lapsesAfter}
	switch p.State {
	case ProposalOpen:
		d.State = casework.DecisionProposed
	case ProposalApproved, ProposalCarriedOut, ProposalRefused:
		d.State = casework.DecisionApproved
	case ProposalRejected, ProposalVoid:
		d.State = casework.DecisionRejected
	case ProposalLapsed:
		d.State = casework.DecisionLapsed
	}
	return d
}

// Filter selects cases. The zero value selects all.
type Filter struct {
	Kind     casework.Kind
	AgencyID string
	State    State
	// SessionID is the session of the money; for a report of no known session, the id that
	// it named.
	SessionID string
	// Mode is test or live; empty for both, and for cases without one.
	Mode string
	// Reference is that of the operator or of the collection, or the id of the case.
	Reference string
	// After goes on after a case: a cursor of this filter; empty for the first page.
	After string
	Limit int // 1000 when zero
}

const defaultLimit = 1000

// list is the list of the filter for a viewer of an agency; own is empty for all agencies.
func (f Filter) list(own string) keyset.List {
	f.After, f.Limit = "", 0
	return keyset.Of("cases", f, own)
}

// scope returns the agency whose cases the viewer sees; empty for all.
func scope(viewer *identity.Staff) string {
	if viewer == nil {
		return ""
	}
	return viewer.AgencyID
}

// Cursor returns the After of the list that goes on after a case, which is the last one that the
// viewer was shown.
func (f Filter) Cursor(viewer *identity.Staff, last Case) string {
	return f.list(scope(viewer)).Cursor(string(last.State()), last.OpenedAt.UTC().Format(time.RFC3339Nano), last.ID)
}

// List returns cases: the open ones first, and the newest first among those of one state.
// viewer is the person who asks; nil for whoever runs the installation. An agency's staff
// see the cases of their agency. A cursor of another list is refused (keyset.List.Key).
func (s *Store) List(ctx context.Context, viewer *identity.Staff, f Filter) (list []Case, err error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	after, err := f.after(scope(viewer))
	if err != nil {
		return nil, err
	}
	for _, state := range []State{StateOpen, StateClosed} {
		if f.State != "" && f.State != state || after.passed(state) || len(list) == f.Limit {
			continue
		}
		sql, args := f.query(scope(viewer), state, after, f.Limit-len(list))
		rows, _ := s.pool.Query(ctx, sql, args...)
		found, err := pgx.CollectRows(rows, toCase)
		if err != nil {
			return nil, fmt.Errorf("listing cases: %w", err)
		}
		list = append(list, found...)
	}
	return list, nil
}

// place is a place in a list: after a case of a state. The zero value is its beginning.
type place struct {
	state    State
	openedAt time.Time
	id       string
}

// passed reports whether a place is after all cases of a state.
func (p place) passed(state State) bool { return p.state == StateClosed && state == StateOpen }

// after reads the filter's cursor.
func (f Filter) after(own string) (p place, err error) {
	key, err := f.list(own).Key(f.After, 3)
	if err != nil || key == nil {
		return p, err
	}
	p = place{state: State(key[0]), id: storable(key[2])}
	if p.openedAt, err = time.Parse(time.RFC3339Nano, key[1]); err != nil || p.state != StateOpen && p.state != StateClosed {
		return place{}, keyset.Malformed()
	}
	return p, nil
}

// query returns the query of the cases of a state. It has the conditions that are set only, so that
// Postgres finds the index of each.
func (f Filter) query(own string, state State, after place, limit int) (sql string, args []any) {
	where := "resolution IS NULL"
	if state == StateClosed {
		where = "resolution IS NOT NULL"
	}
	and := func(condition string, value any) {
		args = append(args, value)
		where += " AND " + strings.ReplaceAll(condition, "?", fmt.Sprintf("$%d", len(args)))
	}
	for _, c := range []struct{ column, value string }{{"kind", string(f.Kind)}, {"agency_id", f.AgencyID}, {"agency_id", own}, {"session_id", storable(f.SessionID)}} {
		if c.value != "" {
			and(c.column+" = ?", c.value)
		}
	}
	if f.Mode != "" {
		and("livemode = ?", f.Mode == "live")
	}
	if ref := storable(f.Reference); ref != "" {
		and(`id = ANY(ARRAY(SELECT id FROM cases WHERE operator_ref = ? UNION SELECT id FROM cases WHERE collection_id = ? UNION SELECT ?))`, ref)
	}
	if after.state == state {
		and("opened_at <= ?", after.openedAt)
		and(fmt.Sprintf("(opened_at < $%d OR id > ?)", len(args)), after.id)
	}
	return fmt.Sprintf("SELECT %s FROM cases WHERE %s ORDER BY opened_at DESC, id LIMIT %d", read, where, limit), args
}

func toCase(r pgx.CollectableRow) (Case, error) {
	stored, err := pgx.RowToStructByPos[row](r)
	if err != nil {
		return Case{}, err
	}
	return fromRow(stored)
}

// Detail is a case with its proposals.
type Detail struct {
	Case
	Proposals []Proposal // oldest first
}

// ApprovedBy returns the name of the person who approved what closed the case; empty if nobody did.
func (d Detail) ApprovedBy() string {
	for _, p := range d.Proposals {
		if p.State == ProposalCarriedOut {
			return p.Decider
		}
	}
	return ""
}

// Show returns a case with its proposals as they are at a time of the service's clock.
// viewer is as in List. A refusal is an *operation.Error with the field id.
func (s *Store) Show(ctx context.Context, viewer *identity.Staff, id string, now time.Time) (d Detail, err error) {
	err = s.tx(ctx, "showing a case", func(tx pgx.Tx) error {
		d, err = s.show(ctx, tx, viewer, id, now)
		return err
	})
	return d, err
}

func (s *Store) tx(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, s.pool, do); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// show reads a case. Its proposals have lapsed when their time is over.
func (s *Store) show(ctx context.Context, tx pgx.Tx, viewer *identity.Staff, id string, now time.Time) (d Detail, err error) {
	if d.Case, err = find(ctx, tx, viewer, id, ""); err != nil {
		return d, err
	}
	if d.Proposals, err = proposals(ctx, tx, id); err != nil {
		return d, err
	}
	ids := make([]string, len(d.Proposals))
	for i, p := range d.Proposals {
		ids[i] = p.ProposedBy
	}
	staff, err := identity.LockStaff(ctx, tx, s.keys, ids...)
	if err != nil {
		return d, err
	}
	for i, p := range d.Proposals {
		d.Proposals[i].from = staff[p.ProposedBy].Person()
		if p.decision().At(now, d.Proposals[i].from) == casework.DecisionLapsed {
			d.Proposals[i].State = ProposalLapsed
		}
	}
	return d, nil
}

// find reads a case that the viewer may see. lock is empty or FOR UPDATE.
func find(ctx context.Context, tx pgx.Tx, viewer *identity.Staff, id, lock string) (Case, error) {
	rows, _ := tx.Query(ctx, `SELECT `+read+` FROM cases WHERE id = $1 `+lock, storable(id))
	c, err := pgx.CollectExactlyOneRow(rows, toCase)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && viewer != nil && !viewer.ActsFor(c.AgencyID) {
		return Case{}, operation.Refuse("case.unknown", "id", nil)
	}
	return c, err
}

func proposals(ctx context.Context, tx pgx.Tx, id string) ([]Proposal, error) {
	rows, _ := tx.Query(ctx, `SELECT `+proposalColumns+` FROM case_proposals WHERE case_id = $1 ORDER BY number`, id)
	return pgx.CollectRows(rows, toProposal)
}

// Count is the number of open cases of a kind.
type Count struct {
	Kind   casework.Kind
	N      int64
	Oldest time.Time
}

// CountOpen counts the open cases by kind. Kinds without an open case are missing.
func (s *Store) CountOpen(ctx context.Context) ([]Count, error) {
	rows, _ := s.pool.Query(ctx, `SELECT kind, count(*), min(opened_at) FROM cases WHERE resolution IS NULL GROUP BY kind`)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Count])
	if err != nil {
		return nil, fmt.Errorf("counting cases: %w", err)
	}
	return out, nil
}

// CountApproved counts the approved proposals that have not been answered, and
// returns when the oldest was approved.
func (s *Store) CountApproved(ctx context.Context) (n int64, oldest time.Time, err error) {
	var at *time.Time
	if err := s.pool.QueryRow(ctx, `SELECT count(*), min(decided_at) FROM case_proposals WHERE state = 'approved'`).Scan(&n, &at); err != nil {
		return 0, time.Time{}, fmt.Errorf("counting approved proposals: %w", err)
	}
	return n, value(at), nil
}

// NotClosed returns the ids of a list whose cases are not closed. One whose record the sink cases has not read
// yet is not closed.
func (s *Store) NotClosed(ctx context.Context, ids []string) ([]string, error) {
	rows, _ := s.pool.Query(ctx, `SELECT id FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT FROM cases c WHERE c.id = id.id AND c.resolution IS NOT NULL)`, ids)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("asking whether cases are closed: %w", err)
	}
	return out, nil
}

// OpenPoison returns the open cases of records that consumers have set aside in a poison topic, whose name is without the
// prefix. The topic may not have the records any more.
func (s *Store) OpenPoison(ctx context.Context, topic string) ([]Case, error) {
	rows, _ := s.pool.Query(ctx, `SELECT `+read+` FROM cases WHERE kind = $1 AND resolution IS NULL AND evidence ->> $2 = $3`, KindPoison, EvidencePoisonTopic, topic)
	list, err := pgx.CollectRows(rows, toCase)
	if err != nil {
		return nil, fmt.Errorf("reading the open cases of %s: %w", topic, err)
	}
	return list, nil
}
