package erp_test

import (
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	erpclient "quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// erps is the part of the registry that the sink needs.
type erps struct {
	mu sync.Mutex
	by map[string]registry.ERPSettings
}

func (e *erps) ERP(agency string, live bool) (registry.ERPSettings, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.by[erpclient.ID(agency, live)]
	s.AgencyID, s.Live = agency, live
	return s, ok
}

// caller makes a client that also calls this machine over http.
func caller() *erpclient.Client { return erpclient.New(erpclient.Config{Loopback: true}) }

// sender makes a policy for these ERPs.
func sender(b *deliverytest.Bench, e *erps) delivery.WorkerConfig {
	return b.Sender(erp.Registration(e), erp.NewPolicy(e, caller()))
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// The verdict on each answer (docs/design/decisions.md § 10).
func TestJudge(t *testing.T) {
	t.Parallel()
	e := &erps{by: map[string]registry.ERPSettings{"a/test": {ConflictIsDone: true}, "b/test": {}}}
	p := erp.NewPolicy(e, caller())
	now := time.Now()
	for _, c := range []struct {
		agency  string
		status  int
		fault   string
		attempt int32
		want    deliveries.Outcome
	}{
		{"a", 200, "", 1, deliveries.OutcomeDelivered},
		{"a", 204, "", 1, deliveries.OutcomeDelivered},
		{"a", 409, "", 1, deliveries.OutcomeDelivered},
		{"b", 409, "", 1, deliveries.OutcomeNeedsOperator},
		{"b", 408, "", 1, deliveries.OutcomeFailed},
		{"b", 425, "", 1, deliveries.OutcomeFailed},
		{"b", 429, "", 1, deliveries.OutcomeFailed},
		{"b", 500, "", 1, deliveries.OutcomeFailed},
		{"b", 503, "", 10, deliveries.OutcomeFailed},
		{"b", 503, "", 11, deliveries.OutcomeNeedsOperator},
		{"b", 0, call.FaultTimeout, 3, deliveries.OutcomeFailed},
		{"b", 0, call.FaultConnect, 11, deliveries.OutcomeNeedsOperator},
		{"b", 400, "", 1, deliveries.OutcomeNeedsOperator},
		{"b", 401, "", 1, deliveries.OutcomeDeferred},
		{"b", 403, "", 11, deliveries.OutcomeDeferred},
		{"b", 404, "", 1, deliveries.OutcomeNeedsOperator},
		{"b", 410, "", 1, deliveries.OutcomeNeedsOperator},
		{"b", 422, "", 1, deliveries.OutcomeNeedsOperator},
		{"b", 302, "", 1, deliveries.OutcomeNeedsOperator},
	} {
		d := &record.Delivery{DestinationID: c.agency + "/test", Attempt: c.attempt, FirstAttemptAt: now.Add(-100 * 24 * time.Hour)}
		v := p.Judge(d, call.Result{Status: c.status, Fault: c.fault}, now)
		if v.Outcome != c.want || v.Gone || v.Refused != (v.Outcome == deliveries.OutcomeDeferred) || (v.Outcome == deliveries.OutcomeFailed || v.Refused) != v.NextAttemptAt.After(now) {
			t.Errorf("%d%s, attempt %d: %+v, want %s", c.status, c.fault, c.attempt, v, c.want)
		}
	}
}

// A confirmation goes once to the agency's ERP of its mode, with the transaction_id as
// the idempotency key. An agency without an ERP gets none. An ERP that is down gets it
// later. A refused confirmation waits for an operator.
func TestConfirmations(t *testing.T) {
	t.Parallel()
	b := bench(t)
	r := deliverytest.NewReceiver(t, "Idempotency-Key")
	var mu sync.Mutex
	down := true
	r.Answer(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case req.Header.Get("Idempotency-Key") == "tx-refused":
			w.WriteHeader(http.StatusUnprocessableEntity)
		case down:
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	auth := registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("t")}
	cfg := sender(b, &erps{by: map[string]registry.ERPSettings{"agency/test": {BaseURL: r.URL, Auth: auth, Networks: loopback}}})
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	confirmation := func(id, tenant string, live bool) *record.Notification {
		n := b.Notification(id, "app")
		n.TenantID, n.Livemode = tenant, live
		return n
	}
	b.Notify(t, schemas.TopicConfirmations, true,
		confirmation("tx-1", "agency", false), confirmation("tx-refused", "agency", false),
		confirmation("tx-live", "agency", true), confirmation("tx-none", "other", false))
	state := func(id string) string { return b.State(t, erp.Kind, id, "agency/test") }
	deliverytest.Eventually(t, "one waits, one is parked", func() bool { return state("tx-1") == "waiting" && state("tx-refused") == "needs_operator" })
	mu.Lock()
	down = false
	mu.Unlock()
	deliverytest.Eventually(t, "accepted", func() bool { b.Advance(time.Second); return state("tx-1") == "delivered" })
	for id, n := range r.Count() {
		if want := map[string]int{"tx-1": 2, "tx-refused": 1}[id]; n != want {
			t.Errorf("%s came %d times, want %d", id, n, want)
		}
	}
	var kept int
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE state = 'needs_operator' AND body IS NOT NULL`).Scan(&kept); err != nil || kept != 1 {
		t.Errorf("%d parked confirmations with their body, %v; want 1", kept, err)
	}
}

func bench(t testing.TB) *deliverytest.Bench {
	t.Helper()
	return deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t),
		Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
}
