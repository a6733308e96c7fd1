package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

const (
	secret1 = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secret2 = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
	eventID = "X-Service-Event-Id"
)

// endpoints is the part of the registry that the sink needs.
type endpoints struct {
	mu   sync.Mutex
	by   map[string]registry.WebhookEndpoint
	subs map[string][]string
}

func newEndpoints() *endpoints {
	return &endpoints{by: map[string]registry.WebhookEndpoint{}, subs: map[string][]string{}}
}

func (e *endpoints) add(application string, ep registry.WebhookEndpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ep.Secrets == nil {
		ep.Secrets = []secret.Text{secret.NewText(secret1)}
	}
	e.by[ep.ID] = ep
	e.subs[application] = append(e.subs[application], ep.ID)
}

func (e *endpoints) Endpoints(application string, platform, _ bool, _ string) []registry.WebhookEndpoint {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := slices.Clone(e.subs[application])
	if platform {
		ids = append(ids, e.subs["platform"]...)
	}
	var out []registry.WebhookEndpoint
	for _, id := range ids {
		out = append(out, e.by[id])
	}
	return out
}

// IntegratorOf returns the application that has the agency's name.
func (e *endpoints) IntegratorOf(agency string) (registry.Application, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.subs[agency]
	return registry.Application{ID: agency, AgencyID: agency}, ok
}

func (e *endpoints) Endpoint(id string) (registry.WebhookEndpoint, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ep, ok := e.by[id]
	return ep, ok
}

func bench(t testing.TB) *deliverytest.Bench {
	t.Helper()
	return deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t),
		Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
}

func config(t testing.TB, b *deliverytest.Bench, e webhook.Endpoints) delivery.WorkerConfig {
	t.Helper()
	p, err := webhook.NewPolicy(webhook.Config{Endpoints: e, Now: b.Now, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	return b.Sender(webhook.Registration(e), p)
}

func ids(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("evt_%s%05d", prefix, i)
	}
	return out
}

func notifications(b *deliverytest.Bench, application string, events []string) []*record.Notification {
	out := make([]*record.Notification, len(events))
	for i, id := range events {
		out[i] = b.Notification(id, application)
	}
	return out
}

// The application's and the platform's endpoint get an event once, with the stored bytes,
// signed with every active secret. Nothing is sent for an aborted transaction, although
// kafka-go returns aborted records. After a restart nothing is sent again.
func TestDeliveredOnceAndSigned(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own, platform := deliverytest.NewReceiver(t, eventID), deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL + "/hook?k=v", Secrets: []secret.Text{secret.NewText(secret1), secret.NewText(secret2)}})
	e.add("platform", registry.WebhookEndpoint{ID: "platform", URL: platform.URL})
	cfg := config(t, b, e)
	stop := deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))

	aborted := b.Notification("evt_aborted", "app")
	b.Notify(t, schemas.TopicWebhooks, false, aborted)
	n := b.Notification("evt_1", "app")
	n.Platform = true
	b.Notify(t, schemas.TopicWebhooks, true, n, b.Notification("evt_nobody", "other"))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_2", "app"))
	deliverytest.Eventually(t, "three deliveries on record", func() bool {
		return b.State(t, webhook.Kind, "evt_1", "own") == "delivered" && b.State(t, webhook.Kind, "evt_1", "platform") == "delivered" &&
			b.State(t, webhook.Kind, "evt_2", "own") == "delivered"
	})
	if got := own.Count(); !maps.Equal(got, map[string]int{"evt_1": 1, "evt_2": 1}) {
		t.Errorf("own endpoint got %v", got)
	}
	if got := platform.Count(); !maps.Equal(got, map[string]int{"evt_1": 1}) {
		t.Errorf("platform endpoint got %v", got)
	}
	i := slices.IndexFunc(own.Got(), func(r deliverytest.Request) bool { return r.EventID == "evt_1" })
	got := own.Got()[i]
	if got.Body != string(n.Body) || got.Header.Get("webhook-id") != "evt_1" || got.Header.Get("Content-Type") != "application/json" ||
		got.Header.Get("User-Agent") == "" || got.Header.Get("Accept-Encoding") != "" {
		t.Errorf("request %+v", got)
	}
	for _, s := range []string{secret1, secret2} {
		wh, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := wh.Verify([]byte(got.Body), got.Header); err != nil {
			t.Errorf("signature of one of two secrets: %v", err)
		}
	}
	for _, a := range b.Attempts(t) {
		if a.Outcome != "delivered" || len(a.Delivery.Body) != 0 || a.HTTPStatus != 200 || a.Delivery.Attempt != 1 {
			t.Errorf("outcome %+v", a)
		}
	}

	// A group that has lost its offsets reads everything again and sends nothing, because
	// Postgres has the outcomes.
	stop()
	adm := kadm.NewClient(b.Client)
	if _, err := adm.DeleteGroup(t.Context(), b.Kafka.Prefix+"webhook-worker"); err != nil {
		t.Fatal(err)
	}
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_3", "app"))
	deliverytest.Eventually(t, "an event after the restart", func() bool { return own.Count()["evt_3"] == 1 })
	if n := len(own.Got()); n != 3 {
		t.Errorf("%d requests in all, want 3", n)
	}
}

