package kafka_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/test/servers"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Partitions: 3}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Load(ctx, cfg, cl); !errors.Is(err, kafka.ErrTopics) || !strings.Contains(err.Error(), "quittance migrate") {
		t.Errorf("an empty broker: %v", err)
	}
	created, err := kafka.Migrate(ctx, cfg, cl)
	if err != nil || len(created) != len(schemas.Topics()) {
		t.Fatalf("created %v, %v", created, err)
	}
	cfg.Partitions = 12 // existing topics keep their partitions
	if created, err = kafka.Migrate(ctx, cfg, cl); err != nil || len(created) != 0 {
		t.Fatalf("again: created %v, %v", created, err)
	}
	topology, err := kafka.Load(ctx, cfg, cl)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{schemas.TopicCommands, schemas.TopicState, schemas.TopicEvents} {
		if n := topology.Count(topic); n != 3 {
			t.Errorf("%s has %d partitions", topic, n)
		}
	}
	if a, b := topology.Partition(schemas.TopicCommands, "x"), topology.Partition(schemas.TopicEvents, "x"); a != b {
		t.Errorf("commands of x lie in %d, events in %d", a, b)
	}

	adm := kadm.NewClient(cl)
	configs, err := adm.DescribeTopicConfigs(ctx, topology.Name(schemas.TopicState), topology.Name(schemas.TopicEvents))
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string][2]string{schemas.TopicState: {"cleanup.policy", "compact"}, schemas.TopicEvents: {"retention.ms", "-1"}} {
		resource, err := configs.On(topology.Name(topic), nil)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, c := range resource.Configs {
			if c.Key == want[0] {
				found = c.MaybeValue()
			}
		}
		if found != want[1] {
			t.Errorf("%s: %s is %q, want %q", topic, want[0], found, want[1])
		}
	}

	// An operator alters a topic whose partition numbers are part of every id.
	if _, err := adm.CreatePartitions(ctx, 1, topology.Name(schemas.TopicCommands)); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
		if _, err = kafka.Load(ctx, cfg, cl); err != nil {
			break // the broker reports the new partition after a moment
		}
	}
	if !errors.Is(err, kafka.ErrTopics) || !strings.Contains(err.Error(), "4 partitions") {
		t.Errorf("commands with another partition count: %v", err)
	}
	if _, err := kafka.Migrate(ctx, cfg, cl); !errors.Is(err, kafka.ErrTopics) {
		t.Errorf("migrating it: %v", err)
	}
}
