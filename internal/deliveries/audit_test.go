package deliveries_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/schemas/record"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

func bench(t *testing.T) *deliverytest.Bench {
	t.Helper()
	return deliverytest.New(t, deliverytest.Servers{
		Kafka: servers.Kafka(t), Postgres: servers.Migrated(t), SchemaRegistry: servers.SchemaRegistry(t), Prefix: servers.Prefix(t), Log: servers.Logger(t),
	})
}

// refused returns the code of a refused operation.
func refused(err error) string {
	var e *operation.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Each operation that changes something is recorded with its actor. An operation that
// changes nothing, is refused or has no actor leaves no record and no change.
func TestOperationsAreRecorded(t *testing.T) {
	t.Parallel()
	b := bench(t)
	ctx, now := t.Context(), b.Now()
	var outcomes []*record.Attempt
	for _, event := range []string{"e1", "e2", "e3"} {
		d := deliveries.Plan(webhook.Kind, b.Notification(event, "app"), "own")
		outcomes = append(outcomes, &record.Attempt{Delivery: *d, Outcome: string(deliveries.OutcomeExhausted), At: now, HTTPStatus: 500})
	}
	if err := b.Store.Apply(ctx, outcomes, nil); err != nil {
		t.Fatal(err)
	}
	recorded := func() []string {
		t.Helper()
		rows, err := b.Pool.Query(ctx, `SELECT action || ' ' || actor FROM audit ORDER BY id`)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	id := deliveries.ID(webhook.Kind, "e1", "own")
	if _, err := b.Store.Retry(ctx, operation.Actor{}, id, now); err == nil {
		t.Error("somebody unknown may retry")
	}
	if s := b.State(t, webhook.Kind, "e1", "own"); s != deliveries.StateExhausted || len(recorded()) != 0 {
		t.Errorf("without an actor it is %s, on record %q", s, recorded())
	}

	actor := deliverytest.Actor
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Store.Retry(ctx, actor, id, now)
	check(err)
	_, err = b.Store.RetryAll(ctx, actor, webhook.Kind, "own", deliveries.StateExhausted, now, nil)
	check(err)
	for range 2 { // the second one changes nothing
		_, _, err = b.Store.Suspend(ctx, actor, webhook.Kind, "own", now)
		check(err)
	}
	req := deliveries.RecoveryRequest{Kind: webhook.Kind, DestinationID: "own", Since: now.Add(-time.Hour), Until: now.Add(time.Hour), PerSecond: 1}
	if _, _, err := b.Store.StartRecovery(ctx, actor, req, now); refused(err) != deliveries.CodeSuspended {
		t.Errorf("a recovery for a suspended destination: %v", err)
	}
	_, due, err := b.Store.Resume(ctx, actor, webhook.Kind, "own", now, nil)
	check(err)
	if due != 3 {
		t.Errorf("%d are due, want 3", due)
	}
	r, started, err := b.Store.StartRecovery(ctx, actor, req, now)
	check(err)
	same, second, err := b.Store.StartRecovery(ctx, actor, req, now)
	check(err)
	if !started || second || same.ID != r.ID {
		t.Errorf("started %v, then %v %s, want %s", started, second, same.ID, r.ID)
	}
	for range 2 {
		check(b.Store.CancelRecovery(ctx, actor, r.ID, now))
	}
	want := []string{
		"delivery.retry test", "destination.retry test", "destination.suspend test", "destination.retry test", "destination.resume test",
		"recovery.start test", "recovery.cancel test",
	}
	if got := recorded(); !slices.Equal(got, want) {
		t.Errorf("on record:\n%q, want\n%q", got, want)
	}
}
