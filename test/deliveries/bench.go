// Package deliverytest provides what the tests of the delivering sinks share: an
// installation with a real broker and a real Postgres, receivers, and a clock that can be
// moved forward.
package deliverytest

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	"quittance/sinks/cashin"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
	"quittance/test/await"
	"quittance/test/servers"
)

// Patience bounds every wait of a test, also on a busy machine.
const Patience = 40 * time.Second

// Servers are the addresses of an installation's servers.
type Servers struct {
	Kafka, Postgres, SchemaRegistry string
	// Prefix of topics and groups.
	Prefix string
	Log    *slog.Logger
}

// Bench is an installation of the delivery path.
type Bench struct {
	log   *slog.Logger
	Kafka kafka.Config
	DSN   string
	Pool  *pgxpool.Pool
	// Store has all kinds, with a cap of 8 for every destination.
	Store  *deliveries.Store
	Codec  *schemas.Codec
	Client *kgo.Client
	offset atomic.Int64
}

// New makes an installation: topics of the delivery path with few partitions, a
// migrated database.
func New(t testing.TB, s Servers) *Bench {
	t.Helper()
	ctx := t.Context()
	b := &Bench{log: s.Log, Kafka: kafka.Config{Brokers: []string{s.Kafka}, Prefix: s.Prefix}, DSN: s.Postgres}
	b.Codec = Codec(t, s.SchemaRegistry)
	var err error
	if b.Client, err = b.Kafka.Client(kgo.TransactionalID(b.Kafka.Prefix + "bench")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Client.Close)
	servers.CreateTopics(t, kadm.NewClient(b.Client), b.Kafka.Prefix, map[string]int32{
		schemas.TopicWebhooks: 2, schemas.TopicWebhooksDeliveries: 4, schemas.TopicConfirmations: 2,
		schemas.TopicERPDeliveries: 2, schemas.TopicPartners: 2, schemas.TopicPartnersDeliveries: 2, schemas.TopicMessages: 2, schemas.TopicMessagesDeliveries: 2, schemas.TopicAttempts: 2, schemas.TopicPoisonDeliveries: 1, schemas.TopicEvents: 2, schemas.Disbursement.Events: 2, schemas.TopicCalls: 2, schemas.TopicPayoutCalls: 2, schemas.TopicReconciliation: 2,
	})
	if err := postgres.Migrate(ctx, b.DSN); err != nil {
		t.Fatal(err)
	}
	if b.Pool, err = postgres.Open(ctx, b.DSN); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Pool.Close)
	kinds := deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil), cashin.Registration(nil)}
	for i := range kinds {
		kinds[i].Directory = capped{}
	}
	b.Store = deliveries.NewStore(b.Pool, kinds)
	return b
}

// Actor is the operator of the tests.
var Actor = operation.Actor{Kind: operation.ActorCommandLine, Name: "test", Origin: "localhost"}

// capped is a directory that knows every destination, with a cap of 8.
type capped struct{}

func (capped) Destinations(*record.Notification) []string { return nil }

func (capped) Destination(string) (deliveries.Destination, bool) {
	return deliveries.Destination{MaxInFlight: 8}, true
}

// Codec makes a codec over the schema registry at url.
func Codec(t testing.TB, url string) *schemas.Codec {
	t.Helper()
	client, err := schemas.NewClient(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), client, true)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// Now is the installation's clock.
func (b *Bench) Now() time.Time { return time.Now().UTC().Add(time.Duration(b.offset.Load())) }

// Advance moves the installation's clock forward.
func (b *Bench) Advance(d time.Duration) { b.offset.Add(int64(d)) }

// History reads the outcomes that the schedule of this installation has stored.
func (b *Bench) History() delivery.History { return deliveries.NewHistory(b.Kafka, b.Client, b.Store) }

// Runner is a long-running part.
type Runner interface {
	Run(ctx context.Context) error
}

