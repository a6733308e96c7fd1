package intake

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/internal/identity"
	"quittance/internal/keyset"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/statements"
)

// Kind is what a person requests about an import, and another person approves.
type Kind string

// The kinds of requests.
const (
	KindRelease    Kind = "release"
	KindWithdrawal Kind = "withdrawal"
	KindReading    Kind = "reading"
)

// Asked is a request about an import that one person made, or the dismissal of one person.
type Asked struct {
	Kind         Kind
	Dismissal    bool // it is not a request: one person has dismissed the file
	Restores     bool // it is a release of an accepted import, whose statement becomes the account's last one again
	ID, ImportID string
	registry.StatementAccountKey
	// State is that of a release or a withdrawal; of a reading requested or approved.
	State  string
	Reason string
	// Requester is the id of who requested it, RequestedBy and DecidedBy are names; DecidedBy is empty before the decision.
	Requester, RequestedBy, DecidedBy string
	RequestedAt, DecidedAt            time.Time // UTC; DecidedAt is zero before the decision
	// Until is when it ends: unless it is approved, and after the approval unless it is carried out or read.
	Until time.Time
	// Shown is the digest of what is decided on, in hexadecimal, which the passkeys of both people sign.
	Shown string
	// Readable says that the pages can open the file.
	Readable bool
}

// Waits reports whether the request waits for another person at a time.
func (r Asked) Waits(now time.Time) bool {
	return r.State == string(ReleaseRequested) && !r.Dismissal && !now.After(r.Until)
}

// Over reports whether the request ended at a time without effect, or has none any more.
func (r Asked) Over(now time.Time) bool {
	switch r.State {
	case string(ReleaseRequested), string(ReleaseAgreed):
	case string(ReleaseApproved):
		if r.Kind == KindWithdrawal || r.Dismissal {
			return false
		}
	default:
		return false
	}
	return now.After(r.Until)
}

func (r *Release) request() Asked {
	return Asked{
		KindRelease, r.verdict == Dismissed, r.verdict == Released && (r.importState == string(statements.VerdictAccepted) || r.State == ReleaseAgreed), r.ID, r.ImportID, r.StatementAccountKey, string(r.State), r.Reason, r.Requester, r.RequestedBy, r.DecidedBy, r.RequestedAt, r.DecidedAt, r.Until(), r.pact.shown(), false,
	}
}

func (w *Withdrawal) request() Asked {
	return Asked{KindWithdrawal, false, false, w.ID, w.ImportID, w.StatementAccountKey, string(w.State), w.Reason, w.Requester, w.RequestedBy, w.DecidedBy, w.RequestedAt, w.DecidedAt, w.Until(), w.pact.shown(), false}
}

func (r OriginalRequest) request() Asked {
	state := ReleaseRequested
	if r.ApprovedBy != "" {
		state = ReleaseApproved
	}
	return Asked{KindReading, false, false, r.ID, r.ImportID, r.StatementAccountKey, string(state), r.Reason, r.Requester, r.RequestedBy, r.ApprovedBy, r.RequestedAt, r.ApprovedAt, r.Until(), r.pact.shown(), r.Readable}
}

// shown is the digest of what is decided on, as it is now.
func (p pact) shown() string { return hex.EncodeToString(casework.Digest(p.content)) }

// Import is an import of a file as pages list it.
type Import struct {
	ID string
	registry.StatementAccountKey
	// State is as the row says it: accepted, quarantined, released, dismissed or withdrawn.
	State      Decision
	FileDigest string // SHA-256, in hexadecimal
	Size       int64  // bytes
	Lines      int64
	Profile    string
	Actor      string // name
	ImportedAt time.Time
	Statements []Facts
	// Faults are why the file is in quarantine; empty for an import of an earlier release.
	Faults []statements.FaultKind
}

// Days returns the first and the last local day of the statements; empty if they have none.
func (i Import) Days() (first, last string) { return (&Withdrawal{Statements: i.Statements}).days() }

// Net is the sum of the lines of the statements, in minor units, with its currency.
func (i Import) Net() (minor int64, currency string) {
	for _, f := range i.Statements {
		minor, currency = minor+f.Net, f.Currency
	}
	return minor, currency
}

