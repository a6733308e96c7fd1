package disbursements

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/disbursement"
	"quittance/disbursement/policy"
	"quittance/internal/connector"
	"quittance/internal/disbursements/lines"
)

// NameWaits is what stands in the place of a verdict while the operator has not told the name.
const NameWaits connector.NameVerdict = "waiting"

// NamesAsked says whose names an import has asked for.
type NamesAsked struct {
	// Check is what the policy demanded at the import, never policy.CheckOff.
	Check policy.NameCheck `json:"check"`
	// Lines is how many lines have a payee whose name is asked for.
	Lines int `json:"lines"`
}

// covers reports whether the names that a policy demands are among those that were asked for.
func (n *NamesAsked) covers(demanded policy.NameCheck) bool {
	return n != nil && (n.Check == policy.CheckAll || n.Check == demanded)
}

// Names are the verdicts about the names of a batch's payees.
type Names struct {
	// Asked is what the import asked for; nil if it asked for nothing.
	Asked *NamesAsked
	// Count has the number of lines by verdict, also NameWaits, and Refs the first NotesListed line_refs of each.
	Count map[connector.NameVerdict]int
	Refs  map[connector.NameVerdict][]string
}

// Checked reports whether the names are checked as a policy demands: a maker need not say why they are not.
func (n Names) Checked(demanded policy.NameCheck) bool {
	return n.Asked.covers(demanded) && n.Count[NameWaits] == 0
}

// Names returns what operators have told of the names of a batch's payees.
func (s *Store) Names(ctx context.Context, batch string) (n Names, err error) {
	notes, err := s.Notes(ctx, batch)
	if err != nil {
		return n, err
	}
	n = Names{Count: map[connector.NameVerdict]int{}, Refs: map[connector.NameVerdict][]string{}}
	if notes != nil {
		n.Asked = notes.Names
	}
	rows, _ := s.pool.Query(ctx, `SELECT verdict, count(*), (array_agg(line_ref ORDER BY position))[1:$2] FROM disbursement_names WHERE batch = $1 GROUP BY verdict`, batch, NotesListed) // the rows carry its error
	var verdict connector.NameVerdict
	var count int
	var refs []string
	_, err = pgx.ForEachRow(rows, []any{&verdict, &count, &refs}, func() error {
		n.Count[verdict], n.Refs[verdict] = count, refs
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("reading what was told of payees' names: %w", err)
	}
	return n, nil
}

// NamesOf returns the verdicts about lines of a batch from one position to another, both included. Lines whose name is not asked
// for have none.
func (s *Store) NamesOf(ctx context.Context, batch string, from, to int) (map[int]connector.NameVerdict, error) {
	rows, _ := s.pool.Query(ctx, `SELECT position, verdict FROM disbursement_names WHERE batch = $1 AND position BETWEEN $2 AND $3`, batch, from, to) // the rows carry its error
	out := map[int]connector.NameVerdict{}
	var position int
	var verdict connector.NameVerdict
	if _, err := pgx.ForEachRow(rows, []any{&position, &verdict}, func() error { out[position] = verdict; return nil }); err != nil {
		return nil, fmt.Errorf("reading what was told of payees' names: %w", err)
	}
	return out, nil
}

// askNames notes whose names operators are to be asked for, as the policy in force demands: nil if it demands nothing, or if the
// maker says why they are not checked. list is in the order of positions.
func (x *importing) askNames(ctx context.Context, b disbursement.Batch, list []lines.Line, known lines.Known) (*NamesAsked, error) {
	agency, _, err := x.Batches.Agency(ctx, b.TenantID, b.Live)
	if err != nil {
		return nil, err
	}
	check := agency.InForce(x.now()).NameCheck
	if check == "" || check == policy.CheckOff || x.q.Waiver != "" {
		return nil, nil //nolint:nilnil // nothing is asked for
	}
	date, err := time.Parse(time.DateOnly, b.Date)
	if err != nil {
		return nil, fmt.Errorf("reading the date of a batch: %w", err)
	}
	fingerprints := map[string]string{}
	for _, a := range b.Accounts {
		fingerprints[a.Code] = a.Fingerprint
	}
	var rows [][]any
	for position, l := range list {
		c := l.Content
		// A number that was paid under another name is a new payee, and so is one of a batch that has paid nobody yet: its maker may
		// have said why names were not checked.
		paid := slices.Contains(known.Paid[x.Payees.MAC(lines.NameText(c))], x.Payees.MAC(lines.PayeeText(c)))
		if c.MSISDN != "" && (check == policy.CheckAll || !paid) {
			rows = append(rows, []any{b.ID, int32(position), c.LineRef, b.TenantID, b.Live, c.PayoutAccount, fingerprints[c.PayoutAccount], x.now(), date})
		}
	}
	_, err = x.Batches.pool.CopyFrom(ctx, pgx.Identifier{"disbursement_names"},
		[]string{"batch", "position", "line_ref", "tenant_id", "livemode", "account", "fingerprint", "again_at", "date"}, pgx.CopyFromRows(rows))
	if err != nil {
		return nil, fmt.Errorf("storing whose names are asked for: %w", err)
	}
	return &NamesAsked{Check: check, Lines: len(rows)}, nil
}

// WaitingName is a line of a draft whose payee's name is to be asked for.
type WaitingName struct {
	Batch    string
	Position int
	TenantID string
	Live     bool
	// Account and Fingerprint name the payout account whose operator is asked.
	Account, Fingerprint string
	Sealed               []byte
}

// namesAtOnce is how many names of an account WaitingNames returns, so that no account waits long for another one.
const namesAtOnce = 20

// WaitingNames returns lines of drafts whose names may be asked for now, grouped by account. A draft that was sealed or has ended is
// not asked about any more: what waits of it is deleted.
func (s *Store) WaitingNames(ctx context.Context, now time.Time) (out []WaitingName, err error) {
	if _, err := s.pool.Exec(ctx, `DELETE FROM disbursement_names n USING disbursement_batches b WHERE n.verdict = 'waiting' AND b.id = n.batch AND b.status <> 'draft'`); err != nil {
		return nil, fmt.Errorf("deleting names that nobody waits for: %w", err)
	}
	rows, _ := s.pool.Query(ctx, `SELECT r.batch, r.position, a.tenant_id, a.livemode, a.account, r.fingerprint, l.sealed
		FROM (SELECT DISTINCT tenant_id, livemode, account FROM disbursement_names WHERE verdict = 'waiting') a
		CROSS JOIN LATERAL (SELECT n.batch, n.position, n.fingerprint FROM disbursement_names n
			WHERE n.verdict = 'waiting' AND (n.tenant_id, n.livemode, n.account) = (a.tenant_id, a.livemode, a.account) AND n.again_at <= $1
			ORDER BY n.again_at, n.batch, n.position LIMIT $2) r
		JOIN disbursement_lines l ON l.batch = r.batch AND l.position = r.position
		WHERE l.sealed <> '' ORDER BY a.tenant_id, a.livemode, a.account`, now, namesAtOnce) // the rows carry its error
	out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[WaitingName])
	if err != nil {
		return nil, fmt.Errorf("reading names that are asked for: %w", err)
	}
	return out, nil
}

