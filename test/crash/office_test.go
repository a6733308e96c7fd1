package crash_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/bench/measure"
	demo "quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/jobs"
	"quittance/schemas"
	"quittance/test/harness"
	"quittance/test/servers"
)

// officeSize is the size of a run of the pages of staff: sessions, each of which has a case and a webhook.
type officeSize struct {
	sessions int
	kills    int
	seed     uint64
}

func officeFromEnvironment(t testing.TB) officeSize {
	t.Helper()
	s := officeSize{sessions: 40, kills: 8, seed: rand.Uint64()}
	if os.Getenv("QUITTANCE_CRASH") == "full" {
		s.sessions, s.kills = 1200, 150 // a job of more than 1,000 rows needs two people
	}
	if text := os.Getenv("QUITTANCE_CRASH_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("QUITTANCE_CRASH_SEED: %q is not a number", text)
		}
		s.seed = seed
	}
	return s
}

// Two leads decide about cases and have webhooks sent again in bulk, on the pages and with their passkeys, while the pages,
// the sinks that carry out what they decide, the processor, the broker and the database are killed. What a page has said is
// true; each decision and each row of a job happens once; and the audit table and its topic have all of it.
func TestCrashOfOffice(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and kills it for a while")
	}
	t.Parallel()
	size := officeFromEnvironment(t)
	begun := time.Now()
	s := harness.NewStack(t, folder(t), harness.Shape{
		Registry: (*harness.Stack).Applications, Ingresses: 1, Processors: 1, Sinks: 2, Offices: 2, Only: []string{"cases", "schedule", "webhook", "readmodel"},
	})
	t.Cleanup(func() {
		if t.Failed() {
			s.Outputs(t)
		}
	})
	o := newOfficeRun(t, s, size)
	ctx := t.Context()
	o.fill(ctx, t)
	t.Logf("ready after %v with %d cases; %d processes; seed %d", measure.Rounded(time.Since(begun)), len(o.cases), len(s.Fleet), size.seed)

	o.meet(ctx)
	working, rest := context.WithTimeout(ctx, quietWithin)
	defer rest()
	var atWork sync.WaitGroup
	atWork.Go(func() { o.propose(working) })
	atWork.Go(func() { o.approve(working) })
	atWork.Go(func() { o.sendAgain(working) })
	if err := o.chaos(ctx); err != nil {
		t.Fatal(err)
	}
	close(o.over)
	killed := time.Now()
	atWork.Wait()
	t.Logf("all is decided %v after the kills", measure.Rounded(time.Since(killed)))
	v, err := o.verify(ctx)
	if err != nil {
		t.Fatal(err)
	}
	poison, err := o.witness.records(ctx, schemas.TopicPoisonCommands, schemas.TopicPoisonDeliveries, schemas.TopicPoisonCases, schemas.TopicPoisonReadmodel)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, fmt.Sprintf("crash test of the pages of staff: seed %d; %d kills, of a broker and a database one each; all was carried out %v after them; %d presses asked again\n%s\n",
		size.seed, o.kills.Load(), measure.Rounded(time.Since(killed)), o.again.Load(), v))
	if v.lost != 0 || v.twice != 0 || v.audit != "complete" || poison > 0 {
		t.Errorf("%s; %d records in the poison topics", v, poison)
	}
	if v.decisions < 2*size.sessions || v.rows < 2*size.sessions || o.kills.Load() < int64(size.kills)/2 || o.again.Load() == 0 {
		t.Errorf("too little happened: %s, %d kills, %d presses asked again", v, o.kills.Load(), o.again.Load())
	}
}

// leads are the people of the run. Each works in browsers of their own.
var leads = [2]string{"Démo Lead 1", "Démo Lead 2"}

// officeRun is a run of the pages of staff.
type officeRun struct {
	size    officeSize
	stack   *harness.Stack
	witness *witness
	people  *demo.People
	random  *rand.Rand
	client  *http.Client

	cases       []string  // of cash beside a payment
	begun       time.Time // of the work
	kills       atomic.Int64
	again       atomic.Int64 // requests of pages that had no answer
	restarts    sync.WaitGroup
	mu          sync.Mutex
	proposed    map[string]bool // cases whose page has said that the proposal is made
	approved    map[string]bool // cases whose page has said that it is approved
	startedJobs []string        // whose page has said that they are started
	unexpected  []string
	approveNext chan string
	over        chan struct{} // closed when nothing is killed any more
}

