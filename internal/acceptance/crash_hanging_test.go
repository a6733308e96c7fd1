package acceptance_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// hangingAfter is how long a transaction may be open: processors' last 3 s, and
// the coordinator aborts what is older.
const hangingAfter = 20 * time.Second

// A broker that is killed between the end of a transaction and its markers, and
// starts again as the only one, now and then forgets the markers (seen on Kafka
// 4.3.1 once in seven runs): its coordinator has the transactional id as empty at
// a later epoch while every partition still has the transaction open. Nothing
// behind it is readable until an operator ends it, as kafka-transactions.sh does
// with find-hanging and abort. operate is that operator: it ends what hangs, in
// all its partitions at once, and says how many it ended.
func (w *witness) operate(ctx context.Context, say func(format string, args ...any)) (ended int) {
	for pause(ctx, 5*time.Second) {
		n, err := w.endHanging(ctx)
		if err == nil && n > 0 {
			say("the broker left %d transactions hanging; ended as an operator would", n)
		}
		ended += n
	}
	return ended
}

func (w *witness) endHanging(ctx context.Context) (int, error) {
	topics, err := w.admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return 0, fmt.Errorf("listing topics: %w", err)
	}
	ours := kadm.TopicsSet{}
	for name, t := range topics {
		if strings.HasPrefix(name, prefix) || name == "__consumer_offsets" {
			for p := range t.Partitions {
				ours.Add(name, p)
			}
		}
	}
	found, err := w.admin.DescribeProducers(ctx, ours)
	if err != nil {
		return 0, fmt.Errorf("asking for producers: %w", err)
	}
	type transaction struct {
		id    int64
		epoch int16
	}
	hanging := map[transaction]kadm.TxnMarkers{}
	for _, t := range found {
		for _, p := range t.Partitions {
			for _, a := range p.ActiveProducers {
				if a.CurrentTxnStartOffset < 0 || time.Since(time.UnixMilli(a.LastTimestamp)) < hangingAfter {
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
	for _, m := range hanging {
		if _, err := w.admin.WriteTxnMarkers(ctx, m); err != nil {
			return 0, fmt.Errorf("ending a hanging transaction: %w", err)
		}
	}
	return len(hanging), nil
}
