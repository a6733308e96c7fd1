package journal_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	sink "quittance/sinks/journal"
	deliverytest "quittance/test/deliveries"
	journaltest "quittance/test/journal"
	"quittance/test/servers"
)

// Whoever had the Kafka user of one sink of deliveries could have reports say that a payment is confirmed. The
// journal keeps the outcomes that the worker of their kind has proved; a verification, a replay and a rebuild
// hold by the same rule, and the true outcome makes its row.
func TestForgedOutcomeIsNotJournaled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var owed []*kgo.Record
	for _, e := range session(1) {
		owed = append(owed, w.value(schemas.TopicEvents, "1", e))
	}
	owed = append(owed, w.value(schemas.TopicAttempts, "1", attempt(1, 1, "failed")))
	strange, err := secret.GenerateKeys().MACs(secret.LabelOutcomes("erp"))
	if err != nil {
		t.Fatal(err)
	}
	var attacks []*kgo.Record
	for _, sign := range []func(*kgo.Record){
		func(*kgo.Record) {},
		origin.NewSigner("erp", strange).SignKeyed,
		origin.NewSigner("webhook", deliverytest.Bodies()).SignKeyed,
		func(r *kgo.Record) { r.Headers = owed[3].Headers },
	} {
		r := w.value(schemas.TopicAttempts, "1", attempt(1, 2, "delivered"))
		r.Headers = nil
		sign(r)
		attacks = append(attacks, r)
	}
	if err := w.cl.ProduceSync(t.Context(), append(owed, attacks...)...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	reg, stop := w.run(w.conn)
	eventually(t, "all are set aside", func() bool { return metric(t, reg, "quittance_journal_poison_total") >= float64(len(attacks)) })
	eventually(t, "the owed one is there", func() bool { return metric(t, reg, "quittance_journal_entries_total") >= 4 })
	if n := metric(t, reg, "quittance_journal_outcomes_refused_total"); n < float64(len(attacks)) {
		t.Errorf("%v refused, want %d", n, len(attacks))
	}
	state := func() (s string) {
		if err := w.conn.QueryRow(t.Context(), "SELECT confirmation_state FROM payments WHERE session_id = 'chs_00001'").Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := state(); s == "accepted" {
		t.Errorf("a forged outcome is believed: %s", s)
	}
	if got := w.verify(time.Time{}, time.Time{}); !got.Holds() || got.Unproven != int64(len(attacks)) || got.Unreadable != 0 {
		t.Errorf("the verification says %+v", got)
	}
	if got, err := w.rebuildAt(time.Now()); err != nil || got.Attempts != 1 || got.Unreadable != int64(len(attacks)) {
		t.Errorf("the rebuild: %+v, %v", got, err)
	}
	if s := state(); s == "accepted" {
		t.Errorf("a rebuild believes a forged outcome: %s", s)
	}

	if err := w.cl.ProduceSync(t.Context(), w.value(schemas.TopicAttempts, "1", attempt(1, 2, "delivered"))).FirstErr(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the true outcome", func() bool { return state() == "accepted" })
	stop()
}

// Outcomes of the release before prove nothing. They have rows already, which a verification does not call wrong,
// and a database that is lost gets them again with --accept-unproven-bodies.
func TestUnprovenOutcomesOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.value(schemas.TopicAttempts, "1", attempt(1, 1, "delivered"))
	old.Headers = nil
	if err := w.cl.ProduceSync(t.Context(), old).FirstErr(); err != nil {
		t.Fatal(err)
	}
	believed := deliverytest.Outcomes()
	believed.AcceptUnproven = true
	metrics := prometheus.NewRegistry()
	j, err := sink.New(sink.Config{Kafka: w.kafka, Codec: w.codec, Store: journal.NewStore(w.conn), Outcomes: believed, Cases: deliverytest.Cases(w.kafka), Log: servers.Logger(t), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := j.Rebuild(t.Context(), time.Now(), nil); err != nil || got.Attempts != 1 || got.Unreadable != 0 {
		t.Errorf("the rebuild: %+v, %v", got, err)
	}
	if n := metric(t, metrics, "quittance_journal_outcomes_unproven_total"); n < 1 {
		t.Errorf("%v unproven outcomes counted", n)
	}
	if n, err := journaltest.CountEntries(t.Context(), w.conn, journal.EntryTypeDelivery); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
	_, stop := w.run(w.conn) // of this release
	eventually(t, "it is set aside", w.committed)
	stop()
	if got := w.verify(time.Time{}, time.Time{}); !got.Holds() || got.Unproven != 1 {
		t.Errorf("the verification says %+v", got)
	}
}
