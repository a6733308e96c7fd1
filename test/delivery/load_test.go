package delivery_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/bench/measure"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/harness"
)

// bulletin is an event that integrators are to be told of. Its time is fixed
// beforehand (an open loop), and latencies count from it.
type bulletin struct {
	number int
	to     *subscriber
	at     time.Time
	body   []byte
}

// steadily makes bulletins at a rate, from one time for a while, to each of the
// subscribers in turn.
func (a *arena) steadily(rate float64, from time.Time, lasting time.Duration, to ...*subscriber) []*bulletin {
	out := make([]*bulletin, int(rate*lasting.Seconds()))
	for i := range out {
		out[i] = a.bulletin(from.Add(time.Duration(float64(i)/rate*float64(time.Second))), to[i%len(to)])
	}
	return out
}

func (a *arena) bulletin(at time.Time, to *subscriber) *bulletin {
	n := int(a.numbers.Add(1))
	return &bulletin{number: n, to: to, at: at, body: fmt.Appendf(nil, `{"event_id":%q,"event":%q,"sequence":2,"application_id":%q,"filler":%q}`,
		bulletinID(n), checkout.EventCompleted, to.id, strings.Repeat("0123456789", 34))}
}

// write stands for the processors: it writes the bulletins in transactions, each
// when its time has come, whatever became of those before.
func (a *arena) write(ctx context.Context, bulletins []*bulletin) error {
	n, err := a.writeUntil(ctx, bulletins)
	if err == nil && n < len(bulletins) {
		err = fmt.Errorf("writing bulletins: %w", ctx.Err())
	}
	return err
}

// writeUntil writes bulletins until ctx ends and returns how many it has
// committed, the first ones.
func (a *arena) writeUntil(ctx context.Context, bulletins []*bulletin) (int, error) {
	const atOnce = 500
	cl, err := kgo.NewClient(kgo.SeedBrokers(a.stack.Kafka.Addr()), kgo.TransactionalID(fmt.Sprintf("%sbulletins-%d", harness.Prefix, a.writers.Add(1))),
		kgo.ConcurrentTransactionsBackoff(time.Millisecond), kgo.MetadataMinAge(20*time.Millisecond), kgo.ProducerLinger(0))
	if err != nil {
		return 0, fmt.Errorf("writing bulletins: %w", err)
	}
	defer cl.Close()
	n := 0
	for n < len(bulletins) && measure.Until(ctx, bulletins[n].at) {
		now, due := time.Now(), n+1
		for due < min(len(bulletins), n+atOnce) && !bulletins[due].at.After(now) {
			due++
		}
		// What has begun is brought to its end, so that it is known what was committed.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), harness.StartWithin)
		err := a.transact(ending, cl, bulletins[n:due])
		cancel()
		if err != nil {
			return n, fmt.Errorf("writing bulletins: %w", err)
		}
		n = due
	}
	return n, nil
}

func (a *arena) transact(ctx context.Context, cl *kgo.Client, bulletins []*bulletin) error {
	occurred := a.now()
	records := make([]*kgo.Record, len(bulletins))
	for i, b := range bulletins {
		value, err := a.topics.Codec.Encode(&record.Notification{
			EventID: bulletinID(b.number), Event: string(checkout.EventCompleted), ApplicationID: b.to.id, TenantID: deliveryTenant,
			SessionID: "chs_delivery", OccurredAt: occurred, Body: b.body,
		})
		if err != nil {
			return err
		}
		records[i] = &kgo.Record{Topic: harness.Prefix + schemas.TopicWebhooks, Key: []byte(b.to.id), Value: value}
	}
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	return cl.EndTransaction(ctx, kgo.TryCommit)
}
