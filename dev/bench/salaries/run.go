package salaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench"
	"quittance/dev/bench/client"
	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/dev/payday"
	"quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/disbursement"
	"quittance/internal/disbursements"
	"quittance/internal/postgres"
	"quittance/schemas"
)

// Config of a measurement. Lines and Log are required.
type Config struct {
	// Broker is host:port of a running Kafka. When it is empty, Run starts one.
	Broker string
	// Program is the path of quittance-dev. When it is empty, the roles run this program.
	Program string
	// Lines of each of the two batches.
	Lines int
	// Profiles is the folder for CPU profiles of the roles while lines go out; empty for none.
	Profiles string
	// Log receives progress.
	Log *slog.Logger
}

// The bars, on two cores. Those of the imports are for 100,000 lines.
const (
	maxSealed   = 40 * time.Second
	maxWorkbook = 45 * time.Second
	barLines    = 100_000
	maxMB       = 512
	minMobile   = 400 // payments a second
	maxRatio    = 2   // of the p99 of creations
	// maxReady bounds the restart of the processor in the middle, and maxApproval each approval of the other agency.
	maxReady    = 10 * time.Second
	maxApproval = 500 * time.Millisecond
	// maxAlone bounds the p99 of creations while nothing is paid: beside a slow baseline the ratio says nothing.
	maxAlone = 250 * time.Millisecond
)

const (
	// agencies are enough for two that share a partition.
	agencies = 64
	// creationRate is the rate of creations of sessions beside the batches, a second, and quiet how long they are
	// measured before.
	creationRate = 40
	quiet        = 20 * time.Second
	// small batches of another agency, of smallLines each, are approved while a large batch pays, and as many before.
	small      = 12
	smallLines = 5
	// stall bounds the time without a line that goes out.
	stall = 2 * time.Minute
)

// batches is the name of the process that the benchmark kills.
const batches = "processor disbursement"

// run is a measurement under way.
type run struct {
	Config
	in        *installation.Installation
	office    *payday.Payday
	store     *disbursements.Store
	pool      *pgxpool.Pool
	roles     []*program.Process
	processor *program.Process // of batches
	creations *client.Creations
	big       *payday.Agency
	neighbour *payday.Agency
	out       io.Writer
	peaks     map[string]int // MB, by process
}

