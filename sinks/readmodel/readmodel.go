// Package readmodel applies checkout.events to the read model in Postgres
// (internal/sessions).
//
// Partitions are shared out by a consumer group, but where to go on reading
// stands in Postgres, written in the transaction that writes the rows: a batch is
// applied with its position or not at all. A batch names the position that it
// starts from, so of two instances that both believe to own a partition for a
// moment one finds the position moved, writes nothing, and reads again from
// where it is.
package readmodel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

const (
	group = "readmodel"
	// batch bounds what one transaction in Postgres holds.
	batch = 1000
	// applyTimeout bounds it in time: a Postgres that hangs is one that is away.
	applyTimeout = 10 * time.Second
	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
)

// Headers of a poison record, behind those that it had; key and value are as
// they were.
const (
	HeaderTopic     = "quittance-topic"
	HeaderPartition = "quittance-partition"
	HeaderOffset    = "quittance-offset"
	HeaderError     = "quittance-error"
)

// Config of a ReadModel. All fields are required, except Metrics.
type Config struct {
	Kafka   kafka.Config
	Space   *kafka.Topology
	Codec   *schemas.Codec
	Pool    *pgxpool.Pool
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// ReadModel is the sink. Run it once.
type ReadModel struct {
	cfg    Config
	store  *sessions.Store
	topic  string
	poison string
	client *kgo.Client
	admin  *kadm.Client

	mu        sync.Mutex
	positions map[int32]int64 // as stored, of the partitions assigned

	events   *prometheus.CounterVec
	types    *prometheus.CounterVec
	failures prometheus.Counter
	oldest   atomic.Int64 // of the records in hand, Unix milliseconds; 0 when there are none
}

// New makes a sink. It connects when it runs.
func New(cfg Config) (*ReadModel, error) {
	if len(cfg.Kafka.Brokers) == 0 || cfg.Space == nil || cfg.Codec == nil || cfg.Pool == nil || cfg.Log == nil {
		return nil, errors.New("read model: Kafka.Brokers, Space, Codec, Pool and Log are required")
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	with := promauto.With(cfg.Metrics)
	r := &ReadModel{
		cfg: cfg, store: sessions.NewStore(cfg.Pool), positions: map[int32]int64{},
		topic: cfg.Space.Name(schemas.TopicEvents), poison: cfg.Space.Name(schemas.TopicPoisonReadmodel),
		events: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_readmodel_events_total", Help: "Events read, by outcome: applied or poison.",
		}, []string{"outcome"}),
		types: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_checkout_events_total", Help: "Events by type and mode (test, live; none when of no session), counted when the read model has them; building it anew counts them again.",
		}, []string{"event", "mode"}),
		failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_readmodel_failures_total", Help: "Batches that could not be applied and were read again.",
		}),
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_readmodel_lag_seconds", Help: "Age of the oldest event read that is not in the read model yet; 0 when there is none.",
	}, r.lag)
	for _, outcome := range []string{"applied", "poison"} {
		r.events.WithLabelValues(outcome)
	}
	for _, t := range checkout.EventTypes() {
		r.types.WithLabelValues(string(t), modeTest)
		r.types.WithLabelValues(string(t), modeLive)
	}
	r.types.WithLabelValues(string(checkout.EventCollectionOrphaned), modeNone)
	return r, nil
}

// Values of the mode label.
const (
	modeTest = "test"
	modeLive = "live"
	modeNone = "none"
)

func (r *ReadModel) lag() float64 {
	at := r.oldest.Load()
	if at == 0 {
		return 0
	}
	return max(0, time.Since(time.UnixMilli(at)).Seconds())
}

