package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

const (
	// runEvery is the interval at which a runner looks for jobs.
	runEvery = time.Second
	// rowsAtOnce is the largest number of rows of a job before the next job has its turn, and before its signatures are
	// verified again.
	rowsAtOnce = 200
	// tidyEvery is the interval at which jobs that are over are ended and old ones deleted.
	tidyEvery = 10 * time.Minute
	// keptFor is how long a job is kept after its end. The audit table keeps what was done.
	keptFor = 60 * 24 * time.Hour
)

// RunnerConfig is what a Runner needs. All fields are required.
type RunnerConfig struct {
	Pool *pgxpool.Pool
	// Keys verify the steps of people, and the rows of people.
	Keys *secret.Keys
	// Deliveries have the Directory of each kind, so that a destination that is configured no more is known.
	Deliveries *deliveries.Store
	// Service is the role, for the audit table.
	Service string
	// Now is the service's clock, UTC.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Runner carries jobs out. Several processes may run one: a row is carried out once.
type Runner struct {
	cfg     RunnerConfig
	store   *Store
	rows    *prometheus.CounterVec
	refused prometheus.Counter
}

// NewRunner makes a runner.
func NewRunner(cfg RunnerConfig) (*Runner, error) {
	if cfg.Service == "" || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("jobs: every field of the configuration is required")
	}
	store, err := NewStore(Config{Pool: cfg.Pool, Keys: cfg.Keys, Deliveries: cfg.Deliveries})
	if err != nil {
		return nil, err
	}
	with := promauto.With(cfg.Metrics)
	r := &Runner{
		cfg: cfg, store: store,
		rows: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_job_rows_total", Help: "Rows of jobs that were carried out, by kind and outcome: done, refused.",
		}, []string{"kind", "outcome"}),
		refused: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_jobs_refused_total", Help: "Jobs that nobody carries out, because no step that holds says that a person has asked for them.",
		}),
	}
	for _, kind := range Kinds() {
		r.rows.WithLabelValues(string(kind), string(RowDone))
		r.rows.WithLabelValues(string(kind), string(RowRefused))
	}
	return r, nil
}

// Run carries jobs out until ctx ends, then returns nil. While Postgres is away it waits.
func (r *Runner) Run(ctx context.Context) error {
	for tidied := (time.Time{}); ; {
		if time.Since(tidied) > tidyEvery {
			tidied = time.Now()
			r.log(ctx, "tidying jobs", r.Tidy(ctx))
		}
		more, err := r.Advance(ctx)
		r.log(ctx, "carrying out jobs", err)
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		if !consume.Sleep(ctx, runEvery) {
			return nil
		}
	}
}

func (r *Runner) log(ctx context.Context, doing string, err error) {
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "jobs wait", slog.String("doing", doing), slog.Any("error", err))
	}
}

// Advance carries out the next rows of each running job. It reports whether there are more.
func (r *Runner) Advance(ctx context.Context) (more bool, err error) {
	rows, _ := r.cfg.Pool.Query(ctx, `SELECT id::text FROM jobs WHERE state = 'running' ORDER BY made_at, id`) // the rows return its error
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, fmt.Errorf("reading running jobs: %w", err)
	}
	var errs []error
	for _, id := range ids {
		further, err := r.advance(ctx, id)
		more = more || further
		if err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", id, err))
		}
	}
	return more, errors.Join(errs...)
}

// advance verifies a job and carries out its next rows. The rows that it carries out are those that it has verified.
func (r *Runner) advance(ctx context.Context, id string) (more bool, err error) {
	var j Job
	var rows []Row
	err = r.store.tx(ctx, "reading a job", func(tx pgx.Tx) error {
		if j, err = r.store.read(ctx, tx, id, ""); err != nil || !r.runs(j) {
			return err
		}
		list, _ := tx.Query(ctx, `SELECT n, subject, state, '', '{}'::jsonb, '0001-01-01Z'::timestamptz FROM job_rows WHERE job_id = $1 ORDER BY n`, id) // the rows return its error
		if rows, err = pgx.CollectRows(list, pgx.RowToStructByPos[Row]); err != nil {
			return err
		}
		subjects := make([]string, len(rows))
		for i := range rows {
			subjects[i] = rows[i].Subject
		}
		return j.believed(ctx, tx, r.cfg.Keys, subjects, r.cfg.Now())
	})
	var refusal *operation.Error
	switch {
	case errors.As(err, &refusal):
		return false, r.refuse(ctx, j, refusal)
	case err != nil || !r.runs(j):
		return false, err
	}
	carried := 0
	for _, row := range rows {
		if row.State != RowWaiting {
			continue
		}
		if carried == rowsAtOnce || ctx.Err() != nil {
			return true, nil
		}
		if on, err := r.row(ctx, j, row); err != nil || !on {
			return false, err
		}
		carried++
	}
	return false, r.finish(ctx, j)
}

