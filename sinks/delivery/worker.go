package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/exemplar"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/pulse"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

const (
	goodSlots       = 256   // calls at once in the good lane
	slowSlots       = 1024  // calls at once in the slow lane
	mailboxLimit    = 8192  // deliveries that wait for one destination
	inHandLimit     = 65536 // deliveries that wait in all
	slowAfter       = 500 * time.Millisecond
	fairShare       = 64               // slots of a mailbox when the worker as a whole is full
	drainRevoke     = time.Second      // for calls under way when partitions move; the partitions of a killed worker wait for it
	drainStop       = 7 * time.Second  // for calls under way at shutdown
	rebalanceWithin = 12 * time.Second // for members to join again, above drainStop
	commitEvery     = 200 * time.Millisecond
	outcomeLinger   = 10 * time.Millisecond // no caller waits for an outcome; batching halves the broker's work
	holdsEvery      = time.Second
	goneFor         = 4 * time.Second // until Postgres has the suspension
	deferFull       = time.Second     // when the mailbox is full
	deferUnknown    = 5 * time.Minute // when the destination is unknown
	deferHeld       = time.Minute     // when the destination is suspended; a resumption makes it due
	deferSpread     = 2 * time.Second // random part of deferFull
	flushPatience   = 3 * time.Second
	forgetEvery     = time.Minute
	joinBackoff     = time.Second
	orderPatience   = 2 * time.Second // for Postgres, before a delivery that may be superseded
	deferOrder      = 5 * time.Second // when Postgres does not answer it
	finalFor        = time.Hour       // until Postgres surely has an outcome
)

// History answers questions about earlier outcomes, from Postgres.
type History interface {
	// CatchUp waits for a bounded time until all outcomes recorded up to now are in
	// Postgres. An error means that Postgres or Kafka is unavailable.
	CatchUp(ctx context.Context) error
	// Settled returns the ids among refs that need no sending: they are delivered or
	// wait in the schedule. An error means that Postgres is unavailable.
	Settled(ctx context.Context, refs []deliveries.Ref) (map[string]bool, error)
	// Suspended returns the ids of the suspended destinations of the kind.
	Suspended(ctx context.Context, kind deliveries.Kind) (map[string]bool, error)
	// Resumed returns when destinations of the kind were last resumed.
	Resumed(ctx context.Context, kind deliveries.Kind) (map[string]time.Time, error)
	// Refusing returns the ids of the destinations of the kind that refuse our credentials.
	Refusing(ctx context.Context, kind deliveries.Kind) (map[string]bool, error)
	// Superseded reports whether the final event of a session was accepted. An error means
	// that Postgres is unavailable.
	Superseded(ctx context.Context, kind deliveries.Registration, sessionID string) (bool, error)
}

// WorkerConfig is what a Worker needs. Fields without a default are required.
type WorkerConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	// Kind needs its Directory.
	Kind deliveries.Registration
	// Bodies verifies the bodies of a kind that proves them.
	Bodies origin.MACs
	// AcceptUnproven sends bodies without a proof, as those of a release that proved none: whoever may
	// write the topic of deliveries, or that of attempts, can then have any body signed and sent.
	AcceptUnproven bool
	// Outcomes signs the outcomes, with the name of the kind.
	Outcomes *origin.Signer
	Policy   Policy
	History  History
	Now      func() time.Time
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Worker sends the deliveries of one kind. See DESIGN.md.
type Worker struct {
	cfg   WorkerConfig
	topic string
	group string
	count *counters

	mu        sync.Mutex // protects mailboxes to stopping; never held over a call, a produce or a query
	mailboxes map[string]*mailbox
	jobs      map[string]*job // by delivery id, until the outcome is acknowledged
	queued    int
	good      lane
	slow      lane
	suspended map[string]bool
	refusing  map[string]bool // as Postgres knows it
	// resumed is when destinations were last resumed; nil before the first look.
	resumed map[string]time.Time
	// final has the sessions whose final event was accepted here, with the time. Postgres
	// may not know of it yet.
	final    map[string]time.Time
	stopping bool

	loop      *pulse.Loop
	producer  *kgo.Client
	produce   func(context.Context, *kgo.Record, func(*kgo.Record, error)) // the producer's
	heartbeat time.Duration                                                // interval
	calls     sync.WaitGroup
	callCtx   context.Context //nolint:containedctx // calls outlive Run's context by the drain
	fatal     chan error
}

