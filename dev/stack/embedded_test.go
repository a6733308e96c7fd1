package stack_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/stack"
)

func TestEmbeddedBroker(t *testing.T) {
	t.Parallel()
	cfg := stack.EmbeddedBrokerConfig{Dir: t.TempDir(), Port: freePort(t), Log: logger(t)}
	b, err := stack.StartEmbeddedBroker(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, b.Stop)
	client := newClient(t, b.Addr(), kgo.RecordRetries(1), kgo.UnknownTopicRetries(1))
	createTopic(t, client, "events")
	abortThenCommit(t, b.Addr(), "events", "tx")
	groupCommit(t, b.Addr(), "events", "group", 2)
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "missing"}).FirstErr(); err == nil {
		t.Error("a write created a topic")
	}

	// After an orderly stop, the same folder and port have all data.
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := stack.StartEmbeddedBroker(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, again.Stop)
	want := []string{"tx committed 0", "tx committed 1"}
	if got := readAll(t, again.Addr(), "events", 2); !slices.Equal(got, want) {
		t.Errorf("after a restart: %q, want %q", got, want)
	}
}