// ImportStates are the states by which imports can be listed.
func ImportStates() []Decision {
	return []Decision{Decision(statements.VerdictQuarantined), Released, Decision(statements.VerdictAccepted), Dismissed, Withdrawn}
}

// PageFilter selects imports. The zero value selects all that the person sees.
type PageFilter struct {
	AgencyID string
	State    Decision
	// From and To bound the time of the import: from From, before To; zero for no bound.
	From, To time.Time
	// After goes on after an import: a cursor of this filter; empty for the first page.
	After string
	Limit int
}

func (f PageFilter) list(own string) keyset.List {
	f.After, f.Limit = "", 0
	return keyset.Of("imports", f, own)
}

// Cursor returns the After of the list that goes on after an import.
func (f PageFilter) Cursor(viewer identity.Staff, last Import) string {
	return f.list(viewer.AgencyID).Cursor(last.ImportedAt.Format(time.RFC3339Nano), last.ID)
}

const importColumns = `i.id::text, i.agency_id::text, i.live, i.code, i.state, i.digest, i.size, i.lines, i.profile, i.actor, i.imported_at, i.plan`

func toImport(row pgx.CollectableRow) (i Import, err error) {
	var text []byte
	if err := row.Scan(&i.ID, &i.AgencyID, &i.Live, &i.Code, &i.State, &i.FileDigest, &i.Size, &i.Lines, &i.Profile, &i.Actor, &i.ImportedAt, &text); err != nil {
		return i, err
	}
	var p plan
	err = json.Unmarshal(text, &p)
	i.ImportedAt, i.Statements, i.Faults = i.ImportedAt.UTC(), p.Statements, p.Faults
	return i, err
}

// Page returns imports that a person may see, the newest first. A cursor of another list is refused (keyset.List.Key).
func (s *Store) Page(ctx context.Context, viewer identity.Staff, f PageFilter) ([]Import, error) {
	key, err := f.list(viewer.AgencyID).Key(f.After, 2)
	if err != nil {
		return nil, err
	}
	where, args := "i.state <> 'pending'", []any{}
	and := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where += " AND " + condition
	}
	for _, agency := range []string{f.AgencyID, viewer.AgencyID} {
		if agency != "" {
			id, err := uuid.Parse(agency)
			if err != nil {
				return nil, nil // no agency has this id
			}
			and("i.agency_id = ?", id)
		}
	}
	if f.State != "" {
		and("i.state = ?", f.State)
	}
	if !f.From.IsZero() {
		and("i.imported_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		and("i.imported_at < ?", f.To)
	}
	if key != nil {
		at, timeErr := time.Parse(time.RFC3339Nano, key[0])
		id, idErr := uuid.Parse(key[1])
		if errors.Join(timeErr, idErr) != nil {
			return nil, keyset.Malformed()
		}
		and("(i.imported_at, i.id) < (?, ?)", at, id)
	}
	rows, _ := s.cfg.Pool.Query(ctx, fmt.Sprintf(`SELECT %s FROM statement_imports i WHERE %s ORDER BY i.imported_at DESC, i.id DESC LIMIT %d`, importColumns, where, f.Limit), args...)
	list, err := pgx.CollectRows(rows, toImport)
	return list, doing("listing imports", err)
}

// Other is a statement of another import with an id that the import has, too.
type Other struct {
	Facts
	ImportID string
}

// Detail is an import with all that was requested and decided about it.
type Detail struct {
	Import
	// Others are accepted statements with an id of the import's.
	Others []Other
	// Requests are the newest first, dismissals among them.
	Requests []Asked
	// Kept says that the file can be read, if two people allow it.
	Kept bool
	// Unsigned says that the state is not believed: nobody, or only one, has signed it. The file counts as one in quarantine.
	Unsigned bool
	// Lapsed says that two people have released the file, and that it was not imported within the day after. It counts as one in
	// quarantine again.
	Lapsed bool
	// Earlier says that a statement of the import is another version of the account's last one, so that people can make it the last
	// one again.
	Earlier bool
}

// Quarantined reports whether people decide about the file: it is in quarantine, its state is not believed, or its release is over.
func (d Detail) Quarantined() bool {
	return d.State == Decision(statements.VerdictQuarantined) || d.Unsigned || d.Lapsed
}

