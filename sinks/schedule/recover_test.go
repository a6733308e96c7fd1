package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// A receiver was down for days. Some of its deliveries wait for the next attempt, some are
// exhausted, some need an operator. A recovery makes all of them due at its rate, also
// when the schedule restarts in between. Outcomes of earlier rounds no longer count.
func TestRecovery(t *testing.T) {
	t.Parallel()
	b := bench(t)
	stop := deliverytest.Start(t, b.Schedule(t))
	const n = 40
	later := b.Now().Add(20 * time.Hour)
	of := []deliveries.Outcome{deliveries.OutcomeFailed, deliveries.OutcomeExhausted, deliveries.OutcomeNeedsOperator, deliveries.OutcomeDelivered}
	for i := range n {
		a := outcome(b, fmt.Sprintf("evt_%02d", i), "own", of[i%len(of)], 0, 3, later)
		a.Delivery.OccurredAt = a.Delivery.OccurredAt.Add(time.Duration(i) * time.Minute)
		outcomes(t, b, a)
	}
	state := func(i int) string {
		return b.State(t, webhook.Kind, fmt.Sprintf("evt_%02d", i), "own")
	}
	deliverytest.Eventually(t, "all applied", func() bool { return state(n-1) != "" })

	from := time.Date(2026, 3, 4, 23, 59, 59, 0, time.UTC)
	req := deliveries.RecoveryRequest{Kind: webhook.Kind, DestinationID: "own", Since: from.Add(8 * time.Minute), Until: b.Now(), PerSecond: 5}
	r, started, err := b.Store.StartRecovery(t.Context(), deliverytest.Actor, req, b.Now())
	if err != nil || !started || r.Total != 24 || !r.Running() {
		t.Fatalf("%+v, started %v, %v", r, started, err)
	}
	again, started, err := b.Store.StartRecovery(t.Context(), deliverytest.Actor, req, b.Now())
	if err != nil || started || again.ID != r.ID {
		t.Fatalf("a second one for the same endpoint: %+v, started %v, %v", again, started, err)
	}
	progress := func() deliveries.Recovery {
		r, err := b.Store.ReadRecovery(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	deliverytest.Eventually(t, "some done", func() bool { return progress().Done > 0 })
	stop()
	if p := progress(); !p.Running() || p.Done >= 24 || p.Done%5 != 0 {
		t.Fatalf("a rate of 5 a second was not kept, or there was no middle to stop in: %+v", p)
	}
	deliverytest.Start(t, b.Schedule(t))
	deliverytest.Eventually(t, "all done", func() bool { return !progress().Running() })
	if p := progress(); p.Done != 24 || p.Cancelled {
		t.Fatalf("%+v", p)
	}
	// An outcome of the earlier round comes again.
	late := outcome(b, "evt_09", "own", deliveries.OutcomeExhausted, 0, 3, later)
	late.Delivery.OccurredAt = late.Delivery.OccurredAt.Add(9 * time.Minute)
	outcomes(t, b, late)
	mark := outcome(b, "evt_mark", "other", deliveries.OutcomeDelivered, 0, 1, later)
	outcomes(t, b, mark)
	deliverytest.Eventually(t, "the late outcome applied", func() bool { return b.State(t, webhook.Kind, "evt_mark", "other") != "" })
	produced := produced(t, b)
	for i := range n {
		want := i >= 8 && i%4 != 3
		got := false
		for _, d := range produced {
			got = got || d.EventID == fmt.Sprintf("evt_%02d", i)
		}
		switch s := state(i); {
		case i%4 == 3 && s != "delivered", want && s != "waiting" && s != "queued", got && !want:
			t.Errorf("evt_%02d is %s, on the topic: %v", i, s, got)
		}
		if !want && i%4 != 3 && state(i) != map[int]string{0: "waiting", 1: "exhausted", 2: "needs_operator"}[i%4] {
			t.Errorf("evt_%02d, from before the time that was named, is %s", i, state(i))
		}
	}
	for _, d := range produced {
		if len(d.Body) == 0 {
			t.Errorf("%s is on the topic without its bytes", d.EventID)
		}
	}

	// A suspended endpoint is refused: it must be resumed.
	if _, err := b.Pool.Exec(t.Context(), `UPDATE delivery_destinations SET suspended_at = now(), suspended_reason = 'gone' WHERE destination_id = 'own'`); err != nil {
		t.Fatal(err)
	}
	_, _, err = b.Store.StartRecovery(t.Context(), deliverytest.Actor, req, b.Now())
	refusal(t, err, deliveries.CodeSuspended)
}

func TestRecoveryCancelled(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	for i := range 20 {
		outcomes(t, b, outcome(b, fmt.Sprintf("evt_%02d", i), "own", deliveries.OutcomeExhausted, 0, 3, b.Now()))
	}
	deliverytest.Eventually(t, "all applied", func() bool { return b.State(t, webhook.Kind, "evt_19", "own") != "" })
	r, _, err := b.Store.StartRecovery(t.Context(), deliverytest.Actor, deliveries.RecoveryRequest{
		Kind: webhook.Kind, DestinationID: "own", Until: b.Now(), PerSecond: 1,
	}, b.Now())
	if err != nil {
		t.Fatal(err)
	}
	deliverytest.Eventually(t, "begun", func() bool {
		r, err = b.Store.LatestRecovery(t.Context(), webhook.Kind, "own")
		return err == nil && r.Done > 0
	})
	if err := b.Store.CancelRecovery(t.Context(), deliverytest.Actor, r.ID, b.Now()); err != nil {
		t.Fatal(err)
	}
	r, err = b.Store.ReadRecovery(t.Context(), r.ID)
	if err != nil || r.Running() || !r.Cancelled || r.Done == 20 {
		t.Fatalf("%+v, %v", r, err)
	}
	// A further recovery makes the remaining deliveries due.
	r, started, err := b.Store.StartRecovery(t.Context(), deliverytest.Actor, deliveries.RecoveryRequest{
		Kind: webhook.Kind, DestinationID: "own", Until: b.Now(), PerSecond: 1000,
	}, b.Now())
	if err != nil || !started {
		t.Fatalf("started %v, %v", started, err)
	}
	deliverytest.Eventually(t, "through", func() bool {
		r, err := b.Store.ReadRecovery(t.Context(), r.ID)
		return err == nil && !r.Running()
	})
	var left int
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE state = 'exhausted'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}
