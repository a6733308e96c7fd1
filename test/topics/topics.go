// Package topics gives tests a Kafka of their own with all topics.
package topics

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/test/servers"
)

// Topics are empty topics with a number of partitions, and what reads and writes them.
type Topics struct {
	Kafka    kafka.Config
	Client   *kgo.Client // writes
	Topology *kafka.Topology
	Codec    *schemas.Codec
}

// Make makes the topics of a test.
func Make(t testing.TB, partitions int32) Topics {
	t.Helper()
	out := Topics{Kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: partitions}}
	var err error
	if out.Client, err = out.Kafka.Producer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Client.Close)
	if _, err = kafka.Migrate(t.Context(), out.Kafka, out.Client); err != nil {
		t.Fatal(err)
	}
	if out.Topology, err = kafka.Load(t.Context(), out.Kafka, out.Client); err != nil {
		t.Fatal(err)
	}
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Codec, err = schemas.NewCodec(t.Context(), client, true); err != nil {
		t.Fatal(err)
	}
	return out
}