// runs reports whether this runner carries the job out: one of a kind that a later release has added waits for that release.
func (r *Runner) runs(j Job) bool { return j.State == Running && slices.Contains(Kinds(), j.Kind) }

// refuse ends a job that no person is known to have asked for.
func (r *Runner) refuse(ctx context.Context, j Job, why *operation.Error) error {
	ended := false
	err := r.store.tx(ctx, "refusing a job", func(tx pgx.Tx) (err error) {
		ended, err = r.end(ctx, tx, j, Refused, "job.refuse", why)
		return err
	})
	if err == nil && ended {
		r.refused.Inc()
		r.cfg.Log.LogAttrs(ctx, slog.LevelError, "a job is not carried out: nobody is known to have asked for it", slog.String("job", j.ID), slog.Any("why", why))
	}
	return err
}

// end ends a running job by the service; false if somebody has ended it before.
func (r *Runner) end(ctx context.Context, tx pgx.Tx, j Job, state State, action string, why *operation.Error) (bool, error) {
	now := r.cfg.Now()
	code, args := "", []byte(`{}`)
	if why != nil {
		var err error
		if code = why.Code; len(why.Args) > 0 {
			if args, err = json.Marshal(why.Args); err != nil {
				return false, err
			}
		}
	}
	tag, err := tx.Exec(ctx, `UPDATE jobs SET state = $2, code = $3, args = $4, finished_at = $5 WHERE id = $1 AND state IN ('prepared', 'proposed', 'running')`, j.ID, state, code, args, now)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	e := operation.Entry{Action: action, Subject: j.ID, Detail: map[string]any{"kind": j.Kind, "total": j.Total, "done": j.Done, "refused": j.Refused}}
	if state != Refused { // whose a job is that nobody has signed, nobody knows
		e.AgencyID = j.AgencyID
	}
	if code != "" {
		e.Detail["code"] = code
	}
	return true, operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorService, Name: r.cfg.Service}, now, e)
}

