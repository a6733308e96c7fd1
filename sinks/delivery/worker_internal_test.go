package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/kafka/consume"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// numbered is a schema registry in memory.
type numbered struct{ n int }

func (*numbered) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (n *numbered) ID(context.Context, string, string, bool) (int, error) { n.n++; return n.n, nil }

func (*numbered) Schema(_ context.Context, id int) (string, error) {
	return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
}

// bench is a worker without a broker, in a bubble of synctest. It is also the worker's
// Directory, Policy and History. A test gives it deliveries and keeps their outcomes.
type bench struct {
	*Worker
	destinations map[string]deliveries.Destination
	answer       func(ctx context.Context, d *record.Delivery) call.Result

	mu        sync.Mutex
	tracker   *consume.Watermark
	offset    int64
	begun     map[string][]time.Time // calls by destination
	attempts  []record.Attempt
	suspended map[string]bool
	resumed   map[string]time.Time
}

func (b *bench) Destinations(*record.Notification) []string { return nil }

func (b *bench) Destination(id string) (deliveries.Destination, bool) {
	d, ok := b.destinations[id]
	return d, ok
}

func (b *bench) Send(ctx context.Context, d *record.Delivery) call.Result {
	begun := time.Now()
	b.mu.Lock()
	b.begun[d.DestinationID] = append(b.begun[d.DestinationID], begun)
	b.mu.Unlock()
	r := b.answer(ctx, d)
	r.Duration = time.Since(begun)
	return r
}

func (b *bench) Judge(_ *record.Delivery, r call.Result, now time.Time) Verdict {
	if r.OK() {
		return Verdict{Outcome: deliveries.OutcomeDelivered}
	}
	return Verdict{Outcome: deliveries.OutcomeFailed, NextAttemptAt: now.Add(time.Minute), Unhealthy: true}
}

func (b *bench) CatchUp(context.Context) error { return nil }

func (b *bench) Settled(context.Context, []deliveries.Ref) (map[string]bool, error) { return nil, nil }

func (*bench) Superseded(context.Context, deliveries.Registration, string) (bool, error) {
	return false, nil
}

func (b *bench) Resumed(context.Context, deliveries.Kind) (map[string]time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.resumed), nil
}

func (b *bench) Refusing(context.Context, deliveries.Kind) (map[string]bool, error) { return nil, nil }

func (b *bench) Suspended(context.Context, deliveries.Kind) (map[string]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := map[string]bool{}
	for id, is := range b.suspended {
		if is {
			held[id] = true
		}
	}
	return held, nil
}

// suspend makes Suspended return a destination, or not.
func (b *bench) suspend(id string, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspended[id] = is
}

// give has the worker accept deliveries to a destination.
func (b *bench) give(destination string, n int) {
	for range n {
		b.mu.Lock()
		offset := b.offset
		b.offset++
		b.mu.Unlock()
		b.tracker.Take(offset, 0)
		b.accept(&record.Delivery{
			DeliveryID: fmt.Sprintf("dlv_%d", offset), DestinationID: destination, Kind: "test", OccurredAt: time.Now(), Attempt: 1,
		}, position{b.tracker, offset})
	}
	synctest.Wait()
}

// called returns the times at which calls to a destination began.
func (b *bench) called(destination string) []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Time(nil), b.begun[destination]...)
}

// outcomes returns the outcomes of a destination's deliveries with a reason.
func (b *bench) outcomes(destination string, outcome deliveries.Outcome, reason string) (found []record.Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.attempts {
		if a.Delivery.DestinationID == destination && a.Outcome == string(outcome) && a.Reason == reason {
			found = append(found, a)
		}
	}
	return found
}

