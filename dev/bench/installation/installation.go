// Package installation runs an installation for one benchmark: servers of its own in
// a folder of its own, and roles as processes of a program.
package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/secret"
	"quittance/schemas"
)

// StartWithin bounds the start of a server or of the roles, and every stop and restart
// in the middle of a benchmark.
const StartWithin = 4 * time.Minute

// closeWithin bounds the end of everything that was started.
const closeWithin = time.Minute

// Config of an installation. Log is required.
type Config struct {
	// Broker is host:port of a running Kafka. When it is empty, Open starts one.
	Broker string
	// Program is the path of quittance-dev. When it is empty, the roles run this program.
	Program string
	// Log receives progress.
	Log *slog.Logger
}

// Installation is servers, and processes of the program. Its methods are not safe for
// concurrent use, except those of Program.
type Installation struct {
	Dir      string           // of everything; Close removes it
	Prefix   string           // of topics and groups
	Broker   string           // host:port
	Topology *kafka.Topology  // the topics
	Program  *program.Program // with the addresses of the servers in its environment
	Keys     *secret.Keys     // of the roles

	// Kafka is nil when the benchmark uses a running broker.
	Kafka    *stack.Kafka
	postgres *stack.Postgres
	database stack.PostgresConfig
	registry *stack.SchemaRegistry

	log       *slog.Logger
	processes []*program.Process
}

// Open starts the servers, and makes topics, schemas and tables. Close ends and removes
// what it made. When Open returns an error, it has closed everything.
func Open(ctx context.Context, cfg Config) (_ *Installation, err error) {
	i := &Installation{Keys: secret.GenerateKeys(), Broker: cfg.Broker, Prefix: "bench-" + uuid.NewString()[:8] + ".", log: cfg.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close(ctx))
		}
	}()
	if cfg.Program == "" {
		if cfg.Program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
	}
	if i.Dir, err = os.MkdirTemp("", "quittance-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if err := os.Chmod(i.Dir, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	logs := filepath.Join(i.Dir, "output")
	if err := os.Mkdir(logs, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if err := i.servers(ctx); err != nil {
		return nil, err
	}
	if err := i.prepare(ctx); err != nil {
		return nil, err
	}
	i.Program = program.New(cfg.Program, logs,
		"QUITTANCE_LOG=warn", "QUITTANCE_DATA="+filepath.Join(i.Dir, "data"), "QUITTANCE_MASTER_KEYS="+i.Keys.Reveal(), "QUITTANCE_KEYLESS_PER_CLIENT=1000000", "QUITTANCE_KEYLESS_PER_INSTANCE=1000000", "QUITTANCE_REFERENCE_KEY="+secret.GenerateReferenceKey().Reveal(),
		"QUITTANCE_KAFKA="+i.Broker, "QUITTANCE_TOPIC_PREFIX="+i.Prefix, "QUITTANCE_POSTGRES="+i.DSN(), "QUITTANCE_SCHEMA_REGISTRY="+i.Schemas(),
	)
	return i, nil
}

// servers starts the broker, Postgres and the schema registry.
func (i *Installation) servers(ctx context.Context) error {
	ports, err := stack.FreePorts(3)
	if err != nil {
		return err
	}
	i.log.Info("starting servers", slog.String("folder", i.Dir))
	quiet := slog.New(slog.DiscardHandler)
	i.database = stack.PostgresConfig{Dir: filepath.Join(i.Dir, "postgres"), Port: ports[0], Log: quiet}
	if err := i.StartPostgres(ctx); err != nil {
		return err
	}
	if i.registry, err = stack.StartSchemaRegistry(ctx, stack.SchemaRegistryConfig{Dir: filepath.Join(i.Dir, "schemas"), Log: quiet}); err != nil {
		return err
	}
	if i.Broker != "" {
		return nil
	}
	i.Kafka, err = stack.StartKafka(ctx, stack.KafkaConfig{Dir: filepath.Join(i.Dir, "kafka"), Port: ports[1], ControllerPort: ports[2], Log: quiet})
	if err != nil {
		return err
	}
	i.Broker = i.Kafka.Addr()
	return nil
}

// prepare does what `quittance migrate` does, without ClickHouse.
func (i *Installation) prepare(ctx context.Context) error {
	cl, err := i.KafkaConfig().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := kafka.Migrate(ctx, i.KafkaConfig(), cl); err != nil {
		return err
	}
	registry, err := schemas.NewClient(i.Schemas(), nil)
	if err != nil {
		return err
	}
	if _, err := schemas.NewCodec(ctx, registry, true); err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, i.DSN()); err != nil {
		return err
	}
	i.Topology, err = kafka.Load(ctx, i.KafkaConfig(), cl)
	return err
}

// KafkaConfig is the broker and the prefix of the topics.
func (i *Installation) KafkaConfig() kafka.Config {
	return kafka.Config{Brokers: []string{i.Broker}, Prefix: i.Prefix}
}

// DSN is the URL of the database.
func (i *Installation) DSN() string { return i.postgres.DSN("quittance") }

// PostgresDir is the folder of the database server.
func (i *Installation) PostgresDir() string { return i.database.Dir }

// Schemas is the URL of the schema registry.
func (i *Installation) Schemas() string { return i.registry.URL() }

// StartPostgres starts the database server, again after StopPostgres.
func (i *Installation) StartPostgres(ctx context.Context) (err error) {
	i.postgres, err = stack.StartPostgres(ctx, i.database)
	return err
}

