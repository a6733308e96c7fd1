package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
	"quittance/internal/clickhouse"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/reconciliation"
	"quittance/schemas"
)

func migrate() Command {
	return Command{
		Use: "migrate", Short: "Create or bring up to date topics, schemas and tables", Examples: []string{"migrate --replication 3"},
		Flags: func(f *pflag.FlagSet, m *Meta) {
			f.Int32Var(&m.Partitions, "partitions", schemas.DefaultPartitions, "partitions of commands, state and events; fixed when the topics are first created")
			f.Int16Var(&m.Replication, "replication", 0, "replicas of new topics; 0 takes the broker's default")
		},
		Run: func(ctx context.Context, m *Meta) error { return Migrate(ctx, m.Settings, m.Log) },
	}
}

// Migrate brings every store up to date. It may be run again at any time.
func Migrate(ctx context.Context, s roles.Settings, log *slog.Logger) error {
	if err := s.Need("kafka", "postgres", "clickhouse", "schema-registry"); err != nil {
		return err
	}
	cl, err := s.KafkaConfig().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	created, err := kafka.Migrate(ctx, s.KafkaConfig(), cl)
	if err != nil {
		return err
	}
	log.Info("topics are ready", slog.Int("created", len(created)))

	codec, err := s.OpenSchemas(ctx, true)
	if err != nil {
		return err
	}
	log.Info("schemas are registered")
	topology, err := kafka.Load(ctx, s.KafkaConfig(), cl)
	if err != nil {
		return err
	}
	if err := kafka.CheckKeys(ctx, s.KafkaConfig(), topology, codec); err != nil {
		return err
	}

	if err := postgres.Migrate(ctx, s.Postgres); err != nil {
		return err
	}
	log.Info("postgres is up to date")

	if err := clickhouse.CreateDatabase(ctx, s.ClickHouse); err != nil {
		return err
	}
	conn, err := clickhouse.Open(ctx, s.ClickHouse)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := reconciliation.Migrate(ctx, conn); err != nil {
		return err
	}
	log.Info("clickhouse is up to date")
	return nil
}