// NewWorker makes a worker. It connects when it runs. Run may be called once.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	if cfg.Codec == nil || cfg.Kind.Directory == nil || cfg.Outcomes == nil || cfg.Policy == nil || cfg.History == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("delivery worker: Codec, Kind with its Directory, Outcomes, Policy, History, Now, Log and Metrics are required")
	}
	if cfg.Kind.Proves() && cfg.Bodies == nil {
		return nil, errors.New("delivery worker: Bodies is required")
	}
	sending := cfg.Kind.Sending()
	return &Worker{
		cfg: cfg, topic: cfg.Kafka.Prefix + sending.Topic, group: cfg.Kafka.Prefix + sending.Group,
		count: newCounters(cfg.Metrics, cfg.Kind.Kind), mailboxes: map[string]*mailbox{}, jobs: map[string]*job{}, final: map[string]time.Time{},
		good: lane{name: laneGood, slots: goodSlots}, slow: lane{name: laneSlow, slots: slowSlots},
		fatal: make(chan error, 1),
	}, nil
}

// Run sends until ctx ends, then gives calls under way about 7 s and returns nil. It
// cancels calls that take longer. They have no outcome and are made again later. An
// outcome that cannot be recorded is an error.
func (w *Worker) Run(ctx context.Context) error {
	var err error
	w.producer, err = w.cfg.Kafka.Client(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(outcomeLinger), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return err
	}
	defer w.producer.Close()
	w.produce = w.producer.Produce
	session := consume.SessionTimeout(ctx, w.cfg.Kafka, w.cfg.Kind.Sending().Group, w.cfg.Log)
	w.heartbeat = kafka.Heartbeat(session)
	group, err := kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID: w.group, Brokers: w.cfg.Kafka.Brokers, Dialer: w.cfg.Kafka.Security.Dialer(), Topics: []string{w.topic}, StartOffset: kafkago.FirstOffset,
		SessionTimeout: session, RebalanceTimeout: rebalanceWithin, HeartbeatInterval: w.heartbeat,
		JoinGroupBackoff: joinBackoff, WatchPartitionChanges: true, PartitionWatchInterval: 5 * time.Second,
	})
	if err != nil {
		return fmt.Errorf("joining group %s: %w", w.group, err)
	}
	w.loop = pulse.Begin(ctx, "group "+w.group, "it has not joined")
	defer w.loop.End()
	callCtx, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	w.callCtx = callCtx

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.generations(gctx, group) })
	g.Go(func() error { return w.followHolds(gctx) })
	g.Go(func() error { return w.forgetIdle(gctx) })
	g.Go(func() error {
		select {
		case err := <-w.fatal:
			return err
		case <-gctx.Done():
			return nil
		}
	})
	g.Go(func() error {
		<-gctx.Done()
		w.mu.Lock()
		w.stopping = true
		w.mu.Unlock()
		return group.Close() // ends the generation, which then drains, and leaves the group
	})
	err = g.Wait()

	hangUp() // the time of the calls under way is over
	w.calls.Wait()
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushPatience)
	defer cancel()
	if ferr := w.producer.Flush(flush); ferr != nil && err == nil {
		w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "outcomes were not recorded at shutdown; their deliveries are sent again", slog.Any("error", ferr))
	}
	return err
}

