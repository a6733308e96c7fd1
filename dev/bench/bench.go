package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quittance/internal/kafka"
)

// Clients are the numbers of clients of the closed loop.
var Clients = []int{1, 64, 512}

// Shares are the rates of the open loop, as shares of the highest rate of the closed
// loop.
var Shares = []float64{0.5, 0.8}

const (
	// openClients is the number of connections of the open loop.
	openClients = 1024
	warmup      = time.Second
	// firstLoad opens connections, lets the broker's JVM compile its code and writes
	// commands, which the echo sends later.
	firstLoad    = 3 * time.Second
	readyWithin  = 60 * time.Second
	tolerateLost = 0.01 // share of calls that may fail; above it the result is invalid
)

// Config of a benchmark. Kafka, Topology, Ingress, Keys and Log are required.
type Config struct {
	// Kafka names the broker and the prefix of the service's topics. The topics of the
	// echo get the same prefix.
	Kafka    kafka.Config
	Topology *kafka.Topology
	// Ingress is host:port of the service.
	Ingress string
	// Keys are the keys of the applications, see Registry. The clients use them in turn.
	Keys []string
	// Length of each measurement, after a warm-up of a second. 6 s when zero.
	Length time.Duration
	// Rounds of all measurements. 3 when zero.
	Rounds int
	// Grow is the length of a load of 512 clients before the first round. The memory of the
	// service grows in it; each new page of memory costs CPU time, on some virtual machines
	// more than 10 µs. None when zero.
	Grow time.Duration
	// Profile is called once, during a load of 512 clients after all measurements, which
	// lasts for length. Nil for none.
	Profile func(ctx context.Context, length time.Duration) error
	// Transactions returns how many records the processor has decided so far, and in how
	// many transactions. Nil when that is unknown.
	Transactions func(ctx context.Context) (records, transactions float64, err error)
	// Processes are those whose CPU time the report shows.
	Processes []Process
	// Log receives progress.
	Log *slog.Logger
}

// Benchmark is one measurement.
type Benchmark struct {
	cfg     Config
	run     string
	numbers *atomic.Int64
	echo    *echo
}

// New returns a benchmark, or an error when the configuration is incomplete.
func New(cfg Config) (*Benchmark, error) {
	if len(cfg.Kafka.Brokers) == 0 || cfg.Topology == nil || cfg.Ingress == "" || len(cfg.Keys) == 0 || cfg.Log == nil {
		return nil, errors.New("benchmark configuration: Kafka, Topology, Ingress, Keys and Log are required")
	}
	if cfg.Length == 0 {
		cfg.Length = 6 * time.Second
	}
	if cfg.Rounds == 0 {
		cfg.Rounds = 3
	}
	if cfg.Length < time.Second || cfg.Rounds < 1 {
		return nil, errors.New("benchmark configuration: Length must be a second or more, and Rounds 1 or more")
	}
	return &Benchmark{cfg: cfg, run: uuid.NewString()[:8], numbers: &atomic.Int64{}}, nil
}