// A record that cannot be decoded goes to the poison topic with its topic, partition and
// offset, and the records behind it are processed; also on the worker's topic.
func TestPoison(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	for _, topic := range []string{schemas.TopicWebhooks, schemas.TopicWebhooksDeliveries, schemas.TopicAttempts} {
		produce(t, b, topic, "app", []byte("\x00\x00\x00\x00\x63garbage"))
	}
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
	deliverytest.Eventually(t, "delivery behind garbage", func() bool { return b.State(t, webhook.Kind, "evt_1", "own") == "delivered" })
	deliverytest.Eventually(t, "three records of poison", func() bool { return len(b.Records(t, schemas.TopicPoisonDeliveries)) == 3 })
	for _, r := range b.Records(t, schemas.TopicPoisonDeliveries) {
		h := map[string]string{}
		for _, kv := range r.Headers {
			h[kv.Key] = string(kv.Value)
		}
		if h[schemas.HeaderTopic] == "" || h[schemas.HeaderPartition] == "" || h[schemas.HeaderOffset] != "0" || h[schemas.HeaderError] == "" || string(r.Key) != "app" {
			t.Errorf("poison with headers %v, key %q", h, r.Key)
		}
	}
}

// A receiver that was down gets every event once when it is up again, with the ids of the
// first attempts, when the clock has passed the retries.
func TestDownThenUp(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	own.Status(http.StatusServiceUnavailable)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	events := ids("d", 40) // more than ten failures: the breaker opens
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", events)...)
	deliverytest.Eventually(t, "everything waits in the schedule", func() bool {
		for _, id := range events {
			if b.State(t, webhook.Kind, id, "own") != "waiting" {
				return false
			}
		}
		return true
	})
	tried := len(own.Got())
	if tried >= len(events) {
		t.Errorf("%d requests to a receiver that fails: the breaker did not open", tried)
	}
	own.Answer(nil)
	deliverytest.Eventually(t, "everything delivered", func() bool {
		b.Advance(2 * time.Second)
		for _, id := range events {
			if b.State(t, webhook.Kind, id, "own") != "delivered" {
				return false
			}
		}
		return true
	})
	bodies := map[string]string{}
	for _, g := range own.Got()[tried:] {
		if g.Header.Get("webhook-id") != g.EventID || bodies[g.EventID] != "" {
			t.Errorf("after recovery %s came twice, or under id %s", g.EventID, g.Header.Get("webhook-id"))
		}
		bodies[g.EventID] = g.Body
	}
	for _, id := range events {
		if want := string(b.Notification(id, "app").Body); bodies[id] != want {
			t.Errorf("%s: body %q, want %q", id, bodies[id], want)
		}
	}
	var kept int
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE body IS NOT NULL`).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d bodies kept after delivery, %v", kept, err)
	}
}

// A 410 suspends an endpoint: nothing more is sent to it. Its deliveries wait and are sent
// when it is resumed.
func TestGoneIsHeldUntilResumed(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	own.Status(http.StatusGone)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
	deliverytest.Eventually(t, "suspended", func() bool {
		var n int
		err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM delivery_destinations WHERE suspended_reason = 'gone'`).Scan(&n)
		return err == nil && n == 1
	})
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_2", "app"))
	deliverytest.Eventually(t, "held", func() bool { return b.State(t, webhook.Kind, "evt_2", "own") == "waiting" })
	b.Advance(48 * time.Hour)
	time.Sleep(time.Second) // the schedule looks four times a second, and changes nothing that could be awaited
	if n := len(own.Got()); n != 1 {
		t.Fatalf("%d requests to an endpoint that is gone", n)
	}
	own.Answer(nil)
	if _, err := b.Pool.Exec(t.Context(), `UPDATE delivery_destinations SET suspended_at = NULL, suspended_reason = NULL`); err != nil {
		t.Fatal(err)
	}
	deliverytest.Eventually(t, "sent after the resumption", func() bool {
		b.Advance(5 * time.Second)
		return own.Count()["evt_1"] == 2 && own.Count()["evt_2"] == 1
	})
}

