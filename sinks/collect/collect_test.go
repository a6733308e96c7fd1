package collect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	"quittance/internal/kafka"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/sinks/collect"
	"quittance/test/await"
	"quittance/test/connectors"
	"quittance/test/servers"
)

const (
	patience = 20 * time.Second
	tenant   = "018f0000-0000-7000-8000-000000000001"
	app      = "018f0000-0000-7000-8000-00000000000a"
)

// clock is the machine's clock, moved forward.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().UTC().Add(time.Duration(c.offset.Load())) }

// world is a broker with our topics, an operator, and what the sinks of a test share.
type world struct {
	t         *testing.T
	kafka     kafka.Config
	topology  *kafka.Topology
	codec     *schemas.Codec
	client    *kgo.Client // writes requests
	keys      *secret.Keys
	clock     *clock
	faults    *connectors.Faults
	operator  string
	callbacks string

	mu       sync.Mutex
	commands []checkout.Command
	verified map[string]int // callbacks with a valid address, by collection
	forged   int
}

func newWorld(t *testing.T, configure ...func(*simulator.Config)) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{
		t: t, kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 2},
		keys: secret.GenerateKeys(), clock: &clock{}, faults: &connectors.Faults{}, verified: map[string]int{},
	}
	var err error
	if w.client, err = w.kafka.Producer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	if _, err := kafka.Migrate(ctx, w.kafka, w.client); err != nil {
		t.Fatal(err)
	}
	if w.topology, err = kafka.Load(ctx, w.kafka, w.client); err != nil {
		t.Fatal(err)
	}
	registry, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.codec, err = schemas.NewCodec(ctx, registry, true); err != nil {
		t.Fatal(err)
	}
	w.listen()
	w.simulate(configure)
	w.follow()
	return w
}

// listen takes callbacks and checks their addresses.
func (w *world) listen() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/callbacks/"), "/") // operator, session, collection, MAC
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(parts) == 4 && connector.VerifyCallback(w.keys, parts[0], parts[1], parts[2], parts[3]) {
			w.verified[parts[2]]++
		} else {
			w.forged++
		}
	}))
	w.t.Cleanup(server.Close)
	w.callbacks = server.URL
}

func (w *world) simulate(configure []func(*simulator.Config)) {
	cfg := simulator.Config{Now: w.clock.now, Log: servers.Logger(w.t), Poll: 20 * time.Millisecond, ApprovalDelay: 500 * time.Millisecond}
	for _, f := range configure {
		f(&cfg)
	}
	s, err := simulator.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	server := httptest.NewServer(w.faults.Handler(s.Handler()))
	w.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.operator = server.URL
}

// follow collects the commands.
func (w *world) follow() {
	client, err := w.kafka.Client(kgo.ConsumeTopics(w.topology.Name(schemas.TopicCommands)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		w.t.Fatal(err)
	}
	senders, err := commands.NewVerifier(w.keys, []string{"collect"})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				if from, err := senders.Verify(r); from != "collect" || err != nil {
					w.t.Errorf("the command is of %q: %v", from, err)
				}
				var c record.Command
				if err := w.codec.Decode(r.Value, &c); err != nil {
					w.t.Errorf("command: %v", err)
					return
				}
				command, err := mapping.ToCommand(&c)
				if err != nil || string(r.Key) != tenant || r.Partition != w.topology.Partition(schemas.TopicCommands, tenant) || command.ReplyTo != nil {
					w.t.Errorf("command %+v: %v, key %q, partition %d", command, err, r.Key, r.Partition)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				w.commands = append(w.commands, command)
			})
		}
	}()
	w.t.Cleanup(func() { cancel(); <-done; client.Close() })
}

func (w *world) account() mtn.Account {
	return mtn.Account{BaseURL: connector.BaseURL(w.operator + "/mtn"), TargetEnvironment: "mtncongo", SubscriptionKey: "s", APIUser: "u", APIKey: "k"}
}

