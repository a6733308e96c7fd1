package delivery_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/measure"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/harness"
)

// disturbance is something that was done to the installation, and what stood on
// deliveries.attempts at the time: a delivery is doubled rightly only if the
// outcome of the first was not on record.
type disturbance struct {
	what        string
	from, until time.Time
	marks       []mark // one when it was sudden, else all the while
}

// mark is where a topic ended at a time.
type mark struct {
	at   time.Time
	ends map[int32]int64
}

// place is where a record stands.
type place struct {
	partition int32
	offset    int64
}

// decideWithin is how long before its arrival a call may have been decided, while
// the reading of the marks goes on: questions to Postgres, and the mailbox.
const decideWithin = 2 * time.Second

// explains says whether a second call may have been made since the outcome of the
// first was not on record: it came to nobody's knowledge before the process died,
// or while partitions moved. recorded is nil when it never was.
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

func (a *arena) mark(ctx context.Context) (mark, error) {
	m := mark{at: time.Now(), ends: map[int32]int64{}}
	ends, err := a.topics.Admin.ListEndOffsets(ctx, harness.Prefix+schemas.TopicAttempts)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return m, fmt.Errorf("asking for the end of outcomes: %w", err)
	}
	ends.Each(func(o kadm.ListedOffset) { m.ends[o.Partition] = o.Offset })
	return m, nil
}

// suddenly ends a process, or does what else takes no time. The mark comes after
// it, and after what the process had sent to the broker: its successor asks later
// still, so that what is on record then must not be sent again.
func (a *arena) suddenly(t testing.TB, what string, do func()) {
	t.Helper()
	d := &disturbance{what: what, from: time.Now()}
	do()
	d.until = time.Now()
	measure.Pause(t.Context(), 100*time.Millisecond)
	m, err := a.mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.marks = []mark{m}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disturbances = append(a.disturbances, d)
}

// meanwhile does something that lasts, and takes marks until its consequences are
// over as well.
func (a *arena) meanwhile(t testing.TB, what string, do func()) {
	t.Helper()
	d := &disturbance{what: what, from: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	marked := make(chan struct{})
	go func() {
		defer close(marked)
		for {
			asking, cancel := context.WithTimeout(ctx, time.Second)
			if m, err := a.mark(asking); err == nil { // else the broker is away, as it should be
				d.marks = append(d.marks, m)
			}
			cancel()
			if !measure.Pause(ctx, 100*time.Millisecond) {
				return
			}
		}
	}()
	measure.Pause(ctx, 200*time.Millisecond) // the first mark
	do()
	cancel()
	<-marked
	d.until = time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disturbances = append(a.disturbances, d)
}

// fate is what became of bulletins.
type fate struct {
	deliveries, lost, doubled int
	unexplained               int // of the doubled
	unsigned                  int // requests whose signature or body was wrong
	findings                  []string
}

func (f *fate) find(format string, args ...any) {
	if len(f.findings) < 20 {
		f.findings = append(f.findings, fmt.Sprintf(format, args...))
	}
}

func (f *fate) String() string {
	return fmt.Sprintf("deliveries=%d lost=%d doubled=%d unexplained=%d unsigned=%d", f.deliveries, f.lost, f.doubled, f.unexplained, f.unsigned)
}

// double is a bulletin that an endpoint accepted twice.
type double struct {
	bulletin      int
	endpoint      *endpoint
	first, second time.Time
}

// judge looks at all requests that came for the bulletins and forgets them.
func (a *arena) judge(ctx context.Context, bulletins []*bulletin) (*fate, error) {
	f := &fate{}
	byNumber := make(map[int]*bulletin, len(bulletins))
	seen := map[*endpoint]bool{}
	var endpoints []*endpoint
	for _, b := range bulletins {
		byNumber[b.number] = b
		for _, e := range b.to.endpoints {
			if !seen[e] {
				seen[e] = true
				endpoints = append(endpoints, e)
			}
		}
		f.deliveries += len(b.to.endpoints)
	}
	f.lost = missing(bulletins)
	var doubles []double
	for _, e := range endpoints {
		verifier, err := standardwebhooks.NewWebhook(e.secret)
		if err != nil {
			return nil, fmt.Errorf("secret of %s: %w", e.url, err)
		}
		last := map[int]time.Time{}
		for _, r := range e.take() {
			b := byNumber[r.bulletin]
			if b == nil || !slices.Contains(b.to.endpoints, e) {
				f.unsigned++
				f.find("%s got %s, which is not for it", e.url, bulletinID(r.bulletin))
				continue
			}
			if err := r.verify(verifier, b); err != nil {
				f.unsigned++
				f.find("%s got %s: %v", e.url, bulletinID(r.bulletin), err)
			}
			if !r.accepted {
				continue
			}
			if before, again := last[r.bulletin]; again {
				doubles = append(doubles, double{r.bulletin, e, before, r.at})
			}
			last[r.bulletin] = r.at
		}
	}
	f.doubled = len(doubles)
	return f, a.explain(ctx, f, doubles)
}

// verify checks an arrival as a receiver does.
func (r *arrival) verify(by *standardwebhooks.Webhook, b *bulletin) error {
	if !bytes.Equal(r.body, b.body) {
		return fmt.Errorf("its body is %q", r.body)
	}
	header := http.Header{}
	header.Set(standardwebhooks.HeaderWebhookID, bulletinID(b.number))
	header.Set(standardwebhooks.HeaderWebhookTimestamp, r.timestamp)
	header.Set(standardwebhooks.HeaderWebhookSignature, r.signature)
	if err := by.VerifyIgnoringTimestamp(r.body, header); err != nil {
		return fmt.Errorf("its signature does not verify: %w", err)
	}
	const tolerance = time.Minute
	seconds, err := strconv.ParseInt(r.timestamp, 10, 64)
	if err != nil || r.at.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return fmt.Errorf("it came at %d with the timestamp %s", r.at.Unix(), r.timestamp)
	}
	return nil
}

