package deliveries

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/test/servers"
)

// The schedule repeats these statements every few seconds. They read open deliveries, never
// the delivered ones of 60 days: counting the backlog stopped all deliveries for a fifth of
// a second once there were some hundred thousand.
func TestRepeatedStatementsReadOpenDeliveriesOnly(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `
		CREATE TABLE deliveries_day PARTITION OF deliveries FOR VALUES FROM ('2026-11-22') TO ('2026-11-23');
		INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at)
		SELECT '2026-11-22', 'dlv_' || n, 'webhook', 'own', 'evt_' || n, 'checkout.completed', 'app', 'agency', 'chs_' || n, true, '2026-11-22T08:00Z'::timestamptz + n * interval '1 ms',
			CASE n WHEN 5 THEN 'waiting' WHEN 6 THEN 'waiting' WHEN 7 THEN 'queued' WHEN 8 THEN 'needs_operator' WHEN 9 THEN 'exhausted' ELSE 'delivered' END, 1, 0, '2026-11-22T08:00Z'
		FROM generate_series(1, 20000) n;
		ANALYZE deliveries`); err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{"backlog": backlogSQL, "late leases": lateSQL} {
		rows, err := pool.Query(ctx, "EXPLAIN "+sql)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(plan, func(line string) bool { return strings.Contains(line, "Seq Scan on deliveries") }) {
			t.Errorf("%s reads all deliveries:\n%s", name, strings.Join(plan, "\n"))
		}
	}
	got, err := NewStore(pool, nil).Backlog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b Backlog) int { return strings.Compare(a.State, b.State) })
	first := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for i, want := range []Backlog{
		{Kind: "webhook", State: StateNeedsOperator, Count: 1, Oldest: first.Add(8 * time.Millisecond)},
		{Kind: "webhook", State: StateQueued, Count: 1, Oldest: first.Add(7 * time.Millisecond)},
		{Kind: "webhook", State: StateWaiting, Count: 2, Oldest: first.Add(5 * time.Millisecond)},
	} {
		if i >= len(got) || got[i].State != want.State || got[i].Count != want.Count || !got[i].Oldest.Equal(want.Oldest) || got[i].Kind != want.Kind || got[i].Suspended {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