// finish ends a job whose rows are all carried out.
func (r *Runner) finish(ctx context.Context, j Job) error {
	return r.store.tx(ctx, "ending a job", func(tx pgx.Tx) error {
		var left bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM job_rows WHERE job_id = $1 AND state = 'waiting') FROM jobs WHERE id = $1 FOR UPDATE`, j.ID).Scan(&left); err != nil || left {
			return err // another runner carries the rest out
		}
		now, err := r.store.read(ctx, tx, j.ID, "")
		if err != nil {
			return err
		}
		_, err = r.end(ctx, tx, now, Done, "job.end", nil)
		return err
	})
}

// row carries one row out, with its note and its row of the audit table, in one transaction. It returns false when the job goes
// on no more, or another runner has it.
func (r *Runner) row(ctx context.Context, j Job, row Row) (on bool, err error) {
	var outcome RowState
	err = r.store.tx(ctx, "carrying out a row", func(tx pgx.Tx) error {
		now := r.cfg.Now()
		person, err := r.person(ctx, tx, j)
		var stops *operation.Error
		if err != nil && !errors.As(err, &stops) {
			return err
		}
		err = tx.QueryRow(ctx, `SELECT done, refused FROM jobs WHERE id = $1 AND state = 'running' FOR UPDATE SKIP LOCKED`, j.ID).Scan(&j.Done, &j.Refused)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return err
		case stops != nil:
			_, err = r.end(ctx, tx, j, Stopped, "job.stop", stops)
			return err
		}
		on = true
		// In a statement of its own, which sees what another runner has committed before the lock.
		var state RowState
		if err := tx.QueryRow(ctx, `SELECT state FROM job_rows WHERE job_id = $1 AND n = $2`, j.ID, row.N).Scan(&state); err != nil || state != RowWaiting {
			return err
		}
		outcome, err = r.carryOut(ctx, tx, j, row, person, now)
		return err
	})
	if err == nil && outcome != "" {
		r.rows.WithLabelValues(string(j.Kind), string(outcome)).Inc()
	}
	return on && err == nil, err
}

// person returns the maker as of now, locked until the end of the transaction; the zero value for the user of a machine. An
// *operation.Error says that the maker, or whoever has approved the job, may not have it carried out any more.
func (r *Runner) person(ctx context.Context, tx pgx.Tx, j Job) (now identity.Staff, err error) {
	if j.decidedID != "" {
		staff, err := identity.StaffOf(ctx, tx, r.cfg.Keys, j.decidedID)
		if err != nil {
			return now, err
		}
		if second := staff[j.decidedID]; !second.May(identity.MayReplay) {
			return now, operation.Refuse("staff.not_permitted", "", operation.Args{"permission": string(identity.MayReplay)})
		}
	}
	if j.Maker.Kind != operation.ActorPerson {
		return now, nil
	}
	if now, err = identity.LockInForce(ctx, tx, r.cfg.Keys, identity.Staff{ID: j.Maker.ID, Name: j.Maker.Name}); err != nil {
		return now, err
	}
	return now, permitted(now, j.Kind.needs(), j.AgencyID)
}

// permitted refuses what no role of a person allows, or what is another agency's.
func permitted(who identity.Staff, p identity.Permission, agencyID string) error {
	if !who.May(p) || agencyID != "" && !who.ActsFor(agencyID) {
		return operation.Refuse("staff.not_permitted", "", operation.Args{"permission": string(p)})
	}
	return nil
}

// carryOut carries a row out and notes how it ended. A refusal is an end, too.
func (r *Runner) carryOut(ctx context.Context, tx pgx.Tx, j Job, row Row, person identity.Staff, now time.Time) (RowState, error) {
	may := func(agencyID string) error {
		if j.AgencyID != "" && agencyID != j.AgencyID {
			return operation.Refuse("staff.not_permitted", "", operation.Args{"permission": string(j.Kind.needs())})
		}
		if person.ID == "" {
			return nil
		}
		return permitted(person, j.Kind.needs(), agencyID)
	}
	_, err := r.cfg.Deliveries.RetryIn(ctx, tx, j.Maker.actor(), row.Subject, now, may, map[string]any{"job": j.ID, "row": row.N})
	var refusal *operation.Error
	if err != nil && !errors.As(err, &refusal) {
		return "", err
	}
	state, code, args := RowDone, "", []byte(`{}`)
	if refusal != nil {
		state, code = RowRefused, refusal.Code
		if len(refusal.Args) > 0 {
			if args, err = json.Marshal(refusal.Args); err != nil {
				return "", err
			}
		}
	}
	if _, err := tx.Exec(ctx, `UPDATE job_rows SET state = $3, code = $4, args = $5, done_at = $6 WHERE job_id = $1 AND n = $2`, j.ID, row.N, state, code, args, now); err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `UPDATE jobs SET done = done + $2, refused = refused + $3 WHERE id = $1`, j.ID, btoi(state == RowDone), btoi(state == RowRefused))
	return state, err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Tidy ends what nobody has started or approved in time, and deletes jobs that have ended long ago.
func (r *Runner) Tidy(ctx context.Context) error {
	now := r.cfg.Now()
	rows, _ := r.cfg.Pool.Query(ctx, `SELECT `+columns+` FROM jobs j WHERE state IN ('prepared', 'proposed') ORDER BY made_at, id LIMIT 1000`) // the rows return its error
	open, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return fmt.Errorf("reading jobs that wait: %w", err)
	}
	late := operation.Error{Code: CodeLate}
	for _, j := range open {
		if !j.Over(now) {
			continue
		}
		if err := r.store.tx(ctx, "ending a job that is late", func(tx pgx.Tx) error {
			_, err := r.end(ctx, tx, j, Stopped, "job.lapse", &late)
			return err
		}); err != nil {
			return err
		}
	}
	if _, err := r.cfg.Pool.Exec(ctx, `DELETE FROM jobs WHERE finished_at < $1 OR finished_at < $2 AND proposed_at IS NULL`, now.Add(-keptFor), now.Add(-PreparedLife)); err != nil {
		return fmt.Errorf("deleting old jobs: %w", err)
	}
	return nil
}
