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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/dev/bench/measure"
	"quittance/dev/payday"
	"quittance/dev/stack/program"
	"quittance/disbursement"
	"quittance/internal/disbursements"
	"quittance/schemas"
	"quittance/sinks/disburse"
	"quittance/test/harness"
	"quittance/test/mutants"
	"quittance/test/servers"
)

// batchSize is the size of a run of batches.
type batchSize struct {
	agencies, lines int
	seed            uint64
	// program replaces quittance-dev.
	program string
}

func batchesFromEnvironment(t testing.TB) batchSize {
	t.Helper()
	s := batchSize{agencies: 4, lines: 480, seed: rand.Uint64()}
	if os.Getenv("QUITTANCE_CRASH") == "full" {
		s.agencies, s.lines = 16, 50_000
	}
	for name, set := range map[string]func(uint64){
		"QUITTANCE_CRASH_LINES": func(n uint64) { s.lines = int(n) },
		"QUITTANCE_CRASH_SEED":  func(n uint64) { s.seed = n },
	} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 31)
			if err != nil {
				t.Fatalf("%s: %q is not a number", name, text)
			}
			set(n)
		}
	}
	if name := os.Getenv("QUITTANCE_CRASH_MUTANT"); name != "" {
		m, err := mutants.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		root, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := m.Overlay(root, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.program = servers.Build(t, "quittance-dev", "-overlay", overlay)
	}
	return s
}

// payees are the last two digits of the payees' numbers, by how often they occur: what the simulated operators do is
// described in docs/developing/simulators.md.
var payees = []string{
	"01", "08", "01", "11", "02", "01", "04", "01", "12", "08", "01", "06", "11", "01", "07", "01", payeeDoubt, "08", "01", payeeUnpaid,
	"01", "11", "01", "13", "01", "08", "12", "01", "11", payeeWaits,
}

// smallest is the amount of the first line, in XAF. Each line has one more.
const smallest = 500

// paying is a run of batches.
type paying struct {
	size    batchSize
	stack   *harness.Stack
	office  *payday.Payday
	store   *disbursements.Store
	witness *witness
	random  *rand.Rand
	logf    func(format string, args ...any)

	agencies []*payday.Agency
	batches  []payday.Batch
	lines    []wanted

	restarts                      sync.WaitGroup
	kills, brokers, bases, losses atomic.Int64
}

// Batches of many agencies go over both rails while processors, sinks, the broker and the database are killed, while the
// offsets of the sink are lost, and with every fault of the simulated operators. Their ledgers say who was paid, and how
// often; the service says the same, or asks people.
func TestCrashOfBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and kills it for a while")
	}
	t.Parallel()
	size := batchesFromEnvironment(t)
	begun := time.Now()
	s := harness.NewStack(t, folder(t), harness.Shape{
		Registry: (*harness.Stack).Applications, Batches: 2, Sinks: 2, Only: []string{"disburse", "readmodel"}, Program: size.program,
	})
	t.Cleanup(func() {
		if t.Failed() {
			s.Outputs(t)
		}
	})
	t.Logf("ready after %v; %d processes; seed %d", measure.Rounded(time.Since(begun)), len(s.Fleet), size.seed)
	p := newPaying(t, s, size)
	ctx := t.Context()
	if err := p.prepare(ctx, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Logf("all batches are approved after %v", measure.Rounded(time.Since(begun)))
	released := time.Now()
	if err := p.pay(ctx); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	r, err := p.end(ctx)
	if err != nil {
		t.Fatal(err)
	}
	verdict := settled(r)
	poison, err := p.witness.records(ctx, schemas.Disbursement.Poison, schemas.TopicPoisonPayouts)
	if err != nil {
		t.Fatal(err)
	}
	unexpected := 0
	for _, x := range s.Fleet {
		unexpected += int(x.Unexpected.Load())
	}
	publish(t, verdict.report(fmt.Sprintf("crash test of batches: %d agencies, two rails, seed %d; kills for %v, all was decided %v after them",
		size.agencies, size.seed, measure.Rounded(killed.Sub(released)), measure.Rounded(time.Since(killed))),
		[]row{
			{"processes killed", int(p.kills.Load())},
			{"brokers killed", int(p.brokers.Load())},
			{"kills of PostgreSQL", int(p.bases.Load())},
			{"losses of the sink's offsets", int(p.losses.Load())},
			{"processes that ended by themselves", unexpected},
			{"poison records", poison},
		}))
	if !verdict.clean() || verdict.lines != size.lines {
		t.Errorf("%s; payouts to nobody's line: %d", verdict, verdict.strangers)
	}
	if poison > 0 {
		t.Errorf("%d records are in the poison topics, want none", poison)
	}
	// Each batch is proven from Kafka: what was approved, by whom, and that each request is of a line of it.
	for _, b := range p.batches {
		proof, err := p.office.Prove(ctx, b)
		if err != nil || len(proof.Faults) > 0 || proof.Sent < b.Lines {
			t.Errorf("%s is not proven: %d requests of %d lines, %q, %v", b.ID, proof.Sent, b.Lines, proof.Faults, err)
		}
	}
	// A run in which little happened proves nothing.
	if verdict.paid < size.lines/2 || verdict.faults < size.lines/20 || verdict.dups == 0 || verdict.returned == 0 || verdict.unseen == 0 || verdict.retries == 0 {
		t.Errorf("of %d lines %d were paid; %d faults, %d requests again, %d returned, %d said to be paid, %d further attempts", verdict.lines, verdict.paid, verdict.faults, verdict.dups, verdict.returned, verdict.unseen, verdict.retries)
	}
	if p.kills.Load() < 5 || p.brokers.Load() != 1 || p.bases.Load() != 1 || p.losses.Load() != 1 {
		t.Errorf("too few kills: %d processes, %d brokers, %d databases, %d losses of offsets", p.kills.Load(), p.brokers.Load(), p.bases.Load(), p.losses.Load())
	}
}

