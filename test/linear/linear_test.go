package linear_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/mutants"
	"quittance/test/servers"
)

const (
	historiesAtOnce = 4
	// A history lasts until both the time has passed and it has this many answers.
	historyLasts, historyHas = 1500 * time.Millisecond, 80
	// checkPatience bounds the check of one history, which takes milliseconds.
	checkPatience = 30 * time.Second
)

// Concurrent integrators and citizens use two ingresses and two processors, and one of
// each is killed every few histories. The model (model_test.go) must explain all answers.
// The environment changes the run:
//
//	QUITTANCE_LINEARIZABILITY=full     more than 200 histories
//	QUITTANCE_LINEARIZABILITY_REPORT=F file that gets the report, whose last line is
//	                                   histories=N operations=N unknown=N violations=0 kills=N
//	QUITTANCE_LINEARIZABILITY_DIR=DIR  folder of the pictures of violations, else .deps/linearizability
//
// unknown counts the requests without a definite answer.
func TestLinearizability(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and kills parts of it")
	}
	t.Parallel()
	rounds, killEvery := 2, 2
	if os.Getenv("QUITTANCE_LINEARIZABILITY") == "full" {
		rounds = 52
	}
	l := newLinear(t, servers.QuittanceDev(t), picturesFolder())
	for n := range rounds {
		l.round(t.Context(), t, n%killEvery == 1)
	}
	for _, v := range l.violations {
		t.Error(v)
	}
	for _, what := range l.surprises {
		t.Error(what)
	}
	report := l.report()
	t.Logf("\n%s", report)
	if file := os.Getenv("QUITTANCE_LINEARIZABILITY_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(report), 0o644); err != nil {
			t.Error(err)
		}
	}
	// A run with few requests or no kills proves nothing.
	if l.seen.created < l.histories || l.seen.cancelled < l.histories || l.seen.replayed < l.histories || l.seen.completed < l.histories/4 ||
		l.seen.inPayment < l.histories || l.seen.carts < l.histories || l.seen.taken < l.histories || l.seen.looks < l.histories || l.histories > 100 && l.seen.again == 0 {
		t.Errorf("too few answers of some kind in %d histories: %+v", l.histories, l.seen)
	}
	if l.kills == 0 || l.unanswered == 0 {
		t.Errorf("%d kills left %d requests without an answer, want at least one of each", l.kills, l.unanswered)
	}
}

// A broken build merges aborted transactions into its state and answers from it. The same
// check must find a violation.
func TestBrokenOverlayIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	mutant, err := mutants.Named("linear_merge_aborted")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := mutant.Overlay(harness.Absolute(t, "."), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := newLinear(t, servers.Build(t, "quittance-dev", "-overlay", overlay), t.TempDir())
	const enough = 15
	for range enough {
		l.round(t.Context(), t, false)
		if len(l.violations) > 0 {
			t.Logf("caught in the first %d histories: %s\n%s", l.histories, l.violations[0], l.report())
			return
		}
	}
	t.Errorf("%d histories of a broken build have no violation:\n%s", l.histories, l.report())
}

// linear records histories and checks them.
type linear struct {
	stack    *harness.Stack
	client   *http.Client
	pictures string // folder of the pictures of violations

	histories, operations, unanswered, kills int
	seen                                     struct{ created, replayed, refused, cancelled, completed, read, inPayment, again, carts, taken, looks, changed, limited int }
	violations, surprises                    []string
	slowest                                  time.Duration // longest check
}

