package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/test/servers"
)

// fakeBroker starts a broker inside the test and returns its address.
func fakeBroker(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// The pause after a kill was 10 s on every broker. It is short where the broker allows it,
// and a broker with Kafka's default does not refuse the role.
func TestGroupSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broker string
		want   time.Duration
	}{
		"Kafka's default": {fakeBroker(t), kafka.SlowSession},
		"a shorter one":   {fakeBroker(t, kfake.GroupMinSessionTimeout(time.Second)), kafka.QuickSession},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := kafka.Config{Brokers: []string{c.broker}, Prefix: servers.Prefix(t)}
			got, err := kafka.GroupSession(t.Context(), cfg, "group")
			if err != nil || got != c.want {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
	got, err := kafka.GroupSession(t.Context(), kafka.Config{Brokers: []string{"127.0.0.1:1"}}, "group")
	if err == nil || got != kafka.SlowSession {
		t.Errorf("without a broker: %v, %v", got, err)
	}
}

// The question does not disturb a group that works: its generation stays the same.
func TestGroupSessionChangesNothing(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t)}
	topic, group := cfg.Prefix+"in", cfg.Prefix+"group"
	assigned := make(chan struct{}, 10)
	cl, err := cfg.Client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	servers.CreateTopic(t, adm, topic, 1, nil)
	<-assigned
	member, generation := cl.GroupMetadata()
	for range 3 {
		if _, err := kafka.GroupSession(t.Context(), cfg, "group"); err != nil {
			t.Fatal(err)
		}
	}
	is, err := adm.DescribeGroups(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	if g := is[group]; g.State != "Stable" || len(g.Members) != 1 {
		t.Errorf("the group is %s with %d members", g.State, len(g.Members))
	}
	if m, g := cl.GroupMetadata(); m != member || g != generation {
		t.Errorf("the generation went from %d to %d", generation, g)
	}
}

// The lag counts what the group has not committed, also before its first commit and
// without any member.
func TestLag(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t)}
	topic, empty, group := cfg.Prefix+"in", cfg.Prefix+"empty", cfg.Prefix+"group"
	cl, err := cfg.Producer()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	servers.CreateTopic(t, adm, topic, 2, nil)
	servers.CreateTopic(t, adm, empty, 1, nil)
	for n := range 10 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: int32(n % 2), Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	lag := func(want int64) {
		t.Helper()
		got, err := kafka.Lag(t.Context(), adm, group, topic, empty)
		if err != nil || got[topic] != want || got[empty] != 0 || len(got) != 2 {
			t.Errorf("lag %v, %v, want %d and 0", got, err, want)
		}
	}
	lag(10)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 4})
	if err := adm.CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
	lag(6)
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 5})
	offsets.Add(kadm.Offset{Topic: topic, Partition: 1, At: 5})
	if err := adm.CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
	lag(0)
}
