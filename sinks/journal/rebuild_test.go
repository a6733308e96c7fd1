package journal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/tally"
	sink "quittance/sinks/journal"
	deliverytest "quittance/test/deliveries"
	journaltest "quittance/test/journal"
	"quittance/test/servers"
)

func (w *world) rebuild(ctx context.Context, progress kafka.Progress) (sink.Rebuilt, error) {
	w.t.Helper()
	return w.rebuildNow(ctx, time.Now(), progress)
}

func (w *world) rebuildNow(ctx context.Context, now time.Time, progress kafka.Progress) (sink.Rebuilt, error) {
	w.t.Helper()
	j, err := sink.New(sink.Config{
		Kafka: w.kafka, Codec: w.codec, Store: journal.NewStore(w.conn), Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(w.kafka), Log: servers.Logger(w.t), Metrics: prometheus.NewRegistry(), BatchSize: 500,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return j.Rebuild(ctx, now, progress)
}

// rebuildAt rebuilds at a time of the service's clock.
func (w *world) rebuildAt(now time.Time) (sink.Rebuilt, error) {
	w.t.Helper()
	return w.rebuildNow(w.t.Context(), now, nil)
}

// Rows of the journal are lost, while the offsets of the group are at the end: the sink
// reads nothing again. A rebuild is interrupted, started again beside the sink, and makes
// every row once. Rows that Kafka does not have any more stay.
func TestRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 800
	w.produce(0, n)
	_, stop := w.run(w.conn)
	eventually(t, "the sink has written all", w.committed)
	stop()
	w.check(n)
	old := journal.Entry{ID: "before Kafka's attempts", Type: journal.EntryTypeDelivery, OccurredAt: begin.AddDate(-1, 0, 0), TenantID: "tenant"}
	if err := journal.NewStore(w.conn).Insert(t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Exec(t.Context(), `ALTER TABLE journal DELETE WHERE cityHash64(entry_id) % 3 = 0 AND occurred_at > '2026-01-01' SETTINGS mutations_sync = 2`); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Exec(t.Context(), `ALTER TABLE receipt_rows DELETE WHERE cityHash64(row_id) % 2 = 0 SETTINGS mutations_sync = 2`); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Exec(t.Context(), `ALTER TABLE expected_money DELETE WHERE cityHash64(entry_id) % 2 = 0 SETTINGS mutations_sync = 2`); err != nil {
		t.Fatal(err)
	}
	left, err := journaltest.CountEntries(t.Context(), w.conn, journal.EntryTypeEvent)
	if err != nil || left == 3*n {
		t.Fatalf("%d events are left, %v", left, err)
	}

	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	if _, err := w.rebuild(ctx, func(done, _ int64) {
		if done >= 1000 {
			kill()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("the interrupted rebuild returns %v", err)
	}
	w.run(w.conn)
	got, err := w.rebuild(t.Context(), nil)
	if err != nil || !got.Equal() || got.Events != 3*n || got.Attempts != 2*n || got.Calls != n || got.Unreadable != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	var all tally.Count
	for _, l := range got.Lines {
		all = tally.Count{Events: all.Events + l.Source.Events, Amount: all.Amount + l.Source.Amount}
	}
	if want := (tally.Count{Events: 3 * n, Amount: 3 * (n*1000 + n*(n-1)/2)}); all != want {
		t.Errorf("%+v, want %+v", all, want)
	}
	if len(got.Receipts) != 1 || got.Receipts[0].Status != journal.MovementCompleted || got.Receipts[0].Source != (tally.Count{Events: n, Amount: n*1015 + n*(n-1)/2}) {
		t.Errorf("the sums of receipts are %+v", got.Receipts)
	}
	if len(got.Expected) != 1 || got.Expected[0].Status != journal.ExpectedCompleted || got.Expected[0].Source != got.Receipts[0].Source {
		t.Errorf("the sums of expected money are %+v", got.Expected)
	}
	if left, err := journaltest.CountEntries(t.Context(), w.conn, journal.EntryTypeDelivery); err != nil || left != 2*n+1 {
		t.Errorf("%d attempts, %v; want %d", left, err, 2*n+1)
	}
	if err := w.conn.Exec(t.Context(), `ALTER TABLE journal DELETE WHERE entry_id = ? SETTINGS mutations_sync = 2`, old.ID); err != nil {
		t.Fatal(err)
	}
	w.check(n)

	// A row that Kafka does not have shows in the sums.
	foreign := journal.Entry{ID: "foreign", Type: journal.EntryTypeEvent, OccurredAt: begin, TenantID: "tenant", Livemode: true, Status: "completed", Currency: "XAF", Amount: 7}
	if err := journal.NewStore(w.conn).Insert(t.Context(), &foreign); err != nil {
		t.Fatal(err)
	}
	if got, err := w.rebuild(t.Context(), nil); err != nil || tally.Equal(got.Lines) {
		t.Errorf("a row that is only in the journal: %+v, %v", got, err)
	}

	if err := w.conn.Exec(t.Context(), `ALTER TABLE journal DELETE WHERE entry_id = 'foreign' SETTINGS mutations_sync = 2`); err != nil {
		t.Fatal(err)
	}
	receipt := journal.Receipt{
		ID: journal.ReceiptID("foreign", 1), Movement: journal.MovementCompleted, OccurredAt: begin, LocalDate: begin, ApprovedOn: begin, TenantID: "tenant", Livemode: true, Currency: "XAF",
		Amount: 7, TotalAmount: 7,
	}
	if err := journal.NewStore(w.conn).Insert(t.Context(), &receipt); err != nil {
		t.Fatal(err)
	}
	if got, err := w.rebuild(t.Context(), nil); err != nil || !tally.Equal(got.Lines) || tally.Equal(got.Receipts) {
		t.Errorf("a receipt that is only in ClickHouse: %+v, %v", got, err)
	}
	if err := w.conn.Exec(t.Context(), "INSERT INTO expected_money (entry_id, kind, state, local_date, occurred_at, currency, gross) VALUES (generateUUIDv4(), 'received', 'late', '2026-11-30', '2026-01-01', 'XAF', 7)"); err != nil {
		t.Fatal(err)
	}
	if got, err := w.rebuild(t.Context(), nil); err != nil || tally.Equal(got.Expected) {
		t.Errorf("expected money that is only in ClickHouse: %+v, %v", got, err)
	}
}