// accept puts a delivery into its mailbox, or defers it. It never blocks.
func (w *Worker) accept(d *record.Delivery, at position) {
	w.mu.Lock()
	if w.stopping || at.tracker.Stopped() {
		w.mu.Unlock()
		at.tracker.Forget()
		return
	}
	if w.adoptLocked(d, at) {
		w.mu.Unlock()
		return
	}
	j := &job{delivery: d, positions: []position{at}}
	w.jobs[d.DeliveryID] = j
	m := w.mailboxes[d.DestinationID]
	if m == nil {
		m = &mailbox{id: d.DestinationID, refusals: refusals{standing: w.refusing[d.DestinationID]}}
		w.mailboxes[d.DestinationID] = m
	}
	dest, known := w.cfg.Kind.Directory.Destination(m.id)
	now := w.cfg.Now()
	reason, until := w.refuse(m, dest, known, now)
	if reason == "" {
		m.queue = append(m.queue, j)
		w.queued++
		w.count.waiting.Inc()
		w.pump(m)
	} else {
		j.concluded = true
	}
	w.mu.Unlock()
	if reason != "" {
		w.deferred(j, reason, now, until)
	}
}

// adopt adds a position to the job that the worker already has for a delivery. It
// reports whether there is such a job.
func (w *Worker) adopt(d *record.Delivery, at position) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.adoptLocked(d, at)
}

// adoptLocked is adopt for a caller that holds the lock.
func (w *Worker) adoptLocked(d *record.Delivery, at position) bool {
	j := w.jobs[d.DeliveryID]
	if j == nil || j.concluded && d.Round > j.delivery.Round {
		return false
	}
	j.positions = append(j.positions, at)
	j.delivery.Round = max(j.delivery.Round, d.Round)
	return true
}

// refuse returns the reason why a mailbox takes no delivery now, and until when. An
// empty reason means that it takes one.
func (w *Worker) refuse(m *mailbox, dest deliveries.Destination, known bool, now time.Time) (reason string, until time.Time) {
	if !known {
		return deliveries.ReasonNoDestination, now.Add(deferUnknown)
	}
	if dest.Locked {
		return deliveries.ReasonLocked, now.Add(deferUnknown)
	}
	if w.isSuspended(m) {
		return deliveries.ReasonSuspended, now.Add(deferHeld)
	}
	if m.breaker.state(now) == breakerOpen {
		return deliveries.ReasonBreakerOpen, m.breaker.reopenAt
	}
	if backlog, ok := m.pace.backlog(dest.MaxPerSecond, len(m.queue)); !ok {
		return deliveries.ReasonRateLimited, now.Add(backlog)
	}
	if n := len(m.queue); n >= mailboxLimit || (w.queued >= inHandLimit && n >= fairShare) {
		return deliveries.ReasonMailboxFull, now.Add(deferFull + rand.N(deferSpread)) //nolint:gosec // spreads load
	}
	return "", time.Time{}
}

func (w *Worker) isSuspended(m *mailbox) bool {
	return w.suspended[m.id] || !m.gone.IsZero()
}

// pump starts the calls that a mailbox may start. The caller holds the lock.
func (w *Worker) pump(m *mailbox) {
	if len(m.queue) == 0 || m.inLine {
		return
	}
	dest, _ := w.cfg.Kind.Directory.Destination(m.id)
	limit := m.capacity(dest, m.breaker.state(w.cfg.Now()))
	for len(m.queue) > 0 && m.inFlight < limit {
		i := m.next()
		if i < 0 {
			return // a call of each session that waits is under way, and calls pump when it ends
		}
		l := &w.good
		if m.slow {
			l = &w.slow
		}
		if l.used >= l.slots {
			m.inLine = true
			l.waiting = append(l.waiting, m)
			return
		}
		if wait := m.pace.take(time.Now(), dest.MaxPerSecond); wait > 0 {
			w.pumpAfter(m, wait)
			return
		}
		j := m.take(i)
		w.begin(m, j)
		w.queued--
		w.count.waiting.Dec()
		l.used++
		w.count.inFlight.WithLabelValues(l.name).Inc()
		j.lane = l
		w.calls.Go(func() { w.call(m, j) })
	}
}

// pumpAfter calls pump after a wait for the mailbox's rate. The caller holds the lock.
func (w *Worker) pumpAfter(m *mailbox, wait time.Duration) {
	if m.paced {
		return
	}
	m.paced = true
	time.AfterFunc(wait, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		m.paced = false
		if !w.stopping {
			w.pump(m)
		}
	})
}

