package schedule_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// outcomes writes attempts to deliveries.attempts, like a worker.
func outcomes(t testing.TB, b *deliverytest.Bench, attempts ...*record.Attempt) {
	t.Helper()
	for _, a := range attempts {
		write(t, b, signed(t, b, a))
	}
}

func outcome(b *deliverytest.Bench, event, destination string, o deliveries.Outcome, round, attempt int32, next time.Time) *record.Attempt {
	d := deliveries.Plan(webhook.Kind, b.Notification(event, "app"), destination)
	d.OccurredAt = time.Date(2026, 3, 4, 23, 59, 59, 0, time.UTC)
	d.Round, d.Attempt = round, attempt
	a := &record.Attempt{Delivery: *d, Outcome: string(o), At: b.Now()}
	if o == deliveries.OutcomeFailed || o == deliveries.OutcomeDeferred {
		a.NextAttemptAt = next
	}
	return a
}

func produced(t testing.TB, b *deliverytest.Bench) []record.Delivery {
	t.Helper()
	var out []record.Delivery
	for _, r := range b.Records(t, schemas.TopicWebhooksDeliveries) {
		var d record.Delivery
		if err := b.Codec.Decode(r.Value, &d); err != nil {
			t.Fatal(err)
		}
		if string(r.Key) != d.DestinationID {
			t.Errorf("record keyed by %q, want the destination", r.Key)
		}
		out = append(out, d)
	}
	return out
}

