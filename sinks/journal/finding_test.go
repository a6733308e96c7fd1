package journal_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
	"quittance/schemas/record"
)

// Findings become rows of matches, or of breaks for breaks and proposals. The end of one is a
// row of its own, the last sums of a day replace the earlier ones, and a rebuild writes all of it
// again.
func TestFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var records []*kgo.Record
	add := func(r record.Record) {
		records = append(records, w.value(schemas.TopicReconciliation, "tenant/live/mtn", r))
	}
	finding := func(id, of, state string) *record.Finding {
		return &record.Finding{
			RunID: "run", TenantID: "tenant", Livemode: true, Account: "mtn", FindingID: id, Type: of, State: state, Hop: "receipt", Stage: "operator_ref", Day: "2026-04-01", Currency: "XAF", Amount: 100,
			Sources: []string{"2026-04-01/e"}, Lines: []string{"2026-04-01/l#1"}, Part: 1, Parts: 1, Rule: 1, At: begin,
		}
	}
	total := &record.DayTotal{RunID: "run", TenantID: "tenant", Livemode: true, Account: "mtn", Day: "2026-04-01", Currency: "XAF", Sources: 1, SourcesAmount: 100, At: begin}
	later := *total
	later.Lines = 1
	add(finding("mat_1", "match", "open"))
	add(finding("brk_1", "break", "open"))
	add(finding("pro_1", "proposal", "open"))
	add(total)
	add(finding("mat_1", "match", "superseded"))
	add(&later)
	add(&record.MatchRun{RunID: "run", TenantID: "tenant", Livemode: true, Account: "mtn", Today: "2026-04-02", Horizon: "2026-04-01", Rule: 1, Watermarks: map[string]string{"checkout.events/0": "7"}, At: begin})
	for _, bad := range []record.Record{
		&record.MatchRun{RunID: "run", TenantID: "tenant", Account: "mtn", Today: "2026-04-02", Horizon: "2026-04-01", Watermarks: map[string]string{"checkout.events/0": "seven"}, At: begin},
		&record.DayTotal{TenantID: "tenant", Account: "mtn", Day: "tomorrow", Currency: "XAF", At: begin},
		&record.Finding{TenantID: "tenant", Account: "mtn", Day: "2026-04-01", At: begin},
	} {
		add(bad)
	}
	if err := w.cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	_, stop := w.run(w.conn)
	eventually(t, "the sink has written all", w.committed)
	stop()
	check := func() {
		t.Helper()
		for query, want := range map[string]string{
			`SELECT count(), countIf(state = 'open'), argMax(toString(state), source_offset) FROM matches FINAL`:           "2 1 superseded",
			`SELECT count(), countIf(state = 'open'), any(sources[1]) FROM breaks FINAL`:                                   "2 2 2026-04-01/e",
			`SELECT count(), toUInt64(sum(lines)), toString(any(day)) FROM day_totals FINAL`:                               "1 1 2026-04-01",
			`SELECT count(), toUInt64(any(watermarks['checkout.events/0'])), toString(any(horizon)) FROM match_runs FINAL`: "1 7 2026-04-01",
		} {
			var a, b uint64
			var c string
			if err := w.conn.QueryRow(t.Context(), query).Scan(&a, &b, &c); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%d %d %s", a, b, c); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
	}
	check()
	if err := w.conn.Exec(t.Context(), `ALTER TABLE matches DELETE WHERE state = 'open' SETTINGS mutations_sync = 2`); err != nil {
		t.Fatal(err)
	}
	got, err := w.rebuild(t.Context(), nil)
	if err != nil || !got.Equal() || got.Reconciliation != 7 || got.Unreadable != 3 || len(got.Findings) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	check()
}