// explain asks the log of outcomes about doubles.
func (a *arena) explain(ctx context.Context, f *fate, doubles []double) error {
	if len(doubles) == 0 {
		return nil
	}
	type key struct{ event, destination string }
	recorded := map[key]*place{}
	for _, d := range doubles {
		recorded[key{bulletinID(d.bulletin), d.endpoint.id}] = nil
	}
	r, err := a.topics.Read(ctx, schemas.TopicAttempts)
	if err != nil {
		return err
	}
	defer r.Close()
	times := map[key]time.Time{}
	err = r.Next(ctx, func(rec *kgo.Record) error {
		var attempt record.Attempt
		if err := a.topics.Codec.Decode(rec.Value, &attempt); err != nil {
			return err
		}
		k := key{attempt.Delivery.EventID, attempt.Delivery.DestinationID}
		if known, asked := recorded[k]; asked && known == nil && attempt.Outcome == "delivered" {
			recorded[k] = &place{rec.Partition, rec.Offset}
			times[k] = rec.Timestamp
		}
		return nil
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	var unexplained []double
	for _, d := range doubles {
		k := key{bulletinID(d.bulletin), d.endpoint.id}
		if slices.ContainsFunc(a.disturbances, func(by *disturbance) bool { return by.explains(d.first, d.second, recorded[k]) }) {
			continue
		}
		unexplained = append(unexplained, d)
	}
	a.mu.Unlock()
	f.unexplained = len(unexplained)
	if len(unexplained) == 0 {
		return nil
	}
	// For whoever looks for the cause: was it sent twice, or planned twice?
	planned := map[key][]string{}
	topic, err := a.topics.Read(ctx, schemas.TopicWebhooksDeliveries)
	if err != nil {
		return err
	}
	defer topic.Close()
	err = topic.Next(ctx, func(rec *kgo.Record) error {
		var d record.Delivery
		if err := a.topics.Codec.Decode(rec.Value, &d); err != nil {
			return err
		}
		k := key{d.EventID, d.DestinationID}
		if _, asked := recorded[k]; asked {
			planned[k] = append(planned[k], fmt.Sprintf("[%d]@%d round %d at %s", rec.Partition, rec.Offset, d.Round, rec.Timestamp.Format(clockFormat)))
		}
		return nil
	})
	for _, d := range unexplained {
		k := key{bulletinID(d.bulletin), d.endpoint.id}
		f.find("%s got %s at %s and again at %s, though the first outcome had been on record since %s; it stands on %s at %s", d.endpoint.url, k.event,
			d.first.Format(clockFormat), d.second.Format(clockFormat), times[k].Format(clockFormat), schemas.TopicWebhooksDeliveries, strings.Join(planned[k], ", "))
	}
	return err
}

const clockFormat = "15:04:05.000"
