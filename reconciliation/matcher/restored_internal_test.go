package matcher

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	sink "quittance/sinks/journal"
	"quittance/test/await"
)

// ClickHouse is restored from an older backup while the sink journal is stopped. Kafka's offsets say that the sink has
// written all, so that a run would find money missing, and could close a day over the hole. No run and no sheet is
// computed until the rows are back.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	stop := o.journal()
	m := o.matcher()
	o.pay(money{"A1", "P1", "", 500, o.now, false})
	o.lines(o.line("mtn", o.now, 500, "A1", "", ""))
	o.runs(m, mtn)
	store := journal.NewStore(o.conn)
	backup, err := store.Positions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.pay(money{"A2", "P2", "", 700, o.now, false})
	o.lines(o.line("mtn", o.now, 700, "A2", "", ""))
	o.runs(m, mtn)
	stop()
	for _, sql := range []string{`ALTER TABLE expected_money DELETE WHERE operator_ref = 'A2' SETTINGS mutations_sync = 2`, `ALTER TABLE statement_lines DELETE WHERE operator_ref = 'A2' SETTINGS mutations_sync = 2`, `TRUNCATE TABLE journal_positions`} {
		if err := o.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.SetPositions(t.Context(), backup...); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Account(t.Context(), mtn); !errors.Is(err, journal.ErrRestored) {
		t.Fatalf("a run of a restored database: %v", err)
	}
	if _, err := m.Sheet(t.Context(), mtn, "2026-11-01"); !errors.Is(err, journal.ErrRestored) {
		t.Fatalf("a sheet of a restored database: %v", err)
	}
	o.journal()
	committed, err := kafka.Committed(t.Context(), kadm.NewClient(o.cl), o.kafka.Prefix+sink.Group)
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the sink has written what the backup lacks", func() bool { return store.Whole(t.Context(), committed) == nil })
	o.runs(m, mtn)
	o.agrees(mtn)
}