// Redirects are failures and are not followed. Forbidden addresses are not called, even
// when the registry contains them.
func TestRedirectAndAddressRefused(t *testing.T) {
	t.Parallel()
	other := deliverytest.NewReceiver(t, eventID)
	redirecting := deliverytest.NewReceiver(t, eventID)
	redirecting.Answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "redirect", URL: redirecting.URL})
	port := other.URL[len("http://127.0.0.1:"):]
	refused := map[string]string{
		"localhost": "http://localhost:" + port, "short": "http://127.1:" + port, "private": "http://10.0.0.1:" + port,
		"https loopback": "https://127.0.0.1:" + port, "ip": "https://192.0.2.1/", "userinfo": "https://u:p@example.com/",
		"port": "https://example.com:8443/", "local": "https://intranet/", "plain": "http://example.com/", "decimal": "https://2130706433/",
		"hex": "https://0x7f.1/", "mapped": "https://[::ffff:127.0.0.1]/", "metadata": "http://169.254.169.254/",
	}
	for id, url := range refused {
		e.add("app", registry.WebhookEndpoint{ID: id, URL: url})
	}
	policy := func(developer bool) *webhook.Policy {
		p, err := webhook.NewPolicy(webhook.Config{Endpoints: e, Now: time.Now, Loopback: developer})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	send := func(developer bool, id string) call.Result {
		return policy(developer).Send(t.Context(), &record.Delivery{DestinationID: id, EventID: "evt_1", Body: []byte("{}")})
	}
	if r := send(true, "redirect"); r.Status != http.StatusTemporaryRedirect || r.OK() || r.Reason() != "redirect" {
		t.Errorf("redirect: %+v", r)
	}
	for id := range refused {
		if r := send(true, id); r.Fault != call.FaultAddress {
			t.Errorf("%s in developer mode: %+v", id, r)
		}
	}
	if r := send(false, "redirect"); r.Fault != call.FaultAddress {
		t.Errorf("loopback outside developer mode: %+v", r)
	}
	if n := len(other.Got()); n != 0 {
		t.Errorf("%d requests arrived where none may", n)
	}
}

