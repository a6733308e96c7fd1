package kafka_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/test/registries"
	"quittance/test/servers"
)

// A range by time contains the committed records, in order, and no record of an aborted
// transaction, for any start and end of the range.
func TestBetweenAndRead(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t)}
	topic := cfg.Prefix + "range"
	cl, err := cfg.Client(kgo.TransactionalID(cfg.Prefix+"range"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	servers.CreateTopic(t, adm, topic, 3, nil)

	var begun []time.Time
	at := func(i int) time.Time {
		if i < len(begun) {
			return begun[i]
		}
		return begun[len(begun)-1].Add(time.Hour)
	}
	for i := range 20 { // two in each of two partitions; every third is aborted
		time.Sleep(3 * time.Millisecond) // records carry milliseconds
		begun = append(begun, time.Now().Truncate(time.Millisecond).Add(time.Millisecond))
		time.Sleep(3 * time.Millisecond)
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for p := range int32(2) {
			for n := range 2 {
				r := &kgo.Record{Topic: topic, Partition: p, Value: fmt.Appendf(nil, "%02d.%d", i, n)}
				if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cl.EndTransaction(t.Context(), kgo.TransactionEndTry(i%3 != 0)); err != nil {
			t.Fatal(err)
		}
	}

	// The broker ends a transaction before it has written the markers that make it visible.
	registries.Within(t, 10*time.Second, "the last transaction is visible", func() bool {
		stable, err := adm.ListCommittedOffsets(t.Context(), topic)
		end, endErr := adm.ListEndOffsets(t.Context(), topic)
		visible := err == nil && endErr == nil
		for p := range int32(2) {
			s, _ := stable.Lookup(topic, p)
			e, _ := end.Lookup(topic, p)
			visible = visible && s.Offset == e.Offset
		}
		return visible
	})
	for _, c := range []struct{ from, to int }{{0, 20}, {0, 1}, {3, 4}, {1, 2}, {2, 10}, {18, 30}, {25, 30}, {5, 5}} {
		spans, err := kafka.Between(t.Context(), adm, topic, at(c.from), at(c.to))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := c.from; i < min(c.to, 20); i++ {
			if i%3 != 0 {
				want = append(want, fmt.Sprintf("%02d.0", i), fmt.Sprintf("%02d.1", i))
			}
		}
		got := map[int32][]string{}
		err = cfg.Read(t.Context(), topic, spans, nil, func(r *kgo.Record) (bool, error) {
			got[r.Partition] = append(got[r.Partition], string(r.Value))
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for p := range int32(2) {
			if !slices.Equal(got[p], want) {
				t.Errorf("transactions %d to %d, partition %d: %v, want %v", c.from, c.to, p, got[p], want)
			}
		}
	}

	// Read the first record of each partition only.
	spans, err := kafka.Between(t.Context(), adm, topic, at(3), at(20))
	if err != nil {
		t.Fatal(err)
	}
	var first []string
	if err := cfg.Read(t.Context(), topic, spans, nil, func(r *kgo.Record) (bool, error) {
		first = append(first, string(r.Value))
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first, []string{"04.0", "04.0"}) {
		t.Errorf("the first of each partition: %v", first)
	}
}