func newOfficeRun(t *testing.T, s *harness.Stack, size officeSize) *officeRun {
	t.Helper()
	w, err := newWitness(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	now := func() time.Time { return time.Now().UTC() }
	desk, err := identity.OpenDesk(identity.DeskConfig{Pool: s.Pool, Keys: s.Keys, URL: s.StaffURL, Log: servers.Logger(t), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return &officeRun{
		size: size, stack: s, witness: w, random: rand.New(rand.NewPCG(size.seed, 0)),
		people: demo.NewPeople(demo.PeopleConfig{File: filepath.Join(s.Dir, "staff.json"), Pool: s.Pool, Keys: s.Keys, Party: desk.Party(), URL: s.StaffURL, Now: now}),
		client: &http.Client{
			Timeout:       harness.RequestPatience,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, s.Offices[rand.IntN(len(s.Offices))]) // as a proxy in front of both does
			}},
		},
		proposed: map[string]bool{}, approved: map[string]bool{}, approveNext: make(chan string, size.sessions), over: make(chan struct{}),
	}
}

// fill makes sessions that are paid in cash, twice: the second sum is a case. Nobody takes their webhooks.
func (o *officeRun) fill(ctx context.Context, t *testing.T) {
	t.Helper()
	l := newLoad(o.stack, nil)
	o.inboxes(ctx, t, `{"status": 400}`)
	var filling sync.WaitGroup
	for worker := range 4 {
		filling.Go(func() {
			for n := worker; n < o.size.sessions; n += 4 {
				o.paidTwice(ctx, l, n)
			}
		})
	}
	filling.Wait()
	for _, surprise := range l.surprises {
		t.Error(surprise)
	}
	o.awaits(ctx, t, "cases", `SELECT count(*) FROM cases WHERE kind = 'orphan'`)
	o.awaits(ctx, t, "deliveries", `SELECT count(*) FROM deliveries WHERE state = 'waiting'`)
	rows, err := o.stack.Pool.Query(ctx, `SELECT id FROM cases WHERE kind = 'orphan' ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		o.cases = append(o.cases, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// meet has both people sign in. They are made then, some days ago, which a comparison of the audit table finds strange.
func (o *officeRun) meet(ctx context.Context) {
	for _, person := range leads {
		o.browser(person).page(ctx, "/work")
	}
	_ = o.stack.Program.Run(ctx, "audit", "verify") // it waits until the topic has the rows
	o.begun = time.Now().UTC().Add(time.Second)
	measure.Pause(ctx, time.Until(o.begun))
}

// inboxes says how the receivers of webhooks answer.
func (o *officeRun) inboxes(ctx context.Context, t *testing.T, how string) {
	t.Helper()
	for _, c := range o.stack.Counters {
		if status, text, _, err := request(ctx, o.witness.http, http.MethodPost, o.stack.Simulator+"/control/inbox/"+c.ID, "application/json", how, nil); err != nil || status != http.StatusNoContent {
			t.Fatalf("the inbox of %s: %d %s, %v", c.Slug, status, text, err)
		}
	}
}

// paidTwice makes a session and takes its cash twice.
func (o *officeRun) paidTwice(ctx context.Context, l *load, n int) {
	counter := o.stack.Counters[n%len(o.stack.Counters)]
	c := creation{application: counter.ID, key: uuid.NewString(), order: fmt.Sprintf("office-%06d", n), amount: 5000}
	body, err := json.Marshal(map[string]any{"order_id": c.order, "amount": c.amount, "currency": "XAF", "service_code": "tax", "mode": "hosted"})
	if err != nil || !l.create(ctx, counter.Application, &c, body, 0) {
		return
	}
	for take := range 2 {
		payment := map[string]any{"payment_ref": c.reference, "collection_id": uuid.NewString(), "total": c.amount, "receipt": fmt.Sprintf("%s-%d", c.order, take)}
		var answer struct{}
		l.clerk(ctx, counter.Clerks[take], "payments", payment, &answer, 0)
	}
}

// awaits waits until a query counts as many rows as there are sessions.
func (o *officeRun) awaits(ctx context.Context, t *testing.T, what, query string) {
	t.Helper()
	n := 0
	for deadline := time.Now().Add(harness.StartWithin); ; {
		if err := o.stack.Pool.QueryRow(ctx, query).Scan(&n); err == nil && n == o.size.sessions {
			return
		}
		if time.Now().After(deadline) || !measure.Pause(ctx, 100*time.Millisecond) {
			t.Fatalf("%d %s, want %d", n, what, o.size.sessions)
		}
	}
}

// killEvery is the time from one kill to the next. The people work for as long as processes are killed.
const killEvery = time.Second

// chaos kills a process at each interval, and the broker and the database once.
func (o *officeRun) chaos(ctx context.Context) error {
	for n := range o.size.kills {
		if !measure.Pause(ctx, killEvery) {
			return ctx.Err()
		}
		var err error
		switch n {
		case o.size.kills / 3:
			if err = o.stack.Kafka.Kill(); err == nil {
				err = o.stack.Kafka.Restart(ctx)
			}
		case o.size.kills * 2 / 3:
			err = o.stack.KillPostgres(ctx)
		default:
			o.kill()
			continue
		}
		if err != nil {
			return err
		}
		o.kills.Add(1)
	}
	o.restarts.Wait()
	var errs []error
	for _, p := range o.stack.Fleet {
		errs = append(errs, p.Start())
	}
	return errors.Join(errs...)
}

// kill kills a process and starts it again within a second. Every second victim is one of the pages.
func (o *officeRun) kill() {
	among := o.stack.Fleet
	if o.random.IntN(2) == 0 {
		among = nil
		for _, p := range o.stack.Fleet {
			if strings.HasPrefix(p.Name, "office-") || strings.HasPrefix(p.Name, "schedule-") {
				among = append(among, p)
			}
		}
	}
	victim := among[o.random.IntN(len(among))]
	wait := time.Duration(o.random.Int64N(int64(time.Second)))
	if !victim.Kill() {
		return
	}
	o.kills.Add(1)
	o.restarts.Go(func() {
		time.Sleep(wait)
		_ = victim.Start() // after an error chaos starts it at the end
	})
}

// propose has the first lead propose to give back each sum.
func (o *officeRun) propose(ctx context.Context) {
	defer close(o.approveNext)
	b := o.browser(leads[0])
	for _, id := range o.cases {
		fields := url.Values{"number": {"1"}, "resolution": {"refund"}, "reference": {"evidence of " + id}, "reason": {"crash test"}}
		if b.press(ctx, "/ops/cases/"+id+"/propose/begin", fields, "/ops/cases/"+id+"/propose", fields) {
			o.says(o.proposed, id)
		}
		o.approveNext <- id
		measure.Pause(ctx, time.Duration(o.size.kills)*killEvery/time.Duration(o.size.sessions))
	}
}

// approve has the second lead approve what was proposed.
func (o *officeRun) approve(ctx context.Context) {
	b := o.browser(leads[1])
	for id := range o.approveNext {
		for ctx.Err() == nil {
			page, ok := b.page(ctx, "/ops/cases/"+id)
			if !ok {
				return
			}
			fields := url.Values{"number": {hidden(page, "number")}, "shown": {hidden(page, "shown")}}
			if fields.Get("shown") == "" {
				break // it was approved, and the answer was lost
			}
			if b.press(ctx, "/ops/cases/"+id+"/approve/begin", fields, "/ops/cases/"+id+"/approve/"+fields.Get("number"), nil) {
				o.says(o.approved, id)
				break
			}
		}
	}
}

// hidden returns the value of a hidden field of a page; empty if it has none.
func hidden(page, name string) string {
	found := regexp.MustCompile(`type="hidden" name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		return ""
	}
	return html.UnescapeString(found[1])
}