// Run starts an installation, measures, and writes the report to out: lines with what was measured, and at last
//
//	sealed=…s xlsx=…s mobile=…/s rss=…MB checkout_p99_ratio=…
//
// It returns an error that names the bars that were missed.
func Run(ctx context.Context, cfg Config, out io.Writer) (err error) {
	if cfg.Lines < 100 || cfg.Lines > disbursement.MaxLines {
		return fmt.Errorf("--lines must be 100 to %d", disbursement.MaxLines)
	}
	in, err := installation.Open(ctx, installation.Config{Broker: cfg.Broker, Program: cfg.Program, Log: cfg.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	r := &run{Config: cfg, in: in, out: out, peaks: map[string]int{}}
	if err := r.start(ctx); err != nil {
		return err
	}
	defer r.pool.Close()
	return installation.During(ctx, r.roles, func(ctx context.Context) error {
		g, running := errgroup.WithContext(ctx)
		running, stop := context.WithCancel(running)
		g.Go(func() error { return r.office.Run(running) })
		g.Go(func() error {
			defer stop()
			return r.measure(ctx)
		})
		return g.Wait()
	})
}

// start starts the roles, and founds the two agencies.
func (r *run) start(ctx context.Context) error {
	ports, err := stack.FreePorts(program.UpPorts)
	if err != nil {
		return err
	}
	edge := program.Local(ports[0])
	simulator, err := r.in.Simulate(ports[0])
	if err != nil {
		return err
	}
	file, keys := bench.Registry(agencies)
	if err := r.in.Seed(ctx, string(file)); err != nil {
		return err
	}
	if r.roles, err = r.in.Roles(ctx,
		installation.Role{Name: "processor checkout", Args: []string{"processor", "--instance", "0"}},
		installation.Role{Name: batches, Args: []string{"processor", "disbursement", "--instance", "0"}},
		installation.Role{Name: "sink disburse", Args: []string{"sink", "disburse", "--instance", "0"}},
		installation.Role{Name: "sink readmodel", Args: []string{"sink", "readmodel", "--instance", "0"}},
		installation.Role{Name: "ingress", Args: []string{"ingress", "--listen", edge, "--checkout-url", "http://" + edge, "--callback-url", "http://" + edge}},
	); err != nil {
		return err
	}
	r.processor = r.roles[slices.IndexFunc(r.roles, func(p *program.Process) bool { return p.Name == batches })]
	if r.pool, err = postgres.Open(ctx, r.in.DSN()); err != nil {
		return err
	}
	codec, err := r.in.Codec(ctx)
	if err != nil {
		return err
	}
	r.store = disbursements.NewStore(r.pool, codec)
	r.creations = client.NewCreations("http://"+edge, bench.ServiceCode, keys, creationRate)
	r.big = &payday.Agency{ID: bench.AgencyID(0), Slug: bench.AgencySlug(0)}
	for n := 1; n < agencies && r.neighbour == nil; n++ {
		if id := bench.AgencyID(n); r.in.Topology.Partition(schemas.Disbursement.Commands, id) == r.in.Topology.Partition(schemas.Disbursement.Commands, r.big.ID) {
			r.neighbour = &payday.Agency{ID: id, Slug: bench.AgencySlug(n)}
		}
	}
	if r.neighbour == nil {
		return fmt.Errorf("no other of %d agencies is in the partition of the first", agencies)
	}
	r.office, err = payday.New(ctx, payday.Config{
		Kafka: r.in.KafkaConfig(), Topology: r.in.Topology, Codec: codec, Pool: r.pool, Keys: r.in.Keys, Program: r.in.Program, Simulator: simulator, Log: slog.New(slog.DiscardHandler),
	})
	return err
}

// measure does all measurements in turn.
func (r *run) measure(ctx context.Context) error {
	if err := r.office.Found(ctx, r.big, r.neighbour); err != nil {
		return err
	}
	csv, sealed, err := r.importFile(ctx, "salaries.csv", "a", payday.WriteCSV)
	if err != nil {
		return err
	}
	xlsx, workbook, err := r.importFile(ctx, "salaries.xlsx", "b", payday.WriteXLSX)
	if err != nil {
		return err
	}
	var waiting []payday.Batch
	for n := range 2 * small {
		b, _, _, err := r.importLines(ctx, r.neighbour, fmt.Sprintf("small-%d.csv", n), fmt.Sprintf("s%02d", n), smallLines, payday.WriteCSV)
		if err != nil {
			return err
		}
		waiting = append(waiting, b)
	}
	r.Log.Info("sessions are created while nothing is paid")
	before := r.creations.During(ctx, func(ctx context.Context) error { measure.Pause(ctx, quiet); return nil })
	alone, err := r.approvals(ctx, waiting[:small])
	if err != nil {
		return errors.Join(err, before.Err)
	}
	r.Log.Info("lines go out while sessions are created")
	stopProfiles := r.profile(ctx)
	meanwhile := r.creations.During(ctx, func(ctx context.Context) error { return r.pay(ctx, csv, r.Lines, nil) })
	if err := errors.Join(before.Err, meanwhile.Err, stopProfiles()); err != nil {
		return err
	}
	mobile, err := r.mobile(ctx)
	if err != nil {
		return err
	}
	confirmed, err := r.confirmed(ctx, csv)
	if err != nil {
		return err
	}
	r.Log.Info("another agency approves while lines go out, and the processor is killed")
	var beside []time.Duration
	var ready time.Duration
	err = r.pay(ctx, xlsx, r.Lines, func(ctx context.Context) (err error) {
		if beside, err = r.approvals(ctx, waiting[small:]); err != nil {
			return err
		}
		r.note()
		begun := time.Now()
		r.processor.Kill()
		if err := r.processor.Start(); err != nil {
			return err
		}
		if err := program.AwaitReady(ctx, r.processor); err != nil {
			return err
		}
		ready = time.Since(begun)
		return nil
	})
	if err != nil {
		return err
	}
	r.note()
	ratio := measure.Percentile(meanwhile.Took, 0.99).Seconds() / measure.Percentile(before.Took, 0.99).Seconds()
	r.say("lines=%d restart_ready_s=%.1f of_state_lines=%d", r.Lines, ready.Seconds(), 2*r.Lines)
	r.say("small_agency approvals=%d p50_ms=%.0f max_ms=%.0f alone_p50_ms=%.0f alone_max_ms=%.0f", small,
		measure.Milliseconds(measure.Percentile(beside, 0.5)), measure.Milliseconds(measure.Percentile(beside, 1)),
		measure.Milliseconds(measure.Percentile(alone, 0.5)), measure.Milliseconds(measure.Percentile(alone, 1)))
	r.say("checkout rate=%d p99_ms=%.0f alone_p99_ms=%.0f creations=%d alone=%d", creationRate, measure.Milliseconds(measure.Percentile(meanwhile.Took, 0.99)),
		measure.Milliseconds(measure.Percentile(before.Took, 0.99)), len(meanwhile.Took), len(before.Took))
	r.say("known_to_be_paid=%.0f/s, of two accounts of which an operator takes 10 enquiries a second each", confirmed)
	most, name := 0, ""
	for _, p := range append([]string{"import of CSV", "import of XLSX"}, names(r.roles)...) {
		r.say("rss_mb=%d %s", r.peaks[p], p)
		if p != "simulators" && r.peaks[p] > most {
			most, name = r.peaks[p], p
		}
	}
	r.say("disburse lines=%d sealed=%.1fs xlsx=%.1fs mobile=%.0f/s rss=%dMB checkout_p99_ratio=%.2f (rss: %s)", r.Lines, sealed.Seconds(), workbook.Seconds(), mobile, most, ratio, name)
	return errors.Join(measured(ready, before.Took, meanwhile.Took), check(r.Lines, figures{
		sealed: sealed, workbook: workbook, mobile: mobile, mb: most, ratio: ratio, ready: ready, approval: measure.Percentile(beside, 1),
	}))
}

func names(of []*program.Process) (out []string) {
	for _, p := range of {
		out = append(out, p.Name)
	}
	return out
}

// measured returns an error that names what was not measured, so that a bar says nothing: the restart of the processor, and creations
// alone and beside lines that go out.
func measured(restart time.Duration, alone, meanwhile []time.Duration) error {
	var faults []string
	if restart <= 0 {
		faults = append(faults, "the restart of the processor was not measured")
	}
	if most := int(creationRate * quiet.Seconds()); len(alone) < most*8/10 {
		faults = append(faults, fmt.Sprintf("%d creations were measured alone, fewer than 8 of 10 of %d", len(alone), most))
	} else if p99 := measure.Percentile(alone, 0.99); p99 > maxAlone {
		faults = append(faults, fmt.Sprintf("creations alone take %v at p99, more than %v: the machine has other work, and the ratio says nothing", p99, maxAlone))
	}
	if len(meanwhile) < creationRate {
		faults = append(faults, fmt.Sprintf("%d creations were measured beside lines that go out, fewer than those of a second", len(meanwhile)))
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

// figures are what a run has measured and a bar bounds.
type figures struct {
	sealed, workbook time.Duration
	mobile           float64 // payments a second
	mb               int     // of the largest process
	ratio            float64 // of the p99 of creations
	ready            time.Duration
	approval         time.Duration // the longest of the other agency, while lines go out
}

// check returns an error that names the bars that were missed.
func check(lines int, of figures) error {
	var faults []string
	miss := func(missed bool, format string, args ...any) {
		if missed {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	if lines >= barLines {
		miss(of.sealed > maxSealed, "a CSV file is sealed after %v, more than %v", of.sealed.Round(time.Second), maxSealed)
		miss(of.workbook > maxWorkbook, "a workbook is sealed after %v, more than %v", of.workbook.Round(time.Second), maxWorkbook)
	}
	miss(of.mobile < minMobile, "the operators pay %.0f lines a second, fewer than %d", of.mobile, minMobile)
	miss(of.mb > maxMB, "a process needs %d MB, more than %d", of.mb, maxMB)
	miss(of.ratio > maxRatio, "creations take %.1f times as long at p99, more than %d", of.ratio, maxRatio)
	miss(of.ready > maxReady, "the processor is ready %v after it was killed, more than %v", of.ready.Round(100*time.Millisecond), maxReady)
	miss(of.approval > maxApproval, "an approval of the other agency takes %v, more than %v", of.approval.Round(time.Millisecond), maxApproval)
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

func (r *run) say(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format+"\n", args...) }

// note notes the greatest memory of the processes, whose lives a kill ends.
func (r *run) note() {
	for _, p := range r.roles {
		if mb, err := measure.PeakMB(p.Pid()); err == nil {
			r.peaks[p.Name] = max(r.peaks[p.Name], mb)
		}
	}
}

// importFile imports a file of the lines of the large agency, and notes the memory of the command.
func (r *run) importFile(ctx context.Context, name, prefix string, write func(io.Writer, []payday.Line) error) (payday.Batch, time.Duration, error) {
	r.Log.Info("importing", slog.String("file", name), slog.Int("lines", r.Lines))
	b, took, used, err := r.importLines(ctx, r.big, name, prefix, r.Lines, write)
	if usage, ok := used.(*syscall.Rusage); ok {
		r.peaks["import of "+strings.ToUpper(strings.TrimPrefix(filepath.Ext(name), "."))] = int(usage.Maxrss >> 10)
	}
	return b, took, err
}

// importLines imports lines of an agency. took is the time from the command to the sealed batch.
func (r *run) importLines(ctx context.Context, a *payday.Agency, name, prefix string, n int, write func(io.Writer, []payday.Line) error) (b payday.Batch, took time.Duration, used any, err error) {
	lines := make([]payday.Line, n)
	for i := range lines {
		lines[i] = payday.Line{Ref: fmt.Sprintf("%s-%06d", prefix, i), Amount: int64(1000 + i), Mode: "mtn", Phone: "06 600 00 01"}
		if i%2 == 1 {
			lines[i].Mode, lines[i].Phone = "airtel", "05 500 00 01"
		}
	}
	file := filepath.Join(r.in.Dir, name)
	f, err := os.Create(file)
	if err != nil {
		return b, 0, nil, fmt.Errorf("writing a file of lines: %w", err)
	}
	if err := errors.Join(write(f, lines), f.Close()); err != nil {
		return b, 0, nil, err
	}
	begun := time.Now()
	b, state, err := r.office.Import(ctx, a, prefix, file)
	if state != nil {
		used = state.SysUsage()
	}
	return b, time.Since(begun), used, err
}

// approvals approves batches one after another, and returns how long each took.
func (r *run) approvals(ctx context.Context, of []payday.Batch) (took []time.Duration, err error) {
	for _, b := range of {
		begun := time.Now()
		if err := r.office.Approve(ctx, b); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
		measure.Pause(ctx, 200*time.Millisecond)
	}
	return took, nil
}

// pay approves and releases a batch, and waits until all its lines are with the operators. meanwhile runs once a tenth
// of them is; it may be nil.
func (r *run) pay(ctx context.Context, b payday.Batch, lines int, meanwhile func(context.Context) error) error {
	if err := errors.Join(r.office.Approve(ctx, b), r.office.Release(ctx, b)); err != nil {
		return err
	}
	for ready, since := lines, time.Now(); ; {
		now, err := r.store.Batch(ctx, disbursements.Scope{}, b.ID)
		if err != nil {
			return err
		}
		if now.Status != disbursement.StatusApproved && now.Lines.Ready.Count == 0 {
			if meanwhile != nil {
				return fmt.Errorf("all %d lines were out before anything could be measured meanwhile; pay more lines", lines)
			}
			return nil
		}
		if meanwhile != nil && now.Lines.Ready.Count < lines*9/10 {
			if err := meanwhile(ctx); err != nil {
				return err
			}
			meanwhile = nil
		}
		if now.Lines.Ready.Count < ready {
			ready, since = now.Lines.Ready.Count, time.Now()
		}
		if time.Since(since) > stall {
			return fmt.Errorf("%d of %d lines have not gone out, and none did for %v", ready, lines, stall)
		}
		if !measure.Pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// mobile is how many payments the operators made a second, from the first to the last. It waits until they have made all.
func (r *run) mobile(ctx context.Context) (float64, error) {
	for deadline := time.Now().Add(stall); ; {
		ledger, err := r.office.Ledger(ctx)
		if err != nil {
			return 0, err
		}
		first, last, n := time.Time{}, time.Time{}, 0
		for _, p := range ledger {
			if p.Payments > 1 {
				return 0, fmt.Errorf("a payout was paid %d times", p.Payments)
			}
			if n += p.Payments; first.IsZero() || p.ReceivedAt.Before(first) {
				first = p.ReceivedAt
			}
			if p.ReceivedAt.After(last) {
				last = p.ReceivedAt
			}
		}
		switch {
		case n == r.Lines:
			return float64(n) / last.Sub(first).Seconds(), nil
		case time.Now().After(deadline):
			return 0, fmt.Errorf("the operators have paid %d of %d lines", n, r.Lines)
		case !measure.Pause(ctx, time.Second):
			return 0, ctx.Err()
		}
	}
}

// confirmed is how many lines become paid a second.
func (r *run) confirmed(ctx context.Context, b payday.Batch) (float64, error) {
	count := func() (int, error) {
		now, err := r.store.Batch(ctx, disbursements.Scope{}, b.ID)
		return now.Lines.Paid.Count, err
	}
	// An operator is asked for the first time a minute after the request.
	if !measure.Pause(ctx, disbursement.EnquireEvery) {
		return 0, ctx.Err()
	}
	before, err := count()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	measure.Pause(ctx, quiet)
	after, err := count()
	return float64(after-before) / time.Since(begun).Seconds(), err
}

// profile takes CPU profiles of the roles, if they are wanted, until the returned function is called or they end.
func (r *run) profile(ctx context.Context) (stop func() error) {
	if r.Profiles == "" {
		return func() error { return nil }
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range r.roles {
		g.Go(func() error {
			const seconds = 10
			text, err := p.Get(ctx, "/debug/pprof/profile?seconds="+strconv.Itoa(seconds))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(r.Profiles, strings.ReplaceAll(p.Name, " ", "-")+".cpu.pprof"), text, 0o600); err != nil {
				return fmt.Errorf("writing a profile: %w", err)
			}
			return nil
		})
	}
	return g.Wait
}
