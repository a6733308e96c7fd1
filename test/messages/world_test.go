package messages_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/bench"
	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/dev/clock"
	"quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/internal/deliveries"
	"quittance/internal/notify"
	"quittance/internal/personal"
	"quittance/internal/postgres"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/test/await"
	"quittance/test/servers"

	deliverytest "quittance/test/deliveries"
)

// patience bounds every wait. It is longer than the rebalance of a consumer group whose member was
// killed while it joined, on a busy machine.
const patience = 4 * time.Minute

// agency is the id of the agency of bench.Registry(1).
const agency = "018f0000-0000-7000-8001-000000000000"

// world is an installation of its own with two workers, and what was asked of it.
type world struct {
	*installation.Installation
	t        *testing.T
	pool     *pgxpool.Pool
	clock    *clock.Clock
	codec    *schemas.Codec
	personal *personal.Store
	sender   *notify.Sender
	producer *kgo.Client
	sim      string // URL of the simulators
	workers  []*program.Process
	kills    atomic.Int64

	mu     sync.Mutex
	asked  []message
	people int
}

// newWorld starts the servers and the roles. Everything ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	path := servers.QuittanceDev(t)
	w := &world{t: t}
	var err error
	if w.Installation, err = installation.Open(t.Context(), installation.Config{Program: path, Log: servers.Logger(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, p := range w.workers {
				t.Logf("---- the end of the output of %s\n%s", p.Name, program.Tail(p.LogFile(), 3<<10))
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Log(err)
		}
	})
	w.roles()
	return w
}

