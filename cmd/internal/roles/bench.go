package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench"
	"quittance/dev/stack"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/schemas"
)

// benchmark is a `quittance bench`: servers of its own in a folder of its own,
// and one ingress and one processor, each a process of this binary.
type benchmark struct {
	Settings
	broker       string // host:port of one that runs; empty starts one
	seconds      float64
	rounds       int
	applications int
	profiles     string

	processorHealth string

	log   *slog.Logger
	kafka *stack.Kafka // nil with a broker that runs
	stop  []func(context.Context) error
	roles []*roleProcess
}

func benchCommand() *cobra.Command {
	b := &benchmark{}
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure creations per second on real Kafka, beside the raw echo of the same broker", Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if b.log, err = b.logger(cmd); err != nil {
				return err
			}
			return b.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.broker, "broker", "", "host:port of a Kafka that runs, with the settings of dev/stack; one is started when empty")
	f.Float64Var(&b.seconds, "seconds", 6, "length of each measurement, after a warm-up of one second")
	f.IntVar(&b.rounds, "rounds", 3, "how often everything is measured; medians are printed")
	f.IntVar(&b.applications, "applications", 64, "how many applications share the creations out")
	f.StringVar(&b.profiles, "profile", "", "folder for CPU and allocation profiles of ingress and processor under 512 clients")
	f.StringVar(&b.Log, "log", "info", "log level: debug, info, warn, error")
	return cmd
}

func (b *benchmark) run(ctx context.Context, out io.Writer) (err error) {
	if b.seconds < 1 || b.rounds < 1 || b.applications < 1 {
		return errors.New("--seconds, --rounds and --applications are at least 1")
	}
	if b.Data, err = os.MkdirTemp("", "quittance-bench-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		err = errors.Join(err, b.shut(context.WithoutCancel(ctx)), os.RemoveAll(b.Data))
	}()
	if err := os.Chmod(b.Data, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
		return fmt.Errorf("making a folder: %w", err)
	}
	b.Developer = true // for the profiles and the loopback addresses
	b.TopicPrefix = "bench-" + uuid.NewString()[:8] + "."
	if err := b.servers(ctx); err != nil {
		return err
	}
	space, err := b.prepare(ctx)
	if err != nil {
		return err
	}
	file, keys := bench.Registry(b.applications)
	registryFile := filepath.Join(b.Data, "registry.yaml")
	if err := os.WriteFile(registryFile, file, 0o600); err != nil {
		return fmt.Errorf("writing the registry file: %w", err)
	}
	if _, err := b.seed(ctx, registryFile); err != nil {
		return err
	}
	if err := b.startRoles(ctx); err != nil {
		return err
	}
	cfg := bench.Config{
		Kafka: b.kafkaConfig(), Space: space, Ingress: b.Listen, Keys: keys,
		Length: time.Duration(b.seconds * float64(time.Second)), Rounds: b.rounds, Log: b.log,
	}
	if b.kafka != nil {
		cfg.Processes = append(cfg.Processes, bench.Process{Name: "broker", PID: b.kafka.Pid()})
	}
	for _, p := range b.roles {
		cfg.Processes = append(cfg.Processes, bench.Process{Name: p.name, PID: p.cmd.Process.Pid})
	}
	cfg.Processes = append(cfg.Processes, bench.Process{Name: "clients", PID: os.Getpid()})
	cfg.Transactions = b.roles[0].transactions
	if b.profiles != "" {
		cfg.Profile = b.profile
	}
	measured, err := bench.New(cfg)
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
func (b *benchmark) servers(ctx context.Context) error {
	ports, err := stack.FreePorts(6)
	if err != nil {
		return err
	}
	b.Listen, b.Health, b.processorHealth = local(ports[0]), local(ports[1]), local(ports[5])
	quiet := slog.New(slog.DiscardHandler)
	b.log.Info("starting servers", slog.String("folder", b.Data))
	pg, err := stack.StartPostgres(ctx, stack.PostgresConfig{Dir: filepath.Join(b.Data, "postgres"), Port: ports[2], Log: quiet})
	if err != nil {
		return err
	}
	b.stop = append(b.stop, pg.Stop)
	b.Postgres = pg.DSN("quittance")
	sr, err := stack.StartSchemaRegistry(ctx, stack.SchemaRegistryConfig{Dir: filepath.Join(b.Data, "schemas"), Log: b.log})
	if err != nil {
		return err
	}
	b.stop = append(b.stop, sr.Stop)
	b.SchemaRegistry = sr.URL()
	if b.broker != "" {
		b.Kafka = b.broker
		b.stop = append(b.stop, b.deleteTopics)
		return nil
	}
	if b.kafka, err = stack.StartKafka(ctx, stack.KafkaConfig{
		Dir: filepath.Join(b.Data, "kafka"), Port: ports[3], ControllerPort: ports[4], Log: quiet,
	}); err != nil {
		return err
	}
	b.stop = append(b.stop, b.kafka.Stop)
	b.Kafka = b.kafka.Addr()
	return nil
}

// prepare makes what `quittance migrate` makes, as far as a creation needs it.
func (b *benchmark) prepare(ctx context.Context) (*kafka.Topology, error) {
	cl, err := b.kafkaConfig().Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if _, err := kafka.Migrate(ctx, b.kafkaConfig(), cl); err != nil {
		return nil, err
	}
	reg, err := schemas.NewClient(b.SchemaRegistry)
	if err != nil {
		return nil, err
	}
	if _, err := schemas.NewCodec(ctx, reg, true); err != nil {
		return nil, err
	}
	if err := postgres.Migrate(ctx, b.Postgres); err != nil {
		return nil, err
	}
	return kafka.Load(ctx, b.kafkaConfig(), cl)
}

// deleteTopics leaves a broker that is not ours as it was.
func (b *benchmark) deleteTopics(ctx context.Context) error {
	cl, err := b.kafkaConfig().Client()
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
		if strings.HasPrefix(name, b.TopicPrefix) {
			ours = append(ours, name)
		}
	}
	if _, err := adm.DeleteTopics(ctx, ours...); err != nil {
		return fmt.Errorf("removing the benchmark's topics: %w", err)
	}
	return nil
}