// Asked returns a request of the import by its id, if it is a request of a kind.
func (d Detail) Asked(kind Kind, id string) (Asked, bool) {
	i := slices.IndexFunc(d.Requests, func(r Asked) bool { return r.ID == id && r.Kind == kind && !r.Dismissal })
	if i < 0 {
		return Asked{}, false
	}
	return d.Requests[i], true
}

// Detail returns an import that a person may see, at a time of the service's clock. The refusal is statement.unknown, the same for
// what is another agency's.
func (s *Store) Detail(ctx context.Context, viewer identity.Staff, importID string, now time.Time) (d Detail, err error) {
	unknown := operation.Refuse("statement.unknown", "id", nil)
	id, err := uuid.Parse(importID)
	if err != nil {
		return d, unknown
	}
	err = pgx.BeginTxFunc(ctx, s.cfg.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) (err error) {
		rows, _ := tx.Query(ctx, `SELECT `+importColumns+` FROM statement_imports i WHERE i.id = $1 AND i.state <> 'pending'`, id)
		d.Import, err = pgx.CollectExactlyOneRow(rows, toImport)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !viewer.ActsFor(d.AgencyID) {
			return unknown
		}
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM statement_originals WHERE id = $1)`, id).Scan(&d.Kept)
		}
		if err == nil {
			err = s.others(ctx, tx, &d)
		}
		if err == nil {
			err = s.requests(ctx, tx, &d, now)
		}
		return err
	})
	return d, doing("reading an import", err)
}

// others reads the accepted statements with an id of the import's, and whether one of the import's is an earlier version of the
// last one.
func (s *Store) others(ctx context.Context, tx pgx.Tx, d *Detail) error {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT ON (o.number) o.import_id::text, o.statement_id, o.page, o.last, o.from_day, o.to_day, o.balanced, o.opening, o.closing, o.currency, o.lines, o.net
		FROM statements o WHERE (o.agency_id, o.live, o.code) = ($1, $2, $3) AND o.import_id <> $4 AND o.statement_id IN (SELECT f ->> 'id' FROM statement_imports i, jsonb_array_elements(i.plan -> 'statements') f WHERE i.id = $4)
		ORDER BY o.number LIMIT 20`, d.AgencyID, d.Live, d.Code, d.ID)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Other, err error) {
		err = row.Scan(&o.ImportID, &o.ID, &o.Page, &o.Last, &o.From, &o.To, &o.Balanced, &o.Opening, &o.Closing, &o.Currency, &o.Lines, &o.Net)
		return o, err
	})
	if d.Others = list; err != nil || d.State != Decision(statements.VerdictAccepted) {
		return err
	}
	_, _, err = earlierVersion(ctx, tx, d.ID, "")
	d.Earlier, err = holds(err)
	if errors.Is(err, pgx.ErrNoRows) { // the ledger is gone
		err = nil
	}
	return err
}

// requests reads what was requested and decided about an import, and whether its state is believed and not over.
func (s *Store) requests(ctx context.Context, tx pgx.Tx, d *Detail, now time.Time) error {
	decided, err := exits(ctx, tx, `e.import_id = $1`, d.ID)
	if err != nil {
		return err
	}
	withdrawn, err := withdrawals(ctx, tx, `w.import_id = $1`, d.ID)
	if err != nil {
		return err
	}
	readings, err := requests(ctx, tx, `r.import_id = $1`, d.ID)
	if err != nil {
		return err
	}
	if d.State == Released || d.State == Dismissed {
		held, err := believed(ctx, tx, s.cfg.Keys, d.ID, d.State, now)
		if err == nil && !held && d.State == Released {
			d.Lapsed, err = lapsed(ctx, tx, s.cfg.Keys, decided, now)
		}
		if err != nil {
			return err
		}
		d.Unsigned = !held && !d.Lapsed
	}
	for i := range decided {
		d.Requests = append(d.Requests, decided[i].request())
	}
	for i := range withdrawn {
		d.Requests = append(d.Requests, withdrawn[i].request())
	}
	for _, r := range readings {
		d.Requests = append(d.Requests, r.request())
	}
	slices.SortStableFunc(d.Requests, func(a, b Asked) int { return b.RequestedAt.Compare(a.RequestedAt) })
	return nil
}