// roles starts the processes.
func (w *world) roles() {
	t := w.t
	keys, reference := secret.GenerateKeys(), secret.GenerateReferenceKey()
	ports, err := stack.FreePorts(program.UpPorts)
	if err != nil {
		t.Fatal(err)
	}
	const atSimulators, atMail = 1, 9 // as in every installation of the program
	w.sim = "http://" + program.Local(ports[0]+atSimulators)
	edge := "http://" + program.Local(ports[0])
	w.Program = w.Program.With("QUITTANCE_MASTER_KEYS="+keys.Reveal(), "QUITTANCE_REFERENCE_KEY="+reference.Reveal(), "QUITTANCE_SIMULATOR_URL="+w.sim,
		"QUITTANCE_MAIL=smtp+plain://"+program.Local(ports[0]+atMail)+"?from=no-reply@quittance.example")
	registry, _ := bench.Registry(1)
	if err := w.Seed(t.Context(), string(registry)); err != nil {
		t.Fatal(err)
	}
	process := func(name string, args ...string) *program.Process {
		p, err := w.Process(name, args...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := []*program.Process{
		process("simulate", "simulate", "--port", strconv.Itoa(ports[0])),
		process("ingress", "ingress", "--listen", program.Local(ports[0]), "--checkout-url", edge, "--callback-url", edge),
		process("processor", "processor", "--instance", "0", "--store", filepath.Join(w.Dir, "store")), // an ingress without one is not ready
		process("schedule", "sink", "schedule"), process("readmodel", "sink", "readmodel"),
	}
	for n := range 2 {
		p := process(fmt.Sprintf("notify-%d", n), "sink", "notify", "--instance", strconv.Itoa(n), "--checkout-url", edge, "--callback-url", edge)
		w.workers = append(w.workers, p)
	}
	if err := w.Start(t.Context(), append(all, w.workers...)...); err != nil {
		t.Fatal(err)
	}
	w.connect(keys, reference)
}

// connect makes the test's own part: what the ingress does when it asks for a message.
func (w *world) connect(keys *secret.Keys, reference *secret.ReferenceKey) {
	t := w.t
	var err error
	if w.pool, err = postgres.Open(t.Context(), w.DSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pool.Close)
	if w.clock, err = clock.Follow(t.Context(), w.pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	following, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = w.clock.Run(following) }) // it always returns nil
	t.Cleanup(func() { stop(); running.Wait() })
	w.codec = deliverytest.Codec(t, w.Schemas())
	if w.personal, err = personal.New(personal.Config{Pool: w.pool, Keys: keys, Now: w.clock.Now}); err != nil {
		t.Fatal(err)
	}
	w.sender, err = notify.NewSender(notify.SenderConfig{
		Kafka: w.KafkaConfig(), Codec: w.codec, Personal: w.personal, Addresses: notify.NewAddresses(w.pool), Reference: reference, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.sender.Close)
	if w.producer, err = w.KafkaConfig().Client(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.producer.Close)
}

// person returns addresses that nobody had before: as people write them, and as the inboxes show
// them.
func (w *world) person() (phone, email string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.people++
	return fmt.Sprintf("+24206%07d", 6100000+w.people), fmt.Sprintf("citizen%d@example.org", w.people)
}

func shown(to string) string { return strings.TrimPrefix(to, "+") }

func (w *world) note(m message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, m)
}

// ask asks for a message about something of its own.
func (w *world) ask(kind notify.Kind, channel provider.Channel, to string, may ...string) string {
	w.t.Helper()
	at := w.clock.Now().Truncate(time.Millisecond)
	id := notify.MessageID(kind, channel, uuid.NewString())
	variables := map[string]string{}
	for _, v := range kind.Variables {
		variables[v] = kind.Samples[v]
	}
	if err := w.sender.Send(w.t.Context(), notify.Message{ID: id, Kind: kind, Channel: channel, To: to, Variables: variables, Live: true, At: at}); err != nil {
		w.t.Fatal(err)
	}
	w.note(message{id: id, kind: kind, channel: channel, to: shown(to), at: at, may: may})
	return id
}

// pay publishes that a session of somebody new was paid. The announcer makes the receipts.
func (w *world) pay(may ...string) checkout.Session {
	w.t.Helper()
	phone, email := w.person()
	id, now := "chs_"+strings.ReplaceAll(uuid.NewString(), "-", ""), w.clock.Now().Truncate(time.Millisecond)
	sealed, err := w.personal.SealCustomer(w.t.Context(), id, checkout.Customer{Name: "A", Phone: phone, Email: email})
	if err != nil {
		w.t.Fatal(err)
	}
	s := checkout.Session{
		ID: id, TenantID: agency, Live: true, OrderID: id, Mode: checkout.ModeHosted, Currency: "XAF", Amount: 5000, CustomerSealed: sealed, Status: checkout.StatusCompleted, Sequence: 3,
		PaymentRef: fmt.Sprintf("4821%012d", w.people), TransactionID: uuid.NewString(), NoticeID: uuid.NewString(), NoticeRef: fmt.Sprintf("AV2026%010d", w.people), CreatedAt: now, EndedAt: now,
		Collection: &checkout.Collection{
			ID: "c", OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Amount: 5075, Fee: 75, Currency: "XAF", Status: checkout.CollectionApproved, OperatorRef: "op1", RequestedAt: now, DecidedAt: now,
		},
	}
	w.announce(notify.Receipt, checkout.EventCompleted, s, phone, email, may...)
	return s
}

// reverse publishes that the money of a session was given back.
func (w *world) reverse(s checkout.Session) {
	w.t.Helper()
	c, err := w.personal.Customer(w.t.Context(), s.ID, s.CustomerSealed)
	if err != nil {
		w.t.Fatal(err)
	}
	s.ReversedAt, s.Sequence = w.clock.Now().Truncate(time.Millisecond), s.Sequence+1
	w.announce(notify.Reversed, checkout.EventReversed, s, c.Phone, c.Email)
}

func (w *world) announce(kind notify.Kind, event checkout.EventType, s checkout.Session, phone, email string, may ...string) {
	w.t.Helper()
	e := checkout.Event{ID: "evt_" + uuid.NewString(), Type: event, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: w.clock.Now().Truncate(time.Millisecond), Session: s}
	value, err := w.codec.Encode(mapping.FromEvent(e))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.producer.ProduceSync(w.t.Context(), &kgo.Record{Topic: w.Prefix + schemas.TopicEvents, Key: []byte(s.TenantID), Value: value}).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	for channel, to := range map[provider.Channel]string{provider.ChannelSMS: phone, provider.ChannelEmail: email} {
		w.note(message{id: notify.MessageID(kind, channel, e.ID), kind: kind, channel: channel, to: shown(to), at: e.OccurredAt, may: may})
	}
}

// control posts to /control of the simulators.
func (w *world) control(path, body string) {
	w.t.Helper()
	if text, status := w.call(http.MethodPost, w.sim+"/control/"+path, body); status/100 != 2 {
		w.t.Fatalf("/control/%s %s: %d %s", path, body, status, text)
	}
}

func (w *world) call(method, url, body string) (text []byte, status int) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err = io.ReadAll(resp.Body); err != nil {
		w.t.Fatal(err)
	}
	return text, resp.StatusCode
}