// bubble runs a test with a bench in a bubble of synctest.
func bubble(t *testing.T, destinations map[string]deliveries.Destination, test func(t *testing.T, b *bench)) {
	t.Helper()
	codec, err := schemas.NewCodec(t.Context(), &numbered{}, true)
	if err != nil {
		t.Fatal(err)
	}
	macs, err := secret.GenerateKeys().MACs(secret.LabelWebhookBodies)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bench{destinations: destinations, tracker: consume.NewWatermark(0), begun: map[string][]time.Time{}, suspended: map[string]bool{}}
		b.answer = func(context.Context, *record.Delivery) call.Result { return call.Result{Status: http.StatusOK} }
		if b.Worker, err = NewWorker(WorkerConfig{
			Codec: codec, Kind: deliveries.Registration{Kind: "test", Directory: b}, Bodies: macs, Outcomes: origin.NewSigner("test", macs), Policy: b, History: b, Now: time.Now,
			Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		b.callCtx = ctx
		b.produce = func(_ context.Context, r *kgo.Record, done func(*kgo.Record, error)) {
			var a record.Attempt
			if err := codec.Decode(r.Value, &a); err != nil {
				t.Error(err)
			}
			b.mu.Lock()
			b.attempts = append(b.attempts, a)
			b.mu.Unlock()
			done(r, nil)
		}
		var holds sync.WaitGroup
		holds.Go(func() { _ = b.followHolds(ctx) })
		test(t, b)
		cancel()
		holds.Wait()
		b.calls.Wait()
	})
}

// hang is a call that ends at its time limit.
func hang(ctx context.Context) call.Result {
	if !consume.Sleep(ctx, 15*time.Second) {
		return call.Result{Fault: call.FaultInterrupted}
	}
	return call.Result{Fault: call.FaultTimeout}
}

// Hanging destinations have more calls than the good lane has slots. Another destination
// is not delayed for longer than a call may stay in the good lane. With shared slots it
// would wait for their time-outs of 15 s.
func TestHangingDestinationsDoNotSlowAnother(t *testing.T) {
	t.Parallel()
	const hanging, slots, limit = 4, 8, 8
	destinations := map[string]deliveries.Destination{"good": {MaxInFlight: limit}}
	for i := range hanging {
		destinations[fmt.Sprint("bad", i)] = deliveries.Destination{MaxInFlight: limit}
	}
	bubble(t, destinations, func(t *testing.T, b *bench) {
		b.good.slots = slots
		b.answer = func(ctx context.Context, d *record.Delivery) call.Result {
			if d.DestinationID != "good" {
				return hang(ctx)
			}
			consume.Sleep(ctx, 10*time.Millisecond)
			return call.Result{Status: http.StatusOK}
		}
		bad := func() (n int) {
			for i := range hanging {
				n += len(b.called(fmt.Sprint("bad", i)))
			}
			return n
		}
		for i := range hanging {
			b.give(fmt.Sprint("bad", i), 20)
		}
		if n := bad(); n != slots {
			t.Fatalf("%d calls under way, the good lane has %d slots", n, slots)
		}
		begun := time.Now()
		b.give("good", 100)
		for len(b.outcomes("good", deliveries.OutcomeDelivered, "")) < 100 && time.Since(begun) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begun); took > hanging*slowAfter+time.Second {
			t.Errorf("100 events took %v beside destinations that hang", took)
		}
		if n := bad(); n > hanging*limit {
			t.Errorf("the bad ones have %d calls under way, their caps are %d", n, hanging*limit)
		}
	})
}

// No second has more calls than the rate and a burst. A delivery that would wait for more
// than 5 s is deferred to its turn. Another destination does not wait.
func TestRate(t *testing.T) {
	t.Parallel()
	const perSecond, n = 10, 90
	bubble(t, map[string]deliveries.Destination{"paced": {MaxInFlight: 8, MaxPerSecond: perSecond}, "free": {MaxInFlight: 8}}, func(t *testing.T, b *bench) {
		begun := time.Now()
		b.give("paced", n)
		b.give("free", n)
		if got := len(b.called("free")); got != n || !time.Now().Equal(begun) {
			t.Errorf("%d calls to the other destination after %v", got, time.Since(begun))
		}
		deferred := b.outcomes("paced", deliveries.OutcomeDeferred, deliveries.ReasonRateLimited)
		for _, a := range deferred {
			if wait := a.NextAttemptAt.Sub(begun); wait < paceWait || wait > paceWait+time.Second {
				t.Errorf("deferred for %v", wait)
			}
		}
		time.Sleep(paceWait + time.Second)
		calls := b.called("paced")
		if len(deferred) == 0 || len(calls)+len(deferred) != n {
			t.Errorf("%d calls and %d deferred, want %d in all", len(calls), len(deferred), n)
		}
		for i, first := range calls {
			in := 0
			for _, at := range calls[i:] {
				if at.Sub(first) < time.Second {
					in++
				}
			}
			if in > perSecond+1 {
				t.Fatalf("%d calls in a second", in)
			}
		}
	})
}

