package roles

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"quittance/internal/cases"
	"quittance/internal/commands"
	"quittance/internal/comparison"
	"quittance/internal/deliveries"
	"quittance/internal/disbursements"
	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/reconciliation/audit"
	"quittance/reconciliation/matcher"
	"quittance/reconciliation/verify"
	"quittance/schemas"
	sinkcases "quittance/sinks/cases"
	sinkjournal "quittance/sinks/journal"
)

func matchRole() Role {
	return Role{
		Kind: KindSink, Name: "match", Short: "matches payments with lines of statements, and tells of citizens' transfers",
		Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry, NeedClickHouse}, Keys: slices.Concat(seals(registry.LabelReports), uses(secret.PurposeSign, []string{journal.LabelCloses}), verifies(secret.LabelDecisions, secret.LabelOfficeDecisions), outcomeKeys(), macs(secret.LabelCaseEvents)),
		Access: Access{
			Reads:  append(append(journal.Topics(), schemas.TopicReplies), sinkcases.PoisonTopics()...),
			Writes: []string{schemas.TopicReconciliation, schemas.TopicCommands, schemas.Disbursement.Commands}, Describes: []string{sinkjournal.Group}, Transacts: matcher.TransactionalIDs,
		},
		Databases: Databases{
			Rows: rows(registryRead, sessionsRead, may("select", "cases", "decisions", "statement_exits", "statement_imports", "statement_withdrawals"),
				may("select", "case_positions", "cashin_reversals", "deliveries", "delivery_positions", "disbursement_agencies", "disbursement_batches", "disbursement_lines", "disbursement_positions", "disbursement_steps", "erp_confirmations")), // what the night compares
			Journal: append(slices.Clone(journalRead), mayInJournal("SELECT", "agencies", "reconciliation_days")...), // what a close says of the reports
		},
		MemoryLimit: matchMemory, Run: (*Base).match,
	}
}

// matchMemory is the size of the heap near which the sink match collects garbage more often, without
// what it keeps for later runs. A day of a million lines needs about a gigabyte, and twice that without
// a limit. A larger day takes what it needs.
const matchMemory = 1300 << 20

// keepMatch raises the limit of the sink match by what it keeps for later runs, unless GOMEMLIMIT sets the
// limit or the process has other roles.
func keepMatch(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" && debug.SetMemoryLimit(-1) != math.MaxInt64 {
		debug.SetMemoryLimit(min(matchMemory+bytes, containerMemory()))
	}
}

func (b *Base) match() error {
	conn, err := b.openJournal("match")
	if err != nil {
		return err
	}
	outcomes, err := AllOutcomes(b.Keys, false)
	if err != nil {
		return err
	}
	believed, err := CaseEvents(b.KafkaConfig(), b.Keys)
	if err != nil {
		return err
	}
	words, err := commands.NewSigner(b.Keys, matchRole().Name)
	if err != nil {
		return err
	}
	credits := matcher.Credits{HonoursLate: b.configuration().HonoursLate}
	if credits.Sessions, err = b.sessionReader(); err != nil {
		return err
	}
	if credits.Processor, err = b.commands(matchRole()); err != nil {
		return err
	}
	if err := add(b, "verification", verify.New, verify.Config{
		Kafka: b.KafkaConfig(), Decoder: journal.Decoder{Codec: b.Codec, Prefix: b.KafkaConfig().Prefix, Outcomes: outcomes, Cases: believed}, Store: journal.NewStore(conn), Everything: b.Options.Clock != nil,
		Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	}); err != nil {
		return err
	}
	if err := b.verifyReadModel(); err != nil {
		return err
	}
	if err := b.verifyCloses(conn); err != nil {
		return err
	}
	return add(b, "match", matcher.New, matcher.Config{
		Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, ClickHouse: conn, Pool: b.Pool,
		Registry: b.Registry, JournalGroup: sinkjournal.Group, Keys: b.Keys, Verify: b.Keys, Words: words, Credits: credits, Now: b.Now, Log: b.Log, Metrics: b.Metrics, Kept: keepMatch,
	})
}

// verifyReadModel compares the read model, cases and deliveries with Kafka each night. This role writes none of them.
func (b *Base) verifyReadModel() error {
	others, err := Compared(comparison.Config{Kafka: b.KafkaConfig(), Pool: b.Pool}, b.Codec, b.Keys, b.Now)
	if err != nil {
		return err
	}
	return add(b, "verification of the read model", sessions.NewNight, sessions.NightConfig{
		Store: sessions.NewStore(b.Pool), Verify: sessions.VerifyConfig{Kafka: b.KafkaConfig(), Codec: b.Codec, AllRecords: b.Options.Clock != nil},
		Others: others, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// Compared returns the comparisons of tables beside the read model with Kafka: those of cases, of deliveries and of batches. keys prove
// what is believed in the topics. now is the service's time.
func Compared(cfg comparison.Config, codec *schemas.Codec, keys *secret.Keys, now func() time.Time) ([]Compare, error) {
	outcomes, err := AllOutcomes(keys, false)
	if err != nil {
		return nil, err
	}
	believed, err := CaseEvents(cfg.Kafka, keys)
	if err != nil {
		return nil, err
	}
	all := []Compare{func(ctx context.Context) (comparison.Result, error) {
		return cases.Comparison(codec, believed, sinkcases.PoisonTopics()).Verify(ctx, cfg)
	}, func(ctx context.Context) (comparison.Result, error) {
		return deliveries.NewStore(cfg.Pool, DeliveryKinds(nil)).Comparison(codec, outcomes, now()).Verify(ctx, cfg)
	}, func(ctx context.Context) (comparison.Result, error) {
		return disbursements.NewStore(cfg.Pool, codec).Comparison().Verify(ctx, cfg)
	}}
	return all, nil
}

// Compare compares a table with Kafka.
type Compare = func(ctx context.Context) (comparison.Result, error)

// verifyCloses verifies the closes of periods each night.
func (b *Base) verifyCloses(conn clickhouse.Conn) error {
	believed, err := CaseEvents(b.KafkaConfig(), b.Keys)
	if err != nil {
		return err
	}
	keys := b.Keys.PublicKeys(journal.LabelCloses)
	if b.CloseKeys != "" {
		text, err := os.ReadFile(b.CloseKeys)
		if err != nil {
			return fmt.Errorf("--close-keys: %w", err)
		}
		former, err := audit.ParseKeys(text)
		if err != nil {
			return fmt.Errorf("--close-keys %s: %w", b.CloseKeys, err)
		}
		keys = append(keys, former...)
	}
	return add(b, "closes of periods", audit.NewNight, audit.NightConfig{
		Source:   audit.Source{Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Cases: believed},
		Agencies: b.Registry.Agencies, Accounts: b.Registry.StatementAccounts, Keys: keys,
		Reports: func(ctx context.Context, c *journal.Close) ([]string, error) {
			if err := journal.NewStore(conn).Whole(ctx, nil); err != nil {
				return nil, err // what a restored ClickHouse lacks is no difference
			}
			return report.OfClose(c).Totals(ctx, conn)
		},
		Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}