// inbox returns what has arrived by a channel.
func (w *world) inbox(channel provider.Channel) (out []arrival) {
	w.t.Helper()
	name := map[provider.Channel]string{provider.ChannelSMS: "sms", provider.ChannelEmail: "mail"}[channel]
	text, _ := w.call(http.MethodGet, w.sim+"/inbox/"+name, "")
	var all []struct {
		ReceivedAt time.Time `json:"received_at"`
		To         string    `json:"to"`
		MessageID  string    `json:"message_id"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range all {
		id, _, _ := strings.Cut(m.MessageID, "@")
		out = append(out, arrival{id, m.To, m.ReceivedAt})
	}
	return out
}

// arrived counts those of the messages that are in an inbox.
func (w *world) arrived(ids []string) (n int) {
	w.t.Helper()
	got := map[string]bool{}
	for _, c := range provider.Channels {
		for _, a := range w.inbox(c) {
			got[a.id] = true
		}
	}
	for _, id := range ids {
		if got[id] {
			n++
		}
	}
	return n
}

// until waits for a condition.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	if !await.Within(patience, holds) {
		w.t.Fatalf("not within %v: %s", patience, what)
	}
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// ids returns the ids of all messages.
func (w *world) ids() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.asked {
		out = append(out, m.id)
	}
	return out
}

// quiet waits until nothing is left to do now: each message has a row, and is done or waits for
// a later time.
func (w *world) quiet(what string) {
	w.t.Helper()
	ids, begun := w.ids(), time.Now()
	defer func() {
		w.t.Logf("%s: %d messages, quiet after %v", what, len(ids), measure.Rounded(time.Since(begun)))
		if w.t.Failed() {
			w.undone(ids)
		}
	}()
	w.until("everything is done that can be done now: "+what, func() bool {
		return w.count(`SELECT count(*) FROM deliveries WHERE event_id = ANY($1) AND (state IN ('delivered', 'exhausted') OR state = 'waiting' AND next_attempt_at > $2)`,
			ids, w.clock.Now()) == len(ids)
	})
}

// undone logs the messages that are not done and could be.
func (w *world) undone(ids []string) {
	rows, _ := w.pool.Query(context.WithoutCancel(w.t.Context()), `
		SELECT m.id || ': ' || coalesce(concat_ws(', ', d.state, d.reason, 'attempt ' || d.attempts, 'round ' || d.round, 'due ' || d.next_attempt_at, 'leased until ' || d.lease_until, 'last outcome ' || d.last_outcome_at), 'no row')
		FROM unnest($1::text[]) AS m(id) LEFT JOIN deliveries d ON d.event_id = m.id
		WHERE coalesce(d.state NOT IN ('delivered', 'exhausted') AND (d.state <> 'waiting' OR d.next_attempt_at <= $2), true)`, ids, w.clock.Now()) // the rows return its error
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.t.Logf("not done at %v of the service's clock, %v of the machine's (%v):\n%s", w.clock.Now().UTC(), time.Now().UTC(), err, strings.Join(found, "\n"))
}

// advance moves the clock of all processes forward, and waits until nothing is left to do.
func (w *world) advance(by time.Duration) {
	w.t.Helper()
	w.forward(by)
	w.quiet(fmt.Sprintf("%v later", by))
}

func (w *world) forward(by time.Duration) {
	w.t.Helper()
	offset, err := clock.Advance(w.t.Context(), w.pool, by)
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("the test's clock has moved", func() bool { return w.clock.Offset() >= offset })
}

// finish moves the clock from one attempt to the next, until no message waits.
func (w *world) finish() {
	w.t.Helper()
	for w.quiet("the last messages"); ; {
		var next *time.Time
		if err := w.pool.QueryRow(w.t.Context(), `SELECT min(next_attempt_at) FROM deliveries WHERE event_id = ANY($1) AND state = 'waiting'`, w.ids()).Scan(&next); err != nil {
			w.t.Fatal(err)
		}
		if next == nil {
			return
		}
		w.advance(max(next.Sub(w.clock.Now()), 0) + time.Second)
	}
}

// kill kills workers with SIGKILL. start starts them again.
func (w *world) kill(workers ...*program.Process) {
	w.t.Helper()
	for _, p := range workers {
		if p.Kill() {
			w.kills.Add(1)
		}
	}
}

func (w *world) start(workers ...*program.Process) {
	w.t.Helper()
	for _, p := range workers {
		if err := p.Start(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// stopBroker stops the broker with SIGSTOP: nobody can write to Kafka. The returned function kills
// it and starts it again, so that it forgets the requests that it has not read.
func (w *world) stopBroker() (restart func()) {
	w.t.Helper()
	if err := syscall.Kill(w.Kafka.Pid(), syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		w.t.Helper()
		if err := w.Kafka.Kill(); err != nil {
			w.t.Fatal(err)
		}
		if err := w.Kafka.Restart(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// findings reads everything.
func (w *world) findings() findings {
	t := w.t
	f := findings{
		asked: w.asked, rows: map[string]delivery{}, accepted: map[string]time.Time{},
		machine: func(at time.Time) (time.Time, error) { return w.clock.Machine(t.Context(), at) },
	}
	for _, c := range provider.Channels {
		f.arrived = append(f.arrived, w.inbox(c)...)
	}
	first := func(id string, at time.Time) {
		if known, ok := f.accepted[id]; !ok || at.Before(known) {
			f.accepted[id] = at
		}
	}
	each := func(sql string, into []any, do func() error) {
		rows, _ := w.pool.Query(t.Context(), sql) // the rows carry its error
		if _, err := pgx.ForEachRow(rows, into, do); err != nil {
			t.Fatal(err)
		}
	}
	var id string
	var row delivery
	each(`SELECT event_id, state, coalesce(reason, '') FROM deliveries WHERE kind = 'notify'`, []any{&id, &row.state, &row.reason}, func() error {
		f.rows[id] = row
		return nil
	})
	var at time.Time
	accepted := map[string]time.Time{}
	each(`SELECT message_id, accepted_at FROM message_reports WHERE accepted_at IS NOT NULL`, []any{&id, &at}, func() error {
		accepted[id] = at
		return nil
	})
	for id, at := range accepted {
		machine, err := f.machine(at)
		if err != nil {
			t.Fatal(err)
		}
		first(id, machine)
	}
	b := &deliverytest.Bench{Kafka: w.KafkaConfig(), Codec: w.codec, Client: w.producer}
	for _, r := range b.Records(t, schemas.TopicAttempts) {
		a, err := w.attempt(r)
		if err != nil {
			t.Fatal(err)
		}
		if a.Outcome == string(deliveries.OutcomeDelivered) {
			first(a.Delivery.EventID, r.Timestamp)
		}
	}
	return f
}
