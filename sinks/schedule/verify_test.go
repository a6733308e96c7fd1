package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/comparison"
	"quittance/internal/deliveries"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// verify compares the rows of deliveries with the outcomes in Kafka, at a time.
func verify(t *testing.T, b *deliverytest.Bench, now time.Time, atOnce int) (comparison.Result, []string) {
	t.Helper()
	got, err := b.Store.Comparison(b.Codec, deliverytest.Outcomes(), now).Verify(t.Context(), comparison.Config{Kafka: b.Kafka, Pool: b.Pool, AtOnce: atOnce})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range got.Differences {
		names := make([]string, len(d.Columns))
		for i, c := range d.Columns {
			names[i] = c.Name
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Fault, d.Row, strings.Join(names, ","))))
		if (d.Record() == "") != (d.Fault == comparison.FaultAdded) || d.SessionID != "" || d.Place != "" {
			t.Errorf("the evidence of %+v is %q", d, d.Record())
		}
	}
	slices.Sort(lines)
	return got, lines
}

// Whoever could write to Postgres called a webhook delivered that was not, or parked one, and the integrator was never called.
// Each row is compared with what outcomes in Kafka say of it.
func TestVerify(t *testing.T) {
	t.Parallel()
	b := bench(t)
	stop := deliverytest.Start(t, b.Schedule(t))
	far := b.Now().Add(time.Hour)
	events := []string{"delivered", "waits", "parked", "exhausted", "retried", "moved", "gone", "late"}
	for _, e := range []struct {
		event   string
		outcome deliveries.Outcome
		status  int32
	}{
		{"delivered", deliveries.OutcomeFailed, 500},
		{"delivered", deliveries.OutcomeDelivered, 200},
		{"waits", deliveries.OutcomeFailed, 500},
		{"parked", deliveries.OutcomeNeedsOperator, 404},
		{"exhausted", deliveries.OutcomeExhausted, 503},
		{"retried", deliveries.OutcomeNeedsOperator, 400},
		{"moved", deliveries.OutcomeDelivered, 204},
		{"gone", deliveries.OutcomeDelivered, 204},
		{"late", deliveries.OutcomeDeferred, 0},
	} {
		a := outcome(b, e.event, "d1", e.outcome, 0, 1, far)
		a.HTTPStatus = e.status
		outcomes(t, b, a)
	}
	old := signed(t, b, outcome(b, "old", "d1", deliveries.OutcomeDelivered, 0, 1, time.Time{}))
	old.Headers = nil // of a release whose workers prove nothing; not believed here
	write(t, b, old)
	deliverytest.Eventually(t, "the rows", func() bool {
		return b.State(t, webhook.Kind, "late", "d1") != "" && b.State(t, webhook.Kind, "moved", "d1") == deliveries.StateDelivered && b.State(t, webhook.Kind, "exhausted", "d1") == deliveries.StateExhausted
	})
	retry(t, b, "retried", "d1")
	at := outcome(b, "x", "d1", deliveries.OutcomeDelivered, 0, 1, far).Delivery.OccurredAt.Add(24 * time.Hour) // near the day of the events
	stop()
	for _, atOnce := range []int{0, 2} {
		if got, lines := verify(t, b, at, atOnce); len(lines) != 0 || got.Rows != int64(len(events)) {
			t.Fatalf("%d at once: %d rows, %q", atOnce, got.Rows, lines)
		}
	}
	of := func(event string) string { return id(event, "d1") }
	exec := func(sql, event string) {
		t.Helper()
		if _, err := b.Pool.Exec(t.Context(), sql+` WHERE delivery_id = $1`, of(event)); err != nil {
			t.Fatal(err)
		}
	}
	exec(`UPDATE deliveries SET state = 'waiting', next_attempt_at = now()`, "delivered") // sent twice
	exec(`UPDATE deliveries SET state = 'delivered', next_attempt_at = NULL`, "waits")
	exec(`UPDATE deliveries SET reason = 'x', http_status = 410`, "parked")
	exec(`UPDATE deliveries SET state = 'superseded', reason = 'superseded'`, "exhausted")
	exec(`UPDATE deliveries SET destination_id = 'd2', session_id = 'chs_other'`, "moved")
	exec(`DELETE FROM deliveries`, "gone")
	exec(`UPDATE deliveries SET state = 'exhausted', next_attempt_at = NULL, reason = 'held_too_long', body = 'forged'`, "late")
	exec(`INSERT INTO deliveries SELECT occurred_on, 'dlv_forged', kind, destination_id, 'evt', event, application_id, tenant_id, session_id, livemode, occurred_at, 'delivered', 1, round, first_attempt_at, last_outcome_at
		FROM deliveries`, "parked")
	want := []string{
		"different " + of("delivered") + " state", "different " + of("waits") + " state", "different " + of("parked") + " http_status,reason", "different " + of("exhausted") + " state",
		"different " + of("moved") + " destination_id,session_id", "missing " + of("gone"), "different " + of("late") + " body,state", "added dlv_forged",
	}
	slices.Sort(want)
	for _, atOnce := range []int{0, 2} {
		if _, lines := verify(t, b, at, atOnce); !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
	}
	// Rows whose day is over are gone, and nobody misses them.
	if _, lines := verify(t, b, at.AddDate(0, 0, deliveries.KeepDays), 0); slices.Contains(lines, "missing "+of("gone")) {
		t.Errorf("%q", lines)
	}
}
