package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/build"
	"quittance/internal/citizens"
	"quittance/internal/clickhouse"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/reconciliation"
	"quittance/schemas"
)

// MigrateCommand returns the command `migrate`.
func MigrateCommand() cli.Command {
	return cli.Command{
		Use: "migrate", Short: "Create or bring up to date topics, schemas and tables", JSON: "what was done", Examples: []string{"migrate --partitions 64"},
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			f.Int32Var(&m.Partitions, "partitions", 0, "partitions of commands, state and events, at most as many processors share the work; fixed for ever when the topics are first created")
			f.Int16Var(&m.Replication, "replication", 0, fmt.Sprintf("replicas of new topics; %d when not given, or with --accept-one-replica the broker's default", schemas.Replicas))
			m.RiskFlags(f)
		},
		Check: func(m *cli.Meta) error {
			switch {
			case m.Partitions < 0:
				return cli.Usage("--partitions %d: must be at least 1", m.Partitions)
			case m.Replication < 0:
				return cli.Usage("--replication %d: must be at least 1", m.Replication)
			case m.Replication > 0 && m.Replication < schemas.Replicas && !m.AcceptsOneReplica():
				return cli.Usage("--replication %d: topics that hold money need %d replicas; --accept-one-replica accepts that one lost disk loses payments", m.Replication, schemas.Replicas)
			}
			return nil
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			done, err := Migrate(ctx, m.Settings, m.Log)
			if err != nil || !m.AsJSON {
				return err
			}
			return m.Show(render.Object{
				"migrated", true, "version", build.Read().Version(), "topics_created", append([]string{}, done.Created...), "settings_changed", render.Mapped(done.Changed, func(c kafka.Change) render.Object {
					return render.Object{"topic", c.Topic, "setting", c.Setting, "from", c.Old, "to", c.New}
				}),
			}, nil)
		},
	}
}

// migrateTopics creates and configures the topics and logs each change. It refuses topics
// that may lose payments.
func migrateTopics(ctx context.Context, s roles.Settings, cl *kgo.Client, log *slog.Logger) (done kafka.Migrated, err error) {
	done, err = kafka.Migrate(ctx, s.KafkaConfig(), cl)
	for _, c := range done.Changed {
		log.Info("setting of a topic changed", slog.String("topic", c.Topic), slog.String("setting", c.Setting), slog.String("from", c.Old), slog.String("to", c.New))
	}
	for _, c := range done.Kept {
		log.Warn("a topic keeps records longer than needed; unchanged, because a shorter time deletes records",
			slog.String("topic", c.Topic), slog.String("setting", c.Setting), slog.String("is", c.Old), slog.String("needed", c.New))
	}
	switch {
	case errors.Is(err, kafka.ErrPartitions):
		return done, cli.Usage("--partitions is not set: it is the number of partitions of commands, state and events, and so the most processors that can share the work. It is fixed for ever when the topics are first created. Use --partitions 64 unless you have a reason for another number")
	case errors.Is(err, kafka.ErrReplication):
		return done, fmt.Errorf("%w; add brokers until there are %d, or give --accept-one-replica to accept that one lost disk loses payments", err, schemas.Replicas)
	case err != nil:
		return done, err
	}
	log.Info("topics are ready", slog.Int("created", len(done.Created)), slog.Int("settings_changed", len(done.Changed)))
	if s.Developer() {
		return done, nil
	}
	_, err = kafka.CheckDurability(ctx, s.KafkaConfig(), cl, s.AcceptsOneReplica())
	return done, err
}

// signRows signs the rows that decide if an earlier release has written them and did not sign their tables.
func signRows(ctx context.Context, s roles.Settings, log *slog.Logger) error {
	pool, err := s.OpenPostgres(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	waits := func(keys *secret.Keys) (bool, error) {
		f, err := registry.LookAtRows(ctx, pool, keys)
		return f.NotSigned || f.Outdated, err
	}
	if waiting, err := waits(nil); err != nil || !waiting {
		return err
	}
	keys, err := s.OpenKeys()
	if err != nil {
		return fmt.Errorf("the rows of Postgres that decide are to be signed once, by whoever has the master keys: %w", err)
	}
	// Once more with the keys: a manifest that somebody else has written says nothing.
	if waiting, err := waits(keys); err != nil || !waiting {
		return err
	}
	now, _, err := s.Time(ctx, pool)
	if err != nil {
		return err
	}
	by, err := cli.Actor(ctx, pool, nil, now) // rows of people may not be signed yet
	if err != nil {
		return err
	}
	// Before the manifest says that this release has signed: after an error between the two it is known that they are proved.
	proved, err := citizens.ProveAll(ctx, pool, keys)
	if err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(proved)) {
		log.Info("rows of citizens' accounts were proved for the first time", slog.String("table", table), slog.Int("rows", proved[table]))
	}
	counts, err := registry.SignAll(ctx, pool, keys, by, now, identity.ProveDevices)
	for _, table := range slices.Sorted(maps.Keys(counts)) {
		log.Info("rows were signed for the first time", slog.String("table", table), slog.Int("rows", counts[table]))
	}
	return err
}

// Migrate brings every store up to date, and returns what it did to the topics. It may be run again at any time.
func Migrate(ctx context.Context, s roles.Settings, log *slog.Logger) (done kafka.Migrated, err error) {
	if err := s.Need("kafka", "postgres", "clickhouse", "schema-registry"); err != nil {
		return done, err
	}
	cl, err := s.KafkaConfig().Client()
	if err != nil {
		return done, err
	}
	defer cl.Close()
	if done, err = migrateTopics(ctx, s, cl, log); err != nil {
		return done, err
	}
	codec, err := s.OpenSchemas(ctx, true)
	if err != nil {
		return done, err
	}
	log.Info("schemas are registered")
	topology, err := kafka.Load(ctx, s.KafkaConfig(), cl)
	if err != nil {
		return done, err
	}
	if err := kafka.CheckKeys(ctx, s.KafkaConfig(), topology, codec); err != nil {
		return done, err
	}

	if err := postgres.Migrate(ctx, s.Postgres); err != nil {
		return done, err
	}
	log.Info("postgres is up to date")
	if err := signRows(ctx, s, log); err != nil {
		return done, err
	}

	if err := clickhouse.CreateDatabase(ctx, s.ClickHouse); err != nil {
		return done, err
	}
	conn, err := clickhouse.OpenForMigration(ctx, s.ClickHouse)
	if err != nil {
		return done, err
	}
	defer func() { _ = conn.Close() }()
	if err := reconciliation.Migrate(ctx, conn); err != nil {
		return done, err
	}
	log.Info("clickhouse is up to date")
	return done, nil
}
