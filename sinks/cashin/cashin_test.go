package cashin_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/cashin"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// applications is the part of the registry that the sink needs.
type applications struct {
	mu  sync.Mutex
	url map[string]string
}

func (a *applications) Application(id string) (registry.Application, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	url, ok := a.url[id]
	return registry.Application{ID: id, Cashin: &registry.Cashin{WebhookURL: url}}, ok
}

func (a *applications) set(id, url string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.url[id] = url
}

// Partners get the stored bytes with no header of ours but Content-Type, at the address that
// the application has at the attempt, otherwise at the payment's own, until the first 2xx.
func TestUnsignedWebhooks(t *testing.T) {
	t.Parallel()
	b := deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t), Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
	first, second, own := deliverytest.NewReceiver(t, "none"), deliverytest.NewReceiver(t, "none"), deliverytest.NewReceiver(t, "none")
	apps := &applications{url: map[string]string{"with": first.URL + "/hook?k=v", "without": ""}}
	policy, err := cashin.NewPolicy(cashin.Config{Applications: apps, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.Sender(cashin.Registration(apps), policy)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	notice := func(id, application, url string) *record.Notification {
		n := b.Notification(id, application)
		n.URL, n.Body = url, []byte(`{"paymentId":7,"note":"`+id+`"}`)
		return n
	}
	delivered := func(id, application string) {
		t.Helper()
		deliverytest.Eventually(t, id+" delivered", func() bool { return b.State(t, cashin.Kind, id, application) == "delivered" })
	}
	first.Status(http.StatusInternalServerError)
	b.Notify(t, schemas.TopicPartners, true,
		notice("evt_current", "with", own.URL+"/own"), notice("evt_own", "without", own.URL+"/own"), notice("evt_nowhere", "without", ""))
	delivered("evt_own", "without")
	if got := own.Got(); len(got) != 1 || got[0].Path != "/own" || got[0].Body != `{"paymentId":7,"note":"evt_own"}` {
		t.Errorf("the payment's own address got %+v", got)
	}
	deliverytest.Eventually(t, "a first attempt fails", func() bool { return b.State(t, cashin.Kind, "evt_current", "with") == "waiting" })
	apps.set("with", second.URL+"/moved") // the partner's address changes between two attempts
	b.Advance(7 * time.Second)
	delivered("evt_current", "with")
	if f, s := first.Got(), second.Got(); len(f) != 1 || len(s) != 1 || s[0].Path != "/moved" || s[0].Body != f[0].Body {
		t.Errorf("the first address got %+v, the second %+v", f, s)
	}
	for _, r := range slices.Concat(first.Got(), second.Got(), own.Got()) {
		names := slices.Sorted(maps.Keys(r.Header))
		if !slices.Equal(names, []string{"Content-Length", "Content-Type"}) || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the headers are %v", r.Header)
		}
	}
	b.Advance(48 * time.Hour)
	b.Notify(t, schemas.TopicPartners, true, notice("evt_last", "with", ""))
	delivered("evt_last", "with")
	if n := len(second.Got()); n != 2 {
		t.Errorf("%d calls after the first 2xx of each, want 2", n)
	}
	if state := b.State(t, cashin.Kind, "evt_nowhere", "without"); state != "" {
		t.Errorf("a webhook without an address is %s", state)
	}
}

