package notify_test

import (
	"testing"
	"time"

	"quittance/internal/notify"
	"quittance/internal/operation"
	"quittance/internal/provider"
)

// For an hour a mail relay called every mailbox unknown. None of these people got a receipt
// again, for nothing ended the suppressions of that hour but a code that each of them enters.
func TestSuppressionsOfAnHourAreLifted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	begun := d.now
	const early, one, two, late = "email_1", "email_2", "email_3", "email_4"
	for id, at := range map[string]time.Time{early: begun.Add(-time.Second), one: begun, two: begun.Add(59 * time.Minute), late: begun.Add(time.Hour)} {
		if err := d.addresses.Unknown(ctx, provider.ChannelEmail, id, at); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := d.addresses.Unknown(ctx, provider.ChannelSMS, someone, begun); err != nil {
			t.Fatal(err)
		}
	}
	ended := begun.Add(time.Hour)
	if n, err := d.addresses.CountSuppressed(ctx, provider.ChannelEmail, begun, ended); err != nil || n != 2 {
		t.Errorf("%d were suppressed in the hour, %v; want 2", n, err)
	}
	if n, err := d.addresses.Lift(ctx, operation.Actor{}, provider.ChannelEmail, begun, ended, ended); err == nil || n != 0 {
		t.Errorf("nobody lifts %d: %v", n, err)
	}
	if _, err := d.addresses.Lift(ctx, actor, provider.ChannelEmail, begun.Add(-notify.LongestLift), ended, ended); err == nil {
		t.Error("more than a day is lifted")
	}
	for _, want := range []int64{2, 0} { // the second time there is nothing to lift, and nothing is recorded
		if n, err := d.addresses.Lift(ctx, actor, provider.ChannelEmail, begun, ended, ended); err != nil || n != want {
			t.Errorf("%d are lifted, %v; want %d", n, err, want)
		}
	}
	for id, want := range map[string]bool{early: true, one: false, two: false, late: true, someone: true} {
		if got, err := d.addresses.Admit(ctx, id, ended.Add(time.Minute)); err != nil || got.Suppressed != want {
			t.Errorf("%s: suppressed %v, %v; want %v", id, got.Suppressed, err, want)
		}
	}
	var who, detail string
	if err := d.pool.QueryRow(ctx, `SELECT actor, detail->>'addresses' FROM audit WHERE action = 'suppressions.lift' AND subject = 'email'`).Scan(&who, &detail); err != nil || who != actor.Name || detail != "2" {
		t.Errorf("recorded %q, %q, %v", who, detail, err)
	}
}

var actor = operation.Actor{Kind: operation.ActorCommandLine, Name: "jeanne"}
