package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/jobs"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
	desks "quittance/test/office"
	"quittance/test/registries"
	"quittance/test/servers"
)

// world is the desk of the pages with two leads and an operator of the service and an accountant of an agency, and deliveries that
// need a person.
type world struct {
	desks.Office
	t        *testing.T
	pages    *jobs.Store // with the keys of the pages
	commands *jobs.Store
	endpoint string
	metrics  *prometheus.Registry
}

// day is that of the events.
var day = registries.Epoch.Truncate(24 * time.Hour)

func use(purpose secret.Purpose, labels ...string) (out []secret.Use) {
	for _, label := range labels {
		out = append(out, secret.Use{Purpose: purpose, Label: label})
	}
	return out
}

var rows = use(secret.PurposeVerify, secret.LabelRegistryRows, secret.LabelStaffRows, secret.LabelPeopleRows, secret.LabelDecisions, secret.LabelOfficeDecisions)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Office: desks.Open(t, "", []identity.Role{identity.RoleLead}, "Léa", "Luc"), t: t}
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	w.pages = w.store(w.Keys.Subset("office", append(use(secret.PurposeSign, secret.LabelOfficeDecisions), rows...)))
	w.commands = w.store(w.Keys)
	if err := w.Pool.QueryRow(t.Context(), `SELECT id::text FROM webhook_endpoints WHERE removed_at IS NULL ORDER BY id LIMIT 1`).Scan(&w.endpoint); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `SELECT make_delivery_day($1)`, day)
	return w
}

func (w *world) store(keys *secret.Keys) *jobs.Store {
	w.t.Helper()
	s, err := jobs.NewStore(jobs.Config{Pool: w.Pool, Keys: keys, Deliveries: deliveries.NewStore(w.Pool, deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil)})})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// runner is that of the sink schedule, with its keys.
