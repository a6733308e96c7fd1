package audit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quittance/internal/operation"
	"quittance/test/plans"
	"quittance/test/servers"
)

// Each list of the audit table takes its newest rows from an index, whatever its conditions, and each
// row comes once.
func TestListReadsIndexesInOrder(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	begun := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail, agency_id)
		SELECT $1::timestamptz + n / 3 * interval '1 minute', 'person', 'person-' || n % 100, '', (ARRAY['case', 'key', 'till'])[n % 3 + 1] || '.' || n % 31, 'subject-' || n % 500, '{}', CASE WHEN n % 4 > 0 THEN 'agency-' || n % 40 END
		FROM generate_series(1, 40000) n`, begun); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `VACUUM ANALYZE audit`); err != nil {
		t.Fatal(err)
	}
	const where = `SELECT coalesce(array_agg(id ORDER BY at DESC, id DESC), '{}') FROM audit WHERE `
	day := begun.AddDate(0, 0, 3)
	for name, c := range map[string]struct {
		f    Filter
		want string
	}{
		"all":             {Filter{Since: begun.AddDate(0, 0, 9)}, `at >= '2026-11-10Z'`},
		"agency":          {Filter{AgencyID: "agency-7"}, `agency_id = 'agency-7'`},
		"agency, day":     {Filter{AgencyID: "agency-7", Since: day, Until: day.AddDate(0, 0, 1)}, `agency_id = 'agency-7' AND at >= '2026-11-04Z' AND at < '2026-11-05Z'`},
		"agency, noun":    {Filter{AgencyID: "agency-7", Action: "key"}, `agency_id = 'agency-7' AND action LIKE 'key.%'`},
		"agency, actor":   {Filter{AgencyID: "agency-7", Who: "person-47"}, `agency_id = 'agency-7' AND actor = 'person-47'`},
		"agency, subject": {Filter{AgencyID: "agency-7", Subject: "subject-7"}, `agency_id = 'agency-7' AND subject = 'subject-7'`},
		"actor":           {Filter{Who: "person-7"}, `actor = 'person-7'`},
		"actor, action":   {Filter{Who: "person-7", Action: "key.3"}, `actor = 'person-7' AND action = 'key.3'`},
		"action":          {Filter{Action: "till.2"}, `action = 'till.2'`},
		"noun, day":       {Filter{Action: "till", Since: day, Until: day.AddDate(0, 0, 1)}, `action LIKE 'till.%' AND at >= '2026-11-04Z' AND at < '2026-11-05Z'`},
		"part of noun":    {Filter{Action: "til"}, `false`},
		"subject":         {Filter{Subject: "subject-7"}, `subject = 'subject-7'`},
		"zero byte":       {Filter{Subject: "subject-7\x00"}, `false`},
		"nobody":          {Filter{Who: "nobody"}, `false`},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []int64
			if err := pool.QueryRow(t.Context(), where+c.want).Scan(&want); err != nil {
				t.Fatal(err)
			}
			f := c.f
			for f.Limit = 300; ; {
				list, err := List(t.Context(), pool, f)
				if err != nil {
					t.Fatal(err)
				}
				if len(list) == 0 {
					break
				}
				for _, r := range list {
					got = append(got, r.ID)
				}
				f.After = f.Cursor(list[len(list)-1])
				if !f.Since.IsZero() { // "two hours ago" is later by now, and goes on in the same list
					f.Since = f.Since.Add(time.Hour)
				}
				if !f.Until.IsZero() {
					f.Until = f.Until.Add(time.Hour)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d rows, want %d", len(got), len(want))
			}
			f = c.f
			f.Limit = 51
			for _, after := range []*place{nil, {day.Add(time.Hour), 5000}} {
				q := f.query(after)
				plans.Check(t, pool, []string{"staff"}, q.sql, q.args...)
			}
		})
	}
	q := (Filter{Action: "key"}).Cursor(Recorded{At: day, ID: 7})
	if _, err := List(t.Context(), pool, Filter{Action: "case", After: q}); err == nil {
		t.Error("a cursor of another list")
	}
}

// A row of before has the hash that its record has. One of an agency has another, so that an agency
// that somebody sets, changes or takes away is found.
func TestDigestOfAgency(t *testing.T) {
	t.Parallel()
	v := row{id: 7, at: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), kind: string(operation.ActorKey), actor: "k", origin: "o", action: "a.b", subject: "s", detail: `{"n": 1}`, salt: "salt"}
	seen := map[[32]byte]bool{}
	a, b, empty := "a", "b", ""
	for _, c := range []*string{nil, &a, &b, &empty} {
		of := v
		of.agency = c
		d, err := of.digest()
		if err != nil || seen[d] {
			t.Errorf("%v: %x, %v", c, d, err)
		}
		seen[d] = true
	}
	const before = "5d874cba8cdbfe290abb94a7932643dc08c97b46276046d99f0d7e98484a1ed0" // of the text with "quittance audit v1", as releases before agencies made it
	if d, err := v.digest(); fmt.Sprintf("%x", d) != before || err != nil {
		t.Errorf("the hash of a row of before: %x, %v", d, err)
	}
}
