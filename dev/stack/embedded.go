package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// EmbeddedBrokerConfig is the configuration of the in-process broker.
type EmbeddedBrokerConfig struct {
	// Dir holds the topics; it is created when absent.
	Dir string
	// Port on 127.0.0.1.
	Port int
	// Log receives the broker's log lines. Required.
	Log *slog.Logger
}

// minSession is the shortest time after which a group may declare a silent member dead, as in
// kafka.properties.tmpl.
const minSession = time.Second

// EmbeddedBroker is a Kafka broker inside this process. It has transactions, groups and
// data that outlives a restart, without a JVM. It is not crash-safe: a process that is
// killed loses or doubles records. Never use it for real payments. It is safe for
// concurrent use.
type EmbeddedBroker struct {
	cluster *kfake.Cluster
	addr    string
}

// StartEmbeddedBroker loads the data in Dir and listens. Only `migrate` creates topics.
//
// A transactional id of an earlier start may still be fenced or in an open transaction, so
// callers add a nonce for each start (architecture, rule 7).
func StartEmbeddedBroker(ctx context.Context, cfg EmbeddedBrokerConfig) (*EmbeddedBroker, error) {
	if cfg.Dir == "" || cfg.Port == 0 || cfg.Log == nil {
		return nil, errors.New("starting the in-process broker: Dir, Port and Log are required")
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil { //nolint:gosec // a developer's folder
		return nil, fmt.Errorf("starting the in-process broker: %w", err)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.Ports(cfg.Port), kfake.ClusterID("quittance-embedded"),
		kfake.DataDir(cfg.Dir), kfake.DefaultNumPartitions(4), kfake.GroupMinSessionTimeout(minSession), kfake.WithLogger(&kfakeLogger{cfg.Log}),
	)
	if err != nil {
		return nil, fmt.Errorf("starting the in-process broker: %w", err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port))
	cfg.Log.LogAttrs(ctx, slog.LevelInfo, "in-process broker is ready", slog.String("addr", addr))
	return &EmbeddedBroker{cluster: cluster, addr: addr}, nil
}

// Addr is the bootstrap address, host:port.
func (b *EmbeddedBroker) Addr() string { return b.addr }

// Stop writes all data to the data folder and frees the port. It ignores its context,
// because data that is not written is lost.
func (b *EmbeddedBroker) Stop(context.Context) error {
	b.cluster.Close()
	return nil
}

// kfakeLogger writes the broker's lines to our logger, its level info as our debug.
type kfakeLogger struct{ log *slog.Logger }

// Logf implements kfake.Logger.
func (l *kfakeLogger) Logf(level kfake.LogLevel, format string, args ...any) {
	var at slog.Level
	switch level {
	case kfake.LogLevelError:
		at = slog.LevelError
	case kfake.LogLevelWarn:
		at = slog.LevelWarn
	default:
		at = slog.LevelDebug
	}
	if ctx := context.Background(); l.log.Enabled(ctx, at) {
		l.log.LogAttrs(ctx, at, "in-process broker", slog.String("says", fmt.Sprintf(format, args...)))
	}
}