func (w *world) runner(with ...func(*jobs.RunnerConfig)) *jobs.Runner {
	w.t.Helper()
	w.metrics = prometheus.NewRegistry()
	cfg := jobs.RunnerConfig{
		Pool: w.Pool, Keys: w.Keys.Subset("schedule", append(use(secret.PurposeSign, operation.LabelAudit), rows...)), Service: "schedule", Now: w.Now, Log: servers.Logger(w.t), Metrics: w.metrics,
		Deliveries: deliveries.NewStore(w.Pool, deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil)}),
	}
	for _, change := range with {
		change(&cfg)
	}
	r, err := jobs.NewRunner(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// park stores deliveries to the endpoint that need a person, with ids that begin with a name.
func (w *world) park(name, agency string, n int) {
	w.t.Helper()
	w.Exec(w.t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		SELECT $1::timestamptz::date, $2::text || lpad(n::text, 6, '0'), 'webhook', $3, 'evt_' || $2::text || n, 'checkout.completed', $4, $5, 'chs_' || n, true, $1::timestamptz + n * interval '1 millisecond', 'needs_operator', 4, 0, $1::timestamptz, 400, 'body' FROM generate_series(1, $6::int) n`,
		day, name, w.endpoint, registries.AppA, agency, n)
}

// by is a person who is signed in.
func (w *world) by(name string) jobs.By { return jobs.OnPage(w.Acting(w.t, name)) }

// presses has the person's passkey sign a step, and takes it.
func (w *world) presses(name string, take func(jobs.By) error) error {
	w.t.Helper()
	a := w.Acting(w.t, name)
	s, err := jobs.Prepare(jobs.OnPage(a), take)
	if err != nil {
		return err
	}
	return take(jobs.OnPage(w.Signs(w.t, a, name, s)))
}

// parked are conditions that choose what is parked.
var parked = jobs.Conditions{State: deliveries.StateNeedsOperator}

// prepares prepares a job.
func (w *world) prepares(name string, c jobs.Conditions) jobs.Job {
	w.t.Helper()
	j, err := w.pages.Prepare(w.t.Context(), w.by(name), uuid.NewString(), jobs.KindRetry, c, w.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// starts prepares and starts a job of one person.
func (w *world) starts(name string, c jobs.Conditions) jobs.Job {
	w.t.Helper()
	j := w.prepares(name, c)
	if j, err := w.pages.Start(w.t.Context(), w.by(name), j.ID, fmt.Sprint(j.Total), w.Now()); err != nil || j.State != jobs.Running {
		w.t.Fatalf("%+v, %v", j, err)
	}
	return j
}

// runs has a runner carry out what runs.
func (w *world) runs(r *jobs.Runner) {
	w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = r.Advance(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// is reads a job and compares its end.
func (w *world) is(id string, state jobs.State, done, refused int, code string) jobs.Job {
	w.t.Helper()
	j, err := w.pages.Read(w.t.Context(), id, "")
	if err != nil || j.State != state || j.Done != done || j.Refused != refused || j.Code != code {
		w.t.Errorf("job %s: %s %d done, %d refused, %q, %v; want %s %d, %d, %q", id, j.State, j.Done, j.Refused, j.Code, err, state, done, refused, code)
	}
	return j
}

// refusal compares the code of a refusal, and returns its arguments.
func (w *world) refusal(err error, code string) operation.Args {
	w.t.Helper()
	var e *operation.Error
	if !errors.As(err, &e) || e.Code != code {
		w.t.Errorf("%v, want %s", err, code)
		return nil
	}
	return e.Args
}

// retries returns what the audit table has of deliveries that a job has sent again, and by whom, in order.
func (w *world) retries(job string) (out []string) {
	w.t.Helper()
	list, _ := w.Pool.Query(w.t.Context(), `SELECT actor || ' ' || subject FROM audit WHERE action = 'delivery.retry' AND detail->>'job' = $1 ORDER BY id`, job)
	out, err := pgx.CollectRows(list, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// rounds returns how many deliveries were made due how often.
func (w *world) rounds(name string) map[int]int {
	w.t.Helper()
	out := map[int]int{}
	list, _ := w.Pool.Query(w.t.Context(), `SELECT round, count(*) FROM deliveries WHERE delivery_id LIKE $1 || '%' GROUP BY 1`, name)
	var round, n int
	if _, err := pgx.ForEachRow(list, []any{&round, &n}, func() error { out[round] = n; return nil }); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// A person sends again what needs one. The rows are those that were listed, each once, with a row of the audit table that has the
// person; what came later is not among them. One that was accepted meanwhile is refused, and is asked for again as a new job.
func TestJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, 3)
	j := w.prepares("Olive", parked)
	if j.Total != 3 || j.State != jobs.Prepared || !j.EndsAt.Equal(w.Now()) {
		t.Fatalf("prepared %+v", j)
	}
	if again, err := w.pages.Prepare(t.Context(), w.by("Olive"), j.ID, jobs.KindRetry, parked, w.Now()); err != nil || again.ID != j.ID {
		t.Errorf("the same form: %+v, %v", again, err)
	}
	w.park("dlv_b", registries.AgencyA, 2)
	w.Exec(t, `UPDATE deliveries SET state = 'delivered', body = NULL WHERE delivery_id = 'dlv_a000002'`)
	for range 2 { // the form is sent twice
		if started, err := w.pages.Start(t.Context(), w.by("Olive"), j.ID, "", w.Now()); err != nil || started.State != jobs.Running {
			t.Fatalf("started %+v, %v", started, err)
		}
	}
	w.runs(w.runner())
	done := w.is(j.ID, jobs.Done, 2, 1, "")
	me := w.IDs["Olive"]
	if got, want := w.retries(j.ID), []string{me + " dlv_a000001", me + " dlv_a000003"}; !slices.Equal(got, want) {
		t.Errorf("audit table: %q, want %q", got, want)
	}
	if r := w.rounds("dlv_b"); r[0] != 2 {
		t.Errorf("what came later: %v", r)
	}
	refused, err := w.pages.RefusedRows(t.Context(), j.ID, 0, 10)
	if err != nil || len(refused) != 1 || refused[0].N != 2 || refused[0].Subject != "dlv_a000002" || refused[0].Code != deliveries.CodeAccepted {
		t.Errorf("refused %+v, %v", refused, err)
	}
	if !done.Again() {
		t.Error("what was refused is not offered again")
	}
	again := w.prepares("Olive", jobs.Conditions{Of: j.ID})
	if again.Total != 1 || again.ID == j.ID {
		t.Errorf("again: %+v", again)
	}
	var actions []string
	list, _ := w.Pool.Query(t.Context(), `SELECT action || ' ' || actor_kind FROM audit WHERE subject = $1 ORDER BY id`, j.ID)
	if actions, err = pgx.CollectRows(list, pgx.RowTo[string]); err != nil || !slices.Equal(actions, []string{"job.start person", "job.end service"}) {
		t.Errorf("audit table of the job: %q, %v", actions, err)
	}
}

// What a person may not ask for is refused by its name: nothing, too much, another agency's, the same once more, without the
// count, too late.
func TestRefusedJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	prepare := func(name string, c jobs.Conditions) error {
		_, err := w.pages.Prepare(t.Context(), w.by(name), uuid.NewString(), jobs.KindRetry, c, w.Now())
		return err
	}
	w.refusal(prepare("Olive", parked), jobs.CodeEmpty)
	w.park("dlv_a", registries.AgencyA, 101)
	w.refusal(prepare("Olive", jobs.Conditions{State: deliveries.StateDelivered}), deliveries.CodeNotRetryable)
	w.refusal(prepare("Awa", parked), jobs.CodeAgencyMissing)
	own := jobs.Conditions{State: deliveries.StateNeedsOperator, AgencyID: registries.AgencyA}
	j := w.prepares("Awa", own)
	if _, err := w.pages.Start(t.Context(), w.by("Olive"), j.ID, "101", w.Now()); true {
		w.refusal(err, jobs.CodeOther)
	}
	for typed, code := range map[string]string{"": jobs.CodeCountMissing, "100": jobs.CodeCountOther} {
		_, err := w.pages.Start(t.Context(), w.by("Awa"), j.ID, typed, w.Now())
		if args := w.refusal(err, code); args["n"] != 101 {
			t.Errorf("%v", args)
		}
	}
	second := w.prepares("Awa", own)
	if _, err := w.pages.Start(t.Context(), w.by("Awa"), j.ID, " 101 ", w.Now()); err != nil {
		t.Fatal(err)
	}
	if args := w.refusal(prepare("Awa", own), jobs.CodeSame); args["id"] != j.ID {
		t.Errorf("the first is %v, want %s", args, j.ID)
	}
	_, err := w.pages.Start(t.Context(), w.by("Awa"), second.ID, "101", w.Now())
	w.refusal(err, jobs.CodeSame)

	w.MoveTo(w.Now().Add(jobs.PreparedLife))
	_, err = w.pages.Start(t.Context(), w.by("Awa"), second.ID, "101", w.Now())
	w.refusal(err, jobs.CodeLate)
	// The runner ends what is late, and deletes it, as nobody has started it.
	r := w.runner()
	if err := r.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.is(second.ID, jobs.Stopped, 0, 0, jobs.CodeLate)
	w.MoveTo(w.Now().Add(jobs.PreparedLife + time.Second))
	if err := r.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = w.pages.Read(t.Context(), second.ID, "")
	w.refusal(err, jobs.CodeUnknown)
	w.park("dlv_b", registries.AgencyB, jobs.MostRows)
	if args := w.refusal(prepare("Olive", jobs.Conditions{}), jobs.CodeTooMany); args["most"] != jobs.MostRows {
		t.Errorf("%v", args)
	}
	// A person who was revoked since the page asked.
	gone := w.by("Olive")
	w.Write(t, `UPDATE staff SET revoked_at = $2 WHERE id = $1`, w.IDs["Olive"], w.Now())
	_, err = w.pages.Prepare(t.Context(), gone, uuid.NewString(), jobs.KindRetry, own, w.Now())
	w.refusal(err, "staff.revoked")
}

// A job of more than a thousand rows waits for a second person: both sign it with a passkey, and the second may have replays run.
func TestTwoPeopleStartALargeJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, jobs.AloneAtMost+1)
	j := w.prepares("Luc", parked)
	start := func(by jobs.By) error {
		_, err := w.pages.Start(t.Context(), by, j.ID, "1 001", w.Now())
		return err
	}
	approve := func(by jobs.By) error {
		_, err := w.pages.Approve(t.Context(), by, j.ID, w.Now())
		return err
	}
	w.refusal(start(w.by("Luc")), "decision.passkey_needed")
	w.refusal(w.presses("Léa", approve), jobs.CodeNeedsOne)
	if err := w.presses("Luc", start); err != nil {
		t.Fatal(err)
	}
	w.is(j.ID, jobs.Proposed, 0, 0, "")
	w.runs(w.runner())
	w.refusal(w.presses("Luc", approve), jobs.CodeSecondPerson)
	w.refusal(w.presses("Olive", approve), "staff.not_permitted")
	w.refusal(approve(w.by("Léa")), "decision.passkey_needed")
	if waiting, err := w.pages.Waiting(t.Context(), w.Now()); err != nil || len(waiting) != 1 || waiting[0].ID != j.ID {
		t.Errorf("waiting %+v, %v", waiting, err)
	}
	if err := w.presses("Léa", approve); err != nil {
		t.Fatal(err)
	}
	r := w.runner()
	if more, err := r.Advance(t.Context()); err != nil || !more {
		t.Fatalf("after the first rows: %v, %v", more, err)
	}
	if got := w.is(j.ID, jobs.Running, 200, 0, ""); got.Decider != "Léa" || got.Maker.Name != "Luc" {
		t.Errorf("%+v", got)
	}
	// Whoever has approved it and lost the role has it carried out no more.
	w.Exec(t, `DELETE FROM staff_roles WHERE staff_id = $1`, w.IDs["Léa"])
	w.runs(r)
	w.is(j.ID, jobs.Stopped, 200, 0, "staff.not_permitted")
}

// A job ends between two rows when its maker or a lead stops it. Others may not.
func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, 300)
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Opale")
	for _, name := range []string{"Olive", "Léa"} {
		j := w.starts("Olive", parked)
		r := w.runner()
		if _, err := r.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := w.pages.Stop(t.Context(), w.by("Opale"), j.ID, w.Now())
		w.refusal(err, "staff.not_permitted")
		if _, err := w.pages.Stop(t.Context(), w.by(name), j.ID, w.Now()); err != nil {
			t.Fatal(err)
		}
		w.runs(r)
		if j := w.is(j.ID, jobs.Stopped, j.Total-100, 0, ""); j.StoppedBy != name || !j.Again() {
			t.Errorf("%+v", j)
		}
		if again := w.prepares("Olive", jobs.Conditions{Of: j.ID}); again.Total != 100 {
			t.Errorf("%d rows are left, want 100", again.Total)
		}
		w.Exec(t, `UPDATE deliveries SET state = 'needs_operator'`)
	}
}

// The runner is killed: its transaction does not commit. The next one goes on with that row, and no row is done twice, also when
// two runners work at the same job.
func TestAKilledRunnerGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, 60)
	j := w.starts("Olive", parked)
	ctx, kill := context.WithCancel(t.Context())
	n := 0
	dies := w.runner(func(c *jobs.RunnerConfig) {
		c.Now = func() time.Time { // asked once a row
			if n++; n == 20 {
				kill()
			}
			return w.Now()
		}
	})
	if more, err := dies.Advance(ctx); more || !errors.Is(err, context.Canceled) {
		t.Fatalf("it died with %v, %v", more, err)
	}
	before, err := w.pages.Read(t.Context(), j.ID, "")
	if err != nil || before.Done == 0 || before.Done > 20 || len(w.retries(j.ID)) != before.Done {
		t.Fatalf("%d rows before, %d in the audit table, %v", before.Done, len(w.retries(j.ID)), err)
	}
	one, two := w.runner(), w.runner()
	ended := make(chan error, 2)
	for _, r := range []*jobs.Runner{one, two} {
		go func() {
			_, err := r.Advance(t.Context())
			ended <- err
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	w.runs(one) // another one may have been in the way at the end
	w.is(j.ID, jobs.Done, 60, 0, "")
	if r := w.rounds("dlv_a"); r[1] != 60 || len(w.retries(j.ID)) != 60 {
		t.Errorf("made due %v, %d rows in the audit table", r, len(w.retries(j.ID)))
	}
}

// The person is suspended, or loses the role, while the job runs: no further row is carried out, and the job says why.
func TestThePersonIsSuspended(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql, code string
	}{
		"suspended": {`UPDATE staff SET suspended_at = $2, suspended_by = $1 WHERE id = $1`, "staff.suspended"},
		"revoked":   {`UPDATE staff SET revoked_at = $2 WHERE id = $1`, "staff.revoked"},
		"forged":    {"", "rows.forged"},
		"no role":   {"-", "staff.not_permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.park("dlv_a", registries.AgencyA, 250)
			j := w.starts("Olive", parked)
			r := w.runner()
			if _, err := r.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			switch c.sql {
			case "":
				w.Exec(t, `UPDATE staff SET name = 'Olivia' WHERE id = $1`, w.IDs["Olive"])
			case "-":
				w.Exec(t, `DELETE FROM staff_roles WHERE staff_id = $1`, w.IDs["Olive"])
			default:
				w.Write(t, c.sql, w.IDs["Olive"], w.Now())
			}
			w.runs(r)
			if j := w.is(j.ID, jobs.Stopped, 200, 0, c.code); j.Refusal() == nil {
				t.Error("it does not say why")
			}
			if n := len(w.retries(j.ID)); n != 200 {
				t.Errorf("%d rows in the audit table", n)
			}
		})
	}
}

// The endpoint is removed while the job waits: its rows are refused with that reason, and those of others are carried out.
func TestTheEndpointIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, 2)
	w.Exec(t, `UPDATE deliveries SET kind = 'erp', destination_id = $1 WHERE delivery_id = 'dlv_a000002'`, registries.AgencyA+"/live")
	j := w.starts("Olive", parked)
	store := deliveries.NewStore(w.Pool, deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil)})
	if _, err := store.RemoveEndpoint(t.Context(), w.Keys, registries.Actor, webhook.Kind, w.endpoint, w.Now()); err != nil {
		t.Fatal(err)
	}
	reg := w.Office.House.Open(t).Registry // as it is now
	w.runs(w.runner(func(c *jobs.RunnerConfig) {
		c.Deliveries = deliveries.NewStore(w.Pool, deliveries.Kinds{webhook.Registration(reg), erp.Registration(reg)})
	}))
	w.is(j.ID, jobs.Done, 1, 1, "")
	if list, err := w.pages.RefusedRows(t.Context(), j.ID, 0, 10); err != nil || len(list) != 1 || list[0].Code != deliveries.CodeRemoved {
		t.Errorf("%+v, %v", list, err)
	}
}

// Whoever can write Postgres, and not the pages' keys, makes a job that runs, changes one that a person has started, or has one
// carried out once more. Nothing of it is carried out, and the audit table has it in nobody's name.
func TestForgedJobs(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(w *world, id string){
		"another agency": func(w *world, id string) { w.Exec(w.t, `UPDATE jobs SET agency_id = NULL WHERE id = $1`, id) },
		"another person": func(w *world, id string) {
			w.Exec(w.t, `UPDATE jobs SET maker = $2, maker_name = 'Léa' WHERE id = $1`, id, w.IDs["Léa"])
		},
		"no person": func(w *world, id string) {
			w.Exec(w.t, `UPDATE jobs SET maker_kind = 'command_line', maker = 'root' WHERE id = $1`, id)
		},
		"other rows": func(w *world, id string) {
			w.Exec(w.t, `UPDATE job_rows SET subject = 'dlv_b000001' WHERE job_id = $1 AND n = 1`, id)
		},
		"one row more": func(w *world, id string) {
			w.Exec(w.t, `INSERT INTO job_rows (job_id, n, subject) VALUES ($1, 3, 'dlv_b000001')`, id)
		},
		"another end": func(w *world, id string) {
			w.Exec(w.t, `UPDATE jobs SET ends_at = ends_at + interval '1 s' WHERE id = $1`, id)
		},
		"no signature":    func(w *world, id string) { w.Exec(w.t, `UPDATE jobs SET proposed_signature = NULL WHERE id = $1`, id) },
		"other condition": func(w *world, id string) { w.Exec(w.t, `UPDATE jobs SET conditions = '{}' WHERE id = $1`, id) },
		"a copy": func(w *world, id string) {
			w.Exec(w.t, `INSERT INTO jobs SELECT gen_random_uuid(), kind, agency_id, conditions, ends_at, total, rows_digest, maker_kind, maker, maker_name, maker_group, maker_origin, made_at, 'stopped', proposed_at, proposed_signature FROM jobs WHERE id = $1`, id)
			w.Exec(w.t, `UPDATE jobs SET state = 'stopped' WHERE id = $1`, id)
			w.Exec(w.t, `INSERT INTO job_rows (job_id, n, subject) SELECT j.id, r.n, r.subject FROM jobs j, job_rows r WHERE j.id <> $1 AND r.job_id = $1`, id)
			w.Exec(w.t, `UPDATE jobs SET state = 'running' WHERE id <> $1`, id)
		},
		"long ago": func(w *world, _ string) { w.MoveTo(w.Now().Add(8 * 24 * time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.park("dlv_a", registries.AgencyA, 2)
			w.park("dlv_b", registries.AgencyB, 1)
			j := w.starts("Awa", jobs.Conditions{State: deliveries.StateNeedsOperator, AgencyID: registries.AgencyA})
			forge(w, j.ID)
			w.runs(w.runner())
			var states, in string
			if err := w.Pool.QueryRow(t.Context(), `SELECT string_agg(DISTINCT state, ' '), (SELECT string_agg(action || ' ' || actor_kind, ' ') FROM audit WHERE action IN ('delivery.retry', 'job.refuse')) FROM jobs WHERE state <> 'stopped'`).Scan(&states, &in); err != nil {
				t.Fatal(err)
			}
			if states != "refused" || in != "job.refuse service" {
				t.Errorf("the job is %s, the audit table has %s", states, in)
			}
			if r := w.rounds("dlv_"); r[0] != 3 {
				t.Errorf("made due: %v", r)
			}
			if n, err := refusedJobs(w.metrics); err != nil || n != 1 {
				t.Errorf("%v refused jobs are counted, %v", n, err)
			}
		})
	}
}

func refusedJobs(metrics *prometheus.Registry) (float64, error) {
	families, err := metrics.Gather()
	for _, f := range families {
		if f.GetName() == "quittance_jobs_refused_total" {
			return f.GetMetric()[0].GetCounter().GetValue(), err
		}
	}
	return 0, err
}

// A job of more than a thousand rows that the pages alone have signed, without the presses of two people, is not carried out.
func TestStolenPagesRunNoLargeJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, jobs.AloneAtMost+1)
	j := w.prepares("Luc", parked)
	if err := w.presses("Luc", func(by jobs.By) error {
		_, err := w.pages.Start(t.Context(), by, j.ID, "1001", w.Now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	// The proof of one person is used for the other, whose step the pages sign as they like.
	var proof string
	if err := w.Pool.QueryRow(t.Context(), `SELECT proposed_proof::text FROM jobs WHERE id = $1`, j.ID).Scan(&proof); err != nil {
		t.Fatal(err)
	}
	for _, proof := range []*string{nil, &proof} {
		w.Exec(t, `UPDATE jobs SET state = 'running', finished_at = NULL, code = '', decided_by = $2, decider = 'Léa', decided_at = proposed_at, decided_signature = $3, decided_proof = $4 WHERE id = $1`,
			j.ID, w.IDs["Léa"], jobs.SignedApproval(t.Context(), t, w.pages, j.ID, w.IDs["Léa"], "Léa"), proof)
		w.runs(w.runner())
		w.is(j.ID, jobs.Refused, 0, 0, jobs.CodeNotBelieved)
	}
}

// The command line asks for a job, which is signed with the master keys. It stops those of others, too.
func TestJobOfTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, 2)
	by := jobs.OnCommandLine(operation.Actor{Kind: operation.ActorCommandLine, Name: "root", Origin: "machine"}, identity.Staff{})
	j, err := w.commands.Prepare(t.Context(), by, uuid.NewString(), jobs.KindRetry, parked, w.Now())
	if err == nil {
		_, err = w.commands.Start(t.Context(), by, j.ID, "", w.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.runs(w.runner())
	w.is(j.ID, jobs.Done, 2, 0, "")
	if got := w.retries(j.ID); !slices.Equal(got, []string{"root dlv_a000001", "root dlv_a000002"}) {
		t.Errorf("audit table: %q", got)
	}
	w.park("dlv_b", registries.AgencyA, 1)
	other := w.starts("Olive", parked)
	if stopped, err := w.commands.Stop(t.Context(), by, other.ID, w.Now()); err != nil || stopped.StoppedBy != "root" {
		t.Errorf("%+v, %v", stopped, err)
	}
}

// A list has what was started, and what the person has prepared; an agency's people see jobs about their agency alone.
func TestListOfJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("dlv_a", registries.AgencyA, 3)
	all := w.starts("Olive", jobs.Conditions{Kind: webhook.Kind})
	own := w.starts("Awa", jobs.Conditions{AgencyID: registries.AgencyA})
	mine := w.prepares("Olive", parked)
	list := func(agency, person, cursor string, limit int) (ids []string, next string) {
		t.Helper()
		found, next, err := w.pages.List(t.Context(), agency, person, cursor, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range found {
			ids = append(ids, j.ID)
		}
		return ids, next
	}
	if ids, _ := list("", w.IDs["Léa"], "", 10); len(ids) != 2 || slices.Contains(ids, mine.ID) {
		t.Errorf("of somebody else: %v", ids)
	}
	if ids, _ := list(registries.AgencyA, w.IDs["Awa"], "", 10); !slices.Equal(ids, []string{own.ID}) {
		t.Errorf("of the agency: %v", ids)
	}
	var paged []string
	for cursor := ""; ; {
		ids, next := list("", w.IDs["Olive"], cursor, 1)
		if paged = append(paged, ids...); next == "" {
			break
		}
		cursor = next
	}
	whole, _ := list("", w.IDs["Olive"], "", 10)
	if len(paged) != 3 || !slices.Equal(paged, whole) {
		t.Errorf("by pages %v, at once %v", paged, whole)
	}
	_, next := list("", w.IDs["Olive"], "", 1)
	_, _, err := w.pages.List(t.Context(), registries.AgencyA, "", next, 1)
	w.refusal(err, "list.cursor_foreign")
	for _, id := range []string{all.ID, "none", strings.ToUpper(uuid.NewString())} {
		_, err := w.pages.Read(t.Context(), id, registries.AgencyA)
		w.refusal(err, jobs.CodeUnknown)
	}
}