// sendAgain has the first lead send all webhooks again that nobody took, and the second one agree to a large job, until nothing
// is killed any more. Nobody takes them then either, so that there is a next job.
func (o *officeRun) sendAgain(ctx context.Context) {
	first, second := o.browser(leads[0]), o.browser(leads[1])
	for over := false; !over && ctx.Err() == nil; {
		select {
		case <-o.over:
			over = true
		default:
		}
		form := url.Values{"id": {uuid.NewString()}, "kind": {"webhook"}, "state": {"waiting"}}
		path, _, _ := strings.Cut(first.post(ctx, "/ops/jobs", form).Header.Get("Location"), "?")
		if !strings.HasPrefix(path, "/ops/jobs/") {
			measure.Pause(ctx, 200*time.Millisecond) // nothing waits
			continue
		}
		o.start(ctx, first, second, path)
	}
}

// start starts the job of a page.
func (o *officeRun) start(ctx context.Context, first, second *desk, path string) {
	id, total := strings.TrimPrefix(path, "/ops/jobs/"), 0
	for ctx.Err() == nil && o.stack.Pool.QueryRow(ctx, `SELECT total FROM jobs WHERE id = $1`, id).Scan(&total) != nil {
		measure.Pause(ctx, 100*time.Millisecond)
	}
	count := url.Values{"count": {strconv.Itoa(total)}}
	switch {
	case total > jobs.AloneAtMost:
		if !first.press(ctx, path+"/sign/begin", count, path+"/sign", count) || !second.press(ctx, path+"/approve/begin", nil, path+"/approve", url.Values{}) {
			return
		}
	default:
		if first.post(ctx, path+"/start", count).Status != http.StatusSeeOther {
			return // one of the same conditions is running
		}
	}
	o.started(id)
}

