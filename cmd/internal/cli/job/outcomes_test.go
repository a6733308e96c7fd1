package job_test

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/delivery"
	"quittance/cmd/internal/cli/job"
	"quittance/cmd/internal/cli/staff"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/jobs"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
	"quittance/test/backoffice"
	"quittance/test/registries"
	"quittance/test/servers"
)

// end is a job and how it ends.
type end struct {
	name  string
	state jobs.State
	code  string // why the service has ended it
	// rows are the codes of the rows that were refused, by the id of the delivery.
	rows       map[string]string
	done, left int
	french     string // of the state on pages
	english    string
	// audited is the last row of the audit table about the job, with the kind of its actor.
	audited string

	id string
}

// stage is an installation on which people start jobs and a runner carries them out when a test says so.
type stage struct {
	*backoffice.World
	t   *testing.T
	day time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{World: backoffice.New(t), t: t, day: time.Now().UTC().Truncate(24 * time.Hour)}
	s.MoveTo(s.day.Add(12 * time.Hour)) // people are signed in a short while
	s.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive", "Suspendue", "Partie", "Autre", "Fausse")
	s.Add(t, "", []identity.Role{identity.RoleLead}, "Léa")
	t.Setenv("QUITTANCE_POSTGRES", s.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", s.Keys.Reveal())
	s.Exec(t, `SELECT make_delivery_day($1)`, s.day)
	return s
}

// park stores deliveries to a destination that need a person, with ids that begin with its name.
func (s *stage) park(destination string, n int) {
	s.t.Helper()
	s.Exec(s.t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		SELECT $1::timestamptz::date, $2::text || '_' || lpad(n::text, 4, '0'), 'webhook', $2, 'evt_' || $2::text || n, 'checkout.failed', $3, $4, 'chs_' || n, true, $1::timestamptz + n * interval '1 millisecond', 'needs_operator', 4, 0, $1::timestamptz, 400, 'body' FROM generate_series(1, $5::int) n`,
		s.day, destination, registries.AppA, registries.AgencyA, n)
}

// prepared prepares a job of a person about n deliveries of a destination that is named as the job is.
func (s *stage) prepared(who, name string, n int) string {
	s.t.Helper()
	s.park(name, n)
	j, err := s.Jobs.Prepare(s.t.Context(), jobs.OnPage(s.Acting(s.t, who)), uuid.NewString(), jobs.KindRetry, jobs.Conditions{Kind: webhook.Kind, DestinationID: name}, s.Now())
	if err != nil || j.Total != n {
		s.t.Fatalf("%s: %d deliveries, %v", name, j.Total, err)
	}
	return j.ID
}

// started starts one.
func (s *stage) started(who, name string, n int) string {
	s.t.Helper()
	id := s.prepared(who, name, n)
	if _, err := s.Jobs.Start(s.t.Context(), jobs.OnPage(s.Acting(s.t, who)), id, fmt.Sprint(n), s.Now()); err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	return id
}

// runner is that of the sink schedule.
func (s *stage) runner(now func() time.Time) *jobs.Runner {
	s.t.Helper()
	r, err := jobs.NewRunner(jobs.RunnerConfig{
		Pool: s.Pool, Keys: s.Keys, Deliveries: deliveries.NewStore(s.Pool, deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil)}),
		Service: "schedule", Now: now, Log: servers.Logger(s.t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// refusable makes a delivery for each reason for which a retry is refused, one that is being sent and one that is sent again.
func (s *stage) refusable() (id string, rows map[string]string) {
	s.t.Helper()
	codes := deliveries.RetryRefusals()
	id, rows = s.started("Olive", "rows", len(codes)+2), map[string]string{}
	for i, code := range codes {
		row := fmt.Sprintf("rows_%04d", i+1)
		rows[row] = code
		s.spoil(row, code)
	}
	s.Exec(s.t, `UPDATE deliveries SET state = 'queued', lease_until = now() + interval '1 hour' WHERE delivery_id = $1`, fmt.Sprintf("rows_%04d", len(codes)+1))
	return id, rows
}

// spoil makes a retry of a delivery be refused with a code.
func (s *stage) spoil(row, code string) {
	s.t.Helper()
	switch code {
	case deliveries.CodeUnknown:
		s.Exec(s.t, `DELETE FROM deliveries WHERE delivery_id = $1`, row)
	case deliveries.CodeAccepted:
		s.Exec(s.t, `UPDATE deliveries SET state = 'delivered', body = NULL WHERE delivery_id = $1`, row)
	case deliveries.CodeSuperseded:
		s.Exec(s.t, `UPDATE deliveries SET state = 'superseded', body = NULL WHERE delivery_id = $1`, row)
	case deliveries.CodeBodyGone:
		s.Exec(s.t, `UPDATE deliveries SET body = NULL WHERE delivery_id = $1`, row)
	case deliveries.CodeSuspended, deliveries.CodeRemoved:
		why := map[string]string{deliveries.CodeSuspended: deliveries.SuspendedOperator, deliveries.CodeRemoved: deliveries.SuspendedRemoved}[code]
		s.Exec(s.t, `UPDATE deliveries SET destination_id = $2 WHERE delivery_id = $1`, row, "away-"+why)
		s.Exec(s.t, `INSERT INTO delivery_destinations (kind, destination_id, suspended_at, suspended_reason) VALUES ('webhook', $1, $2, $3)`, "away-"+why, s.day, why)
	default:
		s.t.Fatalf("no test has a retry refused with %s", code)
	}
}

// people are the persons who may not have their jobs carried out any more, by the code that says so.
func (s *stage) people() map[string]string {
	return map[string]string{"staff.suspended": "Suspendue", "staff.revoked": "Partie", "staff.not_permitted": "Autre", "rows.forged": "Fausse"}
}

// ends makes a job for each end.
func (s *stage) ends() []*end {
	s.t.Helper()
	const stopped, refused = "Arrêtée", "Refusée"
	late := &end{name: "late", state: jobs.Stopped, code: jobs.CodeLate, left: 1, french: stopped, english: "Stopped", audited: "job.lapse service", id: s.prepared("Olive", "late", 1)}
	if err := s.runner(func() time.Time { return s.Now().Add(jobs.PreparedLife) }).Tidy(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	rowsID, rows := s.refusable()
	all := []*end{
		late,
		{name: "rows", state: jobs.Done, rows: rows, done: 2, french: fmt.Sprintf("Terminée\u00a0: 2 faits, %d refusés", len(rows)), english: fmt.Sprintf("Ended: 2 done, %d refused", len(rows)), audited: "job.end service", id: rowsID},
		{name: "done", state: jobs.Done, done: 2, french: "Terminée\u00a0: 2 faits, 0 refusés", english: "Ended: 2 done, 0 refused", audited: "job.end service", id: s.started("Olive", "done", 2)},
		{name: "forged", state: jobs.Refused, code: jobs.CodeNotBelieved, left: 2, french: refused, english: "Refused", audited: "job.refuse service", id: s.started("Olive", "forged", 2)},
		{name: "by-hand", state: jobs.Stopped, left: 2, french: stopped, english: "Stopped", audited: "job.stop person", id: s.started("Olive", "by-hand", 2)},
	}
	s.Exec(s.t, `UPDATE job_rows SET subject = 'done_0001' WHERE job_id = $1 AND n = 1`, all[3].id)
	if _, err := s.Jobs.Stop(s.t.Context(), jobs.OnPage(s.Acting(s.t, "Olive")), all[4].id, s.Now()); err != nil {
		s.t.Fatal(err)
	}
	people := s.people()
	for _, code := range slices.Sorted(maps.Keys(people)) {
		who := people[code]
		all = append(all, &end{name: code, state: jobs.Stopped, code: code, left: 2, french: stopped, english: "Stopped", audited: "job.stop service", id: s.started(who, code, 2)})
	}
	s.Write(s.t, `UPDATE staff SET suspended_at = $2, suspended_by = $1 WHERE id = $1`, s.IDs[people["staff.suspended"]], s.Now())
	s.Write(s.t, `UPDATE staff SET revoked_at = $2 WHERE id = $1`, s.IDs[people["staff.revoked"]], s.Now())
	s.Write(s.t, `DELETE FROM staff_roles WHERE staff_id = $1`, s.IDs[people["staff.not_permitted"]])
	s.Exec(s.t, `UPDATE staff SET name = 'Vraie' WHERE id = $1`, s.IDs[people["rows.forged"]])
	r := s.runner(s.Now)
	for more, err := true, error(nil); more; {
		if more, err = r.Advance(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	// From now on nobody carries jobs out: their outcome is not known yet.
	all = append(all, &end{name: "unknown", state: jobs.Running, left: 2, french: "En cours", english: "Running", audited: "job.start person", id: s.started("Olive", "unknown", 2)})
	return append(all, s.proposed())
}

// proposed is a job that waits for a second person.
func (s *stage) proposed() *end {
	s.t.Helper()
	const n = jobs.AloneAtMost + 1
	id := s.prepared("Olive", "proposed", n)
	a := s.Acting(s.t, "Olive")
	take := func(by jobs.By) error {
		_, err := s.Jobs.Start(s.t.Context(), by, id, fmt.Sprint(n), s.Now())
		return err
	}
	what, err := jobs.Prepare(jobs.OnPage(a), take)
	if err == nil {
		err = take(jobs.OnPage(s.Signs(s.t, a, "Olive", what)))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &end{name: "proposed", state: jobs.Proposed, left: n, french: "En attente d’une autre personne", english: "Waits for another person", audited: "job.propose person", id: id}
}

// run runs a command of the program.
func (s *stage) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	return clitest.RunAll(s.t, []cli.Command{staff.Command(), delivery.Deliveries(), job.Command()}, args...)
}

// A job that had ended was shown as stopped to whoever pressed Stop, a row that was on its way already counted as done without a row
// of the audit table, and a job that stopped because its maker was suspended told its reader to use another key. Each end of a job,
// and of its rows, is the same in `jobs show`, `jobs list`, `jobs stop`, on the pages in both languages, in the rows and in the audit
// table: done, refused and why, or not known yet.
func TestOutcomesOfJobs(t *testing.T) {
	s := newStage(t)
	all := s.ends()
	lea := s.Enter(t, "Léa")
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			s := &stage{World: s.World, t: t, day: s.day}
			s.said(e)
			s.listed(e)
			s.shown(lea, e)
			s.stored(e)
		})
	}
	for _, e := range all {
		t.Run("stop "+e.name, func(t *testing.T) {
			s := &stage{World: s.World, t: t, day: s.day}
			s.stops(lea, e)
		})
	}
}

// said checks `jobs show`.
func (s *stage) said(e *end) {
	s.t.Helper()
	code, text, errs := s.run("jobs", "show", e.id)
	want := []string{"State         " + string(e.state), fmt.Sprintf("%d, %d done, %d refused", e.done+e.left+len(e.rows), e.done, len(e.rows))}
	for row := range e.rows {
		want = append(want, row)
	}
	for _, part := range want {
		if code != 0 || !strings.Contains(text, part) {
			s.t.Errorf("`jobs show` ends with %d %s and lacks %q:\n%s", code, errs, part, text)
		}
	}
	_, why, says := strings.Cut(text, "Why ")
	why, _, _ = strings.Cut(why, "\n")
	if says != (e.code != "") || says && (strings.Contains(why, e.code) || strings.Contains(why, "QUITTANCE_STAFF_KEY")) {
		s.t.Errorf("`jobs show` has no words for %q: %q", e.code, why)
	}
	for row, refusal := range e.rows { // in words, never by the code alone
		if strings.Contains(text, refusal) {
			s.t.Errorf("`jobs show` has no words for the refusal of %s with %s:\n%s", row, refusal, text)
		}
	}
	if waits := strings.Contains(text, "carries it out") || strings.Contains(text, "approves it within"); waits != (e.state == jobs.Running || e.state == jobs.Proposed) {
		s.t.Errorf("what a job that is %s waits for: %v\n%s", e.state, waits, text)
	}
	var j shownJob
	_, out, _ := s.run("jobs", "show", e.id, "--json")
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		s.t.Fatal(err)
	}
	rows := map[string]string{}
	for _, r := range j.Rows {
		rows[r.Delivery] = r.Code
	}
	if !j.is(e) || !maps.Equal(rows, e.rows) {
		s.t.Errorf("`jobs show --json`: %s", out)
	}
}

// shownJob is a job as commands print it.
type shownJob struct {
	ID, State, Code      string
	Total, Done, Refused int
	Rows                 []struct{ Delivery, Code string } `json:"refused_rows"`
}

func (j shownJob) is(e *end) bool {
	return j.State == string(e.state) && j.Code == e.code && j.Done == e.done && j.Refused == len(e.rows) && j.Total == e.done+len(e.rows)+e.left
}

// listed checks `jobs list`. A job that nobody has started is its maker's alone.
func (s *stage) listed(e *end) {
	s.t.Helper()
	var list struct{ Jobs []shownJob }
	_, out, _ := s.run("jobs", "list", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.t.Fatal(err)
	}
	if i := slices.IndexFunc(list.Jobs, func(j shownJob) bool { return j.ID == e.id }); i < 0 || !list.Jobs[i].is(e) {
		s.t.Errorf("`jobs list --json` has not %s with %q: %s", e.state, e.code, out)
	}
}

// notices are what steps say that they have done, with the states in which it is so.
var notices = map[string]struct {
	english string
	in      []jobs.State
}{
	"started":  {"The job is started.", []jobs.State{jobs.Running}},
	"approved": {"The job is approved and starts.", []jobs.State{jobs.Running}},
	"proposed": {"The request is saved.", []jobs.State{jobs.Proposed}},
	"stopped":  {"The job is stopped.", []jobs.State{jobs.Stopped}},
	"same":     {"is running or waits already", []jobs.State{jobs.Running, jobs.Proposed}},
}

// shown checks the page of the job and the list of jobs.
func (s *stage) shown(b *backoffice.Browser, e *end) {
	s.t.Helper()
	for lang, state := range map[string]string{"fr": e.french, "en": e.english} {
		page := b.Get("/ops/jobs/" + e.id + "?lang=" + lang)
		text := html.UnescapeString(page.Body.String())
		if page.Code != http.StatusOK || !strings.Contains(text, "<dd>"+state+"</dd>") || e.code != "" && !strings.Contains(text, " ("+e.code+")</p>") {
			s.t.Errorf("the page in %s is %d and lacks %q or %q:\n%s", lang, page.Code, state, e.code, text)
		}
		for row, code := range e.rows {
			if !strings.Contains(text, row) || !strings.Contains(text, code) {
				s.t.Errorf("the page in %s lacks %s or %s:\n%s", lang, row, code, text)
			}
		}
		for _, other := range []string{"Rien n’a été enregistré", "Nothing was saved", "Votre rôle", "Your role", "de votre groupe", "of your group"} { // the general words, and those for whoever reads
			if strings.Contains(text, other) {
				s.t.Errorf("the page in %s says %q:\n%s", lang, other, text)
			}
		}
		list := html.UnescapeString(b.Get("/ops/jobs?lang=" + lang).Body.String())
		if _, row, found := strings.Cut(list, "/ops/jobs/"+e.id); !found || !strings.Contains(strings.SplitN(row, "</tr>", 2)[0], state) {
			s.t.Errorf("the list of jobs in %s lacks %q:\n%s", lang, state, list)
		}
	}
	for done, n := range notices {
		text := html.UnescapeString(b.Get("/ops/jobs/" + e.id + "?lang=en&done=" + done).Body.String())
		if says := strings.Contains(text, n.english); says != slices.Contains(n.in, e.state) {
			s.t.Errorf("a job that is %s says %q: %v", e.state, n.english, says)
		}
	}
}

// stored checks the rows and the audit table: of each row that is done, and of no other, there is one in the name of the person.
func (s *stage) stored(e *end) {
	s.t.Helper()
	var audited, code string
	if err := s.Pool.QueryRow(s.t.Context(), `SELECT action || ' ' || actor_kind, coalesce(detail ->> 'code', '') FROM audit WHERE subject = $1 ORDER BY audit.id DESC LIMIT 1`, e.id).Scan(&audited, &code); err != nil {
		s.t.Fatal(err)
	}
	if audited != e.audited || code != e.code {
		s.t.Errorf("audited as %s %q, want %s %q", audited, code, e.audited, e.code)
	}
	var waiting, done, refused, retried int
	if err := s.Pool.QueryRow(s.t.Context(), `SELECT count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'refused' AND code <> ''),
		(SELECT count(DISTINCT subject) FROM audit WHERE action = 'delivery.retry' AND actor_kind = 'person' AND detail ->> 'job' = $1::text) FROM job_rows WHERE job_id = $1::uuid`, e.id).Scan(&waiting, &done, &refused, &retried); err != nil {
		s.t.Fatal(err)
	}
	if waiting != e.left || done != e.done || refused != len(e.rows) || retried != e.done {
		s.t.Errorf("%d rows wait, %d are done, %d refused, and %d are in the audit table; want %d, %d, %d", waiting, done, refused, retried, e.left, e.done, len(e.rows))
	}
}

// stops has a person press Stop and the command stop: what has ended otherwise was not stopped.
func (s *stage) stops(b *backoffice.Browser, e *end) {
	s.t.Helper()
	ended := e.state == jobs.Done || e.state == jobs.Refused
	page := b.Post("/ops/jobs/"+e.id+"/stop?lang=en", url.Values{"lang": {"en"}})
	if leads := page.Code == http.StatusSeeOther && strings.Contains(page.Header().Get("Location"), "done=stopped"); leads == ended || ended && (page.Code != http.StatusConflict || !strings.Contains(page.Body.String(), "The job has ended.")) {
		s.t.Errorf("Stop on a job that is %s: %d %s %s", e.state, page.Code, page.Header().Get("Location"), page.Body)
	}
	want, words := 0, ""
	if ended {
		want, words = 1, "the job is "+string(e.state)
	}
	if code, out, errs := s.run("jobs", "stop", e.id); code != want || !strings.Contains(errs, words) || (code == 0) != strings.Contains(out, "State         stopped") {
		s.t.Errorf("`jobs stop` of a job that is %s ends with %d: %s%s", e.state, code, out, errs)
	}
	by := "job.stop person"
	if e.state.Ended() {
		by = e.audited
	}
	var audited string
	if err := s.Pool.QueryRow(s.t.Context(), `SELECT action || ' ' || actor_kind FROM audit WHERE subject = $1 ORDER BY audit.id DESC LIMIT 1`, e.id).Scan(&audited); err != nil || audited != by {
		s.t.Errorf("after Stop on a job that is %s: %s, %v", e.state, audited, err)
	}
}
