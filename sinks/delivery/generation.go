package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/internal/deliveries"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/record"
)

const (
	// fetchWait is how long a fetch without records waits; a record ends the wait at once. It
	// can be long, because each partition has fetches of its own, and none waits for that of
	// another.
	fetchWait  = 5 * time.Second
	fetchBytes = 4 << 20
	askAtOnce  = 500                   // deliveries in one question to Postgres
	askAfter   = 20 * time.Millisecond // without another record, fewer are asked about
	retryEvery = time.Second
)

// generations works through the generations of the group until ctx ends.
func (w *Worker) generations(ctx context.Context, group *kafkago.ConsumerGroup) error {
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, kafkago.ErrGroupClosed):
			return nil
		case err != nil:
			w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "joining the group", slog.String("group", w.group), slog.Any("error", err))
			continue // kafka-go backs off
		}
		w.loop.Ready()
		trackers, moved := map[int]*consume.Watermark{}, make(chan struct{}, 1)
		assigned := gen.Assignments[w.topic]
		var readers sync.WaitGroup
		for _, a := range assigned {
			t := consume.NewWatermark(max(a.Offset, 0))
			t.Moved = func(int64, int32) { signal(moved) }
			trackers[a.ID] = t
			readers.Add(1)
			gen.Start(func(gctx context.Context) {
				defer readers.Done()
				w.consume(gctx, a, t)
				t.Stop()
			})
		}
		w.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "partitions assigned", slog.String("topic", w.topic), slog.Int("partitions", len(assigned)), slog.Int("generation", int(gen.ID)))
		gen.Start(func(gctx context.Context) { w.commit(gctx, gen, trackers, moved, &readers) })
	}
}

// signal puts a value into a channel with a capacity of one, if it is empty.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// commit commits the low watermarks during the generation, a moment after one has moved.
// When the generation ends, calls under way get some time to finish. Then commit commits
// the offsets that they have settled and releases the trackers: the outcome of a later
// answer is recorded, but settles no offset.
func (w *Worker) commit(ctx context.Context, gen *kafkago.Generation, trackers map[int]*consume.Watermark, moved chan struct{}, readers *sync.WaitGroup) {
	committed := map[int]int64{}
	commit := func() (ok bool) {
		offsets := map[int]int64{}
		for p, t := range trackers {
			if low, ok := t.Next(); ok && low > committed[p] {
				offsets[p] = low
			}
		}
		if len(offsets) == 0 {
			return true
		}
		// No lock is needed: the broker refuses a commit of an older generation.
		if err := gen.CommitOffsets(map[string]map[int]int64{w.topic: offsets}); err != nil {
			w.cfg.Log.LogAttrs(context.Background(), slog.LevelWarn, "committing offsets", slog.String("topic", w.topic), slog.Any("error", err))
			return false
		}
		for p, low := range offsets {
			committed[p] = low
		}
		return true
	}
	for _, a := range gen.Assignments[w.topic] {
		committed[a.ID] = a.Offset
	}
	signal(moved) // the first commit tells others that the group reads
	for {
		select {
		case <-moved:
		case <-ctx.Done():
		}
		if !consume.Sleep(ctx, commitEvery) {
			break
		}
		if !commit() {
			signal(moved)
		}
	}
	for _, t := range trackers {
		t.Stop()
	}
	w.drop()
	w.mu.Lock()
	patience := drainRevoke
	if w.stopping {
		patience = drainStop
	}
	w.mu.Unlock()
	beating := w.beat(gen)
	begun := time.Now()
	for time.Since(begun) < patience && waiting(trackers) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	commit()
	beating()
	for _, t := range trackers {
		t.Release()
	}
	readers.Wait()
}

// beat keeps this member in the group while calls under way finish: kafka-go sends no
// heartbeats after the end of a generation, and the drain takes longer than a session.
// Otherwise the broker would refuse the last commit, and other workers would receive
// deliveries whose calls are still under way.
func (w *Worker) beat(gen *kafkago.Generation) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.callCtx))
	var done sync.WaitGroup
	done.Go(func() {
		for consume.Sleep(ctx, w.heartbeat) {
			req := kmsg.NewPtrHeartbeatRequest()
			req.Group, req.Generation, req.MemberID = gen.GroupID, gen.ID, gen.MemberID
			// If the membership has ended, the last commit and the next join say so.
			_, _ = req.RequestWith(ctx, w.producer)
		}
	})
	return func() { cancel(); done.Wait() }
}

func waiting(trackers map[int]*consume.Watermark) int {
	n := 0
	for _, t := range trackers {
		n += t.Waiting()
	}
	return n
}