// StopPostgres stops the database server.
func (i *Installation) StopPostgres(ctx context.Context) error { return i.postgres.Stop(ctx) }

// Seed applies a registry file with `quittance-dev seed`.
func (i *Installation) Seed(ctx context.Context, registry string) error {
	file := filepath.Join(i.Dir, "registry.yaml")
	if err := os.WriteFile(file, []byte(registry), 0o600); err != nil {
		return fmt.Errorf("writing the registry file: %w", err)
	}
	return i.Program.Run(ctx, "seed", file)
}

// Process makes a process of a role, which Start starts and Close ends.
func (i *Installation) Process(name string, args ...string) (*program.Process, error) {
	ports, err := stack.FreePorts(1)
	if err != nil {
		return nil, err
	}
	p := i.Program.Process(name, program.Local(ports[0]), args...)
	i.processes = append(i.processes, p)
	return p, nil
}

// Simulate makes the process of the simulators, at ports from one on as in every installation of the program, and gives their
// addresses to the processes that are made after it. It returns the URL of the simulators.
func (i *Installation) Simulate(port int) (url string, err error) {
	const atSimulators, atMail = 1, 9
	url = "http://" + program.Local(port+atSimulators)
	i.Program = i.Program.With("QUITTANCE_SIMULATOR_URL="+url, "QUITTANCE_MAIL=smtp+plain://"+program.Local(port+atMail)+"?from=no-reply@quittance.example")
	_, err = i.Process("simulators", "simulate", "--port", strconv.Itoa(port))
	return url, err
}

// Role is a process of a role by its name, with its arguments.
type Role struct {
	Name string
	Args []string
}

// Roles starts processes of roles, beside those that were made before and do not run, and waits until all are ready. It returns
// them in their order, the earlier ones first.
func (i *Installation) Roles(ctx context.Context, roles ...Role) ([]*program.Process, error) {
	for _, r := range roles {
		if _, err := i.Process(r.Name, r.Args...); err != nil {
			return nil, err
		}
	}
	return i.processes, i.Start(ctx, i.processes...)
}

// Codec reads and writes records with the schemas of the installation.
func (i *Installation) Codec(ctx context.Context) (*schemas.Codec, error) {
	registry, err := schemas.NewClient(i.Schemas(), nil)
	if err != nil {
		return nil, err
	}
	return schemas.NewCodec(ctx, registry, false)
}

// Start starts processes and waits until they are ready. It returns an error when one
// of them ends.
func (i *Installation) Start(ctx context.Context, processes ...*program.Process) error {
	for _, p := range processes {
		if err := p.Start(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, StartWithin)
	defer cancel()
	return During(ctx, processes, func(ctx context.Context) error { return program.AwaitReady(ctx, processes...) })
}

// During calls do. When one of the processes ends by itself, During cancels the context
// of do and returns an error with the end of the process's output.
func During(ctx context.Context, processes []*program.Process, do func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	g.Go(func() error {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			for _, p := range processes {
				if p.Unexpected.Load() > 0 {
					return fmt.Errorf("%s has ended; the end of its output:\n%s", p.Name, program.Tail(p.LogFile(), 4<<10))
				}
			}
		}
	})
	g.Go(func() error {
		defer done()
		return do(ctx)
	})
	return g.Wait()
}

// Close ends the processes and the servers and removes the folder. It leaves a broker
// that it has not started without the benchmark's topics and groups. It works after ctx
// has ended too.
func (i *Installation) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	var ending sync.WaitGroup
	for _, p := range i.processes {
		ending.Go(func() {
			p.Signal(syscall.SIGTERM) // so that it leaves its group, which could not be deleted otherwise
			p.Quit()
		})
	}
	ending.Wait()
	var errs []error
	switch {
	case i.Kafka != nil:
		errs = append(errs, i.Kafka.Stop(ctx))
	case i.Topology != nil:
		errs = append(errs, Forget(ctx, i.KafkaConfig()))
	}
	if i.registry != nil {
		errs = append(errs, i.registry.Stop(ctx))
	}
	if i.postgres != nil {
		errs = append(errs, i.StopPostgres(ctx))
	}
	if i.Dir != "" {
		errs = append(errs, os.RemoveAll(i.Dir))
	}
	return errors.Join(errs...)
}

// Forget deletes the topics and groups of a benchmark, those with the prefix of the
// configuration. It works after ctx has ended too.
func Forget(ctx context.Context, cfg kafka.Config) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	cl, err := cfg.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ours := func(names []string) (out []string) {
		for _, name := range names {
			if strings.HasPrefix(name, cfg.Prefix) {
				out = append(out, name)
			}
		}
		return out
	}
	groups, err := adm.ListGroups(ctx)
	if err != nil {
		return fmt.Errorf("listing the benchmark's groups: %w", err)
	}
	if names := ours(groups.Groups()); len(names) > 0 {
		deleted, err := adm.DeleteGroups(ctx, names...)
		if err == nil {
			err = deleted.Error()
		}
		if err != nil {
			return fmt.Errorf("deleting the benchmark's groups: %w", err)
		}
	}
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("listing the benchmark's topics: %w", err)
	}
	if _, err := adm.DeleteTopics(ctx, ours(topics.Names())...); err != nil {
		return fmt.Errorf("deleting the benchmark's topics: %w", err)
	}
	return nil
}
