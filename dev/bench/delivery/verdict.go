package delivery

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/measure"
	"quittance/schemas"
	"quittance/schemas/record"
)

// disturbance is something that was done to the installation, with the ends of
// deliveries.attempts at that time. A delivery may be doubled only if the outcome of its
// first request was not on that topic yet.
type disturbance struct {
	what        string
	from, until time.Time
	marks       []mark // one when it was sudden, else many
}

// mark is where a topic ended at a time.
type mark struct {
	at   time.Time
	ends map[int32]int64
}

// place is the position of a record.
type place struct {
	partition int32
	offset    int64
}

// decideWithin is how long before its arrival a request may have been decided. In
// between the worker asks Postgres and the request waits for its turn.
const decideWithin = 2 * time.Second

// explains says whether a second request was allowed, since the outcome of the first was
// not recorded when the process died or when partitions moved. recorded is the record
// of that outcome, or nil when there is none.
func (d *disturbance) explains(first, second time.Time, recorded *place) bool {
	if first.After(d.until) || second.Before(d.from) || len(d.marks) == 0 {
		return false
	}
	known := d.marks[0]
	for _, m := range d.marks {
		if m.at.Before(second.Add(-decideWithin)) {
			known = m
		}
	}
	return recorded == nil || recorded.offset >= known.ends[recorded.partition]
}

func (a *Arena) mark(ctx context.Context) (mark, error) {
	at := time.Now()
	ends, err := a.topics.Ends(ctx, schemas.TopicAttempts)
	return mark{at: at, ends: ends}, err
}

// afterKill is the pause after a kill, until the mark is taken.
const afterKill = 100 * time.Millisecond

// suddenly does something that takes no time, for example kills a process. It takes the
// mark 100 ms later, when everything that the process had sent is on the topic. The
// process's successor reads the topic later still, so it knows every outcome before the
// mark and must not send these deliveries again.
func (a *Arena) suddenly(ctx context.Context, what string, do func()) error {
	d := &disturbance{what: what, from: time.Now()}
	do()
	d.until = time.Now()
	measure.Pause(ctx, afterKill)
	m, err := a.mark(ctx)
	if err != nil {
		return err
	}
	d.marks = []mark{m}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disturbances = append(a.disturbances, d)
	return nil
}

// meanwhile does something that lasts, and takes marks all the time.
func (a *Arena) meanwhile(ctx context.Context, what string, do func(context.Context) error) error {
	d := &disturbance{what: what, from: time.Now()}
	marking, stop := context.WithCancel(ctx)
	defer stop()
	marked := make(chan struct{})
	go func() {
		defer close(marked)
		for {
			asking, cancel := context.WithTimeout(marking, time.Second)
			if m, err := a.mark(asking); err == nil { // there is no answer while the broker is away
				d.marks = append(d.marks, m)
			}
			cancel()
			if !measure.Pause(marking, 100*time.Millisecond) {
				return
			}
		}
	}()
	measure.Pause(ctx, 200*time.Millisecond) // for the first mark
	err := do(ctx)
	stop()
	<-marked
	d.until = time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disturbances = append(a.disturbances, d)
	return err
}

// verdict is what became of notifications.
type verdict struct {
	deliveries, lost, doubled int
	unexplained               int // of the doubled
	unsigned                  int // requests with a wrong signature or body
	findings                  []string
}

func (v *verdict) find(format string, args ...any) {
	if len(v.findings) < 20 {
		v.findings = append(v.findings, fmt.Sprintf(format, args...))
	}
}

func (v *verdict) String() string {
	return fmt.Sprintf("deliveries=%d lost=%d doubled=%d unexplained=%d unsigned=%d", v.deliveries, v.lost, v.doubled, v.unexplained, v.unsigned)
}

// delivery is a notification for an endpoint.
type delivery struct{ event, destination string }

// double is a notification that an endpoint accepted twice.
type double struct {
	notification  int
	endpoint      *endpoint
	first, second time.Time
}

func (d double) delivery() delivery {
	return delivery{notificationID(d.notification), d.endpoint.id}
}

// judge looks at all requests that came for the notifications, and forgets them.
func (a *Arena) judge(ctx context.Context, of []*notification) (*verdict, error) {
	v := &verdict{lost: missing(of)}
	byNumber := make(map[int]*notification, len(of))
	seen := map[*endpoint]bool{}
	var endpoints []*endpoint
	for _, b := range of {
		byNumber[b.number] = b
		for _, e := range b.to.endpoints {
			if !seen[e] {
				seen[e] = true
				endpoints = append(endpoints, e)
			}
		}
		v.deliveries += len(b.to.endpoints)
	}
	var doubles []double
	for _, e := range endpoints {
		found, err := v.inspect(e, byNumber)
		if err != nil {
			return nil, err
		}
		doubles = append(doubles, found...)
	}
	v.doubled = len(doubles)
	if len(doubles) == 0 {
		return v, nil
	}
	return v, a.explain(ctx, v, doubles)
}

