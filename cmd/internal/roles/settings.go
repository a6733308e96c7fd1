package roles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/internal/kafka"
	"quittance/internal/secret"
)

// Settings are what flags and the environment say: every flag --a-b is also
// QUITTANCE_A_B, and a flag wins.
type Settings struct {
	Developer bool
	Port      int // of an `up` that stands for all addresses; of `up` its own
	Data      string

	Kafka          string
	TopicPrefix    string
	Partitions     int32
	Replication    int16
	Postgres       string
	ClickHouse     string
	SchemaRegistry string
	MasterKeys     string

	Listen       string
	Health       string
	BaseURL      string
	CheckoutURL  string
	CallbackURL  string
	SimulatorURL string
	ShopURL      string

	Instance string
	Store    string

	Log string
}

// flags declares the settings that parts are found by.
func (s *Settings) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.Developer, "developer", false, "developer mode: loopback destinations, plain secrets in seed, the movable clock")
	f.IntVar(&s.Port, "port", 0, "stands for the addresses of an up that runs on this port")
	f.StringVar(&s.Data, "data", ".quittance", "data folder")
	f.StringVar(&s.Kafka, "kafka", "", "addresses of the Kafka brokers, host:port,…")
	f.StringVar(&s.TopicPrefix, "topic-prefix", "", "sets installations that share a broker apart")
	f.StringVar(&s.Postgres, "postgres", "", "address of Postgres, postgres://user:password@host:port/database")
	f.StringVar(&s.ClickHouse, "clickhouse", "", "address of ClickHouse, http://host:port/database or clickhouse://…")
	f.StringVar(&s.SchemaRegistry, "schema-registry", "", "address of the schema registry, http://host:port")
	f.StringVar(&s.MasterKeys, "master-keys", "", "master keys, id:base64,… newest first (prefer the environment)")
	f.StringVar(&s.SimulatorURL, "simulator-url", "", "where quittance simulate runs, developer mode only")
	f.StringVar(&s.Log, "log", "info", "log level: debug, info, warn, error")
}

// runFlags declares the settings of roles that run until they are stopped.
func (s *Settings) runFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Health, "health", "", "address of /healthz, /readyz and /metrics, host:port; empty for none")
	f.StringVar(&s.Instance, "instance", "0", "name of this instance among those of its role, stable over restarts")
}

// fromEnvironment sets every flag that the command line does not from its
// variable.
func fromEnvironment(f *pflag.FlagSet) error {
	var errs []error
	f.VisitAll(func(fl *pflag.Flag) {
		name := "QUITTANCE_" + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok && !fl.Changed {
			if err := f.Set(fl.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s: %q is not a value of --%s", name, v, fl.Name))
			}
		}
	})
	return errors.Join(errs...)
}

// locator is what an `up` leaves behind, so that other commands find it by its
// port alone.
type locator struct {
	Data           string `json:"data"`
	Kafka          string `json:"kafka"`
	Postgres       string `json:"postgres"`
	ClickHouse     string `json:"clickhouse"`
	SchemaRegistry string `json:"schema_registry"`
	SimulatorURL   string `json:"simulator_url"`
}

func locatorFile(port int) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w", err)
	}
	return filepath.Join(dir, "quittance", "up-"+strconv.Itoa(port)+".json"), nil
}

// write leaves the locator for others of the same user alone: it holds the
// address of Postgres with its password.
func (l locator) write(port int) (remove func(), err error) {
	file, err := locatorFile(port)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return nil, fmt.Errorf("writing %s: %w", file, err)
	}
	return func() { _ = os.Remove(file) }, nil
}

// locate fills the addresses that are not set from the `up` that runs on s.Port.
func (s *Settings) locate() error {
	if s.Port == 0 {
		return nil
	}
	file, err := locatorFile(s.Port)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no `quittance up` runs on port %d for this user; start one, or name the parts with --kafka, --postgres, --clickhouse and --schema-registry", s.Port)
	}
	var l locator
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	s.Developer = true
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&s.Kafka, l.Kafka},
		{&s.Postgres, l.Postgres},
		{&s.ClickHouse, l.ClickHouse},
		{&s.SchemaRegistry, l.SchemaRegistry},
		{&s.SimulatorURL, l.SimulatorURL},
	} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	s.Data = l.Data
	return nil
}

// need says which of the settings are missing, in the words of a command line.
func (s *Settings) need(names ...string) error {
	values := map[string]string{
		"kafka": s.Kafka, "postgres": s.Postgres, "clickhouse": s.ClickHouse, "schema-registry": s.SchemaRegistry,
	}
	var missing []string
	for _, n := range names {
		if values[n] == "" {
			missing = append(missing, fmt.Sprintf("--%s (or QUITTANCE_%s)", n, strings.ToUpper(strings.ReplaceAll(n, "-", "_"))))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not set: %s; or give --port of a running `quittance up`", strings.Join(missing, ", "))
	}
	return nil
}

func (s *Settings) kafkaConfig() kafka.Config {
	return kafka.Config{Brokers: strings.Split(s.Kafka, ","), Prefix: s.TopicPrefix, Replication: s.Replication, Partitions: s.Partitions}
}

// masterKeys are the configured ones; developer mode makes its own in the data
// folder.
func (s *Settings) masterKeys() (*secret.Keys, error) {
	if s.MasterKeys != "" {
		return secret.ParseKeys(s.MasterKeys)
	}
	if !s.Developer {
		return nil, errors.New("QUITTANCE_MASTER_KEYS is not set: make one with `head -c 32 /dev/urandom | base64` and set QUITTANCE_MASTER_KEYS=1:<that>; every role needs the same, keep it like the database's backup")
	}
	file := filepath.Join(s.Data, "master.keys")
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		keys := secret.GenerateKeys()
		if err := os.MkdirAll(s.Data, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
			return nil, fmt.Errorf("making the data folder: %w", err)
		}
		if err := os.WriteFile(file, []byte(keys.Reveal()+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("writing the developer's master keys: %w", err)
		}
		return keys, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the developer's master keys: %w", err)
	}
	return secret.ParseKeys(strings.TrimSpace(string(b)))
}

// logger writes to stderr, as a person reads it.
func (s *Settings) logger(cmd *cobra.Command) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.Log)); err != nil {
		return nil, fmt.Errorf("--log %q: want debug, info, warn or error", s.Log)
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})), nil
}

// print says at start what the settings are, without secrets.
func (s *Settings) print(log *slog.Logger) {
	log.Info("configuration",
		slog.Bool("developer", s.Developer), slog.String("kafka", s.Kafka), slog.String("topic_prefix", s.TopicPrefix),
		slog.String("postgres", withoutPassword(s.Postgres)), slog.String("clickhouse", withoutPassword(s.ClickHouse)),
		slog.String("schema_registry", withoutPassword(s.SchemaRegistry)), slog.String("master_keys", configured(s.MasterKeys)),
		slog.String("instance", s.Instance), slog.String("listen", s.Listen), slog.String("health", s.Health))
	if s.Developer {
		log.Warn("developer mode: loopback destinations and plain secrets are allowed, the clock can be moved; never for real payments")
	}
}

func withoutPassword(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return "configured"
	}
	u.RawQuery = ""
	return u.Redacted()
}

func configured(s string) string {
	if s == "" {
		return "made by developer mode"
	}
	return "configured"
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