func (w *world) momo(timeout time.Duration) *mtn.Connector {
	w.t.Helper()
	momo, err := mtn.New(connector.Config{Now: w.clock.now, Timeout: timeout, EnquiriesPerSecond: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	return momo
}

// control tells the operator how to behave.
func (w *world) control(path, body string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.operator+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		w.t.Fatalf("%s: %s", path, resp.Status)
	}
}

// run starts a sink and returns a function that stops it.
func (w *world) run(configure ...func(*collect.Config)) (stop func()) {
	w.t.Helper()
	signer, err := commands.NewSigner(w.keys, "collect")
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := collect.Config{
		Kafka: w.kafka, Topology: w.topology, Codec: w.codec,
		Connectors: map[string]connector.Connector{checkout.OfferMomo: w.momo(500 * time.Millisecond)},
		Account: func(id string, live bool, _, fingerprint string) (connector.Account, bool, bool) {
			a := w.account()
			return a, false, id == tenant && !live && (fingerprint == "" || connector.Is(a, fingerprint))
		},
		Payer:  func(context.Context, string, []byte) (string, error) { return "", personal.ErrErased },
		Signer: w.keys, Commands: signer, PublicURL: w.callbacks, Sealer: w.keys, CheckoutURL: "https://pay.example", Now: w.clock.now, Log: servers.Logger(w.t), Metrics: prometheus.NewRegistry(),
	}
	for _, f := range configure {
		f(&cfg)
	}
	s, err := collect.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) request(kind, payer string, within time.Duration) record.CollectionRequest {
	now := w.clock.now()
	return record.CollectionRequest{
		Kind: kind, CollectionID: uuid.NewString(), SessionID: checkout.NewSessionID(now, 0, [16]byte(uuid.New())),
		ApplicationID: app, TenantID: tenant, OfferID: checkout.OfferMomo, Amount: 5075, Currency: "XAF", Payer: payer,
		PaymentRef: "1234567890123456", RequestedAt: now, NotAfter: now.Add(within),
	}
}

func (w *world) send(requests ...record.CollectionRequest) {
	w.t.Helper()
	for i := range requests {
		value, err := w.codec.Encode(&requests[i])
		if err != nil {
			w.t.Fatal(err)
		}
		w.sendBytes(requests[i].CollectionID, value)
	}
}

func (w *world) sendBytes(key string, value []byte) {
	w.t.Helper()
	r := &kgo.Record{Topic: w.topology.Name(schemas.TopicCollections), Partition: 1, Key: []byte(key), Value: value}
	if err := w.client.ProduceSync(w.t.Context(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// outcomes returns the reports on a collection so far.
func (w *world) outcomes(id string) []checkout.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []checkout.Outcome
	for _, c := range w.commands {
		if o, ok := c.Do.(checkout.Outcome); ok && o.CollectionID == id {
			out = append(out, o)
		}
	}
	return out
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	await.Until(w.t, what, is)
}

// committed waits until every request is committed.
func (w *world) committed() {
	w.t.Helper()
	topic := w.topology.Name(schemas.TopicCollections)
	adm := kadm.NewClient(w.client)
	w.eventually("all requests committed", func() bool {
		ends, err := adm.ListEndOffsets(w.t.Context(), topic)
		if err != nil {
			w.t.Fatal(err)
		}
		end, _ := ends.Lookup(topic, 1)
		offsets, err := adm.FetchOffsets(w.t.Context(), w.kafka.Prefix+"sinks.collect")
		if err != nil {
			w.t.Fatal(err)
		}
		at, ok := offsets.Lookup(topic, 1)
		return ok && at.At == end.Offset
	})
}

// taken is the operator's record of a collection.
type taken struct {
	n          int // how often it is there
	duplicates int // how often it was asked for again
}

// atOperator returns the operator's records by collection.
func (w *world) atOperator() map[string]taken {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.operator+"/control/collections", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var all []struct {
		ID         string `json:"id"`
		Duplicates int    `json:"duplicate_requests"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]taken{}
	for _, c := range all {
		was := out[c.ID]
		out[c.ID] = taken{was.n + 1, was.duplicates + c.Duplicates}
	}
	return out
}

func (w *world) debits(id string) (n, duplicates int) {
	w.t.Helper()
	c := w.atOperator()[id]
	return c.n, c.duplicates
}

// once fails unless the operator has each collection once.
func (w *world) once(requests ...record.CollectionRequest) {
	w.t.Helper()
	all := w.atOperator()
	for _, q := range requests {
		if n := all[q.CollectionID].n; n != 1 {
			w.t.Errorf("the operator has %d collections %s, want 1", n, q.CollectionID)
		}
	}
}

func (w *world) calledBack(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verified[id]
}

func asks(r *http.Request) bool     { return strings.HasSuffix(r.URL.Path, "/requesttopay") }
func enquires(r *http.Request) bool { return strings.Contains(r.URL.Path, "/requesttopay/") }
func mtnCall(r *http.Request) bool  { return strings.HasPrefix(r.URL.Path, "/mtn/") }

const (
	approves = "242066000001"
	waits    = "242066000003"
	rejects  = "242066000004"
	fails500 = "242066000011"
)

// The number is in Kafka only sealed. Whoever reads the topic cannot open it, the operator
// gets it.
func TestSealedPayer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, pool := servers.Database(t)
	store, err := personal.New(personal.Config{Pool: pool, Keys: w.keys, Now: w.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	w.run(func(c *collect.Config) { c.Payer = store.Payer })
	q := w.request("collect", "", time.Minute)
	if q.PayerSealed, err = store.SealPayer(t.Context(), q.SessionID, approves); err != nil {
		t.Fatal(err)
	}
	value, err := w.codec.Encode(&q)
	if err != nil || bytes.Contains(value, []byte(approves)) || bytes.Contains(value, []byte(approves[3:])) {
		t.Errorf("the record tells the number, %v", err)
	}
	w.send(q)
	w.eventually("the operator's report", func() bool { return w.calledBack(q.CollectionID) == 1 })
	w.once(q)
}

func TestRequestsAndEnquiries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run()

	paid, refused, failing := w.request("collect", approves, time.Minute), w.request("collect", rejects, time.Minute), w.request("collect", fails500, time.Minute)
	pending := w.request("collect", waits, time.Minute)
	w.send(paid, refused, failing, pending)
	w.committed()
	w.once(paid, refused, failing, pending)
	for _, q := range []record.CollectionRequest{paid, refused, failing, pending} {
		if got := w.outcomes(q.CollectionID); len(got) != 0 {
			t.Errorf("202 is no outcome, got %+v", got)
		}
	}
	w.eventually("callbacks to valid addresses", func() bool { return w.calledBack(paid.CollectionID) == 1 && w.calledBack(failing.CollectionID) == 1 })

	for _, q := range []*record.CollectionRequest{&paid, &refused, &pending} {
		q.Kind, q.Payer, q.Enquiry = "enquire", "", 1
	}
	unknown := w.request("enquire", "", time.Minute)
	w.send(paid, refused, pending, unknown)
	w.committed()
	w.eventually("three outcomes", func() bool {
		return len(w.outcomes(paid.CollectionID)) == 1 && len(w.outcomes(refused.CollectionID)) == 1 && len(w.outcomes(unknown.CollectionID)) == 1
	})
	if o := w.outcomes(paid.CollectionID)[0]; o.Status != checkout.OutcomeApproved || o.Source != checkout.SourceEnquiry ||
		o.Amount != 5075 || o.Currency != "XAF" || o.OperatorRef == "" {
		t.Errorf("paid: %+v", o)
	}
	if o := w.outcomes(refused.CollectionID)[0]; o.Status != checkout.OutcomeRefused || o.FailureCode != checkout.FailureRejected {
		t.Errorf("refused: %+v", o)
	}
	if o := w.outcomes(unknown.CollectionID)[0]; o.Status != checkout.OutcomeUnknown {
		t.Errorf("unknown: %+v", o)
	}
	if got := w.outcomes(pending.CollectionID); len(got) != 0 {
		t.Errorf("pending: %+v", got)
	}
	if w.forged != 0 {
		t.Errorf("%d callbacks to wrong addresses", w.forged)
	}

	// The session waits for the answer to the enquiry at the end of its window.
	end := w.clock.now().Truncate(time.Millisecond)
	pending.Enquiry, pending.WindowEndsAt, pending.RequestedAt = 2, end, end
	w.send(pending)
	w.eventually("the answer to the closing enquiry", func() bool { return len(w.outcomes(pending.CollectionID)) == 1 })
	if o := w.outcomes(pending.CollectionID)[0]; o.Status != checkout.OutcomePending || !o.AskedAt.Equal(pending.WindowEndsAt) {
		t.Errorf("the closing enquiry is answered %+v", o)
	}
}

// The same with an operator whose ids have no dashes, whose answers have no amount, and
// which refuses an unknown payer at once.
func TestAirtel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	airtelMoney, err := airtel.New(connector.Config{Now: w.clock.now, Timeout: 500 * time.Millisecond, EnquiriesPerSecond: 100})
	if err != nil {
		t.Fatal(err)
	}
	account := airtel.Account{BaseURL: connector.BaseURL(w.operator + "/airtel"), ClientID: "c", ClientSecret: "s"}
	w.run(func(c *collect.Config) {
		c.Connectors[checkout.OfferMomoB] = airtelMoney
		c.Account = func(_ string, _ bool, offerID, _ string) (connector.Account, bool, bool) {
			return account, false, offerID == checkout.OfferMomoB
		}
	})
	request := func(payer string) record.CollectionRequest {
		q := w.request("collect", payer, time.Minute)
		q.OfferID, q.Account = checkout.OfferMomoB, account.Fingerprint()
		return q
	}
	paid, failing, wrongPIN, nobody := request("242055000001"), request("242055000011"), request("242055000013"), request("242055000007")
	w.send(paid, failing, wrongPIN, nobody)
	w.committed()
	w.eventually("callbacks to valid addresses", func() bool {
		return w.calledBack(paid.CollectionID) == 1 && w.calledBack(failing.CollectionID) == 1 && w.calledBack(wrongPIN.CollectionID) == 1
	})
	for _, q := range []*record.CollectionRequest{&paid, &failing, &wrongPIN} {
		if got := w.outcomes(q.CollectionID); len(got) != 0 {
			t.Errorf("what the request is answered is no outcome, got %+v", got)
		}
		q.Kind, q.Payer, q.Enquiry = "enquire", "", 1
	}
	w.send(paid, failing, wrongPIN)
	w.committed()
	all := w.atOperator()
	for q, want := range map[*record.CollectionRequest]checkout.Outcome{
		&paid:     {Status: checkout.OutcomeApproved, Source: checkout.SourceEnquiry, Amount: 5075, Currency: "XAF"},
		&failing:  {Status: checkout.OutcomeApproved, Source: checkout.SourceEnquiry, Amount: 5075, Currency: "XAF"},
		&wrongPIN: {Status: checkout.OutcomeRefused, Source: checkout.SourceEnquiry, FailureCode: checkout.FailureWrongPIN},
		&nobody:   {Status: checkout.OutcomeRefused, Source: checkout.SourceRequest, FailureCode: checkout.FailurePayerNotFound},
	} {
		w.eventually("an outcome", func() bool { return len(w.outcomes(q.CollectionID)) == 1 })
		got := w.outcomes(q.CollectionID)[0]
		if (got.OperatorRef != "") != (want.Status == checkout.OutcomeApproved) {
			t.Errorf("operator's reference %q of %s", got.OperatorRef, want.Status)
		}
		if want.Source == checkout.SourceEnquiry {
			want.AskedAt = q.RequestedAt.Truncate(time.Millisecond)
		}
		if !got.AskedAt.Equal(want.AskedAt) {
			t.Errorf("asked at %v, want %v", got.AskedAt, want.AskedAt)
		}
		want.CollectionID, want.Account, want.AskedAt, got.AskedAt, got.OperatorRef = q.CollectionID, q.Account, time.Time{}, time.Time{}, ""
		if got != want {
			t.Errorf("outcome %+v, want %+v", got, want)
		}
		if n := all[strings.ReplaceAll(q.CollectionID, "-", "")].n; q != &nobody && n != 1 {
			t.Errorf("the operator has %d collections %s, want 1", n, q.CollectionID)
		}
	}
	if w.forged != 0 {
		t.Errorf("%d callbacks to wrong addresses", w.forged)
	}
}

// The sink dies after the operator accepted the request and before the sink reported it.
// The next sink reads the same record: there is one debit, and its outcome is reported.
func TestKilledBetweenRequestAndCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := w.request("collect", approves, time.Minute)
	w.faults.Next(1, asks, connectors.SilentAfter)
	stop := w.run(func(c *collect.Config) { c.DrainTimeout = time.Millisecond })
	w.send(q)
	w.eventually("the operator has the request", func() bool { n, _ := w.debits(q.CollectionID); return n == 1 })
	stop()
	if got := w.outcomes(q.CollectionID); len(got) != 0 {
		t.Fatalf("the first sink was not quick enough to die: %+v", got)
	}

	w.run()
	w.committed()
	w.eventually("the outcome", func() bool { return len(w.outcomes(q.CollectionID)) == 1 })
	if o := w.outcomes(q.CollectionID)[0]; o.Status != checkout.OutcomeApproved || o.Amount != 5075 {
		t.Errorf("outcome %+v", o)
	}
	if n, again := w.debits(q.CollectionID); n != 1 || again == 0 {
		t.Errorf("%d collections, %d repeated requests; want 1 and some", n, again)
	}
}

// The answer to the request is lost. An enquiry shows that the operator has the request,
// so it is not sent again.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faults.Next(1, asks, connectors.CutAfter)
	w.run()
	q := w.request("collect", approves, time.Minute)
	w.send(q)
	w.committed()
	if n, again := w.debits(q.CollectionID); n != 1 || again != 0 {
		t.Errorf("%d collections, %d repeated requests; want 1 and 0", n, again)
	}
}

func TestTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)

	// A reader that died had sent the request in time. It is read again too late: it is not
	// sent again, and its outcome is reported.
	sent := w.request("collect", approves, time.Minute)
	momo, err := mtn.New(connector.Config{Now: w.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := momo.Collect(t.Context(), w.account(), connector.Request{
		ID: sent.CollectionID, Payer: sent.Payer, Amount: sent.Amount, Currency: sent.Currency, PaymentRef: sent.PaymentRef,
	}); err != nil {
		t.Fatal(err)
	}
	sent.NotAfter = w.clock.now().Add(-time.Second)
	never := w.request("collect", approves, -time.Second)
	w.send(sent, never) // before the sink runs: another member may have received them
	stop := w.run()
	w.committed()
	w.eventually("two outcomes", func() bool {
		return len(w.outcomes(sent.CollectionID)) == 1 && len(w.outcomes(never.CollectionID)) == 1
	})
	if o := w.outcomes(sent.CollectionID)[0]; o.Status != checkout.OutcomeApproved {
		t.Errorf("sent: %+v", o)
	}
	if o := w.outcomes(never.CollectionID)[0]; o.Status != checkout.OutcomeUnknown {
		t.Errorf("never sent: %+v", o)
	}
	if n, again := w.debits(sent.CollectionID); n != 1 || again != 0 {
		t.Errorf("%d collections, %d repeated requests; want 1 and 0", n, again)
	}
	if n, _ := w.debits(never.CollectionID); n != 0 {
		t.Errorf("a late request was sent")
	}

	// The request is late, and the operator does not answer enquiries.
	w.faults.Next(1_000_000, mtnCall, connectors.Error500)
	stop()
	dead := w.request("collect", approves, -time.Second)
	w.send(dead)
	stop = w.run()
	w.committed()
	if got := w.outcomes(dead.CollectionID); len(got) != 0 {
		t.Errorf("operator away: %+v, want nothing", got)
	}
	stop()
}

// words returns what the sink said at an address.
func (w *world) words(correlationID string) (codes []string) {
	w.t.Helper()
	topic := w.topology.Name(schemas.TopicReplies)
	spans, err := kafka.Bounds(w.t.Context(), kadm.NewClient(w.client), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.kafka.Read(w.t.Context(), topic, spans, nil, func(r *kgo.Record) (bool, error) {
		var a record.Reply
		if err := w.codec.Decode(r.Value, &a); err != nil {
			return false, err
		}
		if a.CorrelationID == correlationID {
			if string(r.Key) != correlationID || r.Partition != 3 {
				w.t.Errorf("the word has the key %q in partition %d", r.Key, r.Partition)
			}
			codes = append(codes, a.Code)
		}
		return true, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return codes
}

// Whoever waits for a request learns what became of it, once the report is written.
func TestWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run()
	waited := func(payer string, within time.Duration) record.CollectionRequest {
		q := w.request("collect", payer, within)
		q.WordCorrelationID, q.WordPartition = "word-"+q.CollectionID, 3
		return q
	}
	said := func(q record.CollectionRequest, want string) {
		t.Helper()
		w.eventually("the word about "+want, func() bool { return len(w.words(q.WordCorrelationID)) > 0 })
		if got := w.words(q.WordCorrelationID); len(got) != 1 || got[0] != want {
			t.Errorf("said %v, want %s", got, want)
		}
	}
	accepted, silent := waited(waits, time.Minute), w.request("collect", waits, time.Minute)
	w.send(accepted, silent)
	said(accepted, "collection.accepted")
	w.committed()

	// The operator's port is closed until it is too late.
	closed := func(cfg *collect.Config) {
		cfg.Account = func(string, bool, string, string) (connector.Account, bool, bool) {
			a := w.account()
			a.BaseURL = "http://127.0.0.1:1/mtn"
			return a, false, true
		}
	}
	w2 := newWorld(t)
	w2.run(closed)
	q := w2.request("collect", approves, 2*time.Second)
	q.WordCorrelationID, q.WordPartition = "word-closed", 3
	w2.eventually("the sink follows its partition", func() bool {
		// The first records may come before the sink knows the end of its partition.
		probe := w2.request("collect", approves, -time.Second)
		w2.send(probe)
		w2.committed()
		o := w2.outcomes(probe.CollectionID)
		return len(o) > 0 && o[0].Status == checkout.OutcomeRefused
	})
	q.RequestedAt = w2.clock.now()
	q.NotAfter = q.RequestedAt.Add(2 * time.Second)
	w2.send(q)
	w2.eventually("the word not_sent", func() bool { return len(w2.words("word-closed")) > 0 })
	if got := w2.words("word-closed"); len(got) != 1 || got[0] != "collection.not_sent" {
		t.Errorf("said %v", got)
	}
	w2.eventually("the report", func() bool { return len(w2.outcomes(q.CollectionID)) > 0 })
	if o := w2.outcomes(q.CollectionID); len(o) != 1 || o[0].Status != checkout.OutcomeRefused || o[0].FailureCode != checkout.FailureOperatorUnavailable {
		t.Errorf("reported %+v", o)
	}
	if n, _ := w2.debits(q.CollectionID); n != 0 {
		t.Error("the request was sent")
	}
}

// A request that comes too late to the sink that runs was sent by nobody. It is refused
// although its operator does not answer.
func TestTooLateAndSurelyNeverSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run()
	w.faults.Next(1_000_000, mtnCall, connectors.Error500)
	var last record.CollectionRequest
	w.eventually("a refusal", func() bool {
		// The first records may come before the sink knows the end of its partition.
		last = w.request("collect", approves, -time.Second)
		w.send(last)
		w.committed()
		return len(w.outcomes(last.CollectionID)) > 0
	})
	if got := w.outcomes(last.CollectionID); len(got) != 1 || got[0].Status != checkout.OutcomeRefused || got[0].FailureCode != checkout.FailureOperatorUnavailable {
		t.Errorf("reported %+v, want one refusal", got)
	}
}

// After a loss of the group's offsets a week of requests is read again. No old request
// reaches the operator or is reported, and a current one does not wait behind them.
func TestOldRequestsKeepNoneWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 500
	old := map[string]bool{}
	var requests []*kgo.Record
	for i := range n {
		kind := []string{"collect", "enquire"}[i%2]
		q := w.request(kind, approves, 2*time.Minute)
		age := 20*time.Minute + time.Duration(i)*20*time.Minute // up to a week
		q.RequestedAt, q.NotAfter = q.RequestedAt.Add(-age), q.NotAfter.Add(-age)
		if kind == "enquire" {
			q.Payer, q.Enquiry = "", 1
		}
		old[q.CollectionID] = true
		value, err := w.codec.Encode(&q)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, &kgo.Record{Topic: w.topology.Name(schemas.TopicCollections), Partition: 1, Key: []byte(q.CollectionID), Value: value})
	}
	if err := w.client.ProduceSync(t.Context(), requests...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fresh := w.request("collect", approves, time.Minute)
	w.send(fresh)
	var asked atomic.Int64
	w.faults.Next(1, func(r *http.Request) bool { // only looks
		if asks(r) && old[r.Header.Get("X-Reference-Id")] || enquires(r) {
			asked.Add(1)
		}
		return false
	}, connectors.Silent)

	begun := time.Now()
	metrics := prometheus.NewRegistry()
	w.run(func(c *collect.Config) {
		c.Backlog, c.Metrics = 16, metrics
		momo, err := mtn.New(connector.Config{Now: w.clock.now, EnquiriesPerSecond: 2})
		if err != nil {
			t.Fatal(err)
		}
		c.Connectors[checkout.OfferMomo] = momo
	})
	w.eventually("the current request is with the operator", func() bool { m, _ := w.debits(fresh.CollectionID); return m == 1 })
	if d := time.Since(begun); d > 15*time.Second {
		t.Errorf("it took %v", d)
	}
	w.committed()
	if got := asked.Load(); got != 0 {
		t.Errorf("%d calls for old requests", got)
	}
	if got := counted(t, metrics, "old"); got != n {
		t.Errorf("%v counted as old, want %d", got, n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.commands {
		t.Errorf("reported %+v", c)
	}
}

// counting is a connector that counts requests for money by collection.
type counting struct {
	connector.Connector
	mu sync.Mutex
	n  map[string]int
}

func (c *counting) Collect(ctx context.Context, account connector.Account, q connector.Request) (connector.Outcome, error) {
	c.mu.Lock()
	c.n[q.ID]++
	c.mu.Unlock()
	return c.Connector.Collect(ctx, account, q)
}

func (c *counting) of(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[id]
}

// A partition moves to another member while the first one repeats a request. The first
// member makes no further request for money of that partition.
func TestRevokedAsksNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faults.Next(1_000_000, asks, connectors.Error500)
	ids := make([]string, w.topology.Count(schemas.TopicCollections)) // one for each partition
	for i := range ids {
		q := w.request("collect", waits, time.Hour)
		ids[i] = q.CollectionID
		value, err := w.codec.Encode(&q)
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: w.topology.Name(schemas.TopicCollections), Partition: int32(i), Key: []byte(ids[i]), Value: value}
		if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	first, second := &counting{Connector: w.momo(time.Second), n: map[string]int{}}, &counting{Connector: w.momo(time.Second), n: map[string]int{}}
	tried := func(c *counting) (out []string) {
		for _, id := range ids {
			if c.of(id) > 0 {
				out = append(out, id)
			}
		}
		return out
	}
	metrics := prometheus.NewRegistry()
	w.run(func(c *collect.Config) { c.Connectors[checkout.OfferMomo], c.Metrics = first, metrics })
	w.eventually("the first member tries all", func() bool { return len(tried(first)) == len(ids) })
	w.run(func(c *collect.Config) { c.Connectors[checkout.OfferMomo] = second })
	w.eventually("the second member tries its half", func() bool { return len(tried(second)) >= len(ids)/2 })
	moved, before, all := tried(second), map[string]int{}, 0
	for _, id := range ids {
		before[id] = first.of(id)
		all += before[id]
	}
	w.eventually("what moved is left", func() bool { return counted(t, metrics, "left") >= float64(len(moved)) })
	w.eventually("the first goes on with what it kept", func() bool {
		now := 0
		for _, id := range ids {
			now += first.of(id)
		}
		return now >= all+2*(len(ids)-len(moved))
	})
	for _, id := range moved {
		if n := first.of(id); n != before[id] {
			t.Errorf("the first member asked %d times more for what is the second's", n-before[id])
		}
	}
	if n := counted(t, metrics, "left"); n != float64(len(moved)) || len(moved) == len(ids) {
		t.Errorf("%v requests left, %d of %d moved", n, len(moved), len(ids))
	}
	w.faults.Clear()
	w.eventually("all are with the operator", func() bool { return len(w.atOperator()) == len(ids) })
}

// A slow gateway: the payer approves and the operator calls back before the
// request is answered.
func TestCallbackBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.control("/control/mtn", `{"delay":"300ms"}`)
	w.run(func(c *collect.Config) { c.Connectors[checkout.OfferMomo] = w.momo(10 * time.Second) })
	q := w.request("collect", approves, time.Minute)
	w.send(q)
	w.eventually("the callback", func() bool { return w.calledBack(q.CollectionID) == 1 })
	w.committed()
	if n, again := w.debits(q.CollectionID); n != 1 || again != 0 {
		t.Errorf("%d collections, %d repeated requests; want 1 and 0", n, again)
	}
}

// Members join and leave while requests are processed. Each payment is requested once and
// none is lost.
func TestRebalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.run()
	var all []record.CollectionRequest
	for range 3 {
		batch := make([]record.CollectionRequest, 60)
		for i := range batch {
			batch[i] = w.request("collect", waits, time.Hour)
		}
		w.send(batch...)
		all = append(all, batch...)
		second := w.run()
		first()
		first = second
	}
	w.committed()
	w.once(all...)
}

// One hanging payment does not delay the others. The offsets behind it are not committed
// before it.
func TestOneHangsOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stuck := w.request("collect", approves, time.Hour)
	stuckCall := func(r *http.Request) bool {
		return asks(r) && r.Header.Get("X-Reference-Id") == stuck.CollectionID || strings.HasSuffix(r.URL.Path, stuck.CollectionID)
	}
	w.faults.Next(1_000_000, stuckCall, connectors.Silent)
	stop := w.run(func(c *collect.Config) { c.DrainTimeout = 100 * time.Millisecond })
	w.send(stuck)
	const n = 100
	others := make([]record.CollectionRequest, n)
	for i := range others {
		others[i] = w.request("collect", waits, time.Hour)
	}
	w.send(others...)
	w.eventually("the others reached the operator", func() bool {
		m, _ := w.debits(others[n-1].CollectionID)
		first, _ := w.debits(others[0].CollectionID)
		return m == 1 && first == 1
	})
	time.Sleep(time.Second) // two commit intervals
	offsets, err := kadm.NewClient(w.client).FetchOffsets(t.Context(), w.kafka.Prefix+"sinks.collect")
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := offsets.Lookup(w.topology.Name(schemas.TopicCollections), 1); ok && at.At > 0 {
		t.Errorf("committed %d, behind a request that is not done", at.At)
	}
	stop()

	w.faults.Clear()
	w.run()
	w.committed()
	w.once(append(others, stuck)...)
}

// The agency's account is replaced while a payment is under way. The new account does not
// have the payment. That must not be reported as unknown: it would free the order, and
// the payer would be asked a second time.
func TestAnotherAccountIsNotAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run()
	of, other := w.request("enquire", "", time.Minute), w.request("enquire", "", time.Minute)
	of.Account, other.Account = w.account().Fingerprint(), "0123456789abcdef"
	w.send(other, of)
	w.eventually("its own account knows nothing of the second", func() bool { return len(w.outcomes(of.CollectionID)) > 0 })
	if got := w.outcomes(other.CollectionID); len(got) > 0 {
		t.Errorf("another account's word is reported: %+v", got)
	}
	if changed := w.account(); changed.Fingerprint() == (mtn.Account{BaseURL: changed.BaseURL, APIUser: "x"}).Fingerprint() {
		t.Error("two users of one operator have one fingerprint")
	}
}

// counted returns the number of requests with an outcome.
func counted(t *testing.T, metrics prometheus.Gatherer, outcome string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var n float64
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "quittance_collect_requests_total" && l.GetName() == "outcome" && l.GetValue() == outcome {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

func TestPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run()
	w.sendBytes("torn", []byte("\x00\x00\x00\x00\x01torn"))
	strange := w.request("refund", approves, time.Minute)
	foreign := w.request("collect", approves, time.Minute)
	foreign.OfferID = "shells"
	good := w.request("collect", approves, time.Minute)
	w.send(strange, foreign, good)
	w.committed()
	w.once(good)

	client, err := w.kafka.Client(kgo.ConsumeTopics(w.topology.Name(schemas.TopicPoisonCollections)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var found []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(found) < 3 && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			headers := map[string]string{}
			for _, h := range r.Headers {
				headers[h.Key] = string(h.Value)
			}
			if headers[schemas.HeaderTopic] != w.topology.Name(schemas.TopicCollections) || headers[schemas.HeaderPartition] != "1" || headers[schemas.HeaderOffset] == "" || headers[schemas.HeaderError] == "" {
				t.Errorf("headers %v", headers)
			}
			found = append(found, string(r.Key))
		})
	}
	if len(found) != 3 {
		t.Errorf("poison: %v, want three", found)
	}
}

// The operator no longer accepts a token. The sink fetches another, and the payment is
// requested.
func TestTokenExpired(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := newWorld(t, func(c *simulator.Config) {
		now := c.Now
		c.Now = func() time.Time { return now().Add(time.Duration(ahead.Load())) }
	})
	w.run()
	first := w.request("collect", waits, time.Hour)
	w.send(first)
	w.committed()
	ahead.Store(int64(2 * time.Hour)) // the operator's clock, not ours
	second := w.request("collect", waits, time.Hour)
	w.send(second)
	w.committed()
	w.once(second)
}

// redirects returns the reports of the page on which the payer of a collection continues.
func (w *world) redirects(id string) []checkout.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []checkout.Command
	for _, c := range w.commands {
		if r, ok := c.Do.(checkout.Redirected); ok && r.CollectionID == id {
			out = append(out, c)
		}
	}
	return out
}

// An operator redirects the payer. The page is reported sealed and is the same at every
// redelivery. An enquiry then shows the approval.
func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acquirer, err := card.New(connector.Config{Now: func() time.Time { return time.Now().UTC() }, EnquiriesPerSecond: 100})
	if err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	w.run(func(c *collect.Config) {
		c.Connectors = map[string]connector.Connector{checkout.OfferCard: acquirer}
		c.Account = func(string, bool, string, string) (connector.Account, bool, bool) {
			return card.Account{BaseURL: connector.BaseURL(w.operator + "/card"), Merchant: "impots", Secret: "simulator"}, false, true
		}
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.HonoursLate = func(tenantID string) bool { return tenantID != "" }
	})
	q := w.request("collect", "", time.Minute)
	q.OfferID, q.Currency, q.WindowEndsAt = checkout.OfferCard, "EUR", w.clock.now().Add(5*time.Minute)
	// The first answer is lost: the operator has the payment, but the page's address is not
	// known.
	w.faults.Next(1, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/v1/transactions") }, connectors.CutAfter)
	w.send(q, q) // a redelivery
	w.eventually("two redirects", func() bool { return len(w.redirects(q.CollectionID)) == 2 })
	w.committed()

	var pages []connector.Redirect
	for _, c := range w.redirects(q.CollectionID) {
		sealed := c.Do.(checkout.Redirected).Sealed
		r, err := connector.OpenRedirect(w.keys, q.SessionID, q.CollectionID, sealed)
		if err != nil || c.SessionID != q.SessionID || c.ApplicationID != app {
			t.Fatalf("%+v: %v", c, err)
		}
		if bytes.Contains(sealed, []byte(r.ClientToken)) || bytes.Contains(sealed, []byte("/card/pay/")) {
			t.Error("the redirect is not sealed")
		}
		pages = append(pages, r)
	}
	if pages[0] != pages[1] || !strings.HasPrefix(pages[0].URL, w.operator+"/card/pay/") || pages[0].ClientToken == "" || pages[0].TransactionID == "" || pages[0].Environment != "test" {
		t.Errorf("redirects %q and %q", pages[0].URL, pages[1].URL)
	}
	if got := w.outcomes(q.CollectionID); len(got) != 0 {
		t.Errorf("outcomes %+v of a payment that nobody has made", got)
	}
	if text := log.String(); strings.Contains(text, pages[0].ClientToken) || strings.Contains(text, "/card/pay/") || strings.Contains(text, "/callbacks/") || strings.Contains(text, q.SessionID) || !strings.Contains(text, q.CollectionID) {
		t.Errorf("log %s", text)
	}

	// The citizen pays there and is sent back. The next enquiry returns the approval.
	u, err := url.Parse(pages[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"token": {u.Query().Get("token")}, "action": {"approve"}}
	u.RawQuery = ""
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := httpclient.Transport.RoundTrip(req) // which follows nothing
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || to != "https://pay.example/c/"+q.SessionID+"?returned" {
		t.Errorf("%s to %q", resp.Status, to)
	}
	w.eventually("the report at its address", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.verified[q.CollectionID] == 1 && w.forged == 0
	})
	enquiry := q
	enquiry.Kind, enquiry.Enquiry = "enquire", 1
	w.send(enquiry)
	w.eventually("the approval", func() bool { return len(w.outcomes(q.CollectionID)) == 1 })
	if o := w.outcomes(q.CollectionID)[0]; o.Status != checkout.OutcomeApproved || o.Amount != q.Amount || o.Currency != "EUR" || o.OperatorRef != pages[0].TransactionID || o.Source != checkout.SourceEnquiry ||
		o.ApprovedAt.IsZero() || !o.HonourLate {
		t.Errorf("outcome %+v", o)
	}
	if n := len(w.redirects(q.CollectionID)); n != 2 {
		t.Errorf("%d redirects, an enquiry tells of none", n)
	}
}

// syncBuffer is a buffer for concurrent writers.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A session of live mode never uses the page of a test acquirer.
func TestLiveSessionAtATestAcquirer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acquirer, _ := card.New(connector.Config{Now: func() time.Time { return time.Now().UTC() }, EnquiriesPerSecond: 100})
	w.run(func(c *collect.Config) {
		c.Connectors = map[string]connector.Connector{checkout.OfferCard: acquirer}
		c.Account = func(string, bool, string, string) (connector.Account, bool, bool) {
			return card.Account{BaseURL: connector.BaseURL(w.operator + "/card"), Merchant: "impots", Secret: "simulator"}, false, true
		}
	})
	q := w.request("collect", "", time.Minute)
	q.Livemode, q.OfferID, q.Currency, q.WindowEndsAt = true, checkout.OfferCard, "EUR", w.clock.now().Add(5*time.Minute)
	w.send(q)
	w.committed()
	if n := len(w.redirects(q.CollectionID)); n != 0 {
		t.Errorf("a live session is sent to %d pages of a test acquirer", n)
	}
}
