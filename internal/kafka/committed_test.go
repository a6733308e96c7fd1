package kafka_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/test/servers"
)

// An installation at rest warned each minute that the broker does not host a topic: the broker names topics of a group by
// their ids, and the client forgets the name of one when another request of it is answered at that moment.
func TestCommittedBesideOtherRequests(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t)}
	cl, err := cfg.Client(kgo.MetadataMinAge(200 * time.Millisecond)) // a name that is older may be forgotten
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	adm := kadm.NewClient(cl)
	topics := map[string]int32{}
	var at kadm.Offsets
	for n := range 8 {
		name := fmt.Sprint("read", n)
		topics[name] = 1
		at.Add(kadm.Offset{Topic: cfg.Prefix + name, At: 7, LeaderEpoch: -1})
	}
	servers.CreateTopics(t, adm, cfg.Prefix, topics)
	group := cfg.Prefix + "readers"
	if err := adm.CommitAllOffsets(t.Context(), group, at); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for name := range topics {
		others.Go(func() {
			for ctx.Err() == nil {
				_, _ = kafka.Bounds(ctx, adm, cfg.Prefix+name)
			}
		})
	}
	for range 2000 {
		committed, err := kafka.Committed(ctx, adm, group)
		if o, ok := committed.Lookup(cfg.Prefix+"read3", 0); err != nil || !ok || o.At != 7 {
			t.Errorf("the group has committed %+v, %v", o, err)
			break
		}
	}
	stop()
	others.Wait()
}
