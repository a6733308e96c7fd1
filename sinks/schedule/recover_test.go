package schedule_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quittance/sinks/delivery"
	"quittance/sinks/schedule"
	"quittance/test/deliveries"
)

// A receiver was down for days: some of what it should have got waits for its
// next attempt, some is exhausted, some a person was to decide. A recovery makes
// all of it due, at its rate, over a restart of the schedule in its middle, and
// what is still on its way from before decides nothing any more.
func TestRecovery(t *testing.T) {
	t.Parallel()
	b := bench(t)
	stop := deliveries.Start(t, b.Schedule(t))
	const n = 40
	later := b.Now().Add(20 * time.Hour)
	of := []delivery.Outcome{delivery.OutcomeFailed, delivery.OutcomeExhausted, delivery.OutcomeNeedsOperator, delivery.OutcomeDelivered}
	for i := range n {
		a := outcome(b, fmt.Sprintf("evt_%02d", i), "own", of[i%len(of)], 0, 3, later)
		a.Delivery.OccurredAt = a.Delivery.OccurredAt.Add(time.Duration(i) * time.Minute)
		outcomes(t, b, a)
	}
	state := func(i int) string {
		return b.State(t, delivery.KindWebhook, fmt.Sprintf("evt_%02d", i), "own")
	}
	deliveries.Eventually(t, "all applied", func() bool { return state(n-1) != "" })

	from := time.Date(2026, 3, 4, 23, 59, 59, 0, time.UTC)
	req := schedule.RecoveryRequest{Kind: delivery.KindWebhook, DestinationID: "own", Since: from.Add(8 * time.Minute), Until: b.Now(), PerSecond: 5}
	r, started, err := schedule.StartRecovery(t.Context(), b.Pool, req, b.Now())
	if err != nil || !started || r.Total != 24 || r.Done != 0 || !r.Running() {
		t.Fatalf("%+v, started %v, %v", r, started, err)
	}
	again, started, err := schedule.StartRecovery(t.Context(), b.Pool, req, b.Now())
	if err != nil || started || again.ID != r.ID {
		t.Fatalf("a second one for the same endpoint: %+v, started %v, %v", again, started, err)
	}
	progress := func() schedule.Recovery {
		r, err := schedule.ReadRecovery(t.Context(), b.Pool, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	deliveries.Eventually(t, "some done", func() bool { return progress().Done > 0 })
	stop()
	if p := progress(); !p.Running() || p.Done >= 24 || p.Done%5 != 0 {
		t.Fatalf("a rate of 5 a second was not kept, or there was no middle to stop in: %+v", p)
	}
	deliveries.Start(t, b.Schedule(t))
	deliveries.Eventually(t, "all done", func() bool { return !progress().Running() })
	if p := progress(); p.Done != 24 || p.Cancelled {
		t.Fatalf("%+v", p)
	}
	// An outcome that was under way says once more what it said before.
	late := outcome(b, "evt_09", "own", delivery.OutcomeExhausted, 0, 3, later)
	late.Delivery.OccurredAt = late.Delivery.OccurredAt.Add(9 * time.Minute)
	outcomes(t, b, late)
	mark := outcome(b, "evt_mark", "other", delivery.OutcomeDelivered, 0, 1, later)
	outcomes(t, b, mark)
	deliveries.Eventually(t, "the late outcome applied", func() bool { return b.State(t, delivery.KindWebhook, "evt_mark", "other") != "" })
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

	// Nothing is sent to an endpoint that is suspended; it is to be resumed.
	if _, err := b.Pool.Exec(t.Context(), `UPDATE delivery_destinations SET suspended_at = now(), suspended_reason = 'gone' WHERE destination_id = 'own'`); err != nil {
		t.Fatal(err)
	}
	if _, _, err := schedule.StartRecovery(t.Context(), b.Pool, req, b.Now()); !errors.Is(err, schedule.ErrSuspended) {
		t.Errorf("a suspended endpoint: %v", err)
	}
}

func TestRecoveryCancelled(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliveries.Start(t, b.Schedule(t))
	for i := range 20 {
		outcomes(t, b, outcome(b, fmt.Sprintf("evt_%02d", i), "own", delivery.OutcomeExhausted, 0, 3, b.Now()))
	}
	deliveries.Eventually(t, "all applied", func() bool { return b.State(t, delivery.KindWebhook, "evt_19", "own") != "" })
	r, _, err := schedule.StartRecovery(t.Context(), b.Pool, schedule.RecoveryRequest{
		Kind: delivery.KindWebhook, DestinationID: "own", Until: b.Now(), PerSecond: 1,
	}, b.Now())
	if err != nil {
		t.Fatal(err)
	}
	deliveries.Eventually(t, "begun", func() bool {
		r, err = schedule.LatestRecovery(t.Context(), b.Pool, delivery.KindWebhook, "own")
		return err == nil && r.Done > 0
	})
	if err := schedule.CancelRecovery(t.Context(), b.Pool, r.ID, b.Now()); err != nil {
		t.Fatal(err)
	}
	r, err = schedule.ReadRecovery(t.Context(), b.Pool, r.ID)
	if err != nil || r.Running() || !r.Cancelled || r.Done == 20 {
		t.Fatalf("%+v, %v", r, err)
	}
	// It can be asked for again, and does what is left.
	r, started, err := schedule.StartRecovery(t.Context(), b.Pool, schedule.RecoveryRequest{
		Kind: delivery.KindWebhook, DestinationID: "own", Until: b.Now(), PerSecond: 1000,
	}, b.Now())
	if err != nil || !started {
		t.Fatalf("started %v, %v", started, err)
	}
	deliveries.Eventually(t, "through", func() bool {
		r, err := schedule.ReadRecovery(t.Context(), b.Pool, r.ID)
		return err == nil && !r.Running()
	})
	var left int
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE state = 'exhausted'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}
