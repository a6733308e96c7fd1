package kafka_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/test/servers"
)

// The first release keyed its records by the application. This release keys them by the
// agency. It would look for the state in other partitions, and decide as if there were
// none.
func TestTopicsOfAnEarlierReleaseAreRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	registry, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(ctx, registry, true)
	if err != nil {
		t.Fatal(err)
	}
	orphan := checkout.Event{ID: "evt_0", Type: checkout.EventCollectionOrphaned, SessionID: "chs_gone"}
	created := checkout.Event{
		ID: "evt_1", Type: checkout.EventCreated, SessionID: "chs_1", Sequence: 1,
		Session: checkout.Session{ID: "chs_1", ApplicationID: "application", TenantID: "agency", Status: checkout.StatusOpen, Sequence: 1},
	}
	value := func(e checkout.Event) []byte {
		v, err := codec.Encode(mapping.FromEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, c := range map[string]struct {
		key     string // of the event that has a session; none is written when empty
		refused bool
	}{
		"an empty installation": {},
		"by the agency":         {key: "agency"},
		"by the application":    {key: "application", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Partitions: 2}
			cl, err := cfg.Producer()
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			if _, err := kafka.Migrate(ctx, cfg, cl); err != nil {
				t.Fatal(err)
			}
			topology, err := kafka.Load(ctx, cfg, cl)
			if err != nil {
				t.Fatal(err)
			}
			write := func(key string, v []byte) {
				r := &kgo.Record{Topic: topology.Name(schemas.TopicEvents), Partition: 1, Key: []byte(key), Value: v}
				if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			write("", []byte("not a record"))
			write("", value(orphan))
			if c.key != "" {
				write(c.key, value(created))
			}
			err = kafka.CheckKeys(ctx, cfg, topology, codec)
			if !c.refused {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, words := range []string{"application_id", "tenant_id", "--topic-prefix", "quittance migrate", "data folder"} {
				if !errors.Is(err, kafka.ErrTopics) || !strings.Contains(err.Error(), words) {
					t.Errorf("the refusal %q does not mention %q", err, words)
				}
			}
		})
	}
}