func newPaying(t *testing.T, s *harness.Stack, size batchSize) *paying {
	t.Helper()
	ctx := t.Context()
	w, err := newWitness(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	p := &paying{
		size: size, stack: s, store: disbursements.NewStore(s.Pool, w.Codec), witness: w, random: rand.New(rand.NewPCG(size.seed, 0)), logf: t.Logf,
	}
	p.office, p.agencies = harness.Office(t, s, w.Codec, size.agencies)
	return p
}

// prepare has each agency import a file and approve it.
func (p *paying) prepare(ctx context.Context, dir string) error {
	if err := p.office.Found(ctx, p.agencies...); err != nil {
		return err
	}
	p.batches = make([]payday.Batch, len(p.agencies))
	of := make([][]wanted, len(p.agencies))
	for i := range p.size.lines {
		a := i % len(p.agencies)
		n := i / len(p.agencies)
		// The operators take turns, and have all payees each.
		l := wanted{ref: fmt.Sprintf("line-%06d", i), amount: int64(smallest + i), digits: payees[n/2%len(payees)]}
		if l.payee = "660000" + l.digits; n%2 == 1 {
			l.payee = "550000" + l.digits
		}
		of[a] = append(of[a], l)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i, a := range p.agencies {
		g.Go(func() (err error) {
			file := filepath.Join(dir, a.Slug+".csv")
			if err := writeLines(file, of[i]); err != nil {
				return err
			}
			if p.batches[i], _, err = p.office.Import(ctx, a, "salaries", file); err != nil {
				return err
			}
			return p.office.Approve(ctx, p.batches[i])
		})
	}
	err := g.Wait()
	p.lines = slices.Concat(of...)
	slices.SortFunc(p.lines, byRef)
	return err
}

// writeLines writes a file of lines.
func writeLines(file string, of []wanted) (err error) {
	var lines []payday.Line
	for _, l := range of {
		mode := "mtn"
		if l.payee[0] == '5' {
			mode = "airtel"
		}
		lines = append(lines, payday.Line{Ref: l.ref, Amount: l.amount, Mode: mode, Phone: "0" + l.payee})
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return payday.WriteCSV(f, lines)
}

// between is the time from one kill to the next, and onward how far the clock of the service moves meanwhile.
const (
	between = time.Second
	onward  = 10 * time.Second
)

// pay releases all batches, and kills what is to be killed until every line is with an operator.
func (p *paying) pay(ctx context.Context) error {
	poor := p.agencies[0]
	for _, operator := range []string{"mtn", "airtel"} {
		if err := p.office.Fund(ctx, poor, operator, "10000"); err != nil {
			return err
		}
	}
	for _, b := range p.batches {
		if err := p.office.Release(ctx, b); err != nil {
			return err
		}
	}
	kill := func(context.Context) error { p.kill(); return nil }
	for _, step := range []func(context.Context) error{
		kill, p.outages, kill, p.loseOffsets, kill, p.killBroker, kill, p.holds, kill, p.killDatabase, kill, kill,
		func(ctx context.Context) error {
			return errors.Join(p.office.Fund(ctx, poor, "mtn", ""), p.office.Fund(ctx, poor, "airtel", ""))
		},
	} {
		if err := p.then(ctx, step); err != nil {
			return err
		}
	}
	// Those lines that wait for an account without money are sent later.
	for deadline := time.Now().Add(p.size.patience()); time.Now().Before(deadline); {
		n, err := p.count(ctx)
		if err != nil {
			return err
		}
		if n.ready <= p.size.lines/len(p.agencies) {
			break
		}
		if err := p.then(ctx, kill); err != nil {
			return err
		}
	}
	p.restarts.Wait()
	for _, x := range p.stack.Fleet {
		if err := x.Start(); err != nil {
			return err
		}
	}
	return nil
}

// patience bounds a part of a run: the operators take 10 enquiries a second about an account. A program that breaks a rule
// may never end.
func (s batchSize) patience() time.Duration {
	if s.program != "" {
		return time.Minute
	}
	return 2*time.Minute + time.Duration(s.lines)*20*time.Millisecond
}

// then does a step, after a while in which the clock moves.
func (p *paying) then(ctx context.Context, step func(context.Context) error) error {
	if err := p.office.Advance(ctx, onward); err != nil {
		return err
	}
	if !measure.Pause(ctx, between) {
		return ctx.Err()
	}
	return step(ctx)
}

// kill kills a process of the service and starts it again within a second.
func (p *paying) kill() {
	victim := p.stack.Fleet[p.random.IntN(len(p.stack.Fleet))]
	wait := time.Duration(p.random.Int64N(int64(time.Second)))
	if !victim.Kill() {
		return
	}
	p.kills.Add(1)
	p.restarts.Go(func() {
		time.Sleep(wait)
		_ = victim.Start() // after an error pay starts it at the end
	})
}

// outages has the operators refuse requests, and answer too late after they have carried them out.
func (p *paying) outages(ctx context.Context) error {
	return errors.Join(p.office.Fail(ctx, "mtn", 503, 20, 0), p.office.Fail(ctx, "airtel", 0, 5, 21*time.Second))
}

// holds holds a batch, and has two people lift the hold.
func (p *paying) holds(ctx context.Context) error { return p.office.HoldAndLift(ctx, p.batches[1]) }

func (p *paying) killBroker(ctx context.Context) error {
	if err := p.stack.Kafka.Kill(); err != nil {
		return err
	}
	p.brokers.Add(1)
	return p.stack.Kafka.Restart(ctx)
}

func (p *paying) killDatabase(ctx context.Context) error {
	p.bases.Add(1)
	return p.stack.KillPostgres(ctx)
}

// loseOffsets makes the sink read all requests again, as after a loss of the group's offsets.
func (p *paying) loseOffsets(ctx context.Context) error {
	p.restarts.Wait()
	sinks := slices.DeleteFunc(slices.Clone(p.stack.Fleet), func(x *program.Process) bool { return x.Name != "disburse-0" && x.Name != "disburse-1" })
	for _, x := range sinks {
		x.Signal(syscall.SIGTERM) // so that it leaves its group, whose offsets nobody may change otherwise
	}
	starts, err := p.witness.Admin.ListStartOffsets(ctx, harness.Prefix+schemas.TopicPayouts)
	if err != nil {
		return fmt.Errorf("losing the offsets of the sink: %w", err)
	}
	// The broker keeps members that were killed until their sessions end.
	for deadline := time.Now().Add(time.Minute); ; {
		err := p.witness.Admin.CommitAllOffsets(ctx, harness.Prefix+disburse.Group, starts.Offsets())
		if err == nil {
			break
		}
		if time.Now().After(deadline) || !measure.Pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("losing the offsets of the sink: %w", err)
		}
	}
	p.losses.Add(1)
	for _, x := range sinks {
		if err := x.Start(); err != nil {
			return err
		}
	}
	return nil
}

// waiting are the lines in the read model by what they wait for.
type waiting struct{ ready, sent, undecided, live int }

func (p *paying) count(ctx context.Context) (n waiting, err error) {
	err = p.stack.Pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE status = 'ready'), count(*) FILTER (WHERE status = 'sent'), count(*) FILTER (WHERE case_kind = $1),
		(SELECT count(*) FROM disbursement_batches WHERE status <> 'done') FROM disbursement_lines`, string(disbursement.CaseUndecided)).Scan(&n.ready, &n.sent, &n.undecided, &n.live)
	if err != nil {
		return n, fmt.Errorf("counting lines: %w", err)
	}
	return n, nil
}

// until moves the clock by steps until the lines stand as is wanted. It returns without an error after a time: the
// verdict says what is stuck then.
func (p *paying) until(ctx context.Context, what string, step time.Duration, reached func(waiting) bool) error {
	var n waiting
	for deadline := time.Now().Add(p.size.patience()); time.Now().Before(deadline); {
		var err error
		if n, err = p.count(ctx); err != nil {
			return err
		}
		if reached(n) {
			return nil
		}
		if err := p.office.Advance(ctx, step); err != nil {
			return err
		}
		if !measure.Pause(ctx, 250*time.Millisecond) {
			return ctx.Err()
		}
	}
	p.logf("%s: %+v after %v", what, n, p.size.patience())
	return nil
}

// end waits until the operators have decided, asks people about what they have not, and reads what is left.
func (p *paying) end(ctx context.Context) (r paidOut, err error) {
	open := 0
	for _, l := range p.lines {
		if l.digits == payeeWaits {
			open++
		}
	}
	const minute, day = time.Minute, 25 * time.Hour
	if err := p.until(ctx, "the operators decide", minute, func(n waiting) bool { return n.ready == 0 && n.sent <= open }); err != nil {
		return r, err
	}
	if err := p.office.Advance(ctx, day); err != nil {
		return r, err
	}
	if err := p.until(ctx, "people are asked", minute, func(n waiting) bool { return n.undecided >= open }); err != nil {
		return r, err
	}
	r.undecided = map[string]bool{}
	for _, b := range p.batches {
		if err := p.each(ctx, b, true, func(l disbursement.Line) { r.undecided[l.Ref] = l.Case == disbursement.CaseUndecided }); err != nil {
			return r, err
		}
	}
	// The operators decide at last: every second payout is refused.
	ledger, err := p.office.Ledger(ctx)
	if err != nil {
		return r, err
	}
	n := 0
	for _, x := range ledger {
		if x.Status == "pending" {
			n++
			if err := p.office.Decide(ctx, x.ID, n%2 == 0); err != nil {
				return r, err
			}
		}
		// One payment in fifty comes back, less a fee.
		if x.Payments > 0 && p.random.IntN(50) == 0 {
			if err := p.office.Return(ctx, x.ID, "50"); err != nil {
				return r, err
			}
		}
	}
	if err := p.until(ctx, "the batches end", minute, func(n waiting) bool { return n.ready+n.sent+n.live == 0 }); err != nil {
		return r, err
	}
	r.lines, r.states, r.batches = p.lines, map[string]disbursement.Line{}, map[string]disbursement.Status{}
	for _, b := range p.batches {
		now, err := p.store.Batch(ctx, disbursements.Scope{}, b.ID)
		if err != nil {
			return r, err
		}
		r.batches[b.ID] = now.Status
		if err := p.each(ctx, b, false, func(l disbursement.Line) { r.states[l.Ref] = l }); err != nil {
			return r, err
		}
	}
	r.ledger, err = p.office.Ledger(ctx)
	return r, err
}

// each calls do for the lines of a batch, or for those with a case.
func (p *paying) each(ctx context.Context, b payday.Batch, cases bool, do func(disbursement.Line)) error {
	for from := 0; ; {
		lines, err := p.store.Lines(ctx, b.ID, disbursements.LineQuery{Cases: cases, From: from, Size: 1000})
		if err != nil || len(lines) == 0 {
			return err
		}
		for _, l := range lines {
			do(l)
		}
		from = lines[len(lines)-1].Position + 1
	}
}
