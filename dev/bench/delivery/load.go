package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/checkout"
	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// notification is an event for the endpoints of a subscriber. Its time is fixed
// beforehand (an open loop), and latencies count from it.
type notification struct {
	number int
	to     *subscriber
	at     time.Time
	body   []byte
}

// steadily makes notifications at a rate per second, from a time on and for a while, to
// each of the subscribers in turn.
func (a *Arena) steadily(rate float64, from time.Time, lasting time.Duration, to ...*subscriber) []*notification {
	out := make([]*notification, int(rate*lasting.Seconds()))
	for i := range out {
		out[i] = a.notification(from.Add(time.Duration(float64(i)/rate*float64(time.Second))), to[i%len(to)])
	}
	return out
}

func (a *Arena) notification(at time.Time, to *subscriber) *notification {
	n := int(a.numbers.Add(1))
	return &notification{number: n, to: to, at: at, body: fmt.Appendf(nil, `{"event_id":%q,"event":%q,"sequence":2,"application_id":%q,"filler":%q}`,
		notificationID(n), checkout.EventCompleted, to.id, strings.Repeat("0123456789", 34))}
}

// load writes notifications and calls do meanwhile. It returns when both are done.
func (a *Arena) load(ctx context.Context, all []*notification, do func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.write(ctx, all) })
	g.Go(func() error { return do(ctx) })
	return g.Wait()
}

// write writes all notifications, each when its time has come.
func (a *Arena) write(ctx context.Context, all []*notification) error {
	n, err := a.writeUntil(ctx, all)
	if err == nil && n < len(all) {
		err = fmt.Errorf("writing notifications: %w", ctx.Err())
	}
	return err
}

// writeUntil writes notifications, each when its time has come, until ctx ends. It
// returns how many it has committed: the first ones. It writes them in transactions, as
// the processors do.
func (a *Arena) writeUntil(ctx context.Context, all []*notification) (int, error) {
	const atOnce = 500
	cl, err := kgo.NewClient(kgo.SeedBrokers(a.in.Broker), kgo.TransactionalID(fmt.Sprintf("%snotifications-%d", a.in.Prefix, a.writers.Add(1))),
		kgo.ConcurrentTransactionsBackoff(time.Millisecond), kgo.MetadataMinAge(20*time.Millisecond), kgo.ProducerLinger(0))
	if err != nil {
		return 0, fmt.Errorf("writing notifications: %w", err)
	}
	defer cl.Close()
	n := 0
	for n < len(all) && measure.Until(ctx, all[n].at) {
		now, due := time.Now(), n+1
		for due < min(len(all), n+atOnce) && !all[due].at.After(now) {
			due++
		}
		// A transaction that has begun is brought to its end, so that it is known what
		// was committed.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), installation.StartWithin)
		err := a.transact(ending, cl, all[n:due])
		cancel()
		if err != nil {
			return n, fmt.Errorf("writing notifications: %w", err)
		}
		n = due
	}
	return n, nil
}

func (a *Arena) transact(ctx context.Context, cl *kgo.Client, all []*notification) error {
	occurred := a.now()
	bodies, err := a.in.Keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		return err
	}
	records := make([]*kgo.Record, len(all))
	for i, b := range all {
		n := &record.Notification{
			EventID: notificationID(b.number), Event: string(checkout.EventCompleted), ApplicationID: b.to.id, TenantID: tenant,
			SessionID: "chs_delivery", OccurredAt: occurred, Body: b.body,
		}
		origin.SignBody(schemas.TopicWebhooks, n, bodies)
		value, err := a.topics.Codec.Encode(n)
		if err != nil {
			return err
		}
		records[i] = &kgo.Record{Topic: a.in.Prefix + schemas.TopicWebhooks, Key: []byte(b.to.id), Value: value}
	}
	// The broker may be away for longer than the client tries. A transaction whose records
	// were not written is aborted and written again.
	for {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		failed := cl.ProduceSync(ctx, records...).FirstErr()
		if err := end(ctx, cl, failed == nil); err != nil || failed == nil {
			return errors.Join(failed, err)
		}
		if !measure.Until(ctx, time.Now().Add(endAgain)) {
			return failed
		}
	}
}

// endAgain is the pause between two tries to end a transaction.
const endAgain = 200 * time.Millisecond

// end ends a transaction. It tries until ctx ends.
func end(ctx context.Context, cl *kgo.Client, commit bool) error {
	for {
		err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit))
		if err == nil || !measure.Until(ctx, time.Now().Add(endAgain)) {
			return err
		}
	}
}
