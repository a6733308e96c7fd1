package kafka_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/test/servers"
)

// Payments were lost because the broker's default deleted records of a topic that has no
// retention of its own, or because a broker without the last records became the leader.
func TestTopicsKeepPayments(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 1}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Migrate(ctx, cfg, cl); err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(cl)
	value := func(topic, key string) string {
		t.Helper()
		configs, err := adm.DescribeTopicConfigs(ctx, cfg.Prefix+topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range configs[0].Configs {
			if c.Key == key {
				return c.MaybeValue()
			}
		}
		return ""
	}
	for topic, days := range map[string]string{
		schemas.TopicEvents: "-1", schemas.TopicCases: "-1", schemas.TopicConfirmations: "-1", schemas.TopicCommands: "2592000000",
		schemas.TopicWebhooks: "7776000000", schemas.TopicAttempts: "7776000000", schemas.TopicCalls: "7776000000", schemas.TopicReplies: "3600000",
		schemas.TopicWebhooksDeliveries: "604800000", schemas.TopicERPDeliveries: "604800000", schemas.TopicCollections: "604800000",
	} {
		if is := value(topic, "retention.ms"); is != days {
			t.Errorf("%s keeps records %s ms, want %s", topic, is, days)
		}
	}
	for _, topic := range schemas.Topics() {
		policy := "delete"
		if topic.Compacted {
			policy = "compact"
		}
		for key, want := range map[string]string{"cleanup.policy": policy, "retention.bytes": "-1", "unclean.leader.election.enable": "false"} {
			if is := value(topic.Name, key); is != want {
				t.Errorf("%s: %s is %q, want %q", topic.Name, key, is, want)
			}
		}
	}

	// An operator or a broker's default has other settings. Migrate mends those that keep
	// less, and leaves a longer retention.
	set := func(topic string, settings ...string) {
		t.Helper()
		var alter []kadm.AlterConfig
		for i := 0; i < len(settings); i += 2 {
			alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: settings[i], Value: &settings[i+1]})
		}
		answers, err := adm.AlterTopicConfigs(ctx, alter, cfg.Prefix+topic)
		if err != nil || answers[0].Err != nil {
			t.Fatal(err, answers)
		}
		for i := 0; i < len(settings); i += 2 {
			for value(topic, settings[i]) != settings[i+1] { // the broker applies it after a moment
				if ctx.Err() != nil {
					t.Fatal(ctx.Err())
				}
			}
		}
	}
	set(schemas.TopicConfirmations, "retention.ms", "604800000", "retention.bytes", "1000000")
	set(schemas.TopicEvents, "unclean.leader.election.enable", "true")
	set(schemas.TopicCommands, "retention.ms", "-1")
	_, err = kafka.CheckDurability(ctx, cfg, cl, true)
	for _, want := range []string{"erp.confirmations (604800000, not -1)", "wrong retention.bytes", "wrong unclean.leader.election.enable", "quittance migrate"} {
		if !errors.Is(err, kafka.ErrUnsafe) || !strings.Contains(err.Error(), want) {
			t.Errorf("the check of altered topics says %v, want %q", err, want)
		}
	}
	done, err := kafka.Migrate(ctx, cfg, cl)
	if err != nil || len(done.Changed) != 3 || len(done.Kept) != 1 || done.Kept[0].Topic != cfg.Prefix+schemas.TopicCommands {
		t.Errorf("%+v, %v", done, err)
	}
	if is := value(schemas.TopicCommands, "retention.ms"); is != "-1" {
		t.Errorf("migrate shortened a retention to %s", is)
	}

	// This broker is the only one of its cluster.
	if is, err := kafka.CheckDurability(ctx, cfg, cl, true); err != nil || is.Replicas != 1 || is.InSync != 1 {
		t.Errorf("one replica that is accepted: %+v, %v", is, err)
	}
	if _, err := kafka.CheckDurability(ctx, cfg, cl, false); !errors.Is(err, kafka.ErrUnsafe) || !strings.Contains(err.Error(), "fewer than 3 replicas") || !strings.Contains(err.Error(), "--accept-one-replica") {
		t.Errorf("one replica: %v", err)
	}
}

// Nothing is created when the number of partitions is unknown or the cluster is too small.
func TestMigrateRefusesAnUnsafeInstallation(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), PartitionsRequired: true, Replication: schemas.Replicas}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Migrate(t.Context(), cfg, cl); !errors.Is(err, kafka.ErrPartitions) {
		t.Errorf("without a number of partitions: %v", err)
	}
	cfg.Partitions = 2
	if done, err := kafka.Migrate(t.Context(), cfg, cl); !errors.Is(err, kafka.ErrReplication) || len(done.Created) != 0 {
		t.Errorf("three replicas on one broker: %+v, %v", done, err)
	}
}
