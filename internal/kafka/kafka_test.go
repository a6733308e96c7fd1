package kafka_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/test/await"
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
	done, err := kafka.Migrate(ctx, cfg, cl)
	if err != nil || len(done.Created) != len(schemas.Topics()) || len(done.Changed)+len(done.Kept) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	cfg.Partitions = 12 // would change the partition of every agency
	if done, err = kafka.Migrate(ctx, cfg, cl); !errors.Is(err, kafka.ErrTopics) || !strings.Contains(err.Error(), "has 3 partitions and cannot have 12") {
		t.Fatalf("with another number of partitions: %+v, %v", done, err)
	}
	cfg.Partitions, cfg.PartitionsRequired = 0, true // existing topics keep their partitions
	if done, err = kafka.Migrate(ctx, cfg, cl); err != nil || len(done.Created)+len(done.Changed)+len(done.Kept) != 0 {
		t.Fatalf("again: %+v, %v", done, err)
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

	// An operator alters a topic whose partition numbers are part of every id.
	if _, err := adm.CreatePartitions(ctx, 1, topology.Name(schemas.TopicCommands)); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the broker reports the new partition", func() bool {
		_, err = kafka.Load(ctx, cfg, cl)
		return err != nil
	})
	if !errors.Is(err, kafka.ErrTopics) || !strings.Contains(err.Error(), "4 partitions") {
		t.Errorf("commands with another partition count: %v", err)
	}
	if _, err := kafka.Migrate(ctx, cfg, cl); !errors.Is(err, kafka.ErrTopics) {
		t.Errorf("migrating it: %v", err)
	}
}
