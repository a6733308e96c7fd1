package cases

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/test/plans"
	"quittance/test/servers"
)

// fill stores cases of 50 agencies, a minute apart; one of a hundred is open.
func fill(t testing.TB, rows int) *pgxpool.Pool {
	t.Helper()
	_, pool := servers.Database(t)
	const step = 50_000 // within the time-out of a statement
	for from := 1; from <= rows; from += step {
		if _, err := pool.Exec(t.Context(), `
			INSERT INTO cases (id, kind, in_session, sequence, session_id, agency_id, livemode, collection_id, operator_ref, opened_at, resolution)
			SELECT 'case_' || n, CASE n % 3 WHEN 0 THEN 'orphan' ELSE 'late_payment' END, true, 1, 'chs_' || n, 'agency-' || n % 50, n % 2 = 0, 'col-' || n, 'op-' || n,
				'2026-01-01Z'::timestamptz + n * interval '1 minute', CASE WHEN n % 100 > 0 THEN 'refund' END
			FROM generate_series($1::int, $2::int) AS n`, from, min(from+step-1, rows)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), `VACUUM ANALYZE cases`); err != nil {
		t.Fatal(err)
	}
	return pool
}

// Each list of cases reads an index in its order, for one agency and for all.
func TestListReadsIndexesInOrder(t *testing.T) {
	t.Parallel()
	pool := fill(t, 50_000)
	for name, f := range map[string]Filter{
		"all": {}, "kind": {Kind: "orphan"}, "mode": {Mode: "live"}, "session": {SessionID: "chs_7"},
		"operator's reference": {Reference: "op-7"}, "collection": {Reference: "col-7"}, "id": {Reference: "case_7"}, "unknown": {Reference: "none"},
	} {
		for _, own := range []string{"", "agency-7", "agency-none"} {
			for _, state := range States() {
				for _, after := range []place{{}, {state, time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC), "case_9"}} {
					t.Run(name+" "+own+" "+string(state), func(t *testing.T) {
						sql, args := f.query(own, state, after, 50)
						plans.Check(t, pool, nil, sql, args...)
					})
				}
			}
		}
	}
}

// BenchmarkList compares lists with those of conditions that are there whether they are set
// (docs/benchmarks.md).
func BenchmarkList(b *testing.B) {
	pool := fill(b, 500_000)
	const before = `SELECT ` + read + ` FROM cases
		WHERE ($1 = '' OR kind = $1) AND ($2 = '' OR agency_id = $2) AND ($3 = '' OR agency_id = $3) AND ($4 = '' OR (resolution IS NULL) = ($4 = 'open'))
			AND ($8 = '' OR livemode = ($8 = 'live')) AND ($6 = '' OR session_id = $6) AND ($7 = '' OR $7 IN (operator_ref, collection_id, id))
		ORDER BY resolution IS NOT NULL, opened_at DESC, id LIMIT $5`
	measure := func(name, sql string, args ...any) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rows, _ := pool.Query(b.Context(), sql, args...)
				if _, err := pgx.CollectRows(rows, toCase); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for name, f := range map[string]Filter{"open": {State: StateOpen}, "closed": {State: StateClosed}, "reference": {State: StateClosed, Reference: "op-77777"}} {
		measure(name+"/before", before, "", "", "agency-7", string(f.State), 50, "", f.Reference, "")
		sql, args := f.query("agency-7", f.State, place{}, 50)
		measure(name+"/now", sql, args...)
	}
}
