package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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
	rate      float64 // sessions a second; when calibrated, the most that is tried
	calibrate bool
	seconds   time.Duration
	seed      uint64
}

// lowest is the rate below which a run shows nothing.
const lowest = 50

// quietWithin bounds the wait for everything to be delivered once the load is
// over; a minute and more when the broker and half the processes have just been
// away on a slow machine.
const quietWithin = 6 * time.Minute

func sizeFromEnvironment(t testing.TB) size {
	t.Helper()
	s := size{rate: 30, seconds: 15 * time.Second, seed: rand.Uint64()}
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

// Kill any process at any moment, and the broker, and no acknowledged request is
// lost or doubled, and all that keep books agree.
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
	l := newLoad(s)
	t.Logf("ready after %v; %d processes; seed %d", measure.Rounded(time.Since(begun)), len(s.Fleet), size.seed)

	if size.calibrate {
		if size.rate, err = calibrate(ctx, l, w, tally, size.rate, t.Logf); err != nil {
			t.Fatal(err)
		}
	}
	before := len(l.latencies)
	c := &chaos{
		stack: s, seed: size.seed, every: 2 * time.Second,
		brokerAt: size.seconds * 3 / 10, stormFor: size.seconds / 4, untilAtLeast: size.seconds,
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
		t.Error(err) // what is missing will be told as lost
	}
	settled := time.Since(loaded)

	read, cancel := context.WithTimeout(ctx, harness.StartWithin)
	defer cancel()
	h, err := w.history(read)
	if err != nil {
		t.Fatal(err)
	}
	h.creations, h.cancelled = l.creations, l.cancelled
	v := verify(h)
	commands, err := w.records(read, schemas.TopicCommands)
	if err != nil {
		t.Fatal(err)
	}
	poison, err := w.records(read, schemas.TopicPoisonCommands, schemas.TopicPoisonCollections, schemas.TopicPoisonReadmodel,
		schemas.TopicPoisonJournal, schemas.TopicPoisonDeliveries)
	if err != nil {
		t.Fatal(err)
	}
	unexpected := 0
	for _, p := range s.Fleet {
		unexpected += int(p.Unexpected.Load())
	}
	report := v.report(
		fmt.Sprintf("crash test: %.0f sessions a second for %v, seed %d; creations took p50 %v, p99 %v, with the tries that died; the broker was away %v; quiet %v after the load",
			size.rate, measure.Rounded(c.took), size.seed, measure.Rounded(measure.Percentile(l.latencies[before:], 0.5)), measure.Rounded(measure.Percentile(l.latencies[before:], 0.99)),
			measure.Rounded(c.brokerDown), measure.Rounded(settled)),
		[]row{
			{"journeys begun", l.started},
			{"  not begun, too many under way", l.skipped},
			{"  given up", l.gaveUp},
			{"requests repeated after no answer", int(l.retries.Load())},
			{"payments that citizens saw taken", l.confirmed},
			{"processes killed", int(c.processes.Load())},
			{"brokers killed", int(c.brokers.Load())},
			{"processors that joined and left", int(c.storms.Load())},
			{"processes that ended by themselves", unexpected},
			{"records set aside as poison", poison},
			{"answers that nobody should get", l.surprised},
		}, commands, c.kills())
	publish(t, report)

	if !v.clean() {
		t.Errorf("lost=%d doubled=%d gaps=%d diverged=%d, want 0 of each", v.lost, v.doubled, v.gaps, v.diverged)
	}
	if poison > 0 {
		t.Errorf("%d records were set aside as poison", poison)
	}
	for _, what := range l.surprises {
		t.Error(what)
	}
	// A run in which little happened would prove little.
	if told, want := len(l.creations), l.started/2; told < want || told == 0 {
		t.Errorf("%d creations of %d were acknowledged, want half at least", told, l.started)
	}
	if n := v.sums[sumKey{"completed", "XAF"}].sessions; n < int64(l.started/3) {
		t.Errorf("%d of %d sessions were completed, want a third at least", n, l.started)
	}
	if c.brokers.Load() != 1 || c.processes.Load() < int64(size.seconds/c.every)/2 || c.storms.Load() < 2 {
		t.Errorf("too little was killed: %d processes, %d brokers, %d processors joined and left", c.processes.Load(), c.brokers.Load(), c.storms.Load())
	}
}

// publish shows the report, and leaves it where the caller wants it.
func publish(t testing.TB, report string) {
	t.Helper()
	t.Logf("\n%s", report)
	if file := os.Getenv("QUITTANCE_CRASH_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(report), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// calibrate finds the highest rate that the machine carries steadily, without
// kills: all are answered in time, and what was paid is completed and told soon
// after.
func calibrate(ctx context.Context, l *load, w *witness, tally *tally, most float64, say func(format string, args ...any)) (float64, error) {
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
		p95 := measure.Percentile(l.latencies[before:], 0.95)
		steady := float64(leftOver) <= 2*rate && behind <= int(rate) && p95 < 1500*time.Millisecond && l.retries.Load()-retried <= int64(rate/4)
		say("without kills at %.0f a second: creations p95 %v, %d journeys under way and %d outcomes owed at the end, %d retries; steady: %t",
			rate, measure.Rounded(p95), leftOver, behind, l.retries.Load()-retried, steady)
		if steady || rate <= lowest {
			return rate, nil
		}
		// Not far above what it carried, and with nothing left over.
		rate = max(min(0.75*rate, 1.25*carried), lowest)
		if err := w.settle(ctx, tally, quietWithin, say); err != nil {
			return 0, err
		}
	}
}

// backlog waits a little for what is owed to fall to enough, and says what is
// left. Payments that the simulators hold back count as owed, so enough is not 0.
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

// folder is where a run keeps its data.
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
