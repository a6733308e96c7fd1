package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/dev/bench/flood"
	"quittance/dev/bench/installation"
	"quittance/dev/stack"
	"quittance/dev/stack/program"
)

// Create measures creations in an installation of one ingress and one processor. Log is
// required.
type Create struct {
	// Broker is host:port of a running Kafka. When it is empty, Run starts one.
	Broker string
	// Seconds is the length of each measurement, after a warm-up of a second.
	Seconds float64
	// Rounds of all measurements.
	Rounds int
	// Applications that share the creations.
	Applications int
	// Profiles is the folder for profiles of the roles; empty for none.
	Profiles string
	// Log receives progress.
	Log *slog.Logger
}

// grow is long enough: after it the resident memory of ingress stays the same.
const grow = 20 * time.Second

// Run starts the installation, measures, writes the report to out and ends what it
// started.
func (c *Create) Run(ctx context.Context, out io.Writer) (err error) {
	if c.Seconds < 1 || c.Rounds < 1 || c.Applications < 1 {
		return errors.New("--seconds, --rounds and --applications must be 1 or more")
	}
	in, err := installation.Open(ctx, installation.Config{Broker: c.Broker, Log: c.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	file, keys := Registry(c.Applications)
	s, err := startService(ctx, in, string(file), 1, 1)
	if err != nil {
		return err
	}
	cfg := Config{
		Kafka: in.KafkaConfig(), Topology: in.Topology, Ingress: s.ingress[0], Keys: keys,
		Length: time.Duration(c.Seconds * float64(time.Second)), Rounds: c.Rounds, Grow: grow, Log: c.Log,
		Transactions: s.transactions,
	}
	if in.Kafka != nil {
		cfg.Processes = append(cfg.Processes, Process{Name: "broker", PID: in.Kafka.Pid()})
	}
	for _, p := range s.roles {
		cfg.Processes = append(cfg.Processes, Process{Name: p.Name, PID: p.Pid()})
	}
	cfg.Processes = append(cfg.Processes, Process{Name: "clients", PID: os.Getpid()})
	if c.Profiles != "" {
		cfg.Profile = func(ctx context.Context, length time.Duration) error { return c.profile(ctx, s.roles, length) }
	}
	measured, err := New(cfg)
	if err != nil {
		return err
	}
	return installation.During(ctx, s.roles, func(ctx context.Context) error { return measured.Run(ctx, out) })
}

// profile takes profiles of all roles at the same time.
func (c *Create) profile(ctx context.Context, of []*program.Process, length time.Duration) error {
	if err := os.MkdirAll(c.Profiles, 0o755); err != nil { //nolint:gosec // holds no secret
		return fmt.Errorf("making the folder of profiles: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	seconds := strconv.Itoa(max(1, int(length.Seconds())))
	for _, p := range of {
		for kind, path := range map[string]string{"cpu": "profile", "allocs": "allocs"} {
			g.Go(func() error {
				profile, err := p.Get(ctx, "/debug/pprof/"+path+"?seconds="+seconds)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(c.Profiles, p.Name+"."+kind+".pprof"), profile, 0o600); err != nil {
					return fmt.Errorf("writing a profile: %w", err)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	c.Log.Info("profiles are written", slog.String("folder", c.Profiles))
	return nil
}

// Quota measures what a flood of creations costs applications that stay below their
// quota. Log is required.
type Quota struct {
	// Broker is host:port of a running Kafka. When it is empty, Run starts one.
	Broker string
	// Log receives progress.
	Log *slog.Logger
}

// Run starts an installation of four ingresses and two processors, makes the flood,
// writes the report to out and ends what it started.
func (q *Quota) Run(ctx context.Context, out io.Writer) (err error) {
	in, err := installation.Open(ctx, installation.Config{Broker: q.Broker, Log: q.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	file, keys := flood.Registry()
	s, err := startService(ctx, in, file, flood.Instances, 2)
	if err != nil {
		return err
	}
	cfg := flood.Config{Keys: keys, Quiet: 1, Flooded: 2, Say: func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, format+"\n", args...)
	}}
	for _, addr := range s.ingress {
		cfg.Ingress = append(cfg.Ingress, "http://"+addr)
	}
	var r flood.Result
	if err := installation.During(ctx, s.roles, func(ctx context.Context) error {
		r, err = flood.Run(ctx, cfg)
		return err
	}); err != nil {
		return err
	}
	for _, fault := range r.Faults {
		_, _ = fmt.Fprintln(out, fault)
	}
	_, _ = fmt.Fprintln(out, r.Line)
	if len(r.Faults) > 0 {
		return fmt.Errorf("%d faults", len(r.Faults))
	}
	return nil
}

// service is the roles that answer a creation.
type service struct {
	ingress []string           // host:port of each
	roles   []*program.Process // processors first
}

// startService applies a registry file and starts ingresses and processors.
func startService(ctx context.Context, in *installation.Installation, registry string, ingresses, processors int) (*service, error) {
	if err := in.Seed(ctx, registry); err != nil {
		return nil, err
	}
	ports, err := stack.FreePorts(ingresses)
	if err != nil {
		return nil, err
	}
	s := &service{}
	add := func(role string, n int, args ...string) error {
		name, instance := role, strconv.Itoa(n)
		if n > 0 {
			name += "-" + instance
		}
		p, err := in.Process(name, append([]string{role, "--instance", instance}, args...)...)
		s.roles = append(s.roles, p)
		return err
	}
	for n := range processors {
		if err := add("processor", n, "--store", filepath.Join(in.Dir, "store-"+strconv.Itoa(n))); err != nil {
			return nil, err
		}
	}
	for n := range ingresses {
		s.ingress = append(s.ingress, program.Local(ports[n]))
		if err := add("ingress", n, "--listen", s.ingress[n]); err != nil {
			return nil, err
		}
	}
	return s, in.Start(ctx, s.roles...)
}

// transactions returns how many records the first processor has decided, in how many
// transactions.
func (s *service) transactions(ctx context.Context) (records, transactions float64, err error) {
	const name = "quittance_processor_transaction_records"
	if records, err = s.roles[0].Metric(ctx, name+"_sum"); err != nil {
		return 0, 0, err
	}
	transactions, err = s.roles[0].Metric(ctx, name+"_count")
	return records, transactions, err
}
