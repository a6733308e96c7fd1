package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/schemas"
	"quittance/test/harness"
	"quittance/test/servers"
)

// size of a run.
type size struct {
	rate      float64 // sessions a second; with calibrate, the highest rate to try
	calibrate bool
	seconds   time.Duration
	seed      uint64
}

// lowest is the lowest rate of a useful run, in sessions a second.
const lowest = 50

// quietWithin bounds the wait for all deliveries after the load. On a slow machine they
// can take minutes after the kills.
const quietWithin = 6 * time.Minute

func sizeFromEnvironment(t testing.TB) size {
	t.Helper()
	s := size{rate: 30, seconds: 10 * time.Second, seed: rand.Uint64()}
	if os.Getenv("QUITTANCE_CRASH") == "full" {
		s = size{rate: 200, calibrate: true, seconds: time.Minute, seed: s.seed}
	}
	for name, set := range map[string]func(uint64){
		"QUITTANCE_CRASH_RATE":    func(n uint64) { s.rate, s.calibrate = float64(n), false },
		"QUITTANCE_CRASH_SECONDS": func(n uint64) { s.seconds = time.Duration(n) * time.Second },
		"QUITTANCE_CRASH_SEED":    func(n uint64) { s.seed = n },
	} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %q is not a number", name, text)
			}
			set(n)
		}
	}
	return s
}

