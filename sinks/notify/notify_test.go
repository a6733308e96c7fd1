package notify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/ingress/callbacks"
	"quittance/internal/deliveries"
	"quittance/internal/erp"
	messages "quittance/internal/notify"
	"quittance/internal/papers"
	"quittance/internal/personal"
	"quittance/internal/provider"
	"quittance/internal/provider/all"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/sinks/delivery"
	"quittance/sinks/notify"
	"quittance/sinks/schedule"
	deliverytest "quittance/test/deliveries"
	"quittance/test/providers"
	"quittance/test/servers"
)

const (
	number  = "+242 06 600 00 01"
	arrived = "242066000001"
	host    = "https://pay.example"
	// staffHost is where staff reach their pages.
	staffHost = "https://staff.example"
)

// world is an installation that sends messages to the simulators.
type world struct {
	*deliverytest.Bench
	t         *testing.T
	sim       *providers.Simulator
	keys      *secret.Keys
	personal  *personal.Store
	sender    *messages.Sender
	store     *deliveries.Store
	providers map[provider.Channel]provider.Provider
	log       *logs
	// edge is the address at which providers report, with its metrics; reports is what they
	// reported, and metrics are those of the last config.
	edge        string
	edgeMetrics *prometheus.Registry
	reports     *messages.Reports
	metrics     *prometheus.Registry
}

// logs keeps everything that is logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, log: &logs{}, sim: providers.NewSimulator(t), keys: secret.GenerateKeys(), providers: map[provider.Channel]provider.Provider{}}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	w.Bench = deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Postgres(t), SchemaRegistry: servers.SchemaRegistry(t), Prefix: servers.Prefix(t), Log: log,
	})
	var err error
	if w.personal, err = personal.New(personal.Config{Pool: w.Pool, Keys: w.keys, Now: w.Now}); err != nil {
		t.Fatal(err)
	}
	w.sender, err = messages.NewSender(messages.SenderConfig{
		Kafka: w.Kafka, Codec: w.Codec, Personal: w.personal, Addresses: messages.NewAddresses(w.Pool), Reference: secret.GenerateReferenceKey(), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.sender.Close)
	w.store = deliveries.NewStore(w.Pool, deliveries.Kinds{notify.Registration()})
	w.receive(log)
	w.open(provider.ChannelSMS, w.sim.Infobip(), 2*time.Second)
	w.open(provider.ChannelEmail, "smtp+plain://"+w.sim.Mail(simulator.MailServer{})+"?from=no-reply@pay.example", 2*time.Second)
	return w
}