func (o *officeRun) started(job string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.startedJobs = append(o.startedJobs, job)
}

func (o *officeRun) says(of map[string]bool, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of[id] = true
}

// surprise notes an answer that no rule explains.
func (o *officeRun) surprise(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unexpected = append(o.unexpected, fmt.Sprintf(format, args...))
}

// desk is a browser in which a person works. It asks again until it is answered, at any of the processes.
type desk struct {
	*demo.Browser
	of *officeRun
}

func (o *officeRun) browser(person string) *desk {
	return &desk{demo.NewBrowser(o.people, person, o.client), o}
}

// answered asks until there is an answer for which a person would not ask again; false when the run is over.
func (d *desk) answered(ctx context.Context, ask func() (demo.Answer, error)) (demo.Answer, bool) {
	for ctx.Err() == nil {
		a, err := ask()
		switch {
		case err == nil && a.SignedOut():
			_ = d.SignIn(ctx) // the next answer says whether it has
		case err == nil && a.Status < 500 && a.Status != http.StatusTooManyRequests:
			return a, true
		}
		d.of.again.Add(1)
		measure.Pause(ctx, 100*time.Millisecond+rand.N(200*time.Millisecond))
	}
	return demo.Answer{}, false
}

// page returns a page; false when the run is over.
func (d *desk) page(ctx context.Context, path string) (string, bool) {
	a, ok := d.answered(ctx, func() (demo.Answer, error) { return d.Get(ctx, path) })
	if ok && a.Status != http.StatusOK {
		d.of.surprise("%s: %d", path, a.Status)
	}
	return a.Body, ok && a.Status == http.StatusOK
}

// press takes a step with the passkey. It returns true when the page has said that the step is taken. A conflict is not: what was
// shown has changed, or an earlier press was carried out and its answer was lost.
func (d *desk) press(ctx context.Context, begin string, chosen url.Values, finish string, fields url.Values) bool {
	a, ok := d.answered(ctx, func() (demo.Answer, error) { return d.Press(ctx, begin, chosen, finish, fields) })
	if ok && a.Status != http.StatusOK && a.Status != http.StatusConflict {
		d.of.surprise("%s: %d %s", finish, a.Status, a.Body)
	}
	return ok && a.Status == http.StatusOK
}

// post sends a form.
func (d *desk) post(ctx context.Context, path string, fields url.Values) (a demo.Answer) {
	a, _ = d.answered(ctx, func() (demo.Answer, error) { return d.Post(ctx, path, fields) })
	return a
}

// officeVerdict is what a run has shown.
type officeVerdict struct {
	decisions, rows int
	// lost are steps that a page has said were done and that are not, and rows of jobs without an end. twice are steps,
	// resolutions and rows that were done more than once.
	lost, twice int
	// audit is complete, or what the comparison of the table with the topic says.
	audit string
}

func (v officeVerdict) String() string {
	return fmt.Sprintf("decisions=%d rows=%d lost=%d twice=%d audit=%s", v.decisions, v.rows, v.lost, v.twice, v.audit)
}

