package deliveries

import (
	"testing"
	"time"

	"quittance/test/plans"
	"quittance/test/servers"
)

// The deliveries of an agency are read from an index in their order, also in the middle of a day.
func TestDeliveriesOfAnAgencyReadOneIndex(t *testing.T) {
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
	for _, agency := range []string{"agency-3", "agency-none"} {
		for _, f := range []Filter{{}, {State: StateDelivered}, {State: StateWaiting}, {Since: day.Add(time.Hour), Until: day.Add(2 * time.Hour)}} {
			f.TenantID = agency
			where := f.where()
			plans.Check(t, pool, nil, where.query(day, 51), where.args...)
			where.and("(d.occurred_at, d.delivery_id) < (?, ?)", day.Add(3*time.Hour), "dlv_x")
			plans.Check(t, pool, nil, where.query(day, 51), where.args...)
		}
	}
}