// Delivered is final in any round. Other outcomes of earlier rounds do not count. A
// deferred outcome is not counted as an attempt.
func TestOrderOfOutcomes(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	far := b.Now().Add(time.Hour)
	state := func(event, dest string) string { return b.State(t, webhook.Kind, event, dest) }

	outcomes(t, b,
		outcome(b, "final", "d1", deliveries.OutcomeDelivered, 0, 1, far), outcome(b, "final", "d1", deliveries.OutcomeFailed, 1, 2, far),
		outcome(b, "again", "d1", deliveries.OutcomeFailed, 0, 1, b.Now().Add(-time.Second)),
		outcome(b, "parked", "d1", deliveries.OutcomeNeedsOperator, 0, 1, far), outcome(b, "parked", "d1", deliveries.OutcomeFailed, 0, 1, far),
		outcome(b, "put off", "d2", deliveries.OutcomeDeferred, 0, 1, b.Now().Add(-time.Second)),
	)
	deliverytest.Eventually(t, "due ones produced", func() bool { return len(produced(t, b)) == 2 })
	for _, d := range produced(t, b) {
		want := map[string]int32{"again": 2, "put off": 1}[d.EventID]
		if d.Attempt != want || d.Round != 1 || len(d.Body) == 0 {
			t.Errorf("%s produced with attempt %d, round %d, %d bytes; want attempt %d, round 1", d.EventID, d.Attempt, d.Round, len(d.Body), want)
		}
	}
	// It is on the topic in round 1: a late outcome of round 0 does not count.
	outcomes(t, b, outcome(b, "again", "d1", deliveries.OutcomeFailed, 0, 1, b.Now().Add(-time.Second)), outcome(b, "marker", "d3", deliveries.OutcomeFailed, 0, 1, far))
	deliverytest.Eventually(t, "marker applied", func() bool { return state("marker", "d3") == "waiting" })
	outcomes(t, b, outcome(b, "parked", "d1", deliveries.OutcomeDelivered, 0, 1, far))
	deliverytest.Eventually(t, "late success counts", func() bool { return state("parked", "d1") == "delivered" })
	if s := state("final", "d1"); s != "delivered" {
		t.Errorf("a delivered one became %s", s)
	}
	deliverytest.Eventually(t, "still in round 1", func() bool { return state("again", "d1") == "queued" })
	time.Sleep(300 * time.Millisecond) // time for a wrong one: nothing happens that could be awaited
	if n := len(produced(t, b)); n != 2 {
		t.Errorf("%d records produced, want 2", n)
	}

	// The answers that a worker gets after a crash.
	h := b.History()
	if err := h.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	ref := func(event, dest string, round int32) deliveries.Ref {
		return deliveries.Ref{DeliveryID: deliveries.ID(webhook.Kind, event, dest), OccurredAt: day, Round: round}
	}
	settled, err := h.Settled(t.Context(), []deliveries.Ref{
		ref("final", "d1", 0), ref("again", "d1", 0), ref("again", "d1", 1), ref("marker", "d3", 0), ref("never", "d1", 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"final": true, "marker": true, "never": false} {
		dest := map[string]string{"marker": "d3"}[name]
		if dest == "" {
			dest = "d1"
		}
		if _, got := settled[deliveries.ID(webhook.Kind, name, dest)]; got != want {
			t.Errorf("%s settled: %v, want %v", name, got, want)
		}
	}
	for round, want := range map[int32]bool{0: true, 1: false} {
		settled, err := h.Settled(t.Context(), []deliveries.Ref{ref("again", "d1", round)})
		if err != nil || (len(settled) == 1) != want {
			t.Errorf("round %d of one that is on the topic in round 1: settled %v, %v; want %v", round, settled, err, want)
		}
	}
}

// A dead destination with thousands of waiting deliveries gets twice its cap, and one on
// hold gets nothing. Neither delays another destination.
func TestCapsAndHolds(t *testing.T) {
	t.Parallel()
	b := bench(t)
	past := b.Now().Add(-time.Minute)
	var all []*record.Attempt
	for i := range 60 {
		all = append(all, outcome(b, fmt.Sprintf("dead%d", i), "dead", deliveries.OutcomeFailed, 0, 1, past))
		held := outcome(b, fmt.Sprintf("held%d", i), "held", deliveries.OutcomeDeferred, 0, 1, b.Now().Add(10*time.Minute))
		held.Reason = deliveries.ReasonBreakerOpen
		all = append(all, held)
	}
	all = append(all, outcome(b, "other", "other", deliveries.OutcomeFailed, 0, 1, past))
	outcomes(t, b, all...)
	stop := deliverytest.Start(t, b.Schedule(t))
	count := func() map[string]int {
		n := map[string]int{}
		for _, d := range produced(t, b) {
			n[d.DestinationID]++
		}
		return n
	}
	deliverytest.Eventually(t, "all get their share", func() bool { n := count(); return n["dead"] == 16 && n["other"] == 1 })
	time.Sleep(time.Second) // time for wrong ones: nothing happens that could be awaited
	if n := count(); n["dead"] != 16 || n["held"] != 0 {
		t.Errorf("produced %v; the dead one's share is 16, the held one's none", n)
	}
	b.Advance(11 * time.Minute)
	deliverytest.Eventually(t, "a probe after the hold", func() bool { return count()["held"] == 1 })
	time.Sleep(500 * time.Millisecond) // time for a second one: nothing happens that could be awaited
	if n := count()["held"]; n != 1 {
		t.Errorf("%d after the hold before any success, want one probe", n)
	}
	outcomes(t, b, outcome(b, "held-probe", "held", deliveries.OutcomeDelivered, 0, 1, past))
	deliverytest.Eventually(t, "its share after a success", func() bool { return count()["held"] == 16 })

	// After a crash between claim and produce the lease runs out and the round goes up.
	stop()
	if _, err := b.Pool.Exec(t.Context(), `UPDATE deliveries SET lease_until = now() - interval '1 second' WHERE state = 'queued' AND destination_id = 'other'`); err != nil {
		t.Fatal(err)
	}
	deliverytest.Start(t, b.Schedule(t))
	deliverytest.Eventually(t, "produced again", func() bool { return count()["other"] == 2 })
	if r := produced(t, b); r[len(r)-1].Round < 1 {
		t.Errorf("round %d", r[len(r)-1].Round)
	}
}

// Five days without a success suspend an endpoint. A success in between restarts the five
// days.
func TestFailingForDaysSuspends(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	suspended := func() map[string]bool {
		s, err := b.History().Suspended(t.Context(), webhook.Kind)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	far := b.Now().Add(1000 * time.Hour)
	apply := func(event string, attempts ...*record.Attempt) {
		outcomes(t, b, append(attempts, outcome(b, event, "marker", deliveries.OutcomeDelivered, 0, 1, far))...)
		if err := b.History().CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	apply("m1", outcome(b, "e1", "dead", deliveries.OutcomeFailed, 0, 1, far), outcome(b, "e1", "ill", deliveries.OutcomeFailed, 0, 1, far))
	b.Advance(3 * 24 * time.Hour)
	apply("m2", outcome(b, "e2", "ill", deliveries.OutcomeDelivered, 0, 1, far), outcome(b, "e2", "dead", deliveries.OutcomeFailed, 0, 1, far))
	b.Advance(49 * time.Hour)
	apply("m3", outcome(b, "e3", "ill", deliveries.OutcomeFailed, 0, 1, far))
	if s := suspended(); len(s) != 0 {
		t.Fatalf("suspended %v without five days of failures", s)
	}
	apply("m4", outcome(b, "e4", "dead", deliveries.OutcomeFailed, 0, 1, far))
	if _, is := suspended()["dead"]; !is || len(suspended()) != 1 {
		t.Errorf("suspended %v, want the dead one", suspended())
	}
}

// After the broker has lost data, all outcomes are applied again. An endpoint that
// failed for days, was suspended, resumed by an operator and has delivered since,
// must not be suspended a second time by its old failures.
func TestFailuresBeforeAResumptionDoNotSuspend(t *testing.T) {
	t.Parallel()
	b := bench(t)
	begun := b.Now()
	far := begun.Add(1000 * time.Hour)
	failed := outcome(b, "e1", "d", deliveries.OutcomeFailed, 0, 1, far)
	b.Advance(6 * 24 * time.Hour)
	again := outcome(b, "e1", "d", deliveries.OutcomeFailed, 0, 2, far)
	suspended := func() bool {
		s, err := b.History().Suspended(t.Context(), webhook.Kind)
		if err != nil {
			t.Fatal(err)
		}
		_, is := s["d"]
		return is
	}
	apply := func(a *record.Attempt) {
		if err := b.Store.Apply(t.Context(), []*record.Attempt{a}, nil); err != nil {
			t.Fatal(err)
		}
	}
	apply(failed)
	apply(again)
	if !suspended() {
		t.Fatal("six days of failures did not suspend the endpoint")
	}
	b.Advance(time.Hour)
	if _, _, err := b.Store.Resume(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now(), nil); err != nil {
		t.Fatal(err)
	}
	b.Advance(time.Hour)
	apply(outcome(b, "e1", "d", deliveries.OutcomeDelivered, 0, 3, far))
	apply(failed)
	apply(again)
	if suspended() {
		t.Error("old failures suspended the endpoint again")
	}
	// Failures after the resumption count.
	apply(outcome(b, "e2", "d", deliveries.OutcomeFailed, 0, 1, far))
	b.Advance(5*24*time.Hour + time.Minute)
	apply(outcome(b, "e2", "d", deliveries.OutcomeFailed, 0, 2, far))
	if !suspended() {
		t.Error("five days of failures after the resumption did not suspend the endpoint")
	}
}

// A database that is restored from a backup is behind Kafka's committed offsets. The
// schedule continues at the positions in Postgres.
func TestBeginsWherePostgresStands(t *testing.T) {
	t.Parallel()
	b := bench(t)
	far := b.Now().Add(time.Hour)
	stop := deliverytest.Start(t, b.Schedule(t))
	outcomes(t, b, outcome(b, "e1", "d", deliveries.OutcomeFailed, 0, 1, far))
	deliverytest.Eventually(t, "applied", func() bool { return b.State(t, webhook.Kind, "e1", "d") == "waiting" })
	stop()
	if _, err := b.Pool.Exec(t.Context(), `DELETE FROM deliveries; `); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pool.Exec(t.Context(), `DELETE FROM delivery_positions`); err != nil {
		t.Fatal(err)
	}
	deliverytest.Start(t, b.Schedule(t))
	deliverytest.Eventually(t, "applied again", func() bool { return b.State(t, webhook.Kind, "e1", "d") == "waiting" })
}

// While the schedule runs, the database is replaced by a backup that was made before the
// first delivery of the day. The schedule makes the day's tables again.
func TestRestoredDatabaseLacksTheDay(t *testing.T) {
	t.Parallel()
	b := bench(t)
	far := b.Now().Add(time.Hour)
	deliverytest.Start(t, b.Schedule(t))
	outcomes(t, b, outcome(b, "e1", "d", deliveries.OutcomeFailed, 0, 1, far))
	deliverytest.Eventually(t, "applied", func() bool { return b.State(t, webhook.Kind, "e1", "d") == "waiting" })
	if _, err := b.Pool.Exec(t.Context(), `DROP TABLE deliveries_20260304, delivery_attempts_20260304`); err != nil {
		t.Fatal(err)
	}
	outcomes(t, b, outcome(b, "e2", "d", deliveries.OutcomeFailed, 0, 1, far))
	deliverytest.Eventually(t, "applied after the restore", func() bool { return b.State(t, webhook.Kind, "e2", "d") == "waiting" })
}

// Every change of deliveries locks their destination first, before it locks a delivery.
// So a batch that has locked the destination can lock its deliveries without a deadlock.
func TestDestinationsAreLockedFirst(t *testing.T) {
	t.Parallel()
	b := bench(t)
	s := b.Schedule(t)
	stop := deliverytest.Start(t, s)
	a := outcome(b, "e1", "d", deliveries.OutcomeFailed, 0, 1, b.Now().Add(time.Hour))
	a.Delivery.OccurredAt = b.Now() // a day that is kept
	outcomes(t, b, a)
	deliverytest.Eventually(t, "applied", func() bool { return b.State(t, webhook.Kind, "e1", "d") == "waiting" })
	stop()
	exec := func(q string) {
		t.Helper()
		if _, err := b.Pool.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	now := func(do func(context.Context, time.Time) error) func(context.Context) error {
		return func(ctx context.Context) error { return do(ctx, b.Now()) }
	}
	for _, step := range []struct {
		name, given string
		do          func(context.Context) error
		then        string
	}{
		{"returning leases", `UPDATE deliveries SET state = 'queued', lease_until = now() - interval '1 minute'`, now(b.Store.ReturnLeases), "waiting"},
		{"marking as queued", `UPDATE deliveries SET state = 'queued', lease_until = now() + interval '1 minute'`, func(ctx context.Context) error {
			return b.Store.MarkQueued(ctx, []record.Delivery{a.Delivery})
		}, "queued"},
		{"ending what is held", `WITH d AS (UPDATE delivery_destinations SET suspended_at = now() - interval '40 days')
			UPDATE deliveries SET state = 'waiting', last_outcome_at = now() - interval '35 days'`, now(b.Store.Tidy), "exhausted"},
	} {
		exec(step.given)
		tx, err := b.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `SELECT FROM delivery_destinations FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- step.do(t.Context()) }()
		deliverytest.Eventually(t, step.name+" waits", func() bool {
			var n int
			if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n == 1
		})
		_, err = tx.Exec(t.Context(), `SELECT FROM deliveries FOR UPDATE NOWAIT`)
		if err != nil {
			t.Errorf("%s has locked deliveries before their destination: %v", step.name, err)
			_ = tx.Rollback(t.Context())
		} else if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if state := b.State(t, webhook.Kind, "e1", "d"); state != step.then {
			t.Errorf("%s: state %s, want %s", step.name, state, step.then)
		}
	}
}

func bench(t testing.TB) *deliverytest.Bench {
	t.Helper()
	return deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t),
		Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
}

// produce writes bytes to a topic as they are.
func produce(t testing.TB, b *deliverytest.Bench, topic, key string, value []byte) {
	t.Helper()
	write(t, b, &kgo.Record{Topic: b.Kafka.Prefix + topic, Key: []byte(key), Value: value})
}

func write(t testing.TB, b *deliverytest.Bench, records ...*kgo.Record) {
	t.Helper()
	cl, err := b.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