// A payment's own address that is gone suspended all unsigned webhooks of its application.
func TestOwnAddressThatIsGone(t *testing.T) {
	t.Parallel()
	b := deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t), Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
	gone, good := deliverytest.NewReceiver(t, "none"), deliverytest.NewReceiver(t, "none")
	apps := &applications{url: map[string]string{"app": ""}}
	policy, err := cashin.NewPolicy(cashin.Config{Applications: apps, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.Sender(cashin.Registration(apps), policy)
	deliverytest.Start(t, deliverytest.Worker(t, cfg), deliverytest.Planner(t, cfg), b.Schedule(t))
	notice := func(id, url string) *record.Notification {
		n := b.Notification(id, "app")
		n.SessionID, n.URL, n.Body = id, url, []byte(id)
		return n
	}
	becomes := func(id, state string) {
		t.Helper()
		deliverytest.Eventually(t, id+" is "+state, func() bool { return b.State(t, cashin.Kind, id, "app") == state })
	}
	gone.Status(http.StatusGone)
	b.Notify(t, schemas.TopicPartners, true, notice("evt_gone", gone.URL+"/own"))
	becomes("evt_gone", "exhausted")
	b.Notify(t, schemas.TopicPartners, true, notice("evt_good", good.URL+"/own"))
	becomes("evt_good", "delivered")
	// The application's own address does suspend.
	apps.set("app", gone.URL+"/application")
	b.Notify(t, schemas.TopicPartners, true, notice("evt_application", good.URL+"/own"))
	deliverytest.Eventually(t, "the application is suspended", func() bool {
		list, err := b.Store.Statuses(t.Context())
		return err == nil && slices.ContainsFunc(list, func(s deliveries.DestinationStatus) bool {
			return s.Kind == cashin.Kind && s.DestinationID == "app" && s.SuspendedReason == deliveries.SuspendedGone
		})
	})
}

// A payment expired, and staff honoured its late money. Once the partner has accepted
// completed, the earlier failed is never sent: not by its schedule, not in the queue of a
// worker, not by a retry of an operator, not by a replay.
func TestCompletedEndsFailed(t *testing.T) {
	t.Parallel()
	b := deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t), Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
	partner := deliverytest.NewReceiver(t, "none")
	apps := &applications{url: map[string]string{"app": ""}}
	policy, err := cashin.NewPolicy(cashin.Config{Applications: apps, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.Sender(cashin.Registration(apps), policy)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), b.Schedule(t))
	first := deliverytest.Start(t, deliverytest.Worker(t, cfg))
	begun := b.Now()
	notice := func(id, session, event string) *record.Notification {
		n := b.Notification(id, "app")
		n.SessionID, n.Event, n.Body, n.URL = session, event, []byte(id), partner.URL+"/"+id
		return n
	}
	state := func(id, want string) {
		t.Helper()
		deliverytest.Eventually(t, id+" is "+want, func() bool { return b.State(t, cashin.Kind, id, "app") == want })
	}
	got := func() (bodies []string) {
		for _, r := range partner.Got() {
			bodies = append(bodies, r.Body)
		}
		return bodies
	}
	partner.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/failed" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.Notify(t, schemas.TopicPartners, true, notice("failed", "chs_late", "checkout.expired"))
	state("failed", "waiting")
	b.Notify(t, schemas.TopicPartners, true, notice("completed", "chs_late", "checkout.completed"))
	state("completed", "delivered")
	state("failed", "superseded")

	// A worker that has it in hand, as after a claim that came before the acceptance, and
	// a worker that knows nothing of the acceptance.
	again := func(what string) {
		t.Helper()
		b.Notify(t, schemas.TopicPartners, true, notice(what, "chs_late", "checkout.failed"))
		state(what, "superseded")
	}
	again("first_worker")
	first()
	deliverytest.Start(t, deliverytest.Worker(t, cfg))
	again("second_worker")
	if bodies := got(); bodies[0] != "failed" || bodies[len(bodies)-1] != "completed" {
		t.Errorf("the partner got %q", bodies)
	}

	var refused *operation.Error
	_, err = b.Store.Retry(t.Context(), deliverytest.Actor, deliveries.ID(cashin.Kind, "failed", "app"), b.Now())
	if !errors.As(err, &refused) || refused.Code != deliveries.CodeSuperseded {
		t.Errorf("a retry: %v", err)
	}
	if n, err := b.Store.RetryAll(t.Context(), deliverytest.Actor, cashin.Kind, "app", deliveries.StateWaiting, b.Now(), nil); err != nil || n != 0 {
		t.Errorf("a retry of all makes %d due, %v", n, err)
	}
	// A row is written before the offset is committed, and what is not committed is under way.
	b.Settled(t, cfg.Kind.Planning().Topic, cfg.Kind.Planning().Group)
	b.Settled(t, cfg.Kind.Sending().Topic, cfg.Kind.Sending().Group)
	if _, err := b.Pool.Exec(t.Context(), `DELETE FROM deliveries WHERE event_id = 'failed'`); err != nil { // as if its day's table was lost
		t.Fatal(err)
	}
	store := deliveries.NewStore(b.Pool, deliveries.Kinds{cashin.Registration(apps)})
	for _, dry := range []bool{true, false} {
		r, err := store.Replay(t.Context(), deliverytest.Actor, deliveries.Replay{
			Kafka: b.Kafka, Codec: b.Codec, Kind: cashin.Kind, Since: begun.Add(-time.Minute), Until: time.Now().Add(time.Minute), Now: b.Now, Bodies: deliverytest.Bodies(), DryRun: dry,
		})
		if err != nil || r.Made != 0 || r.Accepted != 1 || r.Superseded == 0 || r.Superseded+r.Accepted != r.Events {
			t.Errorf("a replay, dry %t: %+v, %v", dry, r, err)
		}
	}

	// While failed is under way, completed waits for its answer.
	release := make(chan struct{})
	partner.Answer(func(w http.ResponseWriter, _ *http.Request) { <-release; w.WriteHeader(http.StatusOK) })
	before := len(got())
	b.Notify(t, schemas.TopicPartners, true, notice("f2", "chs_two", "checkout.failed"), notice("c2", "chs_two", "checkout.completed"), notice("c3", "chs_three", "checkout.completed"))
	deliverytest.Eventually(t, "two calls are under way", func() bool { return len(got()) == before+2 })
	if under := got()[before:]; slices.Contains(under, "c2") || !slices.Contains(under, "f2") {
		t.Errorf("under way are %q", under)
	}
	close(release)
	state("c2", "delivered")
	state("f2", "delivered")
}

// Live payments are told over https only; test payments may use http. An address that is
// not public is never called.
func TestAddresses(t *testing.T) {
	t.Parallel()
	receiver := deliverytest.NewReceiver(t, "none")
	policy, err := cashin.NewPolicy(cashin.Config{Applications: &applications{url: map[string]string{"a": ""}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		url, reason string
		live        bool
	}{
		{receiver.URL, "address_refused:not_https", false}, // the loopback address, outside developer mode
		{"http://partner.example.org/", "address_refused:not_https", true},
		{"https://10.0.0.7/", "address_refused:ip_literal", false},
		{"", "destination_unusable", true},
	} {
		r := policy.Send(t.Context(), &record.Delivery{ApplicationID: "a", URL: row.url, Livemode: row.live, Body: []byte("{}")})
		if r.Reason() != row.reason {
			t.Errorf("%q, live %v: %s, want %s", row.url, row.live, r.Reason(), row.reason)
		}
	}
	if len(receiver.Got()) > 0 {
		t.Error("a private address was called")
	}
}
