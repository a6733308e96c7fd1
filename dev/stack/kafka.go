package stack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaProperties is the broker's configuration, with the measured settings
// that the processors rely on.
//
//go:embed kafka.properties.tmpl
var kafkaProperties string

var kafkaTemplate = template.Must(template.New("kafka.properties").Option("missingkey=error").Parse(kafkaProperties))

// KafkaConfig is the configuration of a single-node Apache Kafka. QUITTANCE_KAFKA_JVM, if
// set, replaces the JVM flags of the garbage collector: a broker that runs for seconds is
// faster without G1 and the second compiler.
type KafkaConfig struct {
	// Dir holds the log and the metadata (Dir/data), the generated
	// configuration and kafka.log. It is created when absent and formatted only
	// when it has never been.
	Dir string
	// Port is the clients' port on 127.0.0.1.
	Port int
	// ControllerPort is the controller's port on 127.0.0.1; Port+1 when zero.
	ControllerPort int
	// Libs is the folder of Kafka's jars. When empty, QUITTANCE_KAFKA_LIBS, then
	// .deps/kafka/libs of the working directory or of a folder above it, then
	// the user's cache.
	Libs string
	// Properties are further properties of the broker. They replace those of the same name.
	Properties map[string]string
	// JVM are further flags of the JVM. Those of QUITTANCE_KAFKA_JVM come after them and win.
	JVM []string
	// Log receives the steps of start and stop. Required.
	Log *slog.Logger
}

// Kafka is a running Apache Kafka broker, a child process on a JVM. It is safe
// for concurrent use, except that Stop, Kill and Restart exclude each other.
type Kafka struct {
	cfg   KafkaConfig
	libs  string
	java  string
	proc  *child
	admin *kgo.Client
}

// StartKafka formats the data folder if it is empty, starts the broker and
// returns once it answers metadata requests and its group and transaction
// coordinators are available. Writes do not create topics; `migrate` creates them.
func StartKafka(ctx context.Context, cfg KafkaConfig) (*Kafka, error) {
	if cfg.Dir == "" || cfg.Port == 0 || cfg.Log == nil {
		return nil, errors.New("starting Kafka: Dir, Port and Log are required")
	}
	if cfg.ControllerPort == 0 {
		cfg.ControllerPort = cfg.Port + 1
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("starting Kafka: %w", err)
	}
	cfg.Dir = dir
	k := &Kafka{cfg: cfg}
	if k.libs, err = FindKafkaLibs(cfg.Libs); err != nil {
		return nil, fmt.Errorf("starting Kafka: %w", err)
	}
	if k.java, err = exec.LookPath("java"); err != nil {
		return nil, fmt.Errorf("starting Kafka: %w: Java 17 or later is needed; run `make deps/test`", err)
	}
	if err := k.format(ctx); err != nil {
		return nil, fmt.Errorf("starting Kafka: %w", err)
	}
	if err := k.start(ctx); err != nil {
		return nil, fmt.Errorf("starting Kafka: %w", err)
	}
	return k, nil
}

// FindKafkaLibs returns the folder of Kafka's jars: override if it is not empty, else as
// described at KafkaConfig.Libs.
func FindKafkaLibs(override string) (string, error) {
	libs, err := findPart(override, "QUITTANCE_KAFKA_LIBS", filepath.Join("kafka", "libs"), func(dir string) bool {
		jars, _ := filepath.Glob(filepath.Join(dir, "kafka-server-[0-9]*.jar"))
		return len(jars) > 0
	})
	if err != nil {
		return "", fmt.Errorf("finding Kafka's jars: %w; run `make deps/test`", err)
	}
	return libs, nil
}

// Addr is the bootstrap address, host:port.
func (k *Kafka) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(k.cfg.Port)) }

// Pid is the broker's process id; for tests that watch the process.
func (k *Kafka) Pid() int { return k.proc.cmd.Process.Pid }

// Stop ends the broker in order (SIGTERM), with force if that takes longer than
// ten seconds or than ctx allows.
func (k *Kafka) Stop(ctx context.Context) error {
	k.admin.Close()
	if err := k.proc.stop(ctx, 10*time.Second, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping Kafka: %w", err)
	}
	k.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "Kafka stopped", slog.String("addr", k.Addr()))
	return nil
}

// Kill ends the broker at once (SIGKILL), as a crash does. The data folder is kept for
// Restart.
func (k *Kafka) Kill() error {
	k.admin.Close()
	if err := k.proc.kill(); err != nil {
		return fmt.Errorf("killing Kafka: %w", err)
	}
	return nil
}

// Restart starts the broker again, after Stop or Kill, on the same folder and
// ports.
func (k *Kafka) Restart(ctx context.Context) error {
	if !k.proc.exited() {
		return errors.New("restarting Kafka: it still runs")
	}
	if err := k.start(ctx); err != nil {
		return fmt.Errorf("restarting Kafka: %w", err)
	}
	return nil
}