func newLinear(t testing.TB, program, pictures string) *linear {
	t.Helper()
	begun := time.Now()
	s := harness.NewStack(t, servers.Dir(t), harness.Shape{
		Registry: (*harness.Stack).ApplicationsAndPortals, Ingresses: 2, Processors: 2, Sinks: 1,
		Only: []string{"collect", "readmodel", "erp", "schedule"}, Program: program,
	})
	t.Cleanup(func() {
		if t.Failed() {
			s.Outputs(t)
		}
	})
	t.Logf("ready after %v; %d processes", measure.Rounded(time.Since(begun)), len(s.Fleet))
	return &linear{stack: s, pictures: pictures, client: &http.Client{
		Timeout:       harness.RequestPatience,
		Transport:     &http.Transport{MaxIdleConnsPerHost: historiesAtOnce * clientsPerHistory},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// round records histories of several applications at a time and checks them. After kills
// it lasts until the killed processes are ready again.
func (l *linear) round(ctx context.Context, t testing.TB, kill bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, harness.StartWithin)
	defer cancel()
	until, stop := context.WithCancel(ctx)
	defer stop()
	var recordings []*recording
	var running sync.WaitGroup
	for range historiesAtOnce {
		l.histories++
		app := l.stack.Apps[l.histories%len(l.stack.Apps)]
		// Of three histories one is about dues that the orders of several integrators want to
		// pay, and one about carts of several dues.
		var carts *portal
		if l.histories%3 == 2 {
			var err error
			if carts, err = l.openPortal(ctx, fmt.Sprintf("h%d", l.histories)); err != nil {
				t.Fatal(err)
			}
		}
		r := newRecording(fmt.Sprintf("h%d", l.histories), l.histories%3 == 1, carts, app, l.stack.Ingress, l.client)
		recordings = append(recordings, r)
	}
	for _, r := range recordings {
		running.Go(func() { r.run(ctx, until) })
	}
	if kill {
		measure.Pause(ctx, historyLasts/3)
		if err := l.strike(ctx); err != nil {
			t.Error(err)
		}
		measure.Pause(ctx, historyLasts/3)
	} else {
		measure.Pause(ctx, historyLasts)
	}
	for _, r := range recordings {
		for r.answers() < historyHas && measure.Pause(ctx, 50*time.Millisecond) {
		}
	}
	stop()
	running.Wait()
	for _, r := range recordings {
		l.check(r)
	}
}

// strike kills a random ingress and a random processor, starts them again, and waits until
// they are ready.
func (l *linear) strike(ctx context.Context) error {
	var victims []*program.Process
	for _, role := range []string{"ingress", "processor"} {
		name := fmt.Sprintf("%s-%d", role, rand.IntN(len(l.stack.Ingress)))
		for _, p := range l.stack.Fleet {
			if p.Name == name {
				victims = append(victims, p)
			}
		}
	}
	var all sync.WaitGroup
	errs := make([]error, len(victims))
	for i, p := range victims {
		all.Go(func() {
			measure.Pause(ctx, rand.N(300*time.Millisecond))
			p.Kill()
			measure.Pause(ctx, rand.N(700*time.Millisecond))
			if errs[i] = p.Start(); errs[i] == nil {
				errs[i] = program.AwaitReady(ctx, p)
			}
		})
	}
	all.Wait()
	l.kills += len(victims)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check compares a history with the model.
func (l *linear) check(r *recording) {
	history := r.history()
	l.operations += len(r.operations)
	l.unanswered += r.unanswered
	l.surprises = append(l.surprises, r.surprises...)
	l.seen.limited += r.limited
	for _, o := range r.all {
		if (o.due || r.carts != nil) && len(o.paid) > 1 {
			l.seen.again++
		}
	}
	for _, op := range r.operations {
		l.count(op.Input.(request), op.Output.(reply))
	}
	begun := time.Now()
	result := porcupine.CheckOperationsTimeout(linearizable(), history, checkPatience)
	l.slowest = max(l.slowest, time.Since(begun))
	switch result {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		l.surprises = append(l.surprises, fmt.Sprintf("history %s could not be checked in %v", r.name, checkPatience))
		return
	case porcupine.Illegal:
	}
	_, info := porcupine.CheckOperationsVerbose(linearizable(), history, checkPatience)
	file := filepath.Join(l.pictures, r.name+".html")
	what := fmt.Sprintf("history %s is not linearizable, see %s", r.name, file)
	err := os.MkdirAll(l.pictures, 0o755)
	if err == nil {
		err = porcupine.VisualizePath(linearizable(), info, file)
	}
	if err != nil {
		what += fmt.Sprintf(" (%v)", err)
	}
	l.violations = append(l.violations, what)
}

func (l *linear) count(q request, a reply) {
	switch {
	case a.replayed:
		l.seen.replayed++
	case a.code == "checkout.due_in_payment":
		l.seen.inPayment++
	case a.code == refusedInPayment:
		l.seen.taken++
	case a.code == refusedChanged:
		l.seen.changed++
	case q.do == actionLook:
		l.seen.looks++
	case q.owner > 0 && q.do == actionCreate:
		l.seen.carts++
	case a.code != "":
		l.seen.refused++
	case q.do == actionCreate:
		l.seen.created++
	case q.do == actionCancel:
		l.seen.cancelled++
	default:
		l.seen.read++
		for _, s := range a.sessions {
			if s.status == "completed" {
				l.seen.completed++
			}
		}
	}
}

// report summarizes what was recorded. Its last line is for machines.
func (l *linear) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "linearizability: %d creations, %d replays, %d refusals, %d cancellations, %d reads that showed %d completed sessions, %d refusals of dues, %d dues paid more than once; slowest check %v\n",
		l.seen.created, l.seen.replayed, l.seen.refused, l.seen.cancelled, l.seen.read, l.seen.completed, l.seen.inPayment, l.seen.again, measure.Rounded(l.slowest))
	fmt.Fprintf(&b, "carts: %d creations, %d refusals of a due in payment, %d of a changed due, %d looks at all dues; %d requests beyond the rate of an account\n",
		l.seen.carts, l.seen.taken, l.seen.changed, l.seen.looks, l.seen.limited)
	fmt.Fprintf(&b, "histories=%d operations=%d unknown=%d violations=%d kills=%d\n", l.histories, l.operations, l.unanswered, len(l.violations), l.kills)
	return b.String()
}

// picturesFolder returns the folder of the pictures of violations.
func picturesFolder() string {
	if dir := os.Getenv("QUITTANCE_LINEARIZABILITY_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(harness.Root, ".deps", "linearizability")
}