// freeSlot frees a lane's slot and starts calls that wait for it. The caller holds the
// lock.
func (w *Worker) freeSlot(l *lane) {
	l.used--
	w.count.inFlight.WithLabelValues(l.name).Dec()
	w.serveLine(l)
}

// serveLine starts calls of the mailboxes that wait for a lane's slots. The caller
// holds the lock.
func (w *Worker) serveLine(l *lane) {
	for l.used < l.slots && len(l.waiting) > 0 {
		m := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		m.inLine = false
		w.pump(m) // it waits again, behind the others, if it needs more slots
	}
}

// call makes one call and records its outcome. It runs in a goroutine of w.calls.
func (w *Worker) call(m *mailbox, j *job) {
	at := w.cfg.Now()
	w.mu.Lock()
	d := *j.delivery
	w.mu.Unlock()
	if w.superseded(m, j, &d, at) {
		return
	}
	if d.FirstAttemptAt.IsZero() {
		d.FirstAttemptAt = at
	}
	late := time.AfterFunc(slowAfter, func() { w.slowDown(m, j) })
	r := w.cfg.Policy.Send(w.callCtx, &d)
	late.Stop()
	if r.Fault == call.FaultInterrupted {
		w.abandon(m, j)
		return
	}
	now := w.cfg.Now()
	v, reason := w.cfg.Policy.Judge(&d, r, now), r.Reason()
	if v.Refused {
		v, reason = w.refused(m, &d, v, reason, now)
	}
	w.conclude(m, j, r, v, now)

	a := &record.Attempt{
		Delivery: d, Outcome: string(v.Outcome), At: at, DurationMs: r.Duration.Milliseconds(),
		HTTPStatus: int32(r.Status), Reason: reason, Answer: r.Answer, NextAttemptAt: v.NextAttemptAt, OwnAddress: v.OwnAddress, //nolint:gosec // a status
	}
	if v.Outcome == deliveries.OutcomeDeferred && !v.Refused {
		w.count.deferred.WithLabelValues(a.Reason).Inc()
	} else {
		w.count.attempts.WithLabelValues(string(v.Outcome)).Inc()
		exemplar.Observe(w.count.duration, r.Duration.Seconds(), exemplar.DeliveryID, d.DeliveryID)
	}
	if v.Outcome == deliveries.OutcomeDelivered {
		exemplar.Observe(w.count.latency, now.Sub(d.OccurredAt).Seconds(), exemplar.DeliveryID, d.DeliveryID)
	}
	w.record(j, a)
}

// refused returns the verdict and the reason of an answer that our credentials are refused. The first
// one since an acceptance is told by its reason. An answer that turns out to be about the delivery
// alone parks it.
func (w *Worker) refused(m *mailbox, d *record.Delivery, v Verdict, reason string, now time.Time) (Verdict, string) {
	w.mu.Lock()
	first, own := m.refusals.refused(d.DeliveryID, now)
	w.mu.Unlock()
	if own {
		return Verdict{Outcome: v.Park}, reason
	}
	if first {
		reason = deliveries.ReasonCredentials
	}
	v.NextAttemptAt = v.NextAttemptAt.Add(afterOthers)
	return v, reason
}

// slowDown moves an unanswered call to the slow lane, and its destination with it. The
// slow lane may then have more calls than slots. It starts no call until it has room.
func (w *Worker) slowDown(m *mailbox, j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.lane != &w.good {
		return // it was answered, or is already in the slow lane
	}
	m.slow = true
	j.lane = &w.slow
	w.slow.used++
	w.count.inFlight.WithLabelValues(w.slow.name).Inc()
	w.freeSlot(&w.good)
}