// The verdict on each answer and the time of the next attempt (docs/design/decisions.md § 5).
func TestJudge(t *testing.T) {
	t.Parallel()
	p, err := webhook.NewPolicy(webhook.Config{Endpoints: newEndpoints(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, c := range []struct {
		name     string
		attempt  int32
		age      time.Duration
		r        call.Result
		want     deliveries.Outcome
		min, max time.Duration
	}{
		{"204", 1, 0, call.Result{Status: 204}, deliveries.OutcomeDelivered, 0, 0},
		{"301", 1, 0, call.Result{Status: 301}, deliveries.OutcomeFailed, 4 * time.Second, 6 * time.Second},
		{"404 then 1 min", 2, 0, call.Result{Status: 404}, deliveries.OutcomeFailed, 48 * time.Second, 72 * time.Second},
		{"refused, tenth", 10, 0, call.Result{Fault: call.FaultConnect}, deliveries.OutcomeFailed, 19 * time.Hour, 29 * time.Hour},
		{"daily", 17, 0, call.Result{Status: 500}, deliveries.OutcomeFailed, 19 * time.Hour, 29 * time.Hour},
		{"429 at least a minute", 1, 0, call.Result{Status: 429, RetryAfter: 8 * time.Second}, deliveries.OutcomeFailed, time.Minute, time.Minute},
		{"time-out at least a minute", 1, 0, call.Result{Fault: call.FaultTimeout}, deliveries.OutcomeFailed, time.Minute, time.Minute},
		{"retry-after short", 3, 0, call.Result{Status: 503, RetryAfter: time.Second}, deliveries.OutcomeFailed, 5 * time.Minute, 5 * time.Minute},
		{"retry-after honoured", 3, 0, call.Result{Status: 503, RetryAfter: 7 * time.Minute}, deliveries.OutcomeFailed, 7 * time.Minute, 7 * time.Minute},
		{"retry-after long", 3, 0, call.Result{Status: 503, RetryAfter: time.Hour}, deliveries.OutcomeFailed, 10 * time.Minute, 10 * time.Minute},
		{"thirty days", 30, 29*24*time.Hour + 8*time.Hour, call.Result{Status: 500}, deliveries.OutcomeExhausted, 0, 0},
	} {
		v := p.Judge(&record.Delivery{Attempt: c.attempt, FirstAttemptAt: now.Add(-c.age)}, c.r, now)
		if v.Outcome != c.want || v.Unhealthy == (c.want == deliveries.OutcomeDelivered) {
			t.Errorf("%s: %+v", c.name, v)
		}
		if wait := v.NextAttemptAt.Sub(now); c.want == deliveries.OutcomeFailed && (wait < c.min || wait > c.max) {
			t.Errorf("%s: again in %v, want %v to %v", c.name, wait, c.min, c.max)
		}
	}
}

// Two workers share the work. A third joins and one leaves while calls are under way.
// Nothing is lost, and only calls that were under way are made twice.
func TestRebalanceInMidFlight(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	own.Answer(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) })
	e := newEndpoints()
	var all []*record.Notification
	for i := range 8 {
		app := fmt.Sprintf("app%d", i)
		e.add(app, registry.WebhookEndpoint{ID: app, URL: own.URL})
		all = append(all, notifications(b, app, ids(app, 150))...)
	}
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	first := deliverytest.Start(t, deliverytest.Worker(t, cfg))
	b.Notify(t, schemas.TopicWebhooks, true, all...)
	reached := func(n int) func() bool { return func() bool { return len(own.Count()) >= n } }
	deliverytest.Eventually(t, "some are there", reached(100))
	deliverytest.Start(t, deliverytest.Worker(t, cfg))
	deliverytest.Eventually(t, "more are there", reached(400))
	first()
	deliverytest.Eventually(t, "all are there", func() bool { b.Advance(100 * time.Millisecond); return reached(len(all))() })
	doubled := 0
	for _, n := range own.Count() {
		doubled += n - 1
	}
	if doubled > 8*registry.DefaultMaxInFlight {
		t.Errorf("%d doubles, at most what was under way", doubled)
	}
	t.Logf("%d events, %d doubled", len(all), doubled)
	settled(t, b)
}

// Calls last longer than a rebalance. When the partition stays, the delivery that is read
// again joins the call under way. When the partition moves, the delivery is sent again.
// Both answers are recorded and all offsets are settled.
func TestReadAgainWhileUnderWay(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	release := make(chan struct{})
	own.Answer(func(http.ResponseWriter, *http.Request) { <-release })
	e := newEndpoints()
	const n = 16
	for i := range n {
		app := fmt.Sprintf("app%d", i)
		e.add(app, registry.WebhookEndpoint{ID: app, URL: own.URL})
		b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_"+app, app))
	}
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t), deliverytest.Worker(t, cfg))
	deliverytest.Eventually(t, "all under way", func() bool { return len(own.Got()) == n })
	deliverytest.Start(t, deliverytest.Worker(t, cfg))
	deliverytest.Eventually(t, "the other worker has read its share", func() bool { return len(own.Got()) > n })
	time.Sleep(2 * time.Second) // time for calls made again: nothing happens that could be awaited
	again := len(own.Got()) - n
	if again >= n {
		t.Errorf("%d of %d calls made again", again, n)
	}
	if len(b.Attempts(t)) != 0 {
		t.Errorf("outcomes before any answer: %v", b.Attempts(t))
	}
	close(release)
	deliverytest.Eventually(t, "every answer recorded", func() bool { return len(b.Attempts(t)) == n+again })
	settled(t, b)
}

