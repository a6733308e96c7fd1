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

	"quittance/dev/stack"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/schemas"
)

// Installation is an installation for one benchmark: servers of its own in a folder
// of its own, and one ingress and one processor, each a process of the program that
// runs the benchmark.
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
	// Environment of the roles. They get all settings as flags: it holds no
	// QUITTANCE_… variables.
	Environment []string
	Log         *slog.Logger

	dir, prefix, addr, postgres, schemas string
	listen, health, processorHealth      string

	kafka *stack.Kafka // nil with a broker that runs
	stop  []func(context.Context) error
	roles []*roleProcess
}

func (b *Installation) config() kafka.Config {
	return kafka.Config{Brokers: []string{b.addr}, Prefix: b.prefix}
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Run starts the servers and the roles, measures, writes the report to out and ends
// what it started.
func (b *Installation) Run(ctx context.Context, out io.Writer) (err error) {
	if b.Seconds < 1 || b.Rounds < 1 || b.Applications < 1 {
		return errors.New("--seconds, --rounds and --applications are at least 1")
	}
	if b.dir, err = os.MkdirTemp("", "quittance-bench-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		err = errors.Join(err, b.shut(context.WithoutCancel(ctx)), os.RemoveAll(b.dir))
	}()
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
		return fmt.Errorf("making a folder: %w", err)
	}
	b.prefix = "bench-" + uuid.NewString()[:8] + "."
	if err := b.servers(ctx); err != nil {
		return err
	}
	space, err := b.prepare(ctx)
	if err != nil {
		return err
	}
	file, keys := Registry(b.Applications)
	registryFile := filepath.Join(b.dir, "registry.yaml")
	if err := os.WriteFile(registryFile, file, 0o600); err != nil {
		return fmt.Errorf("writing the registry file: %w", err)
	}
	if err := b.seed(ctx, registryFile); err != nil {
		return err
	}
	if err := b.startRoles(ctx); err != nil {
		return err
	}
	cfg := Config{
		Kafka: b.config(), Space: space, Ingress: b.listen, Keys: keys,
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
	// A role that dies ends the measurement.
	g, gctx := errgroup.WithContext(ctx)
	gctx, done := context.WithCancel(gctx)
	for _, p := range b.roles {
		g.Go(func() error { return p.watch(gctx) })
	}
	g.Go(func() error {
		defer done()
		return measured.Run(gctx, out)
	})
	return g.Wait()
}

// servers starts broker, Postgres and the registry of schemas.
func (b *Installation) servers(ctx context.Context) error {
	ports, err := stack.FreePorts(6)
	if err != nil {
		return err
	}
	b.listen, b.health, b.processorHealth = local(ports[0]), local(ports[1]), local(ports[5])
	quiet := slog.New(slog.DiscardHandler)
	b.Log.Info("starting servers", slog.String("folder", b.dir))
	pg, err := stack.StartPostgres(ctx, stack.PostgresConfig{Dir: filepath.Join(b.dir, "postgres"), Port: ports[2], Log: quiet})
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
		Dir: filepath.Join(b.dir, "kafka"), Port: ports[3], ControllerPort: ports[4], Log: quiet,
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
	p, err := startRole(b.Environment, append([]string{"seed", file}, b.flags()...), filepath.Join(b.dir, "seed.log"), "")
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

// startRoles starts the service under test.
func (b *Installation) startRoles(ctx context.Context) error {
	for _, role := range []struct {
		health string
		args   []string
	}{
		{b.processorHealth, []string{"processor"}},
		{b.health, []string{"ingress", "--listen", b.listen}},
	} {
		args := append(append(role.args, b.flags()...), "--health", role.health)
		p, err := startRole(b.Environment, args, filepath.Join(b.dir, role.args[0]+".log"), role.health)
		if err != nil {
			return err
		}
		b.roles = append(b.roles, p)
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
	return errors.Join(errs...)
}
