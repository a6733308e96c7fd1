package roles

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"quittance/internal/clickhouse"
	"quittance/internal/clock"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/reconciliation"
	"quittance/schemas"
)

func migrate() *cobra.Command {
	s := &Settings{}
	var replication int16
	cmd := command("migrate", "Create or bring up to date topics, schemas and tables", s, func(cmd *cobra.Command, _ []string) error {
		log, err := s.logger(cmd)
		if err != nil {
			return err
		}
		if err := s.locate(); err != nil {
			return err
		}
		s.Replication = replication
		return s.migrate(cmd.Context(), log)
	})
	cmd.Flags().Int32Var(&s.Partitions, "partitions", schemas.DefaultPartitions, "partitions of commands, state and events when they are first created; fixed for ever after")
	cmd.Flags().Int16Var(&replication, "replication", 0, "replicas of new topics; 0 takes the broker's default")
	return cmd
}

// migrate brings every store up to date; each step may run again.
func (s *Settings) migrate(ctx context.Context, log *slog.Logger) error {
	if err := s.need("kafka", "postgres", "clickhouse", "schema-registry"); err != nil {
		return err
	}
	cl, err := s.kafkaConfig().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	created, err := kafka.Migrate(ctx, s.kafkaConfig(), cl)
	if err != nil {
		return err
	}
	log.Info("topics are ready", slog.Int("created", len(created)))

	reg, err := schemas.NewClient(s.SchemaRegistry)
	if err != nil {
		return err
	}
	codec, err := schemas.NewCodec(ctx, reg, true)
	if err != nil {
		return err
	}
	log.Info("schemas are registered")
	topology, err := kafka.Load(ctx, s.kafkaConfig(), cl)
	if err != nil {
		return err
	}
	if err := kafka.CheckKeys(ctx, s.kafkaConfig(), topology, codec); err != nil {
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

func seed() *cobra.Command {
	s := &Settings{}
	var asJSON bool
	cmd := command("seed FILE", "Apply a registry file: agencies, applications, keys, endpoints", s, func(cmd *cobra.Command, args []string) error {
		if err := s.locate(); err != nil {
			return err
		}
		report, err := s.seed(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if asJSON {
			return json.NewEncoder(out).Encode(report)
		}
		_, _ = fmt.Fprintf(out, "%s: %d agencies, %d applications, %d services, %d keys, %d webhook endpoints, %d clerks: %s\n", args[0],
			report.Agencies, report.Applications, report.Services, report.Keys, report.Endpoints, report.Clerks,
			map[bool]string{true: "applied", false: "nothing changed"}[report.Changed])
		for _, m := range report.Minted {
			_, _ = fmt.Fprintf(out, "new secret, shown once: %s %s\n", m.Path, m.Secret.Reveal())
		}
		for _, n := range report.Notes {
			_, _ = fmt.Fprintf(out, "note: %s\n", n)
		}
		return nil
	})
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func (s *Settings) seed(ctx context.Context, file string) (registry.Report, error) {
	if err := s.need("postgres"); err != nil {
		return registry.Report{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return registry.Report{}, fmt.Errorf("reading the registry file: %w", err)
	}
	keys, err := s.masterKeys()
	if err != nil {
		return registry.Report{}, err
	}
	pool, err := postgres.Open(ctx, s.Postgres)
	if err != nil {
		return registry.Report{}, err
	}
	defer pool.Close()
	now := clock.System().Now
	if s.Developer {
		c, err := clock.Follow(ctx, pool, slog.New(slog.DiscardHandler))
		if err != nil {
			return registry.Report{}, err
		}
		now = c.Now
	}
	report, err := registry.Seed(ctx, pool, text, registry.SeedOptions{Keys: keys, Developer: s.Developer, Now: now})
	if err != nil {
		return registry.Report{}, fmt.Errorf("%s: %w", file, err)
	}
	return report, nil
}
