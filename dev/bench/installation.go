package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench/flood"
	"quittance/dev/stack"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/schemas"
)

// Installation is an installation for one benchmark: servers of its own in a folder
// of its own, and ingresses and processors, each a process of the program that runs
// the benchmark.
type Installation struct {
	// Broker is host:port of a Kafka that runs. One is started when it is empty.
	Broker string
	// Seconds is the length of each measurement, without the warm-up of a second.
	Seconds float64
	// Rounds of all measurements.
	Rounds int
	// Applications that share the creations.
	Applications int
	// Profiles is the folder for the roles' profiles; empty for none.
	Profiles string
	Log      *slog.Logger

	dir, prefix, addr, postgres, schemas string
	listen                               []string // host:port of each ingress

	kafka *stack.Kafka // nil with a broker that runs
	stop  []func(context.Context) error
	roles []*roleProcess
}

func (b *Installation) config() kafka.Config {
	return kafka.Config{Brokers: []string{b.addr}, Prefix: b.prefix}
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Quota measures what a flood of creations costs those who stay below their quota.
func (b *Installation) Quota(ctx context.Context, out io.Writer) (err error) {
	defer func() { err = errors.Join(err, b.shut(context.WithoutCancel(ctx))) }()
	file, keys := flood.Registry()
	if _, err := b.open(ctx, []byte(file), flood.Instances, 2); err != nil {
		return err
	}
	cfg := flood.Config{Keys: keys, Quiet: 1, Flooded: 2, Say: func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, format+"\n", args...)
	}}
	for _, addr := range b.listen {
		cfg.Ingress = append(cfg.Ingress, "http://"+addr)
	}
	var r flood.Result
	if err := b.during(ctx, func(ctx context.Context) error {
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

// open makes the folder, starts the servers, applies a registry file and starts the
// roles.
func (b *Installation) open(ctx context.Context, registry []byte, ingresses, processors int) (*kafka.Topology, error) {
	var err error
	if b.dir, err = os.MkdirTemp("", "quittance-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	b.prefix = "bench-" + uuid.NewString()[:8] + "."
	if err := b.servers(ctx); err != nil {
		return nil, err
	}
	topology, err := b.prepare(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "registry.yaml")
	if err := os.WriteFile(file, registry, 0o600); err != nil {
		return nil, fmt.Errorf("writing the registry file: %w", err)
	}
	if err := b.seed(ctx, file); err != nil {
		return nil, err
	}
	return topology, b.startRoles(ctx, ingresses, processors)
}

// during measures. A role that ends ends the measurement.
func (b *Installation) during(ctx context.Context, measure func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	for _, p := range b.roles {
		g.Go(func() error { return p.watch(ctx) })
	}
	g.Go(func() error {
		defer done()
		return measure(ctx)
	})
	return g.Wait()
}

// Run starts the servers, one ingress and one processor, measures creations, writes the
// report to out and ends what it started.
func (b *Installation) Run(ctx context.Context, out io.Writer) (err error) {
	if b.Seconds < 1 || b.Rounds < 1 || b.Applications < 1 {
		return errors.New("--seconds, --rounds and --applications are at least 1")
	}
	defer func() { err = errors.Join(err, b.shut(context.WithoutCancel(ctx))) }()
	file, keys := Registry(b.Applications)
	topology, err := b.open(ctx, file, 1, 1)
	if err != nil {
		return err
	}
	cfg := Config{
		Kafka: b.config(), Topology: topology, Ingress: b.listen[0], Keys: keys,
		Length: time.Duration(b.Seconds * float64(time.Second)), Rounds: b.Rounds, Log: b.Log,
	}
	if b.kafka != nil {
		cfg.Processes = append(cfg.Processes, Process{Name: "broker", PID: b.kafka.Pid()})
	}
	for _, p := range b.roles {
		cfg.Processes = append(cfg.Processes, Process{Name: p.name, PID: p.cmd.Process.Pid})
	}
	cfg.Processes = append(cfg.Processes, Process{Name: "clients", PID: os.Getpid()})
	cfg.Transactions = b.roles[0].transactions
	if b.Profiles != "" {
		cfg.Profile = b.profile
	}
	measured, err := New(cfg)
	if err != nil {
		return err
	}
	return b.during(ctx, func(ctx context.Context) error { return measured.Run(ctx, out) })
}

// servers starts broker, Postgres and the registry of schemas.
func (b *Installation) servers(ctx context.Context) error {
	ports, err := stack.FreePorts(3)
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	b.Log.Info("starting servers", slog.String("folder", b.dir))
	pg, err := stack.StartPostgres(ctx, stack.PostgresConfig{Dir: filepath.Join(b.dir, "postgres"), Port: ports[0], Log: quiet})
	if err != nil {
		return err
	}
	b.stop = append(b.stop, pg.Stop)
	b.postgres = pg.DSN("quittance")
	sr, err := stack.StartSchemaRegistry(ctx, stack.SchemaRegistryConfig{Dir: filepath.Join(b.dir, "schemas"), Log: b.Log})
	if err != nil {
		return err
	}
	b.stop = append(b.stop, sr.Stop)
	b.schemas = sr.URL()
	if b.Broker != "" {
		b.addr = b.Broker
		b.stop = append(b.stop, b.deleteTopics)
		return nil
	}
	if b.kafka, err = stack.StartKafka(ctx, stack.KafkaConfig{
		Dir: filepath.Join(b.dir, "kafka"), Port: ports[1], ControllerPort: ports[2], Log: quiet,
	}); err != nil {
		return err
	}
	b.stop = append(b.stop, b.kafka.Stop)
	b.addr = b.kafka.Addr()
	return nil
}

// prepare makes what `quittance migrate` makes, as far as a creation needs it.
func (b *Installation) prepare(ctx context.Context) (*kafka.Topology, error) {
	cl, err := b.config().Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if _, err := kafka.Migrate(ctx, b.config(), cl); err != nil {
		return nil, err
	}
	reg, err := schemas.NewClient(b.schemas)
	if err != nil {
		return nil, err
	}
	if _, err := schemas.NewCodec(ctx, reg, true); err != nil {
		return nil, err
	}
	if err := postgres.Migrate(ctx, b.postgres); err != nil {
		return nil, err
	}
	return kafka.Load(ctx, b.config(), cl)
}

// deleteTopics leaves a broker that is not ours as it was.
func (b *Installation) deleteTopics(ctx context.Context) error {
	cl, err := b.config().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("removing the benchmark's topics: %w", err)
	}
	var ours []string
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, b.prefix) {
			ours = append(ours, name)
		}
	}
	if _, err := adm.DeleteTopics(ctx, ours...); err != nil {
		return fmt.Errorf("removing the benchmark's topics: %w", err)
	}
	return nil
}

