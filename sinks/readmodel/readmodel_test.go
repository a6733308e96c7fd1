package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/mapping"
	sink "quittance/sinks/readmodel"
	"quittance/test/await"
	"quittance/test/servers"
)

const (
	partitions = 4
	patience   = 20 * time.Second
)

// numbered is a schema registry in memory.
type numbered struct {
	mu    sync.Mutex
	texts []string
}

func (n *numbered) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (n *numbered) ID(_ context.Context, _, schema string, _ bool) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, schema)
	return len(n.texts), nil
}

func (n *numbered) Schema(_ context.Context, id int) (string, error) {
	return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
}

type world struct {
	cfg      kafka.Config
	topology *kafka.Topology
	codec    *schemas.Codec
	client   *kgo.Client
	dsn      string
	pool     *pgxpool.Pool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cfg: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: partitions}, dsn: servers.Migrated(t)}
	var err error
	if w.client, err = w.cfg.Producer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	if _, err := kafka.Migrate(t.Context(), w.cfg, w.client); err != nil {
		t.Fatal(err)
	}
	if w.topology, err = kafka.Load(t.Context(), w.cfg, w.client); err != nil {
		t.Fatal(err)
	}
	if w.codec, err = schemas.NewCodec(t.Context(), &numbered{}, true); err != nil {
		t.Fatal(err)
	}
	w.pool = openPool(t, w.dsn)
	return w
}

func openPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// sink runs a sink on a pool until the test ends or stop is called.
func (w *world) sink(t *testing.T, pool *pgxpool.Pool) (stop func(), metrics *prometheus.Registry) {
	t.Helper()
	metrics = prometheus.NewRegistry()
	s, err := sink.New(sink.Config{Kafka: w.cfg, Codec: w.codec, Store: sessions.NewStore(pool), Log: servers.Logger(t), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	return runs(t, s.Run), metrics
}

func (w *world) reader(t *testing.T) *sessions.Reader {
	t.Helper()
	r, err := sessions.New(sessions.Config{Pool: w.pool, Kafka: w.cfg, Topology: w.topology, Codec: w.codec, Log: servers.Logger(t), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	runs(t, r.Run)
	return r
}

func runs(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func app(n int) string { return fmt.Sprintf("018f0000-0000-7000-8000-%012d", n) }

// agency returns the agency of an application.
func agency(app string) string { return "agency of " + app }

func (w *world) session(n int, app string, sequence int64) checkout.Session {
	at := time.UnixMilli(1_790_000_000_000 + int64(n)).UTC()
	return checkout.Session{
		ID:            checkout.NewSessionID(at, w.topology.Partition(schemas.TopicEvents, agency(app)), [16]byte{byte(n), byte(n >> 8)}),
		ApplicationID: app, TenantID: agency(app), OrderID: "o", Amount: 1, Currency: "XAF", Mode: checkout.ModeHosted,
		CreatedAt: at, ExpiresAt: at.Add(time.Hour), Status: checkout.StatusOpen, Sequence: sequence,
	}
}

func (w *world) event(t *testing.T, s checkout.Session) *kgo.Record {
	t.Helper()
	value, err := w.codec.Encode(mapping.FromEvent(checkout.Event{
		ID: fmt.Sprintf("evt_%s_%d", s.ID, s.Sequence), Type: checkout.EventCreated, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: s.CreatedAt, Session: s,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return &kgo.Record{Topic: w.topology.Name(schemas.TopicEvents), Partition: w.topology.Partition(schemas.TopicEvents, s.TenantID), Key: []byte(s.TenantID), Value: value}
}

func (w *world) produce(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	if err := w.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// sum is the content of the read model: the number of sessions and the sum of their
// sequences.
func (w *world) sum(t *testing.T) (sessions, sequences int64) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*), coalesce(sum(sequence), 0) FROM sessions`).Scan(&sessions, &sequences); err != nil {
		t.Fatal(err)
	}
	return sessions, sequences
}

func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	await.Until(t, what, done)
}

// atEnd reports whether every position is at its partition's high watermark.
func (w *world) atEnd(t *testing.T) bool {
	t.Helper()
	topic := w.topology.Name(schemas.TopicEvents)
	positions, err := sessions.NewStore(w.pool).Positions(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := kadm.NewClient(w.client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for p := range int32(partitions) {
		end, _ := ends.Lookup(topic, p)
		if at, ok := positions[p]; !ok || at != end.Offset {
			return false
		}
	}
	return true
}

func TestOrderAndRepetitionDoNotMatter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	var records []*kgo.Record
	for n := range 50 {
		for sequence := int64(1); sequence <= 4; sequence++ {
			for range 2 {
				records = append(records, w.event(t, w.session(n, app(n%7), sequence)))
			}
		}
	}
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	w.produce(t, records...)
	within(t, "applying", func() bool { return w.atEnd(t) })
	if sessions, sequences := w.sum(t); sessions != 50 || sequences != 200 {
		t.Errorf("%d sessions with sequences of %d, want 50 with 200", sessions, sequences)
	}
}

// A read that begins after an acknowledgement shows the acknowledged command, also on
// another instance, and also between aborted transactions.
func TestReadsShowWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	readers := []*sessions.Reader{w.reader(t), w.reader(t)}
	var wg sync.WaitGroup
	var reads atomic.Int64
	for writer := range 4 {
		cl, err := w.cfg.Producer(kgo.TransactionalID(w.cfg.Prefix+fmt.Sprint(writer)), kgo.ConcurrentTransactionsBackoff(5*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		wg.Go(func() {
			for sequence := int64(1); sequence <= 25; sequence++ {
				for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort}[:1+rand.IntN(3)] {
					s := w.session(writer, app(writer), sequence)
					if end == kgo.TryAbort {
						s.Sequence += 1000 // must never show
					}
					rec := w.event(t, s)
					if err := cl.BeginTransaction(); err != nil {
						t.Error(err)
						return
					}
					if err := cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
						t.Error(err)
						return
					}
					if err := cl.EndTransaction(t.Context(), end); err != nil {
						t.Error(err)
						return
					}
					if end == kgo.TryAbort {
						continue
					}
					got, err := readers[sequence%2].Session(t.Context(), sessions.Query{ID: s.ID, ApplicationIDs: []string{s.ApplicationID}})
					if err != nil || got.Sequence != sequence {
						t.Errorf("after %d was acknowledged: %d, %v", sequence, got.Sequence, err)
					}
					items, total, err := readers[(sequence+1)%2].List(t.Context(), sessions.Filter{TenantIDs: []string{s.TenantID}, ApplicationIDs: []string{s.ApplicationID}})
					if err != nil || total != 1 || len(items) != 1 || items[0].Sequence != sequence {
						t.Errorf("list after %d was acknowledged: %+v, %d, %v", sequence, items, total, err)
					}
					reads.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if reads.Load() < 10 {
		t.Errorf("only %d reads", reads.Load())
	}
	within(t, "positions beyond the last markers", func() bool { return w.atEnd(t) })
}

func TestPoisonIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := app(1)
	zero := w.session(2, a, 1)
	zero.OrderID = "a\x00b" // no text of Postgres holds a zero byte
	garbage := w.event(t, w.session(9, a, 1))
	garbage.Value = []byte("garbage")
	garbage.Headers = []kgo.RecordHeader{{Key: "own", Value: []byte("kept")}}
	orphan, err := w.codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt_x", Type: checkout.EventCollectionOrphaned, SessionID: "chs_x", OccurredAt: time.UnixMilli(1).UTC()}))
	if err != nil {
		t.Fatal(err)
	}
	none := w.event(t, w.session(9, a, 1))
	none.Value = orphan
	w.produce(t, w.event(t, w.session(1, a, 1)), garbage, w.event(t, zero), none, w.event(t, w.session(3, a, 7)))
	_, metrics := w.sink(t, w.pool)
	within(t, "passing the poison", func() bool { return w.atEnd(t) })
	if sessions, sequences := w.sum(t); sessions != 2 || sequences != 8 {
		t.Errorf("%d sessions with sequences of %d, want 2 with 8", sessions, sequences)
	}
	cl, err := w.cfg.Client(kgo.ConsumeTopics(w.topology.Name(schemas.TopicPoisonReadmodel)))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []*kgo.Record
	for len(got) < 2 && ctx.Err() == nil {
		got = append(got, cl.PollFetches(ctx).Records()...)
	}
	if len(got) != 2 || string(got[0].Value) != "garbage" || string(got[1].Value) != string(w.event(t, zero).Value) {
		t.Fatalf("%d poison records", len(got))
	}
	headers := map[string]string{}
	for _, h := range got[0].Headers {
		headers[h.Key] = string(h.Value)
	}
	if headers["own"] != "kept" || headers[schemas.HeaderTopic] != garbage.Topic || headers[schemas.HeaderOffset] != "1" ||
		headers[schemas.HeaderPartition] != fmt.Sprint(garbage.Partition) || headers[schemas.HeaderError] == "" {
		t.Errorf("headers = %v", headers)
	}
	if n := counted(t, metrics, "quittance_readmodel_events_total", "poison"); n != 2 {
		t.Errorf("counted %v poison records", n)
	}
}

// counted returns the value of a counter with at most one label.
func counted(t *testing.T, from *prometheus.Registry, name, outcome string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (outcome == "" || m.GetLabel()[0].GetValue() == outcome) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func lag(t *testing.T, from *prometheus.Registry) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "quittance_readmodel_lag_seconds" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no lag is exposed")
	return 0
}

// Instances join and leave while events arrive. Partitions move, and two instances may
// both act as the owner of one. In the end every event is applied.
func TestInstancesShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.sink(t, w.pool)
	within(t, "joining the group", func() bool { return w.atEnd(t) })
	const sessions, sequences = 40, 25
	written := make(chan struct{})
	go func() {
		defer close(written)
		for sequence := int64(1); sequence <= sequences; sequence++ {
			for n := range sessions {
				w.client.Produce(t.Context(), w.event(t, w.session(int(sequence)*sessions+n, app(n), 1)), nil)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err := w.client.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(300 * time.Millisecond)
	w.sink(t, w.pool)
	time.Sleep(time.Second)
	first()
	w.sink(t, w.pool)
	<-written
	within(t, "applying", func() bool { return w.atEnd(t) })
	// Every event has a session of its own. A later event of the same session would hide a
	// lost one.
	if n, _ := w.sum(t); n != sessions*sequences {
		t.Errorf("%d sessions, want %d", n, sessions*sequences)
	}
}

// gate is a proxy to Postgres that can be closed.
type gate struct {
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func newGate(t *testing.T, dsn string) (*gate, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	target := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.Addr().String()
	g := &gate{}
	t.Cleanup(func() { g.set(true); _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			g.mu.Lock()
			if g.shut || err != nil {
				_ = in.Close()
				g.mu.Unlock()
				continue
			}
			g.conns = append(g.conns, in, out)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		}
	}()
	return g, u.String()
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			_ = c.Close()
		}
		g.conns = nil
	}
}

func TestPostgresComesAndGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, dsn := newGate(t, w.dsn)
	stop, metrics := w.sink(t, openPool(t, dsn))
	w.produce(t, w.event(t, w.session(1000, app(0), 1)))
	within(t, "joining the group", func() bool { return w.atEnd(t) })
	// Each round has other sessions. A later event of the same session would hide a lost
	// one.
	for round := range 6 {
		g.set(round%2 == 1)
		for n := range 20 {
			w.produce(t, w.event(t, w.session(20*round+n, app(n), 1)))
		}
		time.Sleep(300 * time.Millisecond)
	}
	within(t, "lagging, as Postgres is away", func() bool { return lag(t, metrics) > 0 })
	g.set(false)
	within(t, "lagging no more", func() bool { return lag(t, metrics) == 0 })
	stop()
	if counted(t, metrics, "quittance_readmodel_failures_total", "") == 0 {
		t.Error("Postgres was never missed: the test shows nothing")
	}
	w.sink(t, w.pool)
	within(t, "catching up", func() bool { return w.atEnd(t) })
	if n, _ := w.sum(t); n != 121 {
		t.Errorf("%d sessions, want 121", n)
	}
}

// The read model is deleted and rebuilt from the events.
func TestRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop, _ := w.sink(t, w.pool)
	for n := range 20 {
		w.produce(t, w.event(t, w.session(n, app(n), 1)), w.event(t, w.session(n, app(n), 2)))
	}
	within(t, "applying", func() bool { return w.atEnd(t) })
	stop()
	if _, err := w.pool.Exec(t.Context(), `TRUNCATE sessions, readmodel_positions`); err != nil {
		t.Fatal(err)
	}
	stop, _ = w.sink(t, w.pool)
	within(t, "applying again", func() bool { return w.atEnd(t) })
	if n, sum := w.sum(t); n != 20 || sum != 40 {
		t.Errorf("%d sessions with sequences of %d, want 20 with 40", n, sum)
	}
	stop()
	// The broker has fewer events than were applied: it is another broker, or it lost data.
	if _, err := w.pool.Exec(t.Context(), `UPDATE readmodel_positions SET next = next + 1000`); err != nil {
		t.Fatal(err)
	}
	w.sink(t, w.pool)
	within(t, "beginning again", func() bool { return w.atEnd(t) })
}

// Migration 0013 rebuilds the rows from the events. Reads are refused until the sink has
// read all events. Then a reader sees the same sessions as before.
func TestMigrationToSnapshots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.reader(t)
	text, err := os.ReadFile("../../internal/postgres/migrations/0013_snapshots.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := w.pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	var want []checkout.Session
	for n := range 10 {
		s := w.session(n, app(n), 2)
		s.Metadata = map[string]string{"n": fmt.Sprint(n)}
		s.Collection = &checkout.Collection{ID: "c", Amount: 15, Fee: 5, Currency: "XAF", PayerMasked: "06 6** ** 01", RequestedAt: s.CreatedAt, NotAfter: s.CreatedAt, WindowEndsAt: s.CreatedAt}
		first := s
		first.Sequence, first.Collection = 1, nil
		w.produce(t, w.event(t, first), w.event(t, s))
		want = append(want, s)
	}
	check := func(when string) {
		t.Helper()
		for _, s := range want {
			if got, err := r.ByID(t.Context(), s.ID); err != nil || !reflect.DeepEqual(got, s) {
				t.Errorf("%s: %+v, %v, want %+v", when, got, err, s)
			}
		}
	}
	stop, _ := w.sink(t, w.pool)
	check("before")
	stop()

	// The database as the first release left it: rows without snapshots, positions at the
	// end.
	events := w.topology.Name(schemas.TopicEvents)
	positions, err := sessions.NewStore(w.pool).Positions(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	exec(down)
	for p, next := range positions {
		exec(`INSERT INTO readmodel_positions VALUES ($1, $2, $3)`, events, p, next)
	}
	for _, s := range want {
		exec(`INSERT INTO sessions (id, application_id, tenant_id, livemode, platform, order_id, amount, currency, mode, metadata, payment_ref,
			notice_id, notice_ref, transaction_id, offers, created_at, expires_at, status, sequence)
			VALUES ($1, $2, 't', false, false, 'o', 1, 'XAF', 'hosted', '{}', '', '', '', '', '[]', now(), now(), 'open', 2)`, s.ID, s.ApplicationID)
	}
	exec(up)
	short, err := sessions.New(sessions.Config{Pool: w.pool, Kafka: w.cfg, Topology: w.topology, Codec: w.codec, Log: servers.Logger(t), Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	runs(t, short.Run)
	for _, s := range want {
		if got, err := short.ByID(t.Context(), s.ID); !errors.Is(err, sessions.ErrBehind) {
			t.Errorf("after the migration: %+v, %v", got, err)
		}
	}
	w.sink(t, w.pool)
	within(t, "reading all events again", func() bool { return w.atEnd(t) })
	check("after")
}

// A replay applies poison whose cause is gone. Positions stay.
func TestReplayOfPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, now := w.event(t, w.session(1, app(1), 3)), w.event(t, w.session(2, app(2), 4))
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	poison := w.topology.Name(schemas.TopicPoisonReadmodel)
	w.produce(t, schemas.Poison(poison, now, errors.New("no such schema")), &kgo.Record{
		Topic: poison, Value: old.Value, Headers: []kgo.RecordHeader{header("topic", old.Topic), header("partition", "1"), header("offset", "7"), header("error", "no such schema")},
	}, &kgo.Record{Topic: poison, Value: []byte("garbage")})
	s, err := sink.New(sink.Config{Kafka: w.cfg, Codec: w.codec, Store: sessions.NewStore(w.pool), Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		got, err := s.Replay(t.Context(), schemas.TopicPoisonReadmodel, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), dryRun, nil)
		if want := (sink.Replayed{Events: 2, Unreadable: 1}); err != nil || got != want {
			t.Errorf("dry run %v: %+v, %v", dryRun, got, err)
		}
		sessions, sequences := w.sum(t)
		if want := map[bool]int64{true: 0, false: 2}[dryRun]; sessions != want || sequences != want*7/2 {
			t.Errorf("dry run %v: %d sessions with sequences of %d", dryRun, sessions, sequences)
		}
	}
	if positions, err := sessions.NewStore(w.pool).Positions(t.Context(), w.topology.Name(schemas.TopicEvents)); err != nil || len(positions) != 0 {
		t.Errorf("positions %v, %v", positions, err)
	}
}

func TestNewRequiresItsParts(t *testing.T) {
	t.Parallel()
	if _, err := sink.New(sink.Config{}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}