// noted is a policy that notes each call before it is made.
type noted struct {
	delivery.Policy
	note func()
}

func (n noted) Send(ctx context.Context, d *record.Delivery) call.Result {
	n.note()
	return n.Policy.Send(ctx, d)
}

// A worker stops while a call lasts longer than a session of the group. It stays a member
// until the call is answered: the other worker does not make the call again.
func TestStopsWithACallUnderWay(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	answer := make(chan struct{})
	own.Answer(func(http.ResponseWriter, *http.Request) { <-answer })
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	called := make(chan int, 10)
	var stop []func()
	for n := range 2 {
		one := cfg
		one.Policy = noted{cfg.Policy, func() { called <- n }}
		stop = append(stop, deliverytest.Start(t, deliverytest.Worker(t, one)))
	}
	group, adm := b.Kafka.Prefix+cfg.Kind.Sending().Group, kadm.NewClient(b.Client)
	deliverytest.Eventually(t, "both are in the group", func() bool {
		is, err := adm.DescribeGroups(t.Context(), group)
		return err == nil && is[group].State == "Stable" && len(is[group].Members) == 2
	})
	session, err := kafka.GroupSession(t.Context(), b.Kafka, cfg.Kind.Sending().Group)
	if err != nil {
		t.Fatal(err)
	}
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
	caller := <-called
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop[caller]() }()
	select {
	case again := <-called:
		t.Errorf("worker %d makes the call of worker %d again", again, caller)
	case <-time.After(min(session+2*time.Second, 6*time.Second)): // a stopping worker waits for 7 s
	}
	close(answer)
	<-stopped
	settled(t, b)
	if n := own.Count()["evt_1"]; n != 1 {
		t.Errorf("%d requests", n)
	}
}

// A worker whose fetches wait for records at the broker stops at once, so that another
// worker can take over its partitions.
func TestStopsWhileFetching(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	stop := deliverytest.Start(t, deliverytest.Worker(t, cfg))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
	deliverytest.Eventually(t, "delivered", func() bool { return len(own.Got()) == 1 })
	settled(t, b)
	begun := time.Now()
	stop()
	if took := time.Since(begun); took > 3*time.Second { // the broker answers a fetch without records after 5 s
		t.Errorf("stopped after %v", took)
	}
}

// settled waits until the group has committed the ends of its partitions.
func settled(t testing.TB, b *deliverytest.Bench) {
	t.Helper()
	adm := kadm.NewClient(b.Client)
	deliverytest.Eventually(t, "offsets committed", func() bool {
		ends, err1 := adm.ListEndOffsets(t.Context(), b.Kafka.Prefix+schemas.TopicWebhooksDeliveries)
		at, err2 := adm.FetchOffsets(t.Context(), b.Kafka.Prefix+"webhook-worker")
		if err1 != nil || err2 != nil {
			return false
		}
		done := true
		ends.Each(func(o kadm.ListedOffset) {
			c, ok := at.Lookup(o.Topic, o.Partition)
			done = done && (o.Offset == 0 || ok && c.At == o.Offset)
		})
		return done
	})
}

// awayHistory is a History whose Postgres is unavailable at first.
type awayHistory struct {
	delivery.History
	away  atomic.Bool
	asked atomic.Int32
}

func (h *awayHistory) Settled(ctx context.Context, refs []deliveries.Ref) (map[string]bool, error) {
	h.asked.Add(1)
	if h.away.Load() {
		return nil, context.DeadlineExceeded
	}
	return h.History.Settled(ctx, refs)
}

