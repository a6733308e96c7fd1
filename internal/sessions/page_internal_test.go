package sessions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/test/plans"
	"quittance/test/servers"
)

// many are 300 applications. Those of every tenth number have ten times as many sessions as the
// others, and the last one has none.
func many() (apps []string) {
	for n := range 300 {
		apps = append(apps, fmt.Sprintf("app-%03d", n))
	}
	return apps
}

// begun is when the first session of fill was made.
var begun = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// fill stores sessions, one each second, half of them of every tenth application of many, none of the
// last one. One of a hundred has failed, one of a thousand is not decided.
func fill(t testing.TB, rows int) *pgxpool.Pool {
	t.Helper()
	_, pool := servers.Database(t)
	const step = 50_000 // within the time-out of a statement
	for from := 0; from < rows; from += step {
		var values [][]any
		for n := from; n < min(from+step, rows); n++ {
			app, status := n/5%299, checkout.StatusCompleted
			var undecided any
			if n%10 < 5 {
				app = n / 10 % 30 * 10
			}
			switch {
			case n%100 == 7:
				status = checkout.StatusFailed
				if n%1000 == 7 {
					undecided = begun.Add(time.Duration(n) * time.Second)
				}
			case n%5 == 0:
				status = checkout.StatusOpen
			}
			id := checkout.NewSessionID(begun.Add(time.Duration(n)*time.Second), int32(app%8), [16]byte{byte(n), byte(n >> 8), byte(n >> 16)})
			values = append(values, []any{
				id, fmt.Sprintf("app-%03d", app), n%20 > 0, fmt.Sprintf("order-%d", n%5000), fmt.Sprintf("customer-%d", n%1000), fmt.Sprintf("%016d", n),
				string(status), 1, []byte(strings.Repeat(id, 15)), undecided,
			})
		}
		if _, err := pool.CopyFrom(t.Context(), pgx.Identifier{"sessions"}, []string{"id", "application_id", "livemode", "order_id", "customer_id", "payment_ref", "status", "sequence", "snapshot", "undecided_since"}, pgx.CopyFromRows(values)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), `VACUUM ANALYZE sessions`); err != nil {
		t.Fatal(err)
	}
	return pool
}

// The queries of a page read what an index has in its order, for one application and for 300,
// whatever its conditions.
func TestPageReadsIndexesInOrder(t *testing.T) {
	t.Parallel()
	pool := fill(t, 60_000)
	apps := many()
	day := begun.Add(8 * time.Hour)
	for name, q := range map[string]PageQuery{
		"all":       {},
		"day":       {MadeFrom: day, MadeTo: day.Add(time.Hour)},
		"status":    {Status: checkout.StatusFailed},
		"order":     {OrderID: "order-77"},
		"undecided": {UndecidedBefore: begun.Add(9 * time.Hour)},
		"both":      {Status: checkout.StatusFailed, OrderID: "order-7"},
	} {
		for viewer, scope := range map[string][]string{"platform": apps, "busy": apps[:1], "quiet": apps[1:2], "empty": apps[299:]} {
			t.Run(name+" "+viewer, func(t *testing.T) {
				q.Live, q.ApplicationIDs = true, scope
				for _, after := range []string{"", checkout.SessionsSince(day.Add(time.Minute))} {
					s := q.scan(after)
					sql, args := s.heads(51, 0, 51)
					plans.Check(t, pool, nil, sql, args...)
					plans.Check(t, pool, nil, s.count(CountedAtMost), s.args...)
				}
			})
		}
	}
	for _, scope := range [][]string{apps, apps[:1], apps[299:]} { // a search
		s := newScan(scope, true)
		s.equal([2]string{"order_id", "order-77"})
		plans.Check(t, pool, nil, s.newest("id", searchAtMost), s.args...)
	}
	var ids []string
	if err := pool.QueryRow(t.Context(), `SELECT array_agg(id) FROM (SELECT id FROM sessions LIMIT 51)`).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	plans.Check(t, pool, nil, rowsOf, ids)
}

// A page that needs several rounds has the same sessions as one walk over all applications.
func TestRoundsOfAScan(t *testing.T) {
	t.Parallel()
	pool := fill(t, 60_000)
	apps := many()
	for _, scope := range [][]string{apps, apps[:3], apps[299:], apps[100:140], append(apps[290:], apps[0], apps[0])} {
		for _, skip := range []int64{0, 51, 3000, 20_000, 56_990, 57_000, 1_000_000} {
			var want, got []string
			if err := pool.QueryRow(t.Context(), `SELECT ARRAY(SELECT id FROM sessions WHERE application_id = ANY($1) AND livemode ORDER BY id DESC OFFSET $2 LIMIT 51)`, scope, skip).Scan(&want); err != nil {
				t.Fatal(err)
			}
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
				got, err = newScan(scope, true).page(t.Context(), tx, skip, 51)
				return err
			})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d applications, after %d: %d ids, want %d, %v", len(scope), skip, len(got), len(want), err)
			}
		}
	}
}

// BenchmarkPage compares the pages of a platform key with 300 agencies, and of a busy, a quiet and an
// empty one of them, with one walk over all applications by id (docs/benchmarks.md).
func BenchmarkPage(b *testing.B) {
	pool := fill(b, 1_000_000)
	apps := many()
	measure := func(name string, do func(tx pgx.Tx) error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := pgx.BeginFunc(b.Context(), pool, do); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	read := func(tx pgx.Tx, sql string, args ...any) error {
		rows, _ := tx.Query(b.Context(), sql, args...)
		_, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		return err
	}
	for viewer, scope := range map[string][]string{"platform": apps, "busy": apps[:1], "quiet": apps[1:2], "empty": apps[299:]} {
		for _, page := range []int64{1, 50, 5000} {
			skip := (page - 1) * 20
			measure(fmt.Sprintf("%s/page=%d/before", viewer, page), func(tx pgx.Tx) error {
				return read(tx, `SELECT snapshot FROM sessions WHERE application_id = ANY($1) AND livemode = $2 ORDER BY id DESC LIMIT $3 OFFSET $4`, scope, true, 20, skip)
			})
			measure(fmt.Sprintf("%s/page=%d/now", viewer, page), func(tx pgx.Tx) error {
				ids, err := newScan(scope, true).page(b.Context(), tx, skip, 20)
				if err != nil {
					return err
				}
				return read(tx, rowsOf, ids)
			})
		}
		all := newScan(scope, true)
		measure(viewer+"/count/before", func(tx pgx.Tx) error {
			var n int64
			return tx.QueryRow(b.Context(), `SELECT count(*) FROM sessions WHERE application_id = ANY($1) AND livemode = $2`, scope, true).Scan(&n)
		})
		for name, sql := range map[string]string{"total": all.total(), "bounded": all.count(CountedAtMost)} {
			measure(viewer+"/count/now="+name, func(tx pgx.Tx) error {
				var n int64
				return tx.QueryRow(b.Context(), sql, all.args...).Scan(&n)
			})
		}
		measure(viewer+"/examined/now", func(tx pgx.Tx) error {
			place := ""
			for range ExaminedAtMost / examinedAtOnce {
				ids, err := PageQuery{ApplicationIDs: scope, Live: true}.scan(place).page(b.Context(), tx, 0, examinedAtOnce)
				if err != nil || len(ids) == 0 {
					return err
				}
				if err := read(tx, rowsOf, ids); err != nil {
					return err
				}
				place = placeOf(ids[len(ids)-1])
			}
			return nil
		})
	}
}
