package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/deliveries"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/keyset"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Config of a Store. All fields are required.
type Config struct {
	Pool *pgxpool.Pool
	// Keys sign the steps of people: those of the pages, or the master keys.
	Keys *secret.Keys
	// Deliveries list the rows of jobs about deliveries.
	Deliveries *deliveries.Store
}

// Store is the jobs in Postgres. Safe for concurrent use.
type Store struct{ cfg Config }

// NewStore makes a store.
func NewStore(cfg Config) (*Store, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Deliveries == nil {
		return nil, errors.New("jobs: every field of the configuration is required")
	}
	return &Store{cfg}, nil
}

// tx runs do in a transaction. doing is the beginning of the error's text.
func (s *Store) tx(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, s.cfg.Pool, do); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// may refuses a person whose roles do not allow a step now. The user of the machine has the master keys.
func (s *Store) may(ctx context.Context, tx pgx.Tx, by By, p identity.Permission, agencyID string) error {
	if by.acting.SignedIn() {
		_, err := by.acting.Still(ctx, tx, p, agencyID)
		return err
	}
	if by.staff.ID == "" {
		return nil
	}
	now, err := identity.LockInForce(ctx, tx, s.cfg.Keys, by.staff)
	if err == nil {
		err = permitted(now, p, agencyID)
	}
	return err
}

// Prepare freezes the conditions of a job and lists its rows: at most MostRows. id is a UUID of the form: the same form leads to
// the same job. now is the time of the service's clock, and the end of the events. Refusals are *operation.Error: CodeEmpty,
// CodeTooMany, CodeSame, staff.not_permitted, and those of deliveries.Store.Retryables.
func (s *Store) Prepare(ctx context.Context, by By, id string, kind Kind, c Conditions, now time.Time) (Job, error) {
	const doing = "preparing a job"
	id, ok := form.CanonicalUUID(id)
	if !ok {
		return Job{}, operation.Refuse(CodeIDMalformed, "", nil)
	}
	now = now.UTC().Truncate(time.Millisecond)
	j := Job{ID: id, Kind: kind, AgencyID: c.AgencyID, Conditions: c, EndsAt: now, Maker: by.maker(), MadeAt: now, State: Prepared}
	switch before, err := s.read(ctx, s.cfg.Pool, id, ""); {
	case err == nil && by.is(before.Maker):
		return before, nil
	case err == nil:
		return Job{}, operation.Refuse(CodeOther, "", nil)
	case !isRefused(err, CodeUnknown):
		return Job{}, err
	}
	subjects, err := s.list(ctx, &j)
	if err != nil {
		return Job{}, err
	}
	j.conditions, j.rows, j.Total = j.Conditions.text(), digestOf(subjects), len(subjects)
	err = s.tx(ctx, doing, func(tx pgx.Tx) error {
		if j.Maker.Group != "" && j.AgencyID == "" {
			return operation.Refuse(CodeAgencyMissing, "agency", nil)
		}
		if err := s.may(ctx, tx, by, kind.needs(), j.AgencyID); err != nil {
			return err
		}
		if err := refuseSame(ctx, tx, j); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			INSERT INTO jobs (id, kind, agency_id, conditions, ends_at, total, rows_digest, maker_kind, maker, maker_name, maker_group, maker_origin, made_at, state)
			VALUES ($1, $2, nullif($3, '')::uuid, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			j.ID, j.Kind, j.AgencyID, j.conditions, j.EndsAt, j.Total, j.rows, j.Maker.Kind, j.Maker.ID, j.Maker.Name, j.Maker.Group, j.Maker.Origin, j.MadeAt, j.State); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO job_rows (job_id, n, subject) SELECT $1, n, subject FROM unnest($2::text[]) WITH ORDINALITY AS r (subject, n)`, j.ID, subjects)
		return err
	})
	if err != nil {
		return Job{}, err
	}
	return j, nil
}

// list returns what the rows of a job are about.
func (s *Store) list(ctx context.Context, j *Job) (subjects []string, err error) {
	if j.Conditions.Of != "" {
		subjects, err = s.leftOf(ctx, j)
	} else {
		subjects, err = s.cfg.Deliveries.Retryables(ctx, j.Conditions.filter(j.EndsAt, MostRows+1))
	}
	switch {
	case err != nil:
		return nil, err
	case len(subjects) > MostRows:
		return nil, operation.Refuse(CodeTooMany, "", operation.Args{"most": MostRows})
	case len(subjects) == 0:
		return nil, operation.Refuse(CodeEmpty, "", nil)
	}
	return subjects, nil
}

// leftOf returns the rows of the job of the conditions that were refused or not carried out.
func (s *Store) leftOf(ctx context.Context, j *Job) ([]string, error) {
	of, err := s.read(ctx, s.cfg.Pool, j.Conditions.Of, j.Maker.Group)
	if err != nil {
		return nil, err
	}
	if !of.Again() {
		return nil, operation.Refuse(CodeNothingAgain, "", nil)
	}
	j.AgencyID, j.Conditions = of.AgencyID, Conditions{AgencyID: of.AgencyID, Of: of.ID}
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT subject FROM job_rows WHERE job_id = $1 AND state <> 'done' ORDER BY n`, of.ID) // the rows return its error
	subjects, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("reading the rows of a job: %w", err)
	}
	return subjects, nil
}