// Processes and the broker are killed at any moment. No acknowledged request is lost or
// doubled, and all stores agree.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and kills it for a while")
	}
	t.Parallel()
	size := sizeFromEnvironment(t)
	begun := time.Now()
	s := harness.NewStack(t, folder(t), harness.EveryRole)
	t.Cleanup(func() {
		if t.Failed() {
			s.Outputs(t)
		}
	})
	ctx := t.Context()
	w, err := newWitness(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tally, err := w.tally(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tally.events.Close()
	citizens, leave := context.WithCancel(ctx)
	carts, err := openPortal(citizens, s, w.Codec, int(size.rate))
	if err != nil {
		leave()
		t.Fatal(err)
	}
	defer func() {
		leave()
		if err := <-carts.done; err != nil {
			t.Error(err)
		}
	}()
	l := newLoad(s, carts)
	people, err := newStaff(ctx, s, l)
	if err != nil {
		t.Fatal(err)
	}
	w.people = people
	working, rest := context.WithCancel(ctx)
	var atWork sync.WaitGroup
	atWork.Go(func() { people.run(working) })
	defer func() { rest(); atWork.Wait() }()
	t.Logf("ready after %v; %d processes; seed %d", measure.Rounded(time.Since(begun)), len(s.Fleet), size.seed)

	if size.calibrate {
		if size.rate, err = calibrate(ctx, l, w, tally, size.rate, t.Logf); err != nil {
			t.Fatal(err)
		}
	}
	before := len(l.latencies)
	c := &chaos{
		stack: s, seed: size.seed, every: 2 * time.Second,
		backupAt: size.seconds * 3 / 20, brokerAt: size.seconds * 3 / 10, stormFor: size.seconds / 4, untilAtLeast: size.seconds,
	}
	for _, port := range harness.Ports(t, 2) {
		c.health = append(c.health, program.Local(port))
	}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	killed := make(chan error, 1)
	go func() {
		defer stop()
		killed <- c.run(ctx)
	}()
	l.run(ctx, loading, size.rate)
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	loaded := time.Now()
	back, cancel := context.WithTimeout(ctx, harness.StartWithin)
	defer cancel()
	if err := program.AwaitReady(back, s.Fleet...); err != nil {
		t.Error(err)
	}
	if err := w.settle(ctx, tally, quietWithin, t.Logf); err != nil {
		t.Error(err) // verify counts what is missing as lost
	}
	settled := time.Since(loaded)
	rest()
	atWork.Wait()

	read, cancel := context.WithTimeout(ctx, harness.StartWithin)
	defer cancel()
	h, err := w.history(read)
	if err != nil {
		t.Fatal(err)
	}
	h.creations, h.cancelled, h.taken, h.charges, h.owed = l.creations, l.cancelled, l.taken, l.charges, l.owed
	h.refused = slices.Concat(l.cartsRefused, l.duesChanged)
	v := verify(h)
	commands, err := w.records(read, schemas.TopicCommands)
	if err != nil {
		t.Fatal(err)
	}
	poison, err := w.records(read, schemas.TopicPoisonCommands, schemas.TopicPoisonCollections, schemas.TopicPoisonReadmodel,
		schemas.TopicPoisonJournal, schemas.TopicPoisonDeliveries, schemas.TopicPoisonCases)
	if err != nil {
		t.Fatal(err)
	}
	agencies, sample := 1, 40
	if os.Getenv("QUITTANCE_CRASH") == "full" {
		agencies, sample = len(s.Ledgers), 1000
	}
	statements, books, err := w.reconcile(ctx, people, size.seed, begun, agencies, sample)
	if err != nil {
		t.Fatal(err)
	}
	wrongly, err := w.falseMatches(ctx)
	if err != nil {
		t.Fatal(err)
	}
	unexpected := 0
	for _, p := range s.Fleet {
		unexpected += int(p.Unexpected.Load())
	}
	tokens := 0
	for _, p := range l.partners {
		tokens += p.tokens
	}
	report := v.report(
		fmt.Sprintf("crash test: %.0f sessions a second for %v, seed %d; creations took, retries included, %s; the broker was down for %v; all was delivered %v after the load",
			size.rate, measure.Rounded(c.took), size.seed, c.phases(l.latencies[before:]), measure.Rounded(c.back.Sub(c.killed)), measure.Rounded(settled)),
		[]row{
			{"journeys begun", l.started},
			{"  not begun, too many under way", l.skipped},
			{"  given up", l.gaveUp},
			{"requests repeated without an answer", int(l.retries.Load())},
			{"confirmations answered to citizens", l.confirmed},
			{"payments asked for by partners, unanswered", l.unanswered},
			{"  refused by a quota, not repeated after the load", l.refused},
			{"tokens generated by partners", tokens},
			{"carts of citizens created", l.cartsMade},
			{"  repeated after their answer", l.cartsRepeated},
			{"  refused, another paid one of the dues", len(l.cartsRefused)},
			{"  refused, a due had changed", len(l.duesChanged)},
			{"processes killed", int(c.processes.Load())},
			{"  sinks that tell partners", int(c.tellers.Load())},
			{"ingresses stopped by SIGTERM", int(c.stopped.Load())},
			{"  milliseconds of the slowest", int(time.Duration(c.slowest.Load()).Milliseconds())},
			{"brokers killed", int(c.brokers.Load())},
			{"processors that joined and left", int(c.storms.Load())},
			{"restores of PostgreSQL", int(c.restores.Load())},
			{"refunds that staff requested", len(people.requested)},
			{"  of one due of a cart", int(people.parts.Load())},
			{"resolutions that staff agreed on", int(people.proposed.Load())},
			{"closes of accounts", statements.closes},
			{"  proposed again", int(books.again.Load())},
			{"imports of statements killed", int(books.imports.Load())},
			{"  programs killed meanwhile", int(books.kills.Load())},
			{"payments on the statements", statements.payments},
			{"  sampled and proved from Kafka", statements.proved},
			{"false matches", wrongly},
			{"processes that ended by themselves", unexpected},
			{"poison records", poison},
			{"unexpected answers", l.surprised},
		}, commands, c.kills())
	publish(t, report)
	t.Logf("refusals of resolutions: %v", people.refusals)

	if !v.clean() {
		t.Errorf("lost=%d doubled=%d gaps=%d diverged=%d blocked=%d untold=%d, want 0 of each", v.lost, v.doubled, v.gaps, v.diverged, v.blocked, v.untold)
	}
	if poison > 0 {
		t.Errorf("%d records are in the poison topics, want none", poison)
	}
	for _, what := range slices.Concat(l.surprises, statements.wrong) {
		t.Error(what)
	}
	if statements.closes < 2*agencies || statements.proved == 0 || wrongly > 0 || books.imports.Load() == 0 || books.kills.Load() == 0 {
		t.Errorf("%d closes of %d agencies, %d payments proved, %d false matches, %d imports and %d programs killed", statements.closes, agencies, statements.proved, wrongly, books.imports.Load(), books.kills.Load())
	}
	// A run with little load or few kills proves nothing.
	if acknowledged, want := len(l.creations), l.started/2; acknowledged < want || acknowledged == 0 {
		t.Errorf("%d of %d creations were acknowledged, want at least half", acknowledged, l.started)
	}
	if n := v.sums[sumKey{"completed", "XAF"}].sessions; n < int64(l.started/3) {
		t.Errorf("%d of %d sessions were completed, want at least a third", n, l.started)
	}
	if late, back := v.late, v.reversed; late == 0 || back == 0 || people.proposed.Load() == 0 || c.restores.Load() != 1 {
		t.Errorf("%d late payments, %d reversals, %d resolutions of staff, %d restores of PostgreSQL: want some of each", late, back, people.proposed.Load(), c.restores.Load())
	}
	if want := l.started / partnerEvery / 3; v.carts.items < 2*want || len(l.cartsRefused) == 0 || l.cartsRepeated == 0 {
		t.Errorf("%d dues in completed carts, want at least %d; %d carts were refused and %d repeated, want some", v.carts.items, 2*want, len(l.cartsRefused), l.cartsRepeated)
	}
	if want := l.started / partnerEvery / 3; v.expected < want || v.expected == 0 || c.tellers.Load() == 0 {
		t.Errorf("%d payments of partners ended, want at least %d; %d kills of sinks that tell partners, want some", v.expected, want, c.tellers.Load())
	}
	if c.brokers.Load() != 1 || c.stopped.Load() == 0 || c.processes.Load() < int64(size.seconds/c.every)/2 || c.storms.Load() < 2 {
		t.Errorf("too few kills: %d processes, %d brokers, %d ingresses by SIGTERM, %d processors that joined and left", c.processes.Load(), c.brokers.Load(), c.stopped.Load(), c.storms.Load())
	}
}

// publish logs the report and adds it to the file of QUITTANCE_CRASH_REPORT.
func publish(t testing.TB, report string) {
	t.Helper()
	t.Logf("\n%s", report)
	file := os.Getenv("QUITTANCE_CRASH_REPORT")
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	_, err = f.WriteString(report)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Error(err)
	}
}