// Start runs parts until stop is called or the test ends. Their errors fail the test.
func Start(t testing.TB, parts ...Runner) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Errorf("%T ended: %v", p, err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

// CaseEvents proves the events of cases of all tests, and Cases believes them.
func CaseEvents() *secret.MACs { return macsOf(secret.LabelCaseEvents) }

// Cases is who is believed in cases.events.
func Cases(cfg kafka.Config) *origin.History {
	return cfg.History(schemas.TopicCases, origin.Verifier{cases.Writer: CaseEvents()})
}

// Bodies proves and verifies the bodies of all tests, also in the processes that they start.
func Bodies() *secret.MACs { return macsOf(secret.LabelWebhookBodies) }

func macsOf(label string) *secret.MACs {
	keys, err := secret.ParseKeys("test:" + base64.StdEncoding.EncodeToString(make([]byte, secret.KeySize)))
	if err != nil {
		panic(err)
	}
	macs, err := keys.MACs(label)
	if err != nil {
		panic(err)
	}
	return macs
}

// Outcomes believes the workers of all kinds of the tests, which sign with Bodies.
func Outcomes() origin.Outcomes {
	workers := origin.Verifier{}
	for _, kind := range []string{"webhook", "cashin", "erp", "notify", "notice"} {
		workers[kind] = Bodies()
	}
	return origin.Outcomes{Workers: workers}
}

// SignOutcome signs a record of deliveries.attempts as the worker of a kind does.
func SignOutcome(r *kgo.Record, kind string) { origin.NewSigner(kind, Bodies()).SignKeyed(r) }

// Sender returns the configuration of the planner and the worker of a kind.
func (b *Bench) Sender(kind deliveries.Registration, policy delivery.Policy) delivery.WorkerConfig {
	return delivery.WorkerConfig{
		Kafka: b.Kafka, Codec: b.Codec, Kind: kind, Bodies: Bodies(), Outcomes: origin.NewSigner(string(kind.Kind), Bodies()), Policy: policy, History: b.History(), Now: b.Now, Log: b.log, Metrics: prometheus.NewRegistry(),
	}
}

// Planner makes the planner of a kind.
func Planner(t testing.TB, cfg delivery.WorkerConfig) *delivery.Planner {
	t.Helper()
	p, err := delivery.NewPlanner(delivery.PlannerConfig{Kafka: cfg.Kafka, Codec: cfg.Codec, Kind: cfg.Kind, Bodies: cfg.Bodies, Outcomes: cfg.Outcomes, Log: cfg.Log, Metrics: cfg.Metrics})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Worker makes the worker of a kind.
func Worker(t testing.TB, cfg delivery.WorkerConfig) *delivery.Worker {
	t.Helper()
	w, err := delivery.NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Schedule makes the installation's schedule, with a cap of 8 for every destination.
func (b *Bench) Schedule(t testing.TB) *schedule.Schedule {
	t.Helper()
	s, err := schedule.New(schedule.Config{
		Kafka: b.Kafka, Codec: b.Codec, Deliveries: b.Store, Outcomes: Outcomes(), Now: b.Now, Log: b.log, Metrics: prometheus.NewRegistry(),
		Poll: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Notification makes a notification that occurs now.
func (b *Bench) Notification(eventID, application string) *record.Notification {
	return &record.Notification{
		EventID: eventID, Event: "checkout.completed", ApplicationID: application, TenantID: "agency", SessionID: "chs_" + eventID,
		OccurredAt: b.Now(), Body: []byte(`{"event_id":"` + eventID + `","event":"checkout.completed","paid":true}`),
	}
}

// Notify writes notifications in one transaction, committed or aborted.
func (b *Bench) Notify(t testing.TB, topic string, commit bool, notifications ...*record.Notification) {
	t.Helper()
	records := make([]*kgo.Record, len(notifications))
	for i, n := range notifications {
		origin.SignBody(topic, n, Bodies())
		value, err := b.Codec.Encode(n)
		if err != nil {
			t.Fatal(err)
		}
		records[i] = &kgo.Record{Topic: b.Kafka.Prefix + topic, Key: []byte(n.ApplicationID), Value: value}
	}
	for tries := 0; ; tries++ {
		err := b.transact(t.Context(), commit, records)
		if err == nil {
			return
		}
		// A broker answers the creation of a topic before all its parts know the topic.
		if !errors.Is(err, kerr.UnknownTopicOrPartition) || tries == 20 {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (b *Bench) transact(ctx context.Context, commit bool, records []*kgo.Record) error {
	if err := b.Client.BeginTransaction(); err != nil {
		return err
	}
	err := b.Client.ProduceSync(ctx, records...).FirstErr()
	if end := b.Client.EndTransaction(ctx, kgo.TransactionEndTry(commit && err == nil)); err == nil {
		err = end
	}
	return err
}

// Attempts reads the present records of deliveries.attempts.
func (b *Bench) Attempts(t testing.TB) []record.Attempt {
	t.Helper()
	var out []record.Attempt
	for _, r := range b.Records(t, schemas.TopicAttempts) {
		var a record.Attempt
		if err := b.Codec.Decode(r.Value, &a); err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// Records reads the present committed records of a topic.
func (b *Bench) Records(t testing.TB, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	ends, err := kadm.NewClient(b.Client).ListEndOffsets(ctx, b.Kafka.Prefix+topic)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := b.Kafka.Client(kgo.ConsumeTopics(b.Kafka.Prefix+topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	at := map[int32]int64{}
	var out []*kgo.Record
	for {
		done := true
		ends.Each(func(o kadm.ListedOffset) { done = done && at[o.Partition] >= o.Offset })
		if done {
			return out
		}
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("reading %s: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
		})
	}
}

// Request is a request that a receiver got.
type Request struct {
	At      time.Time
	Path    string
	EventID string
	Header  http.Header
	Body    string
}

// Receiver keeps its requests and answers as set by Answer.
type Receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []Request
	answer http.HandlerFunc
}

// NewReceiver starts a receiver that answers 200. ids is the name of the header with the
// event's id.
func NewReceiver(t testing.TB, ids string) *Receiver {
	t.Helper()
	r := &Receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, Request{time.Now(), req.URL.Path, req.Header.Get(ids), req.Header.Clone(), string(body)})
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
		}
	}))
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

// Answer sets the handler of later requests; nil answers 200.
func (r *Receiver) Answer(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

// Status makes the receiver answer with a status.
func (r *Receiver) Status(code int) {
	r.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// Got returns the requests so far.
func (r *Receiver) Got() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Request(nil), r.got...)
}

// Count returns the number of requests of each event.
func (r *Receiver) Count() map[string]int {
	n := map[string]int{}
	for _, g := range r.Got() {
		n[g.EventID]++
	}
	return n
}

// Eventually waits until ok returns true. The failure names what was awaited.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !await.Within(Patience, ok) {
		t.Fatalf("%s: not within %v", what, Patience)
	}
}

// State returns the state of a delivery's row, or "" if there is none.
func (b *Bench) State(t testing.TB, kind deliveries.Kind, eventID, destination string) string {
	t.Helper()
	var state string
	err := b.Pool.QueryRow(t.Context(), `SELECT coalesce(max(state), '') FROM deliveries WHERE delivery_id = $1`,
		deliveries.ID(kind, eventID, destination)).Scan(&state)
	if err != nil {
		t.Fatalf("reading the state of a delivery: %v", err)
	}
	return state
}

// Settled waits until a group of consumers has committed everything of a topic but, at
// most, the end markers of transactions.
func (b *Bench) Settled(t testing.TB, topic, group string) {
	t.Helper()
	adm := kadm.NewClient(b.Client)
	topic, group = b.Kafka.Prefix+topic, b.Kafka.Prefix+group
	Eventually(t, group+" has settled "+topic, func() bool {
		open, err := kafka.Unsettled(t.Context(), adm, topic, group)
		if err != nil {
			t.Fatal(err)
		}
		settled := true
		if err := b.Kafka.Read(t.Context(), topic, open, nil, func(*kgo.Record) (bool, error) { settled = false; return false, nil }); err != nil {
			t.Fatal(err)
		}
		return settled
	})
}