// receive starts the part of the edge that receives delivery reports.
func (w *world) receive(log *slog.Logger) {
	w.t.Helper()
	w.reports, w.edgeMetrics = messages.NewReports(w.Pool), prometheus.NewRegistry()
	part, err := callbacks.NewMessages(callbacks.MessagesConfig{
		Providers: all.Providers(), Reports: w.reports, Verifier: w.keys, Now: w.Now, Log: log, Metrics: w.edgeMetrics,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	r := chi.NewRouter()
	part.Routes(r)
	server := httptest.NewServer(r)
	w.t.Cleanup(server.Close)
	w.edge = server.URL
}

func (w *world) open(channel provider.Channel, address string, timeout time.Duration) {
	w.t.Helper()
	key := ""
	if channel == provider.ChannelSMS {
		key = providers.Secret
	}
	p, err := all.Providers().Open(channel, address, provider.Settings{Secret: secret.NewText(key), Plain: true, Now: w.Now, Timeout: timeout})
	if err != nil {
		w.t.Fatal(err)
	}
	w.providers[channel] = p
}

func (w *world) config() delivery.WorkerConfig {
	w.t.Helper()
	texts, err := messages.NewTemplates(host, staffHost)
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.metrics = prometheus.NewRegistry()
	policy, err := notify.NewPolicy(notify.Config{
		Reports: w.reports, ReportURL: func(name, id string) string { return messages.ReportURL(w.keys, w.edge, name, id) },
		Codec: w.Codec, Personal: w.personal, Templates: texts, Sends: messages.NewSends(w.Pool), Addresses: messages.NewAddresses(w.Pool), Papers: w.papers(), Session: w.stored, Providers: w.providers, Now: w.Now, Log: log, Metrics: w.metrics,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := w.Sender(notify.Registration(), policy)
	cfg.History = deliveries.NewHistory(w.Kafka, w.Client, w.store)
	return cfg
}

// agencies are those of the world: one.
type agencies struct{}

func (agencies) Agency(id string) (registry.Agency, bool) {
	if id != "agency" {
		return registry.Agency{}, false
	}
	return registry.Agency{ID: id, Slug: "impots", Name: "Direction générale des impôts"}, true
}

func (agencies) Configured(string, bool, string, string) bool { return true }

func (agencies) StatementAccountOf(string, bool, string, string, string) (registry.StatementAccount, bool) {
	return registry.StatementAccount{}, false
}

// noDues is for receipts, which ask no ERP.
type noDues struct{}

func (noDues) List(context.Context, string, bool, string) (erp.Answer, error) {
	return erp.Answer{}, errors.New("a receipt asks an ERP")
}

// papers makes the receipts of the world.
func (w *world) papers() *papers.Maker {
	w.t.Helper()
	if err := receipts.EnsureKeys(w.t.Context(), w.Pool, w.keys, deliverytest.Actor, w.Now()); err != nil {
		w.t.Fatal(err)
	}
	tokens, err := receipts.NewStore(receipts.StoreConfig{Pool: w.Pool, Keys: w.keys, PublicURL: host})
	if err != nil {
		w.t.Fatal(err)
	}
	maker, err := papers.NewMaker(papers.Config{
		Registry: agencies{}, Contacts: w.personal, Dues: noDues{}, Tokens: tokens, Base: host, Now: w.Now, Log: slog.New(slog.NewTextHandler(w.log, nil)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return maker
}

// stored returns a session as the read model of the world has it.
func (w *world) stored(ctx context.Context, id string) (checkout.Session, error) {
	return sessions.NewStore(w.Pool).Stored(ctx, w.Codec, id)
}

func (w *world) schedule() *schedule.Schedule {
	w.t.Helper()
	s, err := schedule.New(schedule.Config{
		Kafka: w.Kafka, Codec: w.Codec, Deliveries: w.store, Outcomes: deliverytest.Outcomes(), Now: w.Now, Log: slog.New(slog.NewTextHandler(w.log, nil)), Metrics: prometheus.NewRegistry(), Poll: 50 * time.Millisecond,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// start runs the whole path.
func (w *world) start() (stop func()) {
	cfg := w.config()
	return deliverytest.Start(w.t, deliverytest.Planner(w.t, cfg), deliverytest.Worker(w.t, cfg), w.schedule())
}

// code sends a code by SMS and returns the message's id.
func (w *world) code(about, code string) string {
	w.t.Helper()
	return w.send(provider.ChannelSMS, number, about, code)
}

func (w *world) send(channel provider.Channel, to, about, code string) string {
	w.t.Helper()
	id := messages.MessageID(messages.SignInCode, channel, about)
	err := w.sender.Send(w.t.Context(), messages.Message{
		ID: id, Kind: messages.SignInCode, Channel: channel, To: to, Variables: map[string]string{messages.VariableCode: code}, At: w.Now(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// state returns the state and the reason of a message's delivery.
func (w *world) state(id string) (state, reason string) {
	w.t.Helper()
	err := w.Pool.QueryRow(w.t.Context(), `SELECT coalesce(max(state), ''), coalesce(max(reason), '') FROM deliveries WHERE event_id = $1`, id).Scan(&state, &reason)
	if err != nil {
		w.t.Fatal(err)
	}
	return state, reason
}

func (w *world) await(id, state, reason string) {
	w.t.Helper()
	var gotState, gotReason string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the message is %s (%s)", gotState, gotReason)
		}
	}()
	deliverytest.Eventually(w.t, "the message is "+state+" "+reason, func() bool {
		gotState, gotReason = w.state(id)
		return gotState == state && gotReason == reason
	})
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.Pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// The whole path, from the sender to the simulated providers. Its parts share one installation.
func TestMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.noProvider()
	kept, fresh := w.beforeStart()
	w.start()
	w.lapses(kept, fresh)
	w.arrives()
	w.resubmits()
	w.sameTwice()
}

// A code arrives by SMS and by e-mail, in the language that was asked for. No topic, row or
// log has the address or the code, and the key of the sealed part is deleted.
func (w *world) arrives() {
	t := w.t
	const code, mail = "481516", "citoyenne@example.org"
	sms, letter := w.code("sign-in 1", code), w.send(provider.ChannelEmail, mail, "sign-in 2", code)
	w.await(sms, deliveries.StateDelivered, "")
	w.await(letter, deliveries.StateDelivered, "")
	got := w.received()
	if len(got) != 1 || got[0].To != arrived || got[0].ID != sms || !strings.HasPrefix(got[0].Text, code+" est votre code") || !strings.HasSuffix(got[0].Text, "\n@pay.example #"+code) {
		t.Errorf("SMS: %+v", got)
	}
	letters := w.sim.Inbox(provider.ChannelEmail)
	if len(letters) != 1 || letters[0].To != mail || letters[0].ID != letter+"@pay.example" || letters[0].Subject != code+" est votre code de connexion" || !strings.Contains(letters[0].Text, host) {
		t.Errorf("e-mails: %+v", letters)
	}
	for _, topic := range []string{schemas.TopicMessages, schemas.TopicMessagesDeliveries, schemas.TopicAttempts} {
		records := w.Records(t, topic)
		if len(records) < 2 {
			t.Errorf("%s has %d records", topic, len(records))
		}
		for _, r := range records {
			for _, hidden := range []string{code, mail, "066000001", "citoyenne"} {
				if bytes.Contains(r.Value, []byte(hidden)) || bytes.Contains(r.Key, []byte(hidden)) {
					t.Errorf("%s has %q in plain", topic, hidden)
				}
			}
		}
	}
	for _, hidden := range []string{code, mail, "066000001", "06 600 00 01", "citoyenne"} {
		if strings.Contains(w.log.String(), hidden) {
			t.Errorf("a log has %q", hidden)
		}
		if n := w.count(`SELECT count(*) FROM deliveries d WHERE d::text LIKE '%' || $1 || '%'`, hidden); n > 0 {
			t.Errorf("%d rows have %q", n, hidden)
		}
	}
	if n := w.count(`SELECT count(*) FROM personal_keys`); n > 0 {
		t.Errorf("%d keys of messages that are done", n)
	}
	list, err := w.store.List(t.Context(), deliveries.Filter{Kind: notify.Kind, Limit: 10})
	if err != nil || len(list) < 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, d := range list[:2] {
		if want := map[string]string{sms: "sms:+242\u00a006\u00a0•••\u00a0••\u00a001", letter: "mailto:c•••@example.org"}[d.EventID]; d.URL != want || d.Event != "message.sign_in_code" {
			t.Errorf("operators see %q of %s, want %q", d.URL, d.Event, want)
		}
	}
}

// After a definite refusal that may pass, the code is submitted once more, within a minute.
// After a refusal for good, a second refusal, or a time-out it never is.
func (w *world) resubmits() {
	t := w.t
	w.sim.Control("sms", `{"refuse":"temporary","times":1}`)
	id := w.code("once more", "111111")
	w.await(id, deliveries.StateWaiting, "busy:EC_REJECTED_NOT_ENOUGH_CREDITS")
	w.Advance(6 * time.Second)
	w.await(id, deliveries.StateDelivered, "")

	w.sim.Control("sms", `{"status":503,"times":2}`)
	id = w.code("twice refused", "222222")
	w.await(id, deliveries.StateWaiting, "busy:SERVICE_UNAVAILABLE")
	w.Advance(6 * time.Second)
	w.await(id, deliveries.StateExhausted, "busy:SERVICE_UNAVAILABLE")

	w.sim.Control("sms", `{"refuse":"permanent","times":1}`)
	id = w.code("for good", "333333")
	w.await(id, deliveries.StateExhausted, "refused:EC_REJECTED_NETWORK")

	w.sim.Control("sms", `{"hang":true,"report":"none","times":1}`)
	timedOut := w.code("timed out", "444444")
	w.await(timedOut, deliveries.StateExhausted, "unknown:timeout")

	// An operator cannot have it sent again either.
	retried, err := w.store.List(t.Context(), deliveries.Filter{EventID: timedOut, Limit: 1})
	if err != nil || len(retried) != 1 {
		t.Fatal(retried, err)
	}
	if _, err := w.store.Retry(t.Context(), deliverytest.Actor, retried[0].ID, w.Now()); err != nil {
		t.Fatal(err)
	}
	w.await(timedOut, deliveries.StateExhausted, "not_sent_again")

	w.sim.Control("sms", `{"refuse":"temporary","times":1}`)
	late := w.code("late", "555555")
	w.await(late, deliveries.StateWaiting, "busy:EC_REJECTED_NOT_ENOUGH_CREDITS")
	w.Advance(2 * time.Minute)
	w.await(late, deliveries.StateExhausted, "not_sent_again")

	n := map[string]int{}
	for _, m := range w.received() {
		n[m.Text[:6]]++
	}
	if want := map[string]int{"111111": 1, "444444": 1}; fmt.Sprint(n) != fmt.Sprint(want) {
		t.Errorf("arrived: %v, want %v", n, want)
	}
}

// beforeStart sends a code that will have lost its worth when the sink starts, and one that has
// not.
func (w *world) beforeStart() (kept, fresh string) {
	kept = w.code("kept", "666666")
	w.Advance(10*time.Minute - time.Second)
	fresh = w.code("fresh", "777777")
	w.Advance(2 * time.Second)
	return kept, fresh
}

// A code is never sent after its ten minutes, whatever kept it.
func (w *world) lapses(kept, fresh string) {
	w.await(fresh, deliveries.StateDelivered, "")
	w.await(kept, deliveries.StateExhausted, "expired")
	if got := w.received(); len(got) != 1 || !strings.HasPrefix(got[0].Text, "777777") {
		w.t.Errorf("arrived: %+v", got)
	}
}

// Without a provider of its channel a code waits as long as it has its worth.
func (w *world) noProvider() {
	sms := w.providers[provider.ChannelSMS]
	delete(w.providers, provider.ChannelSMS)
	policy := w.config().Policy
	w.providers[provider.ChannelSMS] = sms
	w.code("unconfigured", "888888")
	records := w.Records(w.t, schemas.TopicMessages)
	planned, err := messages.Plan(w.Codec, records[len(records)-1].Value)
	if err != nil || len(planned) != 1 {
		w.t.Fatal(planned, err)
	}
	d := planned[0]
	r := policy.Send(w.t.Context(), &d)
	if v := policy.Judge(&d, r, w.Now()); r.Reason() != "no_provider" || v.Outcome != deliveries.OutcomeFailed || v.Unhealthy {
		w.t.Errorf("%s: %+v", r.Reason(), v)
	}
	if v := policy.Judge(&d, r, w.Now().Add(9*time.Minute+45*time.Second)); v.Outcome != deliveries.OutcomeExhausted {
		w.t.Errorf("at the end of its worth: %+v", v)
	}
	w.Advance(11 * time.Minute) // it lapses
}

// received returns the SMS that arrived since the last call.
func (w *world) received() []providers.Received {
	got := w.sim.Inbox(provider.ChannelSMS)
	w.sim.Clear(provider.ChannelSMS)
	return got
}

// dying is a provider whose process ends after the provider has the message, and before the
// outcome is recorded.
type dying struct {
	provider.Provider
	died chan struct{}
}

func (d dying) Send(ctx context.Context, m provider.Message) error {
	_ = d.Provider.Send(ctx, m)
	close(d.died)
	<-ctx.Done() // the process is gone: it records nothing
	return &provider.Error{Fault: provider.FaultUnknown}
}

// A worker that dies between the call and its record leaves a code that the next worker does
// not send again. A code that was recorded is not sent again by a worker that reads it again.
func TestKilledBetweenSendAndRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	whole := w.providers[provider.ChannelSMS]
	died := make(chan struct{})
	w.providers[provider.ChannelSMS] = dying{whole, died}
	cfg := w.config()
	deliverytest.Start(t, deliverytest.Planner(t, cfg), w.schedule())
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	worker := deliverytest.Worker(t, cfg)
	go func() { ended <- worker.Run(ctx) }()
	id := w.code("killed", "999999")
	<-died
	kill()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if state, reason := w.state(id); state != "" {
		t.Fatalf("the dead worker recorded %s (%s)", state, reason)
	}
	w.providers[provider.ChannelSMS] = whole
	deliverytest.Start(t, deliverytest.Worker(t, w.config()))
	w.await(id, deliveries.StateExhausted, "not_sent_again")
	if n := w.count(`SELECT count(*) FROM message_reports WHERE message_id = $1`, id); n > 0 {
		t.Error("a report on a call that was not made is awaited")
	}
	next := w.code("next", "121212")
	w.await(next, deliveries.StateDelivered, "")
	if got := w.sim.Inbox(provider.ChannelSMS); len(got) != 2 {
		t.Errorf("%d SMS arrived, want one of each code: %+v", len(got), got)
	}
}

// The same message that is sent twice by its sender arrives once.
func (w *world) sameTwice() {
	t := w.t
	id := w.code("same", "131313")
	w.await(id, deliveries.StateDelivered, "")
	w.code("same", "131313")
	last := w.code("last", "141414")
	w.await(last, deliveries.StateDelivered, "")
	if got := w.received(); len(got) != 2 {
		t.Errorf("%d SMS arrived, want 2", len(got))
	}
	if state, _ := w.state(id); state != deliveries.StateDelivered {
		t.Errorf("the message became %s", state)
	}
}
