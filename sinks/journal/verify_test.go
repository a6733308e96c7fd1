package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/reconciliation/verify"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/await"
	deliverytest "quittance/test/deliveries"
)

func (w *world) verify(from, before time.Time) journal.Verified {
	w.t.Helper()
	got, err := journal.NewStore(w.conn).Verify(w.t.Context(), journal.VerifyConfig{
		Kafka: w.kafka, Decoder: journal.Decoder{Codec: w.codec, Prefix: w.kafka.Prefix, Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(w.kafka)}, From: from, Before: before,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// mixed writes records that make rows of every table.
func (w *world) mixed(n int) {
	w.t.Helper()
	w.produce(0, n)
	var records []*kgo.Record
	of := func(r record.Record) {
		records = append(records, w.value(schemas.TopicReconciliation, "tenant/live/mtn", r))
	}
	for i := range n {
		records = append(records, w.value(schemas.TopicStatements, "tenant/live/mtn", line(i, 1000)))
		of(&record.Finding{
			RunID: "run", TenantID: "tenant", Livemode: true, Account: "mtn", FindingID: fmt.Sprintf("mat_%d", i), Type: []string{"match", "break"}[i%2], State: "open", Hop: "receipt", Stage: "operator_ref",
			Day: "2026-04-01", Currency: "XAF", Amount: 100, Sources: []string{"2026-04-01/e"}, Lines: []string{"2026-04-01/l#1"}, Part: 1, Parts: 1, Rule: 1, At: begin,
		})
	}
	again := line(0, 1000) // an overlapping statement: the first record of the line stays
	again.StatementID, again.ImportID = "second", "second"
	records = append(records, w.value(schemas.TopicStatements, "tenant/live/mtn", again))
	gone := line(1, 1000) // withdrawn: a row of its own
	gone.Withdrawn = true
	records = append(records, w.value(schemas.TopicStatements, "tenant/live/mtn", gone))
	for i := range 3 { // the last sums of a day count
		of(&record.DayTotal{RunID: "run", TenantID: "tenant", Livemode: true, Account: "mtn", Day: "2026-04-01", Currency: "XAF", Sources: int64(i), SourcesAmount: 100, At: begin})
	}
	of(&record.MatchRun{RunID: "run", TenantID: "tenant", Livemode: true, Account: "mtn", Today: "2026-04-02", Horizon: "2026-04-01", Rule: 1, Watermarks: map[string]string{"checkout.events/0": "7"}, At: begin})
	of(&record.Close{CloseID: "cls", TenantID: "tenant", Livemode: true, Account: "mtn", FromDay: "2026-04-01", ToDay: "2026-04-01", State: "closed", CaseID: "case", Watermarks: map[string]string{"checkout.events/0": "7"}, Statements: []string{"s"}, Currency: "XAF", At: begin})
	ofCase := &record.Event{EventID: "evt_case", Type: "case.opened", OccurredAt: begin, Detail: map[string]string{"case_id": "case", "case_kind": "orphan", "tenant_id": "tenant"}}
	for range 2 { // an event of cases.events may be written twice
		records = append(records, w.value(schemas.TopicCases, "case", ofCase))
	}
	records = append(records, &kgo.Record{Topic: w.kafka.Prefix + schemas.TopicStatements, Key: []byte("k"), Value: []byte("garbage")})
	if err := w.cl.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// Rows of ClickHouse are changed by hand: the reports are wrong, and nothing says so. A verification names each row
// that Kafka does not have so, and writes nothing; a rebuild mends all but those that no record makes.
func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 40
	w.mixed(n)
	_, stop := w.run(w.conn)
	eventually(t, "the sink has written all", w.committed)
	stop()
	w.produce(n, n+5) // nobody has written these: they are not demanded
	if got := w.verify(time.Time{}, time.Time{}); !got.Holds() || got.Rows != 8*n+n+n+8 || got.Unreadable != 1 || len(got.Positions) == 0 {
		t.Fatalf("untouched: %+v", got)
	}
	change := func(sql string) {
		t.Helper()
		if err := w.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	change(`ALTER TABLE receipt_rows UPDATE amount = amount + 4000, total_amount = total_amount + 4000 WHERE session_id = 'chs_00007' SETTINGS mutations_sync = 2`)
	change(`ALTER TABLE statement_lines DELETE WHERE line_id = 'mtn/00003' SETTINGS mutations_sync = 2`)
	change(`ALTER TABLE day_totals UPDATE sources = 9 WHERE account = 'mtn' SETTINGS mutations_sync = 2`)
	change(`ALTER TABLE journal DELETE WHERE entry_id = 'evt_chs_00009_1' SETTINGS mutations_sync = 2`)
	change(`ALTER TABLE case_rows UPDATE total_amount = 5 WHERE case_id = 'case' SETTINGS mutations_sync = 2`)
	foreign := journal.Entry{ID: "foreign", Type: journal.EntryTypeEvent, OccurredAt: begin, TenantID: "tenant", Livemode: true, Status: "completed", Currency: "XAF", Amount: 7}
	if err := journal.NewStore(w.conn).Insert(t.Context(), &foreign); err != nil {
		t.Fatal(err)
	}
	got := w.verify(time.Time{}, time.Time{})
	var said []string
	for _, d := range got.Differences {
		said = append(said, fmt.Sprintf("%s %s %s %v", d.Table, d.Fault, d.Day.Format(time.DateOnly), d.Columns))
		if (d.Topic == "") != (d.Fault == journal.FaultAdded) {
			t.Errorf("the evidence of %+v", d)
		}
	}
	want := []string{
		"case_rows different 2026-03-31 [{total_amount 5 0}]",
		"day_totals different 2026-04-01 [{sources 9 2}]",
		"journal missing 2026-03-31 []",
		"journal added 2026-03-31 []",
		"receipt_rows different 2026-04-01 [{amount 5007 1007} {total_amount 5022 1022}]",
		"statement_lines missing 2026-04-01 []",
	}
	if !slices.Equal(said, want) || got.Missing != 2 || got.Different != 3 || got.Added != 1 {
		t.Errorf("%q, %+v", said, got)
	}
	april := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	if got := w.verify(april, april.AddDate(0, 1, 0)); got.Missing != 1 || got.Different != 2 || got.Added != 0 {
		t.Errorf("April: %+v", got)
	}
	w.atNight()
	if _, err := w.rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := w.verify(time.Time{}, time.Time{}); got.Missing+got.Different != 0 || got.Added != 1 {
		t.Errorf("after a rebuild: %+v", got)
	}
}

// atNight asserts that the verification of the night finds the differences, after two o'clock of the next day.
func (w *world) atNight() {
	w.t.Helper()
	var now atomic.Int64
	now.Store(begin.Add(6 * time.Hour).Unix())
	reg := prometheus.NewRegistry()
	v, err := verify.New(verify.Config{
		Kafka: w.kafka, Decoder: journal.Decoder{Codec: w.codec, Prefix: w.kafka.Prefix, Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(w.kafka)}, Store: journal.NewStore(w.conn), Everything: true, Every: 5 * time.Millisecond,
		Now: func() time.Time { return time.Unix(now.Load(), 0) }, Log: slog.New(slog.DiscardHandler), Metrics: reg,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	if metric(w.t, reg, "quittance_journal_differences") != 0 {
		w.t.Error("it is not night yet")
	}
	now.Add(int64((21 * time.Hour).Seconds()))
	await.Until(w.t, "the night's verification", func() bool { return metric(w.t, reg, "quittance_journal_differences") == 6 })
	stop()
	if err := <-done; err != nil {
		w.t.Error(err)
	}
}

// ClickHouse is restored from an older backup. Kafka's offsets say that the sink has written everything, so the
// rows between would be missing for good. The database says how far it has the records: readers refuse, and the
// sink, or a rebuild, writes what is missing.
func TestRestoredFromBackup(t *testing.T) {
	t.Parallel()
	for _, mend := range []string{"sink", "running sink", "rebuild"} {
		t.Run(mend, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.produce(0, 20)
			_, stop := w.run(w.conn)
			eventually(t, "the first sessions", w.committed)
			store := journal.NewStore(w.conn)
			backup, err := store.Positions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.produce(20, 40)
			eventually(t, "all sessions", w.committed)
			if mend != "running sink" {
				stop()
			}
			for _, sql := range []string{
				`ALTER TABLE journal DELETE WHERE session_id >= 'chs_00020' SETTINGS mutations_sync = 2`, `ALTER TABLE receipt_rows DELETE WHERE session_id >= 'chs_00020' SETTINGS mutations_sync = 2`,
				`TRUNCATE TABLE journal_positions`,
			} {
				if err := w.conn.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.SetPositions(t.Context(), backup...); err != nil {
				t.Fatal(err)
			}
			committed, err := kafka.Committed(t.Context(), w.admin, w.kafka.Prefix+"journal")
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Whole(t.Context(), committed); !errors.Is(err, journal.ErrRestored) {
				t.Fatalf("a restored database is %v", err)
			}
			switch mend {
			case "sink":
				w.run(w.conn)
			case "running sink": // it finds out with the next records of each partition
				w.produce(40, 60)
			case "rebuild":
				if _, err := w.rebuild(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the database is whole", func() bool { return store.Whole(t.Context(), committed) == nil })
			if mend == "running sink" {
				eventually(t, "the new sessions", w.committed)
				w.check(60)
				return
			}
			w.check(40)
		})
	}
}

// The first start of a release with positions goes on where the group was, and does not write everything again. A
// database that was lost and made anew gets all records.
func TestFirstPositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, 20)
	_, stop := w.run(w.conn)
	eventually(t, "the sessions", w.committed)
	stop()
	if err := w.conn.Exec(t.Context(), `TRUNCATE TABLE journal_positions`); err != nil {
		t.Fatal(err)
	}
	w.produce(20, 30)
	reg, stop := w.run(w.conn)
	eventually(t, "the new sessions", w.committed)
	stop()
	w.check(30)
	if n := metric(t, reg, "quittance_journal_entries_total"); n != 60 {
		t.Errorf("%v entries were written, want those of 10 sessions", n)
	}
	for _, table := range []string{"journal", "receipt_rows", "expected_money", "journal_positions"} {
		if err := w.conn.Exec(t.Context(), `TRUNCATE TABLE `+table); err != nil {
			t.Fatal(err)
		}
	}
	reg, _ = w.run(w.conn)
	eventually(t, "all sessions again", func() bool { return metric(t, reg, "quittance_journal_entries_total") >= 180 })
	w.check(30)
}