// calibrate returns the highest rate at which the machine, without kills, answers in time
// and completes and delivers payments soon.
func calibrate(ctx context.Context, l *load, w *witness, tally *tally, most float64, logf func(format string, args ...any)) (float64, error) {
	const try, patience = 8 * time.Second, 5 * time.Second
	for rate := most; ; {
		before, retried, begun := len(l.latencies), l.retries.Load(), time.Now()
		begin, cancel := context.WithTimeout(ctx, try)
		leftOver := l.run(ctx, begin, rate)
		cancel()
		carried := rate * float64(try) / float64(time.Since(begun))
		behind, err := backlog(ctx, w, tally, int(rate), patience)
		if err != nil {
			return 0, err
		}
		p95 := measure.Percentile(during(l.latencies[before:], begun, time.Now()), 0.95)
		steady := float64(leftOver) <= 2*rate && behind <= int(rate) && p95 < 1500*time.Millisecond && l.retries.Load()-retried <= int64(rate/4)
		logf("without kills at %.0f a second: creations p95 %v, %d journeys under way and %d outcomes outstanding at the end, %d retries; steady: %t",
			rate, measure.Rounded(p95), leftOver, behind, l.retries.Load()-retried, steady)
		if steady || rate <= lowest {
			return rate, nil
		}
		// The next try is little above the rate that was reached, and begins without a backlog.
		rate = max(min(0.75*rate, 1.25*carried), lowest)
		if err := w.settle(ctx, tally, quietWithin, logf); err != nil {
			return 0, err
		}
	}
}

// backlog waits until at most enough outcomes are outstanding, or until patience ends, and
// returns their number. It includes payments that the simulators delay, so enough is not 0.
func backlog(ctx context.Context, w *witness, tally *tally, enough int, patience time.Duration) (int, error) {
	for deadline := time.Now().Add(patience); ; {
		p, err := w.progress(ctx, tally)
		if err != nil {
			return 0, err
		}
		behind := p.inFlight + p.webhooks - p.delivered + p.confirms - p.confirmed
		if behind <= enough || time.Now().After(deadline) || !measure.Pause(ctx, 200*time.Millisecond) {
			return behind, nil
		}
	}
}

// folder returns the folder of a run's data.
func folder(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("QUITTANCE_CRASH_DIR")
	if dir == "" {
		return servers.Dir(t)
	}
	dir = filepath.Join(dir, time.Now().UTC().Format("20060102-150405"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