// refuseSame refuses a job while another one of the same conditions is running or waits for a second person.
func refuseSame(ctx context.Context, tx pgx.Tx, j Job) error {
	var id string
	err := tx.QueryRow(ctx, `SELECT id::text FROM jobs WHERE kind = $1 AND conditions = $2 AND state IN ('proposed', 'running') AND id <> $3::uuid LIMIT 1`, j.Kind, j.conditions, j.ID).Scan(&id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return operation.Refuse(CodeSame, "", operation.Args{"id": id})
}

// Start starts a prepared job by its maker. typed is the count as the person has typed it, which jobs of more than TypedAbove
// rows need. One that needs a second person waits for that person; on a page its maker's passkey signs it. A job that was
// started before is returned as it is. now is the time of the service's clock. Refusals are *operation.Error.
func (s *Store) Start(ctx context.Context, by By, id, typed string, now time.Time) (j Job, err error) {
	err = s.tx(ctx, "starting a job", func(tx pgx.Tx) error {
		if j, err = s.locked(ctx, tx, by, id, Kind.needs); err != nil {
			return err
		}
		switch {
		case !by.is(j.Maker):
			return operation.Refuse(CodeOther, "", nil)
		case j.State == Proposed || j.State == Running || j.State == Done:
			return nil // the form was sent before
		case j.State != Prepared:
			return operation.Refuse(CodeEnded, "", operation.Args{"state": string(j.State)})
		case j.Over(now):
			return operation.Refuse(CodeLate, "", nil)
		}
		if err := j.counted(typed); err != nil {
			return err
		}
		if err := refuseSame(ctx, tx, j); err != nil {
			return err
		}
		j.StartedAt, j.State = by.at(now), Running
		action := "job.start"
		if j.NeedsTwo() {
			j.State, action = Proposed, "job.propose"
		}
		signature, proof, err := by.sign(ctx, tx, s.cfg.Keys, j, casework.DecisionProposed, j.StartedAt, j.NeedsTwo())
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE jobs SET state = $2, proposed_at = $3, proposed_signature = $4, proposed_proof = $5 WHERE id = $1`, j.ID, j.State, j.StartedAt, signature, proof); err != nil {
			return refusedTwin(err)
		}
		return operation.Record(ctx, tx, by.actor, now, j.entry(action))
	})
	if err != nil {
		return Job{}, err
	}
	return j, nil
}

// refusedTwin returns the refusal of a job that was started at the same time as one of the same conditions, or the error.
func refusedTwin(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.ConstraintName == "jobs_same" {
		return operation.Refuse(CodeSame, "", operation.Args{"id": ""})
	}
	return err
}

// counted refuses a start without the count that the person was shown.
func (j Job) counted(typed string) error {
	if j.Total <= TypedAbove {
		return nil
	}
	args := operation.Args{"n": j.Total}
	switch plain(typed) {
	case "":
		return operation.Refuse(CodeCountMissing, "count", args)
	case fmt.Sprint(j.Total):
		return nil
	}
	return operation.Refuse(CodeCountOther, "count", args)
}

// plain returns a number as people type it without spaces between the digits.
func plain(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\u00a0' || r == '\u202f' || r == '\t' }), "")
}

// entry returns the row of the audit table about a step.
func (j Job) entry(action string) operation.Entry {
	return operation.Entry{Action: action, Subject: j.ID, AgencyID: j.AgencyID, Detail: map[string]any{"kind": j.Kind, "conditions": json.RawMessage(j.conditions), "ends_at": j.EndsAt, "total": j.Total}}
}

// Approve approves a job as the second person, whose passkey signs it: it runs. now is the time of the service's clock.
// Refusals are *operation.Error.
func (s *Store) Approve(ctx context.Context, by By, id string, now time.Time) (j Job, err error) {
	err = s.tx(ctx, "approving a job", func(tx pgx.Tx) error {
		if j, err = s.locked(ctx, tx, by, id, func(Kind) identity.Permission { return identity.MayReplay }); err != nil {
			return err
		}
		who := by.maker()
		switch {
		case !by.acting.SignedIn():
			return operation.Refuse("decision.passkey_needed", "", nil)
		case j.State == Running && j.decidedID == who.ID:
			return nil // the form was sent before
		case j.State == Prepared:
			return operation.Refuse(CodeNeedsOne, "", nil)
		case j.State != Proposed:
			return operation.Refuse(CodeEnded, "", operation.Args{"state": string(j.State)})
		case by.is(j.Maker):
			return operation.Refuse(CodeSecondPerson, "", nil)
		case j.Over(now):
			return operation.Refuse(CodeLate, "", nil)
		}
		at := by.at(now)
		signature, proof, err := by.sign(ctx, tx, s.cfg.Keys, j, casework.DecisionApproved, at, true)
		if err != nil {
			return err
		}
		j.State, j.Decider, j.DecidedAt = Running, who.Name, at
		if _, err := tx.Exec(ctx, `UPDATE jobs SET state = $2, decided_by = $3, decider = $4, decider_group = $5, decided_at = $6, decided_signature = $7, decided_proof = $8 WHERE id = $1`,
			j.ID, j.State, who.ID, who.Name, who.Group, at, signature, proof); err != nil {
			return err
		}
		return operation.Record(ctx, tx, by.actor, now, j.entry("job.approve"))
	})
	if err != nil {
		return Job{}, err
	}
	return j, nil
}

// Stop ends a job between two of its rows, or one that is not running. The maker stops it, or whoever may approve it. One that
// was stopped stays as it is; one that has ended otherwise is refused with CodeEnded, since nothing was stopped. now is the time of the service's clock.
func (s *Store) Stop(ctx context.Context, by By, id string, now time.Time) (j Job, err error) {
	err = s.tx(ctx, "stopping a job", func(tx pgx.Tx) error {
		if j, err = s.locked(ctx, tx, by, id, func(k Kind) identity.Permission { return k.needs() }); err != nil {
			return err
		}
		if !by.is(j.Maker) {
			if err := s.may(ctx, tx, by, identity.MayReplay, j.AgencyID); err != nil {
				return err
			}
		}
		switch {
		case j.State == Stopped:
			return nil
		case j.State.Ended():
			return operation.Refuse(CodeEnded, "", operation.Args{"state": string(j.State)})
		}
		j.State, j.StoppedBy, j.FinishedAt = Stopped, by.maker().Name, now
		if _, err := tx.Exec(ctx, `UPDATE jobs SET state = $2, stopped_by = $3, finished_at = $4 WHERE id = $1`, j.ID, j.State, j.StoppedBy, now); err != nil {
			return err
		}
		e := j.entry("job.stop")
		e.Detail["done"], e.Detail["refused"] = j.Done, j.Refused
		return operation.Record(ctx, tx, by.actor, now, e)
	})
	if err != nil {
		return Job{}, err
	}
	return j, nil
}

// locked reads a job that who acts sees, locked until the end of the transaction. The person is locked first, as the runner
// does, and must have a permission for the job's agency.
func (s *Store) locked(ctx context.Context, tx pgx.Tx, by By, id string, needs func(Kind) identity.Permission) (Job, error) {
	j, err := s.read(ctx, tx, id, by.maker().Group)
	if err != nil {
		return Job{}, err
	}
	if err := s.may(ctx, tx, by, needs(j.Kind), j.AgencyID); err != nil {
		return Job{}, err
	}
	if _, err := tx.Exec(ctx, `SELECT FROM jobs WHERE id = $1 FOR UPDATE`, j.ID); err != nil {
		return Job{}, err
	}
	return s.read(ctx, tx, j.ID, "")
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

const columns = `j.id::text, j.kind, coalesce(j.agency_id::text, ''), j.conditions, j.ends_at, j.total, j.done, j.refused, j.rows_digest, j.maker_kind, j.maker, j.maker_name, j.maker_group, j.maker_origin, j.made_at,
	j.state, coalesce(j.proposed_at, '0001-01-01Z'), coalesce(j.proposed_signature, ''), coalesce(j.proposed_proof::text, ''),
	coalesce(j.decided_by::text, ''), j.decider, j.decider_group, coalesce(j.decided_at, '0001-01-01Z'), coalesce(j.decided_signature, ''), coalesce(j.decided_proof::text, ''),
	j.stopped_by, j.code, j.args, coalesce(j.finished_at, '0001-01-01Z')`

func scan(row pgx.CollectableRow) (j Job, err error) {
	if err = row.Scan(&j.ID, &j.Kind, &j.AgencyID, &j.conditions, &j.EndsAt, &j.Total, &j.Done, &j.Refused, &j.rows, &j.Maker.Kind, &j.Maker.ID, &j.Maker.Name, &j.Maker.Group, &j.Maker.Origin, &j.MadeAt,
		&j.State, &j.StartedAt, &j.proposed, &j.proposedBy, &j.decidedID, &j.Decider, &j.decidedGroup, &j.DecidedAt, &j.decided, &j.decidedBy,
		&j.StoppedBy, &j.Code, &j.Args, &j.FinishedAt); err != nil {
		return j, err
	}
	for _, at := range []*time.Time{&j.EndsAt, &j.MadeAt, &j.StartedAt, &j.DecidedAt, &j.FinishedAt} {
		*at = at.UTC().Truncate(time.Millisecond) // as they were signed
	}
	_ = json.Unmarshal([]byte(j.conditions), &j.Conditions) // a forged row has none
	return j, nil
}

// read returns a job; with an agency only one of that agency. Another one is refused as unknown.
func (s *Store) read(ctx context.Context, q querier, id, agencyID string) (Job, error) {
	id, ok := form.CanonicalUUID(id)
	if !ok {
		return Job{}, operation.Refuse(CodeUnknown, "id", nil)
	}
	rows, _ := q.Query(ctx, `SELECT `+columns+` FROM jobs j WHERE j.id = $1`, id) // the rows return its error
	found, err := pgx.CollectRows(rows, scan)
	switch {
	case err != nil:
		return Job{}, fmt.Errorf("reading a job: %w", err)
	case len(found) == 0, agencyID != "" && found[0].AgencyID != agencyID:
		return Job{}, operation.Refuse(CodeUnknown, "id", nil)
	}
	return found[0], nil
}

// Read returns a job; with the id of an agency only one about that agency. Another one is refused as unknown.
func (s *Store) Read(ctx context.Context, id, agencyID string) (Job, error) {
	return s.read(ctx, s.cfg.Pool, id, agencyID)
}

// List returns jobs that were started, or that a person has prepared, the newest first, with the cursor of the next page; empty
// for none. With the id of an agency they are those about that agency. A cursor of another list is refused (keyset.List).
func (s *Store) List(ctx context.Context, agencyID, makerID, cursor string, limit int) (list []Job, next string, err error) {
	of := keyset.Of("jobs", agencyID)
	key, err := of.Key(cursor, 2)
	if err != nil {
		return nil, "", err
	}
	where, args := `(j.state <> 'prepared' OR j.maker = $1)`, []any{makerID}
	and := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where += " AND " + condition
	}
	if agencyID != "" {
		and("j.agency_id = ?::uuid", agencyID)
	}
	if key != nil {
		at, malformed := time.Parse(time.RFC3339Nano, key[0])
		id, ok := form.CanonicalUUID(key[1])
		if malformed != nil || !ok {
			return nil, "", keyset.Malformed()
		}
		and("(j.made_at, j.id) < (?, ?::uuid)", at, id)
	}
	rows, _ := s.cfg.Pool.Query(ctx, fmt.Sprintf(`SELECT %s FROM jobs j WHERE %s ORDER BY j.made_at DESC, j.id DESC LIMIT %d`, columns, where, limit+1), args...) // the rows return its error
	if list, err = pgx.CollectRows(rows, scan); err != nil {
		return nil, "", fmt.Errorf("listing jobs: %w", err)
	}
	if len(list) > limit {
		list = list[:limit]
		last := list[limit-1]
		next = of.Cursor(last.MadeAt.Format(time.RFC3339Nano), last.ID)
	}
	return list, next, nil
}

// Waiting returns the jobs that wait for a second person, the oldest first, at most a hundred.
func (s *Store) Waiting(ctx context.Context, now time.Time) ([]Job, error) {
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT `+columns+` FROM jobs j WHERE j.state = 'proposed' AND j.proposed_at > $1 ORDER BY j.made_at, j.id LIMIT 100`, now.Add(-ProposedLife)) // the rows return its error
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("reading jobs that wait: %w", err)
	}
	return list, nil
}

// RefusedRows returns the rows of a job that were refused, after the row with a number, limit at most.
func (s *Store) RefusedRows(ctx context.Context, id string, after, limit int) ([]Row, error) {
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT n, subject, state, code, args, coalesce(done_at, '0001-01-01Z') FROM job_rows WHERE job_id = $1 AND state = 'refused' AND n > $2 ORDER BY n LIMIT $3`, id, after, limit) // the rows return its error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Row])
	if err != nil {
		return nil, fmt.Errorf("reading the rows of a job: %w", err)
	}
	return list, nil
}

func isRefused(err error, code string) bool {
	var refusal *operation.Error
	return errors.As(err, &refusal) && refusal.Code == code
}