// flags are those of every role.
func (b *Installation) flags() []string {
	return []string{
		"--data", b.dir, "--kafka", b.addr, "--topic-prefix", b.prefix, "--postgres", b.postgres, "--schema-registry", b.schemas, "--log", "warn",
	}
}

// seed runs this program's `seed`.
func (b *Installation) seed(ctx context.Context, file string) error {
	p, err := startRole(append([]string{"seed", file}, b.flags()...), filepath.Join(b.dir, "seed.log"), "")
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		if !p.cmd.ProcessState.Success() {
			return p.ended()
		}
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.stop(context.WithoutCancel(ctx)))
	}
}

// startRoles starts the service under test, the first processor first.
func (b *Installation) startRoles(ctx context.Context, ingresses, processors int) error {
	ports, err := stack.FreePorts(2*ingresses + processors)
	if err != nil {
		return err
	}
	start := func(role string, n int, health int, args ...string) error {
		name := role + "-" + strconv.Itoa(n)
		args = append(append([]string{role, "--instance", strconv.Itoa(n), "--health", local(health)}, args...), b.flags()...)
		p, err := startRole(args, filepath.Join(b.dir, name+".log"), local(health))
		if err != nil {
			return err
		}
		b.roles = append(b.roles, p)
		return nil
	}
	for n := range processors {
		if err := start("processor", n, ports[2*ingresses+n], "--store", filepath.Join(b.dir, "store-"+strconv.Itoa(n))); err != nil {
			return err
		}
	}
	for n := range ingresses {
		b.listen = append(b.listen, local(ports[2*n]))
		if err := start("ingress", n, ports[2*n+1], "--listen", b.listen[n]); err != nil {
			return err
		}
	}
	for _, p := range b.roles {
		if err := p.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// profile takes the profiles of the roles at the same time.
func (b *Installation) profile(ctx context.Context, length time.Duration) error {
	if err := os.MkdirAll(b.Profiles, 0o755); err != nil { //nolint:gosec // holds no secret
		return fmt.Errorf("making the folder of profiles: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	seconds := strconv.Itoa(max(1, int(length.Seconds())))
	for _, p := range b.roles {
		for kind, path := range map[string]string{"cpu": "profile", "allocs": "allocs"} {
			g.Go(func() error {
				profile, err := p.get(ctx, "/debug/pprof/"+path+"?seconds="+seconds)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(b.Profiles, p.name+"."+kind+".pprof"), profile, 0o600); err != nil {
					return fmt.Errorf("writing a profile: %w", err)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.Log.Info("profiles are written", slog.String("folder", b.Profiles))
	return nil
}

// shut ends what was started and removes the folder.
func (b *Installation) shut(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var errs []error
	for _, p := range b.roles {
		errs = append(errs, p.stop(ctx))
	}
	for i := len(b.stop) - 1; i >= 0; i-- {
		errs = append(errs, b.stop[i](ctx))
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}