// consume reads one partition until the generation ends. It never waits for a
// destination. It waits for Postgres with records that may have been sent before.
func (w *Worker) consume(ctx context.Context, a kafkago.PartitionAssignment, t *consume.Watermark) {
	start, end, ok := w.bounds(ctx, a)
	if !ok {
		return
	}
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: w.cfg.Kafka.Brokers, Dialer: w.dialer(ctx), Topic: w.topic, Partition: a.ID, MinBytes: 1, MaxBytes: fetchBytes, MaxWait: fetchWait,
		QueueCapacity: askAtOnce, ReadLagInterval: -1, ReadBackoffMin: 20 * time.Millisecond, ReadBackoffMax: retryEvery,
	})
	defer func() { _ = reader.Close() }()
	if err := reader.SetOffset(start); err != nil {
		w.fail(fmt.Errorf("reading %s[%d] from %d: %w", w.topic, a.ID, start, err))
		<-ctx.Done()
		return
	}
	// A delivery may be superseded by one that the partition's previous owner sent.
	ordered := w.cfg.Kind.Final != ""
	caughtUp := start >= end && !ordered
	var old []arrival
	for {
		fetchCtx, cancel := ctx, context.CancelFunc(func() {})
		if len(old) > 0 {
			fetchCtx, cancel = context.WithTimeout(ctx, askAfter)
		}
		m, err := reader.FetchMessage(fetchCtx)
		cancel()
		if ctx.Err() != nil {
			for _, o := range old {
				o.at.tracker.Forget()
			}
			return
		}
		if err == nil {
			if !t.Take(m.Offset, 0) {
				return
			}
			d, ok := w.read(ctx, a.ID, m, t)
			repeat := slices.ContainsFunc(m.Headers, func(h kafkago.Header) bool { return h.Key == headerRepeat })
			if ok && (m.Offset < end || repeat || ordered && !caughtUp) {
				old = append(old, arrival{d, position{t, m.Offset}})
				// It may have been sent just now: Postgres must catch up before it is asked.
				caughtUp = caughtUp && !repeat
			} else if ok {
				w.acceptOld(ctx, &old, &caughtUp)
				w.accept(d, position{t, m.Offset})
			}
		} else if len(old) == 0 {
			w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reading deliveries", slog.String("topic", w.topic), slog.Int("partition", a.ID), slog.Any("error", err))
			consume.Sleep(ctx, joinBackoff/10)
		}
		if err != nil || len(old) >= askAtOnce {
			w.acceptOld(ctx, &old, &caughtUp)
		}
	}
}

// dialer returns a dialer whose connections are closed when ctx ends. Otherwise the reader
// would wait for the answer to its last fetch, and the next generation with it.
func (w *Worker) dialer(ctx context.Context) *kafkago.Dialer {
	dialer := w.cfg.Kafka.Security.Dialer()
	dial := dialer.DialFunc
	dialer.DialFunc = func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(dialing, network, address)
		if err != nil {
			return nil, err
		}
		return &bound{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
	}
	return dialer
}

// bound is a connection that is closed when a context ends. The context forgets it when it
// is closed before.
type bound struct {
	net.Conn
	forget func() bool
}

// Close implements net.Conn.
func (b *bound) Close() error {
	b.forget()
	return b.Conn.Close()
}

// arrival is a delivery that was read and not yet accepted.
type arrival struct {
	delivery *record.Delivery
	at       position
}

// bounds returns the offset to start from and the partition's end. It tries until it
// has them or ctx ends.
func (w *Worker) bounds(ctx context.Context, a kafkago.PartitionAssignment) (start, end int64, ok bool) {
	adm := kadm.NewClient(w.producer)
	for {
		offset, err := listOffset(ctx, adm.ListEndOffsets, w.topic, int32(a.ID)) //nolint:gosec // a partition
		if err == nil {
			end = offset
			offset, err = listOffset(ctx, adm.ListStartOffsets, w.topic, int32(a.ID)) //nolint:gosec // a partition
		}
		if err == nil {
			switch {
			case a.Offset < 0:
				return offset, end, true
			case a.Offset > end:
				// The broker has lost records, or it is another broker.
				w.cfg.Log.LogAttrs(ctx, slog.LevelError, "committed offset lies beyond the partition's end: reading it from its start",
					slog.String("topic", w.topic), slog.Int("partition", a.ID), slog.Int64("committed", a.Offset), slog.Int64("end", end))
				return offset, end, true
			default:
				return max(a.Offset, offset), end, true
			}
		}
		if ctx.Err() != nil {
			return 0, 0, false
		}
		w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "asking for a partition's bounds", slog.String("topic", w.topic), slog.Int("partition", a.ID), slog.Any("error", err))
		if !consume.Sleep(ctx, retryEvery) {
			return 0, 0, false
		}
	}
}