// conclude ends a call: it updates the breaker and the lane of the mailbox, frees the
// slot, and starts or defers the waiting deliveries.
func (w *Worker) conclude(m *mailbox, j *job, r call.Result, v Verdict, now time.Time) {
	w.mu.Lock()
	l := j.lane
	j.lane, j.concluded = nil, true
	w.end(m, j)
	if v.Outcome == deliveries.OutcomeDelivered && w.isFinal(j.delivery) {
		w.final[j.delivery.SessionID] = time.Now()
	}
	if v.Unhealthy {
		m.breaker.failed(now, r.Timeout())
		if wait := asksToWait(r); wait > 0 {
			m.breaker.wait(now, wait)
		}
		if v.Refused {
			m.breaker.shut(v.NextAttemptAt.Add(-afterOthers))
		}
	} else {
		m.breaker.succeeded(now)
		if r.Duration < slowAfter {
			m.slow = false
		}
	}
	if v.Outcome == deliveries.OutcomeDelivered && !v.OwnAddress {
		m.refusals.took(j.delivery.DeliveryID, now)
	}
	if v.Gone {
		m.gone = time.Now()
	}
	var put []*job
	reason, until := "", now
	switch {
	case w.isSuspended(m):
		reason, until = deliveries.ReasonSuspended, now.Add(deferHeld)
	case m.breaker.state(now) == breakerOpen:
		reason, until = deliveries.ReasonBreakerOpen, m.breaker.reopenAt
	}
	if reason != "" {
		put = w.empty(m)
	}
	w.showBreaker(m, now)
	w.freeSlot(l)
	w.pump(m)
	w.mu.Unlock()
	for _, other := range put {
		w.deferred(other, reason, now, until)
	}
}

// empty takes all waiting jobs out of a mailbox. The caller holds the lock, and defers
// the jobs afterwards.
func (w *Worker) empty(m *mailbox) []*job {
	put := m.queue
	m.queue = nil
	w.queued -= len(put)
	w.count.waiting.Sub(float64(len(put)))
	for _, j := range put {
		j.concluded = true
	}
	return put
}

// showBreaker updates the gauge of breakers. The caller holds the lock.
func (w *Worker) showBreaker(m *mailbox, now time.Time) {
	state := m.breaker.state(now)
	if state == m.shown {
		return
	}
	if m.shown != breakerClosed {
		w.count.breakers.WithLabelValues(breakerNames[m.shown]).Dec()
	}
	if state != breakerClosed {
		w.count.breakers.WithLabelValues(breakerNames[state]).Inc()
	}
	m.shown = state
}

// abandon removes the job of a cancelled call. Its result is unknown, so it has no
// outcome and its offset stays unsettled.
func (w *Worker) abandon(m *mailbox, j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := j.lane
	j.lane = nil
	w.end(m, j)
	if w.jobs[j.delivery.DeliveryID] == j {
		delete(w.jobs, j.delivery.DeliveryID)
	}
	w.freeSlot(l)
}

// deferred records that no call was made. The attempt is not counted.
func (w *Worker) deferred(j *job, reason string, now, until time.Time) {
	w.count.deferred.WithLabelValues(reason).Inc()
	w.mu.Lock()
	d := *j.delivery
	w.mu.Unlock()
	w.record(j, &record.Attempt{Delivery: d, Outcome: string(deliveries.OutcomeDeferred), At: now, Reason: reason, NextAttemptAt: until})
}

// record writes an outcome to Kafka. It settles the offsets of the delivery when Kafka
// has acknowledged the outcome.
func (w *Worker) record(j *job, a *record.Attempt) {
	switch deliveries.Outcome(a.Outcome) {
	case deliveries.OutcomeDelivered, deliveries.OutcomeSuperseded:
		a.Delivery.Body, a.Delivery.Mac = nil, nil
	default: // the schedule stores the bytes to send
	}
	w.mu.Lock()
	a.Delivery.Round = j.delivery.Round // the delivery may have been read again in a later round
	w.mu.Unlock()
	value, err := w.cfg.Codec.Encode(a)
	if err != nil {
		w.fail(fmt.Errorf("recording the outcome of %s: %w", a.Delivery.DeliveryID, err))
		return
	}
	w.produce(context.WithoutCancel(w.callCtx), outcomeRecord(w.cfg.Kafka, w.cfg.Outcomes, a, value), func(_ *kgo.Record, err error) {
		if err != nil {
			w.fail(fmt.Errorf("recording the outcome of %s: %w", a.Delivery.DeliveryID, err))
			return
		}
		w.settle(j)
	})
}