// verify waits until everything is carried out, and reads what the topics and the database have.
func (o *officeRun) verify(ctx context.Context) (v officeVerdict, err error) {
	o.quiet(ctx)
	resolved, err := o.resolved(ctx)
	if err != nil {
		return v, err
	}
	for _, id := range o.cases {
		v.lost += btoi(resolved[id] == 0)
		v.twice += btoi(resolved[id] > 1)
	}
	for action, of := range map[string]map[string]bool{"case.propose": o.proposed, "case.approve": o.approved} {
		steps, err := o.count(ctx, `SELECT subject, count(*) FROM audit WHERE action = $1 GROUP BY subject`, action)
		if err != nil {
			return v, err
		}
		for id := range of {
			v.lost += btoi(steps[id] == 0)
		}
		for _, n := range steps {
			v.decisions += n
			v.twice += btoi(n > 1)
		}
	}
	if err := o.ofJobs(ctx, &v); err != nil {
		return v, err
	}
	v.audit = o.compared(ctx)
	if len(o.unexpected) > 0 {
		return v, fmt.Errorf("unexpected answers: %q", o.unexpected)
	}
	return v, nil
}

// quiet waits until all cases are closed and the jobs have ended, or until the patience ends: the verdict says what is missing then.
func (o *officeRun) quiet(ctx context.Context) {
	for deadline := time.Now().Add(quietWithin); time.Now().Before(deadline); {
		var open int
		err := o.stack.Pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM cases WHERE closed_at IS NULL) + (SELECT count(*) FROM jobs WHERE state IN ('proposed', 'running'))`).Scan(&open)
		if err == nil && open == 0 || !measure.Pause(ctx, 300*time.Millisecond) {
			return
		}
	}
}

// resolved returns how many events in Kafka close each case.
func (o *officeRun) resolved(ctx context.Context) (map[string]int, error) {
	events, err := o.witness.events(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, e := range events {
		if e.kind == "case.resolved" {
			out[e.caseID]++
		}
	}
	return out, nil
}

// count returns the counts of a query by their subject.
func (o *officeRun) count(ctx context.Context, query string, args ...any) (map[string]int, error) {
	rows, err := o.stack.Pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("counting: %w", err)
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var subject string
		var n int
		if err := rows.Scan(&subject, &n); err != nil {
			return nil, fmt.Errorf("counting: %w", err)
		}
		out[subject] = n
	}
	return out, rows.Err()
}

// ofJobs adds what jobs have done: each row has an end, and one row of the audit table if it was carried out.
func (o *officeRun) ofJobs(ctx context.Context, v *officeVerdict) error {
	states, err := o.count(ctx, `SELECT j.id || ' ' || j.state || ' ' || r.state, count(*) FROM jobs j JOIN job_rows r ON r.job_id = j.id GROUP BY 1`)
	if err != nil {
		return err
	}
	done := map[string]int{}
	for key, n := range states {
		of := strings.Fields(key)
		if of[1] == string(jobs.Prepared) {
			continue // nobody has started it
		}
		v.rows += n
		if of[1] != "done" || of[2] == "waiting" {
			v.lost += n
		}
		done[of[0]] += n * btoi(of[2] == "done")
	}
	recorded, err := o.count(ctx, `SELECT (detail ->> 'job') || ' ' || (detail ->> 'row'), count(*) FROM audit WHERE action = 'delivery.retry' GROUP BY 1`)
	if err != nil {
		return err
	}
	for key, n := range recorded {
		v.twice += btoi(n > 1)
		done[strings.Fields(key)[0]]--
	}
	for _, left := range done {
		v.lost += max(left, 0)
		v.twice += max(-left, 0)
	}
	for _, job := range o.startedJobs {
		_, known := done[job]
		v.lost += btoi(!known)
	}
	return nil
}

// compared returns complete once the audit table has what its topic has, and the other way round, and every decision is proven.
func (o *officeRun) compared(ctx context.Context) string {
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if err = errors.Join(o.stack.Program.Run(ctx, "audit", "verify", "--since", o.begun.Format(time.RFC3339)), o.stack.Program.Run(ctx, "decisions", "verify")); err == nil {
			return "complete"
		}
		if !measure.Pause(ctx, time.Second) {
			break
		}
	}
	return cmp.Or(strings.TrimSpace(fmt.Sprint(err)), "not compared")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