// startRoles starts the service under test.
func (b *benchmark) startRoles(ctx context.Context) error {
	parts := []string{
		"--developer", "--data", b.Data, "--kafka", b.Kafka, "--topic-prefix", b.TopicPrefix, "--postgres", b.Postgres,
		"--schema-registry", b.SchemaRegistry, "--log", "warn",
	}
	for _, role := range []struct {
		health string
		args   []string
	}{
		{b.processorHealth, []string{"processor"}},
		{b.Health, []string{"ingress", "--listen", b.Listen}},
	} {
		args := append(append(role.args, parts...), "--health", role.health)
		p, err := startRole(args, filepath.Join(b.Data, role.args[0]+".log"), role.health)
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
func (b *benchmark) profile(ctx context.Context, length time.Duration) error {
	if err := os.MkdirAll(b.profiles, 0o755); err != nil { //nolint:gosec // holds no secret
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
				if err := os.WriteFile(filepath.Join(b.profiles, p.name+"."+kind+".pprof"), profile, 0o600); err != nil {
					return fmt.Errorf("writing a profile: %w", err)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.log.Info("profiles are written", slog.String("folder", b.profiles))
	return nil
}

func (b *benchmark) shut(ctx context.Context) error {
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

// roleProcess is a role that runs as a process of this binary. It dies with us.
type roleProcess struct {
	name   string
	cmd    *exec.Cmd
	log    string // file
	health string
	done   chan struct{} // closed when it has ended
}

// startRole starts `quittance args`, with what it writes going to the file log.
func startRole(args []string, log, health string) (*roleProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	p := &roleProcess{name: args[0], cmd: exec.Command(self, args...), log: log, health: health, done: make(chan struct{})} //nolint:gosec,noctx // ourselves; stopped in order, see stop
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "QUITTANCE_") { // the command line says it all
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	// A group of its own, so that Ctrl-C reaches us alone.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	// The death signal is sent when the thread that forked ends (golang/go#27505):
	// this goroutine keeps its own until the role is gone.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = file.Close() }()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in ProcessState
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	return p, nil
}

// ended is what there is to say of a role that ended by itself.
func (p *roleProcess) ended() error {
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s ended (%s):\n%s", p.name, p.cmd.ProcessState, text[max(0, len(text)-4096):])
}

// watch returns when the role ends, with an error, or ctx does.
func (p *roleProcess) watch(ctx context.Context) error {
	select {
	case <-p.done:
		return p.ended()
	case <-ctx.Done():
		return nil
	}
}

// ready waits until /readyz answers 200.
func (p *roleProcess) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := p.get(ctx, "/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", p.name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// transactions reads from the processor's metrics how many records it has
// decided, in how many transactions.
func (p *roleProcess) transactions(ctx context.Context) (records, transactions float64, err error) {
	text, err := p.get(ctx, "/metrics")
	if err != nil {
		return 0, 0, err
	}
	const name = "quittance_processor_transaction_records"
	for line := range strings.Lines(string(text)) {
		metric, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch metric {
		case name + "_sum":
			records, err = strconv.ParseFloat(value, 64)
		case name + "_count":
			transactions, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("reading metrics of %s: %w", p.name, err)
		}
	}
	return records, transactions, nil
}

// get asks the role's health address; any answer but 200 is an error.
func (p *roleProcess) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.name, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s for %s: %w", p.name, path, err)
	}
	return body, nil
}

// stop asks the role to end, and ends it when that takes long.
func (p *roleProcess) stop(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.name, err)
	}
	<-p.done
	return nil
}