// settle settles the offsets of a job whose outcome is in Kafka.
func (w *Worker) settle(j *job) {
	w.mu.Lock()
	if w.jobs[j.delivery.DeliveryID] == j {
		delete(w.jobs, j.delivery.DeliveryID)
	}
	positions := j.positions
	j.positions = nil
	w.mu.Unlock()
	for _, p := range positions {
		p.tracker.Done(p.offset)
	}
}

// fail ends Run with an error. No offset may be committed past an outcome that is not
// recorded.
func (w *Worker) fail(err error) {
	select {
	case w.fatal <- err:
	default:
	}
}

// drop removes waiting jobs from the mailboxes whose partitions are no longer read
// here. The next owner of the partition sends them.
func (w *Worker) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.mailboxes {
		kept := m.queue[:0]
		for _, j := range m.queue {
			live := j.positions[:0:0]
			for _, p := range j.positions {
				if p.tracker.Stopped() {
					p.tracker.Forget()
				} else {
					live = append(live, p)
				}
			}
			if j.positions = live; len(live) > 0 {
				kept = append(kept, j)
				continue
			}
			delete(w.jobs, j.delivery.DeliveryID)
			w.queued--
			w.count.waiting.Dec()
		}
		clear(m.queue[len(kept):])
		m.queue = kept
	}
}

// followHolds reads suspensions and resumptions from Postgres until ctx ends.
func (w *Worker) followHolds(ctx context.Context) error {
	turn := func(ctx context.Context) error {
		w.loop.Turn()
		return w.readHolds(ctx) // takes the lock of the mailboxes
	}
	return consume.Every(ctx, holdsEvery, turn, func(err error) {
		w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reading suspended destinations; the known ones stay suspended", slog.Any("error", err))
	})
}

func (w *Worker) readHolds(ctx context.Context) error {
	held, err := w.cfg.History.Suspended(ctx, w.cfg.Kind.Kind)
	if err != nil {
		return err
	}
	refusing, err := w.cfg.History.Refusing(ctx, w.cfg.Kind.Kind)
	if err != nil {
		return err
	}
	resumed, err := w.cfg.History.Resumed(ctx, w.cfg.Kind.Kind)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, m := range w.mailboxes {
		if w.suspended[id] && !held[id] || w.resumed != nil && resumed[id].After(w.resumed[id]) {
			m.breaker, m.gone = breaker{}, time.Time{} // an operator has resumed it, suspended or on hold: call it at once
		}
	}
	for id := range w.refusing {
		if m := w.mailboxes[id]; m != nil && !refusing[id] {
			m.breaker = breaker{} // it accepts again, elsewhere, or an operator has resumed it
		}
	}
	w.suspended, w.refusing, w.resumed = held, refusing, resumed
	for _, m := range w.mailboxes {
		if !m.gone.IsZero() && time.Since(m.gone) > goneFor {
			m.gone = time.Time{} // Postgres has the suspension now
		}
	}
	return nil
}

// forgetIdle deletes mailboxes that are empty and have no state, until ctx ends.
func (w *Worker) forgetIdle(ctx context.Context) error {
	for consume.Sleep(ctx, forgetEvery) {
		w.mu.Lock()
		maps.DeleteFunc(w.final, func(_ string, at time.Time) bool { return time.Since(at) > finalFor })
		now := w.cfg.Now()
		for id, m := range w.mailboxes {
			w.showBreaker(m, now)
			if len(m.queue) == 0 && m.inFlight == 0 && !m.inLine && !m.paced && m.breaker.idle(now) && m.gone.IsZero() && len(m.refusals.by) == 0 {
				delete(w.mailboxes, id)
			}
		}
		w.mu.Unlock()
	}
	return nil
}
