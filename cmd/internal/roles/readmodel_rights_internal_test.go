package roles

import (
	"testing"

	"quittance/internal/kafka"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/test/servers"
)

// The login of match reads all tables that the night compares, and no more is needed for it. That of tidy, which reads none of
// them, is refused, so that the comparison is known to ask for them.
func TestMatchComparesTheReadModel(t *testing.T) {
	t.Parallel()
	dsn := granted(t)
	k := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 1}
	cl, err := k.Producer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if _, err := kafka.Migrate(t.Context(), k, cl); err != nil {
		t.Fatal(err)
	}
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), client, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, may := range map[string]bool{"match": true, ClientOperator: true, "tidy": false} {
		_, err := sessions.NewStore(open(t, servers.Login(t, dsn, name))).Verify(t.Context(), sessions.VerifyConfig{Kafka: k, Codec: codec})
		if (err == nil) != may {
			t.Errorf("%s: %v", name, err)
		}
	}
}