// Waiting returns the requests that wait for another person and that a person may see, the oldest first.
func (s *Store) Waiting(ctx context.Context, viewer identity.Staff, now time.Time) (out []Asked, err error) {
	since := now.Add(-requestLife)
	err = pgx.BeginTxFunc(ctx, s.cfg.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		const own = `($1 = '' OR i.agency_id::text = $1)`
		decided, err := exits(ctx, tx, own+` AND e.verdict = 'released' AND e.state = 'requested' AND e.requested_at >= $2`, viewer.AgencyID, since)
		if err != nil {
			return err
		}
		withdrawn, err := withdrawals(ctx, tx, own+` AND w.state = 'requested' AND w.requested_at >= $2`, viewer.AgencyID, since)
		if err != nil {
			return err
		}
		readings, err := requests(ctx, tx, own+` AND r.approved_by IS NULL AND r.requested_at >= $2`, viewer.AgencyID, since)
		if err != nil {
			return err
		}
		for i := range decided {
			out = append(out, decided[i].request())
		}
		for i := range withdrawn {
			out = append(out, withdrawn[i].request())
		}
		for _, r := range readings {
			out = append(out, r.request())
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b Asked) int { return a.RequestedAt.Compare(b.RequestedAt) })
	return out, doing("reading what waits about imports", err)
}

// Ask makes a request about an import, as RequestRelease, RequestWithdrawal and RequestOriginal do.
func (s *Store) Ask(ctx context.Context, by By, kind Kind, importID, reason string, now time.Time) (err error) {
	switch kind {
	case KindRelease:
		_, err = RequestRelease(ctx, s.cfg.Pool, s.cfg.Keys, by, importID, reason, now)
	case KindWithdrawal:
		_, err = s.RequestWithdrawal(ctx, by, importID, reason, now)
	case KindReading:
		_, err = RequestOriginal(ctx, s.cfg.Pool, s.cfg.Keys, by, importID, reason, now)
	default:
		err = operation.Refuse("statement.unknown", "id", nil)
	}
	return err
}

// Approve approves a request about an import, as ApproveRelease, ApproveWithdrawal and ApproveOriginal do.
func (s *Store) Approve(ctx context.Context, by By, kind Kind, requestID string, now time.Time) (err error) {
	switch kind {
	case KindRelease:
		_, err = ApproveRelease(ctx, s.cfg.Pool, s.cfg.Keys, by, requestID, now)
	case KindWithdrawal:
		_, _, err = s.ApproveWithdrawal(ctx, by, requestID, now)
	case KindReading:
		_, err = ApproveOriginal(ctx, s.cfg.Pool, s.cfg.Keys, by, requestID, now)
	default:
		err = operation.Refuse("statement.unknown", "id", nil)
	}
	return err
}

// Reject rejects a release or a withdrawal, or takes it back. A request to read a file ends after a day by itself.
func (s *Store) Reject(ctx context.Context, by By, kind Kind, requestID string, now time.Time) (err error) {
	switch kind {
	case KindRelease:
		_, err = RejectRelease(ctx, s.cfg.Pool, s.cfg.Keys, by, requestID, now)
	case KindWithdrawal:
		_, err = s.RejectWithdrawal(ctx, by, requestID, now)
	case KindReading:
		err = operation.Refuse("statement.unknown", "id", nil)
	default:
		err = operation.Refuse("statement.unknown", "id", nil)
	}
	return err
}

// Dismiss is the function Dismiss.
func (s *Store) Dismiss(ctx context.Context, by By, importID, reason string, now time.Time) error {
	return Dismiss(ctx, s.cfg.Pool, s.cfg.Keys, by, importID, reason, now)
}

// Reopen is the function Reopen.
func (s *Store) Reopen(ctx context.Context, by By, importID, reason string, now time.Time) error {
	return Reopen(ctx, s.cfg.Pool, s.cfg.Keys, by, importID, reason, now)
}

// Read is ReadOriginal.
func (s *Store) Read(ctx context.Context, by By, requestID string, now time.Time, w io.Writer) error {
	return ReadOriginal(ctx, s.cfg.Pool, s.cfg.Keys, by, requestID, now, w)
}