// inspect checks the requests of an endpoint and returns what it accepted twice.
func (v *verdict) inspect(e *endpoint, byNumber map[int]*notification) (doubles []double, err error) {
	verifier, err := standardwebhooks.NewWebhook(e.secret)
	if err != nil {
		return nil, fmt.Errorf("reading the secret of %s: %w", e.url, err)
	}
	last := map[int]time.Time{}
	for _, r := range e.take() {
		b := byNumber[r.notification]
		if b == nil || !slices.Contains(b.to.endpoints, e) {
			v.unsigned++
			v.find("%s got %s, which is not for it", e.url, notificationID(r.notification))
			continue
		}
		if err := r.verify(verifier, b); err != nil {
			v.unsigned++
			v.find("%s got %s: %v", e.url, notificationID(r.notification), err)
		}
		if !r.accepted {
			continue
		}
		if before, again := last[r.notification]; again {
			doubles = append(doubles, double{r.notification, e, before, r.at})
		}
		last[r.notification] = r.at
	}
	return doubles, nil
}

// verify checks a request as a receiver does.
func (r *arrival) verify(by *standardwebhooks.Webhook, b *notification) error {
	if !bytes.Equal(r.body, b.body) {
		return fmt.Errorf("its body is %q", r.body)
	}
	header := http.Header{}
	header.Set(standardwebhooks.HeaderWebhookID, notificationID(b.number))
	header.Set(standardwebhooks.HeaderWebhookTimestamp, r.timestamp)
	header.Set(standardwebhooks.HeaderWebhookSignature, r.signature)
	if err := by.VerifyIgnoringTimestamp(r.body, header); err != nil {
		return fmt.Errorf("verifying its signature: %w", err)
	}
	const tolerance = time.Minute
	seconds, err := strconv.ParseInt(r.timestamp, 10, 64)
	if err != nil || r.at.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return fmt.Errorf("it came at %d with the timestamp %s", r.at.Unix(), r.timestamp)
	}
	return nil
}

// explain counts the doubles that no disturbance explains.
func (a *Arena) explain(ctx context.Context, v *verdict, doubles []double) error {
	recorded, times, err := a.outcomes(ctx, doubles)
	if err != nil {
		return err
	}
	a.mu.Lock()
	unexplained := slices.DeleteFunc(slices.Clone(doubles), func(d double) bool {
		return slices.ContainsFunc(a.disturbances, func(by *disturbance) bool { return by.explains(d.first, d.second, recorded[d.delivery()]) })
	})
	a.mu.Unlock()
	v.unexplained = len(unexplained)
	if len(unexplained) == 0 {
		return nil
	}
	planned, err := a.plans(ctx, unexplained)
	for _, d := range unexplained {
		k := d.delivery()
		v.find("%s got %s at %s and again at %s, though the first outcome had been on record since %s; it stands on %s at %s", d.endpoint.url, k.event,
			d.first.Format(clockFormat), d.second.Format(clockFormat), times[k].Format(clockFormat), schemas.TopicWebhooksDeliveries, strings.Join(planned[k], ", "))
	}
	return err
}

const clockFormat = "15:04:05.000"

// outcomes finds the first record of success of each doubled delivery.
func (a *Arena) outcomes(ctx context.Context, of []double) (recorded map[delivery]*place, times map[delivery]time.Time, err error) {
	recorded, times = map[delivery]*place{}, map[delivery]time.Time{}
	for _, d := range of {
		recorded[d.delivery()] = nil
	}
	r, err := a.topics.Read(ctx, schemas.TopicAttempts)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	return recorded, times, r.Next(ctx, func(rec *kgo.Record) error {
		var attempt record.Attempt
		if err := a.topics.Codec.Decode(rec.Value, &attempt); err != nil {
			return err
		}
		k := delivery{attempt.Delivery.EventID, attempt.Delivery.DestinationID}
		if known, asked := recorded[k]; asked && known == nil && attempt.Outcome == "delivered" {
			recorded[k] = &place{rec.Partition, rec.Offset}
			times[k] = rec.Timestamp
		}
		return nil
	})
}

// plans finds where each doubled delivery was planned. They help to find the cause: was
// it sent twice or planned twice?
func (a *Arena) plans(ctx context.Context, of []double) (map[delivery][]string, error) {
	planned := map[delivery][]string{}
	for _, d := range of {
		planned[d.delivery()] = nil
	}
	r, err := a.topics.Read(ctx, schemas.TopicWebhooksDeliveries)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return planned, r.Next(ctx, func(rec *kgo.Record) error {
		var d record.Delivery
		if err := a.topics.Codec.Decode(rec.Value, &d); err != nil {
			return err
		}
		k := delivery{d.EventID, d.DestinationID}
		if _, asked := planned[k]; asked {
			planned[k] = append(planned[k], fmt.Sprintf("[%d]@%d round %d at %s", rec.Partition, rec.Offset, d.Round, rec.Timestamp.Format(clockFormat)))
		}
		return nil
	})
}
