package intake

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/test/servers"
)

// In one of some 8,000 imports on a busy machine the broker had confirmed a transaction whose records no reader saw: the lines of an accepted
// file would have been in no report. So an import looks for its last record before it is accepted.
func TestConfirmedButNotWritten(t *testing.T) {
	t.Parallel()
	topics := slices.DeleteFunc(schemas.Topics(), func(t schemas.Topic) bool { return t.Name != schemas.TopicStatements })
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Topics: topics}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	servers.CreateTopic(t, kadm.NewClient(cl), cfg.Prefix+schemas.TopicStatements, 1, nil)
	topology, err := kafka.Load(t.Context(), cfg, cl)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{cfg: Config{Kafka: cfg, Topology: topology}, patience: patience}
	l := s.ledgerOf(registry.StatementAccountKey{AgencyID: "a", Code: "mtn"}, time.Now())
	w, err := l.fence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.client.Close()
	produce := func() *kgo.Record {
		t.Helper()
		if err := w.client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: w.topic, Partition: w.partition, Value: []byte("v")}
		if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	lost := produce()
	if err := w.client.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	w.last = produce()
	if err := l.commit(t.Context(), w); err != nil {
		t.Errorf("a committed record: %v", err)
	}
	produce()
	w.last = lost
	if err := l.commit(t.Context(), w); !errors.Is(err, errNotWritten) {
		t.Errorf("an aborted record: %v", err)
	}
}