// KeepName stores what the operator has told of the name of a line.
func (s *Store) KeepName(ctx context.Context, w WaitingName, verdict connector.NameVerdict) error {
	if _, err := s.pool.Exec(ctx, `UPDATE disbursement_names SET verdict = $3 WHERE batch = $1 AND position = $2 AND verdict = 'waiting'`, w.Batch, w.Position, verdict); err != nil {
		return fmt.Errorf("storing what was told of a payee's name: %w", err)
	}
	return nil
}

// AskNameAgain puts the question for a name off.
func (s *Store) AskNameAgain(ctx context.Context, w WaitingName, at time.Time) error {
	if _, err := s.pool.Exec(ctx, `UPDATE disbursement_names SET again_at = $3 WHERE batch = $1 AND position = $2 AND verdict = 'waiting'`, w.Batch, w.Position, at); err != nil {
		return fmt.Errorf("putting the question for a payee's name off: %w", err)
	}
	return nil
}

// AskNamesAgain puts the questions for all names of a line's batch off that go to the account of the line.
func (s *Store) AskNamesAgain(ctx context.Context, w WaitingName, at time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE disbursement_names SET again_at = $4 WHERE batch = $1 AND account = $2 AND fingerprint = $3 AND verdict = 'waiting'`, w.Batch, w.Account, w.Fingerprint, at)
	if err != nil {
		return fmt.Errorf("putting the questions for payees' names off: %w", err)
	}
	return nil
}

// AloneForNames calls do unless another instance is in a call of it: an operator bounds the questions of an account, and not those
// of a process.
func (s *Store) AloneForNames(ctx context.Context, do func(context.Context) error) (err error) {
	const lock = `hashtextextended('names of payees', 0)`
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("asking for payees' names: %w", err)
	}
	defer conn.Release()
	alone := false
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(`+lock+`)`).Scan(&alone); err != nil || !alone {
		return err
	}
	defer func() {
		// A connection that cannot be asked is closed, which ends its lock.
		if _, failed := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(`+lock+`)`); failed != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
	}()
	return do(ctx)
}