func listOffset(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string, partition int32) (int64, error) {
	offsets, err := list(ctx, topic)
	if err != nil {
		return 0, err
	}
	o, ok := offsets.Lookup(topic, partition)
	if !ok {
		return 0, fmt.Errorf("%s[%d] does not exist", topic, partition)
	}
	return o.Offset, o.Err
}

// read decodes a record. A record that cannot be decoded goes to the poison topic. Its
// offset is settled when Kafka has acknowledged the copy.
func (w *Worker) read(ctx context.Context, partition int, m kafkago.Message, t *consume.Watermark) (*record.Delivery, bool) {
	d := &record.Delivery{}
	err := decode(ctx, w.cfg.Codec, m.Value, d)
	if err == nil && (d.DeliveryID == "" || d.DestinationID == "" || deliveries.Kind(d.Kind) != w.cfg.Kind.Kind) {
		err = fmt.Errorf("delivery of another kind or without id or destination: %w", schemas.ErrUndecodable)
	}
	settle := func() { t.Done(m.Offset) }
	if err == nil {
		if err = w.proved(d); err == nil {
			return d, true
		}
		settle = w.distrust(d, settle)
	} else if !errors.Is(err, schemas.ErrUndecodable) {
		t.Forget() // the generation ended while the schema registry was away
		return nil, false
	}
	w.count.poison.Inc()
	poison := &kgo.Record{Topic: w.topic, Partition: int32(partition), Offset: m.Offset, Key: m.Key, Value: m.Value} //nolint:gosec // a partition
	w.producer.Produce(context.WithoutCancel(ctx), schemas.Poison(w.cfg.Kafka.Prefix+schemas.TopicPoisonDeliveries, poison, err),
		func(_ *kgo.Record, err error) {
			if err != nil {
				w.fail(fmt.Errorf("writing to the poison topic: %w", err))
				return
			}
			settle()
		})
	return nil, false
}

// acceptOld accepts deliveries that may have been sent before: the partition's previous
// owner may have sent them, or a planner may have written them twice. It settles those
// that need no sending. It waits while Postgres is unavailable.
func (w *Worker) acceptOld(ctx context.Context, old *[]arrival, caughtUp *bool) {
	if len(*old) == 0 {
		return
	}
	// Adopt before asking Postgres. Otherwise a job that is under way now could be
	// settled and deleted before the answer comes, and the delivery would be sent twice.
	batch := slices.DeleteFunc(*old, func(o arrival) bool { return w.adopt(o.delivery, o.at) })
	*old = nil
	if len(batch) == 0 {
		return
	}
	settled, ok := w.ask(ctx, batch, caughtUp)
	if !ok {
		for _, o := range batch {
			o.at.tracker.Forget() // the generation ended; the offset stays unsettled
		}
		return
	}
	for _, o := range batch {
		if settled[o.delivery.DeliveryID] {
			o.at.tracker.Done(o.at.offset)
		} else {
			w.accept(o.delivery, o.at)
		}
	}
}

// ask returns the ids of those deliveries of the batch that need no sending. It tries
// until it has an answer; ok is false when ctx ended first.
func (w *Worker) ask(ctx context.Context, batch []arrival, caughtUp *bool) (settled map[string]bool, ok bool) {
	refs := make([]deliveries.Ref, len(batch))
	for i, o := range batch {
		refs[i] = deliveries.Ref{DeliveryID: o.delivery.DeliveryID, OccurredAt: o.delivery.OccurredAt, Round: o.delivery.Round}
	}
	for {
		var err error
		if !*caughtUp {
			err = w.cfg.History.CatchUp(ctx)
			*caughtUp = err == nil
		}
		if err == nil {
			if settled, err = w.cfg.History.Settled(ctx, refs); err == nil {
				return settled, true
			}
		}
		if ctx.Err() != nil {
			return nil, false
		}
		w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "asking which deliveries are settled, waiting for Postgres", slog.Any("error", err))
		if !consume.Sleep(ctx, retryEvery) {
			return nil, false
		}
	}
}

// decode decodes a value. It tries again while the schema registry is unavailable.
func decode(ctx context.Context, codec *schemas.Codec, value []byte, into record.Record) error {
	for {
		err := codec.Decode(value, into)
		if err == nil || errors.Is(err, schemas.ErrUndecodable) || !consume.Sleep(ctx, retryEvery) {
			return err
		}
	}
}