// Run measures and writes the report to out. It returns an error when more than one call
// in a hundred fails.
func (b *Benchmark) Run(ctx context.Context, out io.Writer) error {
	if err := b.ready(ctx, b.creators(1)[0]); err != nil {
		return fmt.Errorf("waiting for the service: %w", err)
	}
	b.cfg.Log.Info("the service answers, the first load begins")
	closedLoop(ctx, b.creators(64), 0, firstLoad)
	values, size, err := commands(ctx, b.cfg.Kafka, b.cfg.Topology)
	if err != nil {
		return err
	}
	if b.echo, err = newEcho(ctx, b.cfg.Kafka, b.cfg.Topology, values, b.cfg.Log); err != nil {
		return err
	}
	var r results
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.echo.Run(ctx) })
	g.Go(func() (err error) {
		defer stop()
		r, err = b.measure(ctx)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	r.size, r.cfg = size, b.cfg
	if err := r.write(out); err != nil {
		return err
	}
	return r.check()
}

func (b *Benchmark) creators(n int) []caller {
	out := make([]caller, n)
	for i := range out {
		out[i] = &creator{addr: b.cfg.Ingress, key: b.cfg.Keys[i%len(b.cfg.Keys)], run: b.run, n: b.numbers}
	}
	return out
}

func (b *Benchmark) echoers(n int) []caller {
	out := make([]caller, n)
	for i := range out {
		out[i] = echoCaller{b.echo}
	}
	return out
}

// ready repeats a call until it succeeds.
func (b *Benchmark) ready(ctx context.Context, c caller) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	defer c.hangUp()
	for {
		err := c.call(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// measure does all rounds.
func (b *Benchmark) measure(ctx context.Context) (results, error) {
	if err := b.ready(ctx, b.echoers(1)[0]); err != nil {
		return results{}, fmt.Errorf("waiting for the echo: %w", err)
	}
	closedLoop(ctx, b.echoers(64), 0, firstLoad)
	closedLoop(ctx, b.creators(Clients[len(Clients)-1]), 0, b.cfg.Grow)

	r := results{
		service: map[int][]sample{}, used: map[int][]usage{}, echo: map[int][]sample{}, echoUsed: map[int][]usage{},
		batch: map[int][]float64{}, echoBatch: map[int][]float64{}, open: make([][]sample, len(Shares)),
	}
	for round := range b.cfg.Rounds {
		top := 0.0
		for _, n := range Clients {
			for turn := range 2 {
				used, batch := watch(b.cfg.Processes), b.batch(ctx, (turn+round)%2 == 0)
				if (turn+round)%2 == 0 {
					s := closedLoop(ctx, b.echoers(n), warmup, b.cfg.Length)
					r.echo[n] = append(r.echo[n], s)
					r.echoUsed[n] = append(r.echoUsed[n], used())
					r.echoBatch[n] = append(r.echoBatch[n], batch())
					b.measured("echo", round, n, s)
					continue
				}
				s := closedLoop(ctx, b.creators(n), warmup, b.cfg.Length)
				r.service[n] = append(r.service[n], s)
				r.used[n] = append(r.used[n], used())
				r.batch[n] = append(r.batch[n], batch())
				b.measured("create", round, n, s)
				top = max(top, s.rate)
			}
		}
		for i, share := range Shares {
			if top == 0 {
				break
			}
			s := openLoop(ctx, b.creators(openClients), share*top, warmup, b.cfg.Length)
			r.open[i] = append(r.open[i], s)
			r.offered = append(r.offered, share*top)
			b.measured("create, open loop", round, openClients, s)
		}
		if err := ctx.Err(); err != nil {
			return results{}, fmt.Errorf("measuring: %w", err)
		}
	}
	return r, b.profile(ctx)
}

// batch counts from now until its result is called. The result returns how many records
// one transaction had on average, or 0 when that is unknown.
func (b *Benchmark) batch(ctx context.Context, ofEcho bool) func() float64 {
	count := func() (records, transactions float64) {
		if ofEcho {
			return float64(b.echo.records.Load()), float64(b.echo.transactions.Load())
		}
		if b.cfg.Transactions == nil {
			return 0, 0
		}
		records, transactions, err := b.cfg.Transactions(ctx)
		if err != nil {
			b.cfg.Log.Warn("counting transactions", slog.Any("error", err))
		}
		return records, transactions
	}
	records, transactions := count()
	return func() float64 {
		r, t := count()
		if t <= transactions {
			return 0
		}
		return (r - records) / (t - transactions)
	}
}

// profile takes profiles of the service under the heaviest load.
func (b *Benchmark) profile(ctx context.Context) error {
	if b.cfg.Profile == nil {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		closedLoop(gctx, b.creators(Clients[len(Clients)-1]), warmup, b.cfg.Length)
		return nil
	})
	g.Go(func() error { return b.cfg.Profile(gctx, b.cfg.Length) })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	return nil
}

func (b *Benchmark) measured(what string, round, clients int, s sample) {
	b.cfg.Log.Info("measured", slog.String("what", what), slog.Int("round", round+1), slog.Int("clients", clients),
		slog.Int("per_s", int(s.rate)), slog.String("p50", s.p50.Round(10*time.Microsecond).String()),
		slog.String("p99", s.p99.Round(10*time.Microsecond).String()), slog.Int("failed", s.failed))
}
