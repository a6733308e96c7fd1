package crash_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"quittance/test/harness"

	"github.com/twmb/franz-go/pkg/kadm"
)

// hangingAfter is how long a transaction must have been seen open that its
// coordinator does not know of. By the time of its records alone nothing can be
// told: all are old when a broker comes back, and its coordinator is about to
// end them.
const hangingAfter = 20 * time.Second

// transaction is one of a producer: its epoch rises with each.
type transaction struct {
	id    int64
	epoch int16
}

// A broker that is killed between the end of a transaction and its markers, and
// starts again as the only one, now and then forgets the markers (seen on Kafka
// 4.3.1 once in seven runs): its coordinator has the transactional id as empty at
// a later epoch while every partition still has the transaction open. Nothing
// behind it is readable until an operator ends it, as kafka-transactions.sh does
// with find-hanging and abort. operate is that operator: it ends what hangs, in
// all its partitions at once, and says how many it ended.
func (w *witness) operate(ctx context.Context, say func(format string, args ...any)) (ended int) {
	since := map[transaction]time.Time{}
	for harness.Pause(ctx, 5*time.Second) {
		n, err := w.endHanging(ctx, since)
		if err == nil && n > 0 {
			say("the broker left %d transactions hanging; ended as an operator would", n)
		}
		ended += n
	}
	return ended
}

// coordinated are the transactions that their coordinators still have to end.
func (w *witness) coordinated(ctx context.Context) (map[int64]bool, error) {
	described, err := w.Admin.DescribeTransactions(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for transactions: %w", err)
	}
	out := map[int64]bool{}
	for _, d := range described {
		if d.Err != nil {
			return nil, fmt.Errorf("asking for transactions: %w", d.Err)
		}
		switch d.State {
		case "Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence":
			out[d.ProducerID] = true
		}
	}
	return out, nil
}

func (w *witness) endHanging(ctx context.Context, since map[transaction]time.Time) (int, error) {
	topics, err := w.Admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return 0, fmt.Errorf("listing topics: %w", err)
	}
	ours := kadm.TopicsSet{}
	for name, t := range topics {
		if strings.HasPrefix(name, harness.Prefix) || name == "__consumer_offsets" {
			for p := range t.Partitions {
				ours.Add(name, p)
			}
		}
	}
	found, err := w.Admin.DescribeProducers(ctx, ours)
	if err != nil {
		return 0, fmt.Errorf("asking for producers: %w", err)
	}
	// Asked after the partitions: what they have open and no coordinator knows
	// of is not one that has just ended.
	known, err := w.coordinated(ctx)
	if err != nil {
		return 0, err
	}
	hanging := map[transaction]kadm.TxnMarkers{}
	for _, t := range found {
		for _, p := range t.Partitions {
			for _, a := range p.ActiveProducers {
				if a.CurrentTxnStartOffset < 0 || known[a.ProducerID] {
					continue
				}
				k := transaction{a.ProducerID, a.ProducerEpoch}
				m, ok := hanging[k]
				if !ok {
					m = kadm.TxnMarkers{ProducerID: a.ProducerID, ProducerEpoch: a.ProducerEpoch, CoordinatorEpoch: a.CoordinatorEpoch, Topics: kadm.TopicsSet{}}
				}
				m.Topics.Add(t.Topic, p.Partition)
				hanging[k] = m
			}
		}
	}
	maps.DeleteFunc(since, func(t transaction, _ time.Time) bool { _, open := hanging[t]; return !open })
	ended := 0
	for t, m := range hanging {
		if _, seen := since[t]; !seen {
			since[t] = time.Now()
		}
		if time.Since(since[t]) < hangingAfter {
			continue
		}
		if _, err := w.Admin.WriteTxnMarkers(ctx, m); err != nil {
			return ended, fmt.Errorf("ending a hanging transaction: %w", err)
		}
		ended++
	}
	return ended, nil
}