// Run applies events until ctx ends, and returns nil then; a batch under way is
// finished first. While Kafka or Postgres is away it waits. It returns an error
// only when it could not begin.
func (r *ReadModel) Run(ctx context.Context) error {
	client, err := r.cfg.Kafka.Client(
		kgo.ConsumerGroup(r.cfg.Kafka.Prefix+group), kgo.ConsumeTopics(r.topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.BlockRebalanceOnPoll(), kgo.DisableAutoCommit(),
		kgo.AdjustFetchOffsetsFn(r.begin), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// Whoever has the partitions now has their records in hand.
		kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) { r.oldest.Store(0) }),
	)
	if err != nil {
		return fmt.Errorf("read model: %w", err)
	}
	r.client, r.admin = client, kadm.NewClient(client)
	defer client.CloseAllowingRebalance()

	for pause := firstPause; ; {
		fetches := client.PollRecords(ctx, batch)
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reading events", slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
		})
		// What was begun is finished, whatever ctx says meanwhile.
		finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
		r.inHand(fetches.Records())
		err := r.apply(finishing, fetches.Records())
		if err != nil {
			r.rewind(finishing, fetches.Records(), err)
		}
		cancel()
		client.AllowRebalance()
		if err == nil {
			r.oldest.Store(0)
			pause = firstPause
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// begin says where to start reading partitions that were just assigned: where
// Postgres says. It waits for Postgres and the broker; ctx ends with the
// assignment.
func (r *ReadModel) begin(ctx context.Context, assigned map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for {
		starts, err := r.starts(ctx, assigned[r.topic])
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			for p, at := range starts {
				r.positions[p] = at
				assigned[r.topic][p] = kgo.NewOffset().At(at).WithEpoch(-1)
			}
			return assigned, nil
		}
		if ctx.Err() == nil {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "finding out where to read on", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("finding out where to read on: %w", ctx.Err())
		case <-time.After(longestPause / 2):
		}
	}
}

func (r *ReadModel) starts(ctx context.Context, assigned map[int32]kgo.Offset) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout/2)
	defer cancel()
	stored, err := r.store.Positions(ctx, r.topic)
	if err != nil {
		return nil, err
	}
	first, err := r.admin.ListStartOffsets(ctx, r.topic)
	if err == nil {
		err = first.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("listing first offsets: %w", err)
	}
	end, err := r.admin.ListEndOffsets(ctx, r.topic)
	if err == nil {
		err = end.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("listing last offsets: %w", err)
	}
	out := map[int32]int64{}
	for p := range assigned {
		from, known := stored[p]
		low, ok := first.Lookup(r.topic, p)
		high, ok2 := end.Lookup(r.topic, p)
		if !ok || !ok2 {
			return nil, fmt.Errorf("listing offsets: partition %d is missing", p)
		}
		to := from
		switch {
		case !known:
			from, to = sessions.None, low.Offset
		case from < low.Offset:
			to = low.Offset
			r.cfg.Log.LogAttrs(ctx, slog.LevelError, "events were deleted before they were applied: the read model has a gap",
				slog.Int("partition", int(p)), slog.Int64("position", from), slog.Int64("first", to))
		case from > high.Offset:
			to = low.Offset
			r.cfg.Log.LogAttrs(ctx, slog.LevelError, "the position lies behind the end of the events: the broker lost data or is another one; reading all of them again",
				slog.Int("partition", int(p)), slog.Int64("position", from), slog.Int64("end", high.Offset))
		}
		if from != to {
			// Stored at once: reads wait for it, and there may be nothing to read.
			if err := r.store.Apply(ctx, r.topic, nil, []sessions.Move{{Partition: p, From: from, To: to}}); err != nil {
				return nil, err
			}
		}
		out[p] = to
	}
	return out, nil
}

// inHand remembers how old the oldest of the records is.
func (r *ReadModel) inHand(records []*kgo.Record) {
	for i, rec := range records {
		if at := rec.Timestamp.UnixMilli(); i == 0 || at < r.oldest.Load() {
			r.oldest.Store(at)
		}
	}
}

// event is what a record tells.
type event struct {
	kind    checkout.EventType
	session *checkout.Session // nil for an event of no session
}

func sessionsOf(events []event) []checkout.Session {
	out := make([]checkout.Session, 0, len(events))
	for _, e := range events {
		if e.session != nil {
			out = append(out, *e.session)
		}
	}
	return out
}

// count counts events that have been applied.
func (r *ReadModel) count(events []event) {
	for _, e := range events {
		mode := modeNone
		if e.session != nil {
			r.events.WithLabelValues("applied").Inc()
			if mode = modeTest; e.session.Live {
				mode = modeLive
			}
		}
		r.types.WithLabelValues(string(e.kind), mode).Inc()
	}
}

// apply writes what records tell, and how far they go.
func (r *ReadModel) apply(ctx context.Context, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	events := make([]event, 0, len(records))
	ends := map[int32]int64{}
	var poison []*kgo.Record
	for _, rec := range records {
		ends[rec.Partition] = rec.Offset + 1
		e, err := r.decode(rec)
		switch {
		case errors.Is(err, schemas.ErrUndecodable):
			poison = append(poison, r.poisoned(rec, err))
		case err != nil:
			return err
		case e != nil:
			events = append(events, *e)
		}
	}
	if err := r.setAside(ctx, poison); err != nil {
		return err
	}
	err := r.store.Apply(ctx, r.topic, sessionsOf(events), r.moves(ends))
	if errors.Is(err, sessions.ErrRefused) {
		return r.applyEach(ctx, records)
	}
	if err != nil {
		return err
	}
	r.advance(ends)
	r.count(events)
	return nil
}