func (k *Kafka) dataDir() string    { return filepath.Join(k.cfg.Dir, "data") }
func (k *Kafka) properties() string { return filepath.Join(k.cfg.Dir, "kafka.properties") }
func (k *Kafka) logPath() string    { return filepath.Join(k.cfg.Dir, "kafka.log") }

// format always writes the configuration. It gives a new data folder its cluster id.
func (k *Kafka) format(ctx context.Context) error {
	if err := os.MkdirAll(k.dataDir(), 0o755); err != nil { //nolint:gosec // a developer's folder
		return fmt.Errorf("making the data folder: %w", err)
	}
	var b bytes.Buffer
	err := kafkaTemplate.Execute(&b, map[string]any{
		"Port": k.cfg.Port, "ControllerPort": k.cfg.ControllerPort, "DataDir": k.dataDir(),
	})
	if err != nil {
		return fmt.Errorf("making the configuration: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(k.cfg.Properties)) {
		fmt.Fprintf(&b, "%s=%s\n", name, k.cfg.Properties[name]) // the last of a name counts
	}
	if err := os.WriteFile(k.properties(), b.Bytes(), 0o644); err != nil { //nolint:gosec // holds no secret
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if _, err := os.Stat(filepath.Join(k.dataDir(), "meta.properties")); err == nil {
		return nil
	}
	// An interrupted first start leaves a folder without meta.properties, which the tool
	// writes. The tool refuses a folder that has data but not this file.
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return fmt.Errorf("making a cluster id: %w", err)
	}
	// The command line would take an id that begins with '-' as a flag.
	id[0] &= 0x7f
	cmd := exec.CommandContext(ctx, k.java, append(append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1"}, k.classes()...), //nolint:gosec // java by the PATH
		"kafka.tools.StorageTool", "format", "-t", base64.RawURLEncoding.EncodeToString(id), "-c", k.properties())...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("formatting %s: %w: %s", k.dataDir(), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// kafkaJVM are the JVM's options unless the environment has others. Measured on two cores
// that are busy: with two threads of the collector, which wait for each other when one has
// no core, 44 of 550 pauses took more than 50 ms and at most 136 ms; with one, 1 of 143 and
// at most 52 ms.
const kafkaJVM = "-XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:ParallelGCThreads=1"

func (k *Kafka) start(ctx context.Context) error {
	for _, port := range []int{k.cfg.Port, k.cfg.ControllerPort} {
		if err := portFree(port); err != nil {
			return err
		}
	}
	begun := time.Now()
	flags := append(slices.Clone(k.cfg.JVM), strings.Fields(cmp.Or(os.Getenv("QUITTANCE_KAFKA_JVM"), kafkaJVM))...)
	flags = append(flags, "-Xms256m", "-Xmx768m", "-XX:+ExitOnOutOfMemoryError",
		"-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
	flags = append(flags, k.classes()...)
	cmd := exec.Command(k.java, append(flags, "kafka.Kafka", k.properties())...) //nolint:gosec,noctx // java by the PATH; the process outlives ctx, which bounds the start alone
	cmd.Dir = k.cfg.Dir
	// A broker whose owner has ended must free its ports at once. Its log survives a
	// SIGKILL.
	proc, err := startChild(cmd, k.logPath(), syscall.SIGKILL)
	if err != nil {
		return err
	}
	k.proc = proc
	k.admin, err = kgo.NewClient(
		kgo.SeedBrokers(k.Addr()), kgo.MetadataMinAge(20*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.RequestRetries(2),
	)
	if err == nil {
		err = proc.waitReady(ctx, 50*time.Millisecond, k.logPath(), k.probe)
	}
	if err != nil {
		if k.admin != nil {
			k.admin.Close()
		}
		return errors.Join(err, proc.kill())
	}
	k.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "Kafka is ready",
		slog.String("addr", k.Addr()), slog.Duration("took", time.Since(begun).Round(time.Millisecond)))
	return nil
}

// probe succeeds when the broker is in its own metadata and the internal topics of groups
// and transactions have leaders. The first request for a coordinator creates these topics;
// without it the first test on a new broker would wait for them.
func (k *Kafka) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	adm := kadm.NewClient(k.admin)
	md, err := adm.BrokerMetadata(ctx)
	if err != nil {
		return fmt.Errorf("asking for metadata: %w", err)
	}
	if len(md.Brokers) == 0 {
		return errors.New("no broker in the metadata yet")
	}
	if err := adm.FindGroupCoordinators(ctx, "readiness").Error(); err != nil {
		return fmt.Errorf("finding the group coordinator: %w", err)
	}
	if err := adm.FindTxnCoordinators(ctx, "readiness").Error(); err != nil {
		return fmt.Errorf("finding the transaction coordinator: %w", err)
	}
	return nil
}

// portFree returns an error if a loopback port cannot be bound. Without it a server would
// report the conflict only in its log.
func portFree(port int) error {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // no name to resolve, nothing to wait for
	if err != nil {
		return fmt.Errorf("port %d is taken: %w", port, err)
	}
	return ln.Close()
}
