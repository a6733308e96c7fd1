package stack_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/stack"
	"quittance/test/servers"
)

// freePort returns a port of the loopback interface.
func freePort(t *testing.T) int {
	t.Helper()
	ports, err := stack.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return ports[0]
}

// stopAtEnd stops a part when the test ends, unless it was stopped before.
func stopAtEnd(t *testing.T, stop func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Error(err)
		}
	})
}

func newClient(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.MetadataMinAge(20 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createTopic(t *testing.T, client *kgo.Client, topic string) {
	t.Helper()
	servers.CreateTopic(t, kadm.NewClient(client), topic, 1, nil)
}

// readAll reads the committed records of a topic's only partition from the
// start, until it has want of them.
func readAll(t *testing.T, addr, topic string, want int) []string {
	t.Helper()
	client := newClient(t, addr, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// The broker allows the session timeout of the roles, which is shorter than its default.
		kgo.SessionTimeout(2*time.Second), kgo.HeartbeatInterval(500*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var values []string
	for len(values) < want {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("reading %s: %v; so far %q", topic, err, values)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

// abortThenCommit runs one transaction that is aborted and one that is
// committed, which consumes nothing and writes two records.
func abortThenCommit(t *testing.T, addr, topic, id string) {
	t.Helper()
	client := newClient(t, addr, kgo.TransactionalID(id), kgo.DefaultProduceTopic(topic))
	for _, tx := range []struct {
		commit kgo.TransactionEndTry
		name   string
	}{{kgo.TryAbort, "aborted"}, {kgo.TryCommit, "committed"}} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			value := fmt.Sprintf("%s %s %d", id, tx.name, i)
			if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte(value)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.EndTransaction(t.Context(), tx.commit); err != nil {
			t.Fatal(err)
		}
	}
}

// groupCommit joins a group, reads the present records and commits, so that a later member
// of the group does not get them again.
func groupCommit(t *testing.T, addr, topic, group string, want int) {
	t.Helper()
	client := newClient(t, addr, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// The broker allows the session timeout of the roles, which is shorter than its default.
		kgo.SessionTimeout(2*time.Second), kgo.HeartbeatInterval(500*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for got := 0; got < want; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("group %s: %v", group, err)
		}
		got += fetches.NumRecords()
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := offsets.Lookup(topic, 0); !ok || o.At == 0 {
		t.Errorf("group %s committed nothing", group)
	}
	client.LeaveGroup()
}

var logger = servers.Logger