// applyEach goes record by record, to find the one that Postgres refuses.
func (r *ReadModel) applyEach(ctx context.Context, records []*kgo.Record) error {
	for _, rec := range records {
		ends := map[int32]int64{rec.Partition: rec.Offset + 1}
		var events []event
		e, err := r.decode(rec)
		if err != nil && !errors.Is(err, schemas.ErrUndecodable) { // those are set aside already
			return err
		}
		if e != nil {
			events = append(events, *e)
		}
		err = r.store.Apply(ctx, r.topic, sessionsOf(events), r.moves(ends))
		if errors.Is(err, sessions.ErrRefused) {
			if err = r.setAside(ctx, []*kgo.Record{r.poisoned(rec, err)}); err == nil {
				events = nil
				err = r.store.Apply(ctx, r.topic, nil, r.moves(ends))
			}
		}
		if err != nil {
			return err
		}
		r.advance(ends)
		r.count(events)
	}
	return nil
}

// decode is an event with the session as it stands after it; nil for a control
// record.
func (r *ReadModel) decode(rec *kgo.Record) (*event, error) {
	if rec.Attrs.IsControl() {
		return nil, nil //nolint:nilnil // nothing to apply is no error
	}
	var e record.Event
	if err := r.cfg.Codec.Decode(rec.Value, &e); err != nil {
		return nil, err
	}
	out := &event{kind: checkout.EventType(e.Type)}
	if e.Session != nil {
		s := mapping.ToSession(e.Session)
		s.Sequence = e.Sequence
		out.session = &s
	}
	return out, nil
}

func (r *ReadModel) poisoned(rec *kgo.Record, cause error) *kgo.Record {
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	r.cfg.Log.LogAttrs(context.Background(), slog.LevelError, "event cannot be applied, set aside", slog.String("topic", rec.Topic),
		slog.Int("partition", int(rec.Partition)), slog.Int64("offset", rec.Offset), slog.Any("error", cause))
	return &kgo.Record{
		Topic: r.poison, Partition: 0, Key: rec.Key, Value: rec.Value,
		Headers: append(slices.Clone(rec.Headers),
			header(HeaderTopic, rec.Topic), header(HeaderPartition, strconv.Itoa(int(rec.Partition))),
			header(HeaderOffset, strconv.FormatInt(rec.Offset, 10)), header(HeaderError, cause.Error())),
	}
}

// setAside writes poison before the position passes it: it may stand there twice,
// never not at all.
func (r *ReadModel) setAside(ctx context.Context, poison []*kgo.Record) error {
	if len(poison) == 0 {
		return nil
	}
	if err := r.client.ProduceSync(ctx, poison...).FirstErr(); err != nil {
		return fmt.Errorf("writing to %s: %w", r.poison, err)
	}
	r.events.WithLabelValues("poison").Add(float64(len(poison)))
	return nil
}

func (r *ReadModel) moves(ends map[int32]int64) []sessions.Move {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]sessions.Move, 0, len(ends))
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		if ends[p] < r.positions[p] {
			r.cfg.Log.LogAttrs(context.Background(), slog.LevelError, "events begin again before the position: the broker lost data",
				slog.Int("partition", int(p)), slog.Int64("position", r.positions[p]), slog.Int64("read", ends[p]))
		}
		out = append(out, sessions.Move{Partition: p, From: r.positions[p], To: ends[p]})
	}
	return out
}

func (r *ReadModel) advance(ends map[int32]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.positions, ends)
}

// rewind has the partitions of a failed batch read again from where Postgres
// says; from where it was last known to be, while it cannot say. Nothing can be
// revoked meanwhile: the rebalance is blocked.
func (r *ReadModel) rewind(ctx context.Context, records []*kgo.Record, cause error) {
	r.failures.Inc()
	r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "applying events, reading them again", slog.Any("error", cause))
	stored, err := r.store.Positions(ctx, r.topic)
	r.mu.Lock()
	defer r.mu.Unlock()
	offsets := map[int32]kgo.EpochOffset{}
	for _, rec := range records {
		p := rec.Partition
		if at, ok := stored[p]; ok && err == nil {
			r.positions[p] = at
		}
		offsets[p] = kgo.EpochOffset{Epoch: -1, Offset: r.positions[p]}
	}
	r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{r.topic: offsets})
}