// A destination asks for two minutes without calls. Its deliveries are deferred until then.
// Afterwards it gets one call at a time until one succeeds.
func TestBreakerHoldsTheDestination(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]deliveries.Destination{"own": {MaxInFlight: 8}}, func(t *testing.T, b *bench) {
		b.answer = func(context.Context, *record.Delivery) call.Result {
			return call.Result{Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Minute}
		}
		begun := time.Now()
		b.give("own", 1)
		b.give("own", 20)
		deferred := b.outcomes("own", deliveries.OutcomeDeferred, deliveries.ReasonBreakerOpen)
		for _, a := range deferred {
			if !a.NextAttemptAt.Equal(begun.Add(2 * time.Minute)) {
				t.Errorf("deferred until %v", a.NextAttemptAt.Sub(begun))
			}
		}
		time.Sleep(2*time.Minute - time.Nanosecond)
		b.give("own", 1)
		if n := len(b.called("own")); n != 1 || len(deferred) != 20 {
			t.Fatalf("%d calls before the time that was asked for, %d deferred", n, len(deferred))
		}
		time.Sleep(time.Nanosecond)
		b.answer = func(ctx context.Context, _ *record.Delivery) call.Result {
			consume.Sleep(ctx, 100*time.Millisecond)
			return call.Result{Status: http.StatusOK}
		}
		b.give("own", 20)
		if n := len(b.called("own")); n != 2 {
			t.Errorf("%d calls at once by a breaker that probes", n-1)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if n := len(b.called("own")); n != 2+8 {
			t.Errorf("%d calls at once after a success, the cap is 8", n-2)
		}
		time.Sleep(time.Second)
	})
}

// An operator resumes a destination that is on hold and not suspended: it is called at once. An older resumption opens nothing.
func TestResumptionEndsAHold(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]deliveries.Destination{"own": {MaxInFlight: 8}}, func(t *testing.T, b *bench) {
		resume := func() {
			b.mu.Lock()
			b.resumed = map[string]time.Time{"own": time.Now()}
			b.mu.Unlock()
		}
		resume()
		time.Sleep(holdsEvery)
		b.answer = func(context.Context, *record.Delivery) call.Result {
			return call.Result{Status: http.StatusInternalServerError}
		}
		b.give("own", 40)
		tried := len(b.called("own"))
		time.Sleep(2 * holdsEvery)
		synctest.Wait()
		b.answer = func(context.Context, *record.Delivery) call.Result { return call.Result{Status: http.StatusOK} }
		b.give("own", 1)
		if tried >= 40 || len(b.called("own")) != tried {
			t.Errorf("%d calls, then %d: the breaker did not open, or has closed by itself", tried, len(b.called("own")))
		}
		resume()
		time.Sleep(holdsEvery)
		synctest.Wait()
		b.give("own", 40)
		if n := len(b.outcomes("own", deliveries.OutcomeDelivered, "")); n != 40 {
			t.Errorf("%d of 40 delivered after the resumption", n)
		}
	})
}

// An operator resumes a destination whose breaker is open. It is called within a second.
func TestResumptionClosesTheBreaker(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]deliveries.Destination{"own": {MaxInFlight: 8}}, func(t *testing.T, b *bench) {
		b.answer = func(context.Context, *record.Delivery) call.Result {
			return call.Result{Status: http.StatusInternalServerError}
		}
		b.give("own", 40)
		tried := len(b.called("own"))
		if tried >= 40 {
			t.Errorf("%d calls to a destination that fails: the breaker did not open", tried)
		}
		b.suspend("own", true)
		time.Sleep(holdsEvery)
		synctest.Wait()
		b.answer = func(context.Context, *record.Delivery) call.Result { return call.Result{Status: http.StatusOK} }
		b.give("own", 1)
		if n := len(b.outcomes("own", deliveries.OutcomeDeferred, deliveries.ReasonSuspended)); n != 1 || len(b.called("own")) != tried {
			t.Errorf("a suspended destination was called: %d deferred", n)
		}
		b.suspend("own", false)
		time.Sleep(holdsEvery)
		synctest.Wait()
		b.give("own", 40)
		if n := len(b.outcomes("own", deliveries.OutcomeDelivered, "")); n != 40 {
			t.Errorf("%d of 40 delivered after the resumption", n)
		}
	})
}