// A delivery that may have been sent before waits until Postgres answers.
func TestWaitsForPostgresBeforeSendingOldRecords(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
	deliverytest.Eventually(t, "planned", func() bool { return len(b.Records(t, schemas.TopicWebhooksDeliveries)) == 1 })
	h := &awayHistory{History: cfg.History}
	h.away.Store(true)
	cfg.History = h
	deliverytest.Start(t, deliverytest.Worker(t, cfg))
	deliverytest.Eventually(t, "asked twice", func() bool { return h.asked.Load() >= 2 })
	if n := len(own.Got()); n != 0 {
		t.Fatalf("%d requests while nobody can say whether they were sent", n)
	}
	h.away.Store(false)
	deliverytest.Eventually(t, "sent", func() bool { return own.Count()["evt_1"] == 1 })
}

// child is the configuration of a worker in a process of its own.
type child struct {
	Kafka                             kafka.Config
	DSN, SchemaRegistry, URL, StallAt string
}

const childEnv = "QUITTANCE_WEBHOOK_TEST_CHILD"

// stalling is a policy that blocks for ever before or after the call.
type stalling struct {
	*webhook.Policy
	at string
}

func (s stalling) Send(ctx context.Context, d *record.Delivery) call.Result {
	if s.at == "after" {
		s.Policy.Send(ctx, d)
	}
	_, _ = os.Stdout.WriteString("stalled\n")
	select {}
}

// TestWorkerChild is not a test. It is the process that TestKilled kills.
func TestWorkerChild(t *testing.T) {
	text := os.Getenv(childEnv)
	if text == "" {
		t.Skip("only as the child of TestKilled")
	}
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.Open(t.Context(), c.DSN)
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: c.URL})
	p, err := webhook.NewPolicy(webhook.Config{Endpoints: e, Now: time.Now, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	w, err := delivery.NewWorker(delivery.WorkerConfig{
		Kafka: c.Kafka, Codec: deliverytest.Codec(t, c.SchemaRegistry), Kind: webhook.Registration(e), Bodies: deliverytest.Bodies(), Outcomes: origin.NewSigner(string(webhook.Kind), deliverytest.Bodies()), Policy: stalling{p, c.StallAt}, History: deliveries.NewHistory(c.Kafka, client, deliveries.NewStore(pool, nil)),
		Now: time.Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Run(t.Context())
}

// A worker is killed with SIGKILL. Between the 2xx and the outcome: the delivery is
// repeated with the same id. Before the request: it is sent. The next worker sends soon
// after the session of the dead one; deliveries waited for more than 10 s.
func TestKilled(t *testing.T) {
	t.Parallel()
	for at, before := range map[string]int{"before": 0, "after": 1} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := bench(t)
			own := deliverytest.NewReceiver(t, eventID)
			e := newEndpoints()
			e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
			cfg := config(t, b, e)
			deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
			text, err := json.Marshal(child{b.Kafka, b.DSN, servers.SchemaRegistry(t), own.URL, at})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorkerChild$", "-test.count=1")
			cmd.Env = append(os.Environ(), childEnv+"="+string(text))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_1", "app"))
			line := make([]byte, len("stalled"))
			if _, err := out.Read(line); err != nil || string(line) != "stalled" {
				t.Fatalf("child said %q, %v", line, err)
			}
			killed := time.Now()
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if n := own.Count()["evt_1"]; n != before {
				t.Fatalf("%d requests before the kill, want %d", n, before)
			}
			deliverytest.Start(t, deliverytest.Worker(t, cfg))
			deliverytest.Eventually(t, "sent by the next worker", func() bool { return own.Count()["evt_1"] == before+1 })
			took := time.Since(killed)
			session, err := kafka.GroupSession(t.Context(), b.Kafka, cfg.Kind.Sending().Group)
			if err != nil {
				t.Fatal(err)
			}
			if t.Logf("%v after the kill, with a session timeout of %v", took, session); took > session+3*time.Second {
				t.Errorf("sent %v after the kill, want it soon after the session timeout of %v", took, session)
			}
			deliverytest.Eventually(t, "delivered", func() bool { return b.State(t, webhook.Kind, "evt_1", "own") == "delivered" })
		})
	}
}
