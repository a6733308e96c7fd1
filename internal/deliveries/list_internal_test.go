package deliveries

import (
	"testing"
	"time"

	"quittance/test/plans"
	"quittance/test/servers"
)

// The deliveries of an agency, of a kind, in a state, to a destination and of all are read from an index in their order, also in the
// middle of a day, and so are those that a job sends again.
func TestDeliveriesReadOneIndex(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	if _, err := pool.Exec(t.Context(), `
		CREATE TABLE deliveries_20261122 PARTITION OF deliveries FOR VALUES FROM ('2026-11-22') TO ('2026-11-23');
		INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at)
		SELECT '2026-11-22', 'dlv_' || n, 'webhook', 'own-' || n % 200, 'evt_' || n, 'checkout.completed', 'app', 'agency-' || n % 100, 'chs_' || n, true, '2026-11-22T00:00Z'::timestamptz + n * interval '1 s',
			CASE WHEN n % 50 = 3 THEN 'waiting' ELSE 'delivered' END, 1, 0, '2026-11-22T08:00Z'
		FROM generate_series(1, 80000) n;
		ANALYZE deliveries`); err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	span := Filter{Since: day.Add(time.Hour), Until: day.Add(2 * time.Hour)}
	for _, of := range []Filter{{TenantID: "agency-3"}, {TenantID: "agency-none"}, {Kind: "webhook"}, {Kind: "erp"}, {Kind: "webhook", DestinationID: "own-3"}, {Kind: "webhook", DestinationID: "none"}, {}} {
		for _, f := range []Filter{{}, {State: StateDelivered}, {State: StateWaiting}, {State: StateExhausted}, span} {
			f.TenantID, f.Kind, f.DestinationID = of.TenantID, of.Kind, of.DestinationID
			where := f.where()
			plans.Check(t, pool, nil, where.query(day, 51), where.args...)
			if f.State != StateDelivered && f.State != "" {
				plans.Check(t, pool, nil, where.oldest(day, 1000), where.args...)
			}
			where.and("(d.occurred_at, d.delivery_id) < (?, ?)", day.Add(3*time.Hour), "dlv_x")
			plans.Check(t, pool, nil, where.query(day, 51), where.args...)
		}
	}
}
