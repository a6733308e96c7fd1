package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/schemas/record"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// today is outcome for an event that occurs now, so that its day is not dropped.
func today(b *deliverytest.Bench, event, destination string, o deliveries.Outcome, round, attempt int32, next time.Time) *record.Attempt {
	a := outcome(b, event, destination, o, round, attempt, next)
	a.Delivery.OccurredAt = b.Now()
	return a
}

func id(event, destination string) string {
	return deliveries.ID(webhook.Kind, event, destination)
}

// applied writes outcomes and waits until Postgres has them.
func applied(t *testing.T, b *deliverytest.Bench, attempts ...*record.Attempt) {
	t.Helper()
	outcomes(t, b, attempts...)
	if err := b.History().CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refusal checks that an error is a refused operation with this code and these values.
func refusal(t *testing.T, err error, code string, values ...any) {
	t.Helper()
	var refused *operation.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("error = %v, want %s", err, code)
		return
	}
	for _, v := range values {
		if !strings.Contains(refused.Error(), fmt.Sprint(v)) {
			t.Errorf("%v does not have %v", refused, v)
		}
	}
}

func retry(t *testing.T, b *deliverytest.Bench, event, destination string) deliveries.Retried {
	t.Helper()
	r, err := b.Store.Retry(t.Context(), deliverytest.Actor, id(event, destination), b.Now())
	if err != nil {
		t.Fatalf("%s: %v", event, err)
	}
	return r
}

// An operator retries while the record of the previous round is still on the topic, or
// its outcome comes a second time. Outcomes of the previous round no longer count, unless
// the delivery was accepted.
func TestRetryOutlivesLateOutcomes(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	far := b.Now().Add(time.Hour)
	// The destination is on hold, so that nothing is claimed before the late outcomes are
	// applied.
	held := today(b, "held", "d", deliveries.OutcomeDeferred, 0, 1, far)
	held.Reason = deliveries.ReasonBreakerOpen
	first := map[string]deliveries.Outcome{
		"parked": deliveries.OutcomeNeedsOperator, "exhausted": deliveries.OutcomeExhausted, "waiting": deliveries.OutcomeFailed,
	}
	all := []*record.Attempt{held, today(b, "accepted", "other", deliveries.OutcomeFailed, 3, 2, far)}
	for event, o := range first {
		all = append(all, today(b, event, "d", o, 3, 2, far))
	}
	applied(t, b, all...)
	for event := range first {
		if r := retry(t, b, event, "d"); r.HoldUntil.IsZero() || r.State != "waiting" || r.OnItsWay {
			t.Errorf("%s: %+v, want it due after the hold", event, r)
		}
	}
	retry(t, b, "accepted", "other")
	late := []*record.Attempt{today(b, "accepted", "other", deliveries.OutcomeDelivered, 3, 2, far), today(b, "accepted", "other", deliveries.OutcomeFailed, 3, 2, far)}
	for event := range first {
		late = append(late, today(b, event, "d", deliveries.OutcomeFailed, 3, 2, far), today(b, event, "d", deliveries.OutcomeNeedsOperator, 3, 2, far))
	}
	applied(t, b, late...)

	ref := func(event string, round int32) deliveries.Ref {
		return deliveries.Ref{DeliveryID: id(event, "d"), OccurredAt: b.Now(), Round: round}
	}
	settled, err := b.History().Settled(t.Context(), []deliveries.Ref{ref("parked", 3), ref("exhausted", 3), ref("waiting", 3)})
	if err != nil || len(settled) != 3 {
		t.Errorf("of the records of the round before %d are settled, %v; want 3: they are not to be sent beside the retry", len(settled), err)
	}
	if _, due, err := b.Store.Resume(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now(), nil); err != nil || due != 4 {
		t.Errorf("resumed %d, %v; want the three retried and the one that was held", due, err)
	}
	b.Advance(3 * time.Second)
	share := func() []record.Delivery {
		return slices.DeleteFunc(produced(t, b), func(d record.Delivery) bool { return d.DestinationID != "d" })
	}
	deliverytest.Eventually(t, "the retried are produced", func() bool { return len(share()) == 4 })
	for _, d := range share() {
		if d.EventID != "held" && (d.Round <= 3 || d.Attempt != 3 || len(d.Body) == 0) {
			t.Errorf("%s produced in round %d as attempt %d with %d bytes; want a later round than 3, attempt 3", d.EventID, d.Round, d.Attempt, len(d.Body))
		}
	}
	if s := b.State(t, webhook.Kind, "accepted", "other"); s != "delivered" {
		t.Errorf("what was accepted late is %s", s)
	}
	// Now it is on the topic in a later round. Outcomes of the first round still do not count.
	applied(t, b, late...)
	for _, event := range []string{"parked", "exhausted", "waiting"} {
		if s := b.State(t, webhook.Kind, event, "d"); s != "queued" {
			t.Errorf("%s is %s, want it on its way", event, s)
		}
		if r := retry(t, b, event, "d"); !r.OnItsWay {
			t.Errorf("%s: %+v, want it on its way", event, r)
		}
	}
	_, err = b.Store.Retry(t.Context(), deliverytest.Actor, id("accepted", "other"), b.Now())
	refusal(t, err, deliveries.CodeAccepted, "at=")
	_, err = b.Store.Retry(t.Context(), deliverytest.Actor, id("nothing", "d"), b.Now())
	refusal(t, err, deliveries.CodeUnknown)
}

// many copies a delivery n times. The copies wait for an hour.
func many(t *testing.T, b *deliverytest.Bench, like string, n int) {
	t.Helper()
	if _, err := b.Pool.Exec(t.Context(), `
		INSERT INTO deliveries SELECT occurred_on, delivery_id || n, kind, destination_id, event_id || n, event, application_id, tenant_id, session_id, livemode,
			occurred_at, state, attempts, round, first_attempt_at, last_outcome_at, $3, lease_until, http_status, reason, body
		FROM deliveries, generate_series(1, $2::int) n WHERE delivery_id = $1`, like, n, b.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func standing(t *testing.T, b *deliverytest.Bench, destination string) deliveries.DestinationStatus {
	t.Helper()
	all, err := b.Store.Statuses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s deliveries.DestinationStatus) bool { return s.DestinationID == destination })
	if i < 0 {
		return deliveries.DestinationStatus{}
	}
	return all[i]
}

// Thousands of deliveries wait for an endpoint that is gone. After a resumption all of
// them are due, and the reason of the suspension is cleared.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	a := today(b, "e", "d", deliveries.OutcomeFailed, 0, 1, b.Now().Add(time.Hour))
	a.HTTPStatus = 410
	applied(t, b, a)
	many(t, b, id("e", "d"), 4500)
	was := standing(t, b, "d")
	if was.SuspendedReason != deliveries.SuspendedGone || was.FailingSince.IsZero() || was.Waiting != 4501 || was.Oldest.IsZero() {
		t.Fatalf("it stands %+v", was)
	}
	as, changed, err := b.Store.Suspend(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now())
	if err != nil || changed || as.SuspendedReason != deliveries.SuspendedGone {
		t.Errorf("suspended again: %q, changed %v, %v", as.SuspendedReason, changed, err)
	}
	_, err = b.Store.Retry(t.Context(), deliverytest.Actor, id("e", "d"), b.Now())
	refusal(t, err, deliveries.CodeSuspended, "destination=d", "at=")
	_, err = b.Store.RetryAll(t.Context(), deliverytest.Actor, webhook.Kind, "d", "waiting", b.Now(), nil)
	refusal(t, err, deliveries.CodeSuspended)

	var told []int
	got, due, err := b.Store.Resume(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now(), func(done, total int) {
		if told = append(told, done); total != 4501 {
			t.Errorf("%d of %d", done, total)
		}
	})
	if err != nil || due != 4501 || got.SuspendedAt.IsZero() || !slices.Equal(told, []int{2000, 4000, 4501}) {
		t.Errorf("resumed %d, was %+v, told %v, %v", due, got, told, err)
	}
	if is := standing(t, b, "d"); !is.SuspendedAt.IsZero() || is.SuspendedReason != "" || !is.FailingSince.IsZero() || !is.HoldUntil.IsZero() || is.Waiting != 4501 {
		t.Errorf("after it, it stands %+v", is)
	}
	b.Advance(3 * time.Second)
	deliverytest.Eventually(t, "its share is produced", func() bool { return len(produced(t, b)) == 16 })

	// An endpoint that never had an outcome.
	as, changed, err = b.Store.Suspend(t.Context(), deliverytest.Actor, webhook.Kind, "new", b.Now())
	if err != nil || !changed || as.SuspendedReason != deliveries.SuspendedOperator || as.SuspendedAt.IsZero() {
		t.Errorf("suspended: %q, changed %v, %v", as.SuspendedReason, changed, err)
	}
	held, err := b.History().Suspended(t.Context(), webhook.Kind)
	if _, is := held["new"]; err != nil || !is || len(held) != 1 {
		t.Errorf("workers are told of %v, %v", held, err)
	}
	_, _, err = b.Store.Suspend(t.Context(), deliverytest.Actor, erp.Kind, "agency/test", b.Now())
	refusal(t, err, deliveries.CodeNeverSuspended, "kind=erp")
	if s := standing(t, b, "agency/test"); s.DestinationID != "" {
		t.Errorf("the ERP stands %+v", s)
	}
}

// Lists named the next call by the delivery alone, which was past while the destination was on hold or suspended.
func TestNextCall(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	soon, later := b.Now().Add(time.Minute), b.Now().Add(time.Hour)
	held := today(b, "hold", "held", deliveries.OutcomeDeferred, 0, 1, later)
	held.Reason = deliveries.ReasonBreakerOpen
	applied(t, b, today(b, "plain", "plain", deliveries.OutcomeFailed, 0, 1, soon), today(b, "behind", "held", deliveries.OutcomeFailed, 0, 1, soon), held,
		today(b, "stopped", "stopped", deliveries.OutcomeFailed, 0, 1, soon), today(b, "parked", "plain", deliveries.OutcomeNeedsOperator, 0, 1, soon))
	if _, _, err := b.Store.Suspend(t.Context(), deliverytest.Actor, webhook.Kind, "stopped", b.Now()); err != nil {
		t.Fatal(err)
	}
	list, err := b.Store.List(t.Context(), deliveries.Filter{Kind: webhook.Kind, Limit: 10})
	if err != nil || len(list) != 5 {
		t.Fatalf("%d deliveries, %v", len(list), err)
	}
	want := map[string]time.Time{"plain": soon, "behind": later, "hold": later, "stopped": {}, "parked": {}}
	for _, d := range list {
		one, _, err := b.Store.Show(t.Context(), d.ID)
		if at := want[d.EventID]; err != nil || !d.NextCall().Truncate(time.Millisecond).Equal(at.Truncate(time.Millisecond)) || !one.NextCall().Equal(d.NextCall()) {
			t.Errorf("%s is sent at %s, shown %s, want %s, %v", d.EventID, d.NextCall(), one.NextCall(), at, err)
		}
	}
}

// Exhausted deliveries can still be sent: those that failed at the last step, and those
// that were held for too long.
func TestRetryAll(t *testing.T) {
	t.Parallel()
	b := bench(t)
	s := b.Schedule(t)
	deliverytest.Start(t, s)
	far := b.Now().Add(100 * 24 * time.Hour)
	applied(t, b,
		today(b, "last", "d", deliveries.OutcomeExhausted, 4, 20, far), today(b, "long", "d", deliveries.OutcomeFailed, 1, 2, far),
		today(b, "parked", "d", deliveries.OutcomeNeedsOperator, 0, 1, far), today(b, "other", "d2", deliveries.OutcomeExhausted, 0, 1, far),
	)
	if _, _, err := b.Store.Suspend(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now()); err != nil {
		t.Fatal(err)
	}
	b.Advance(31 * 24 * time.Hour)
	if err := b.Store.Tidy(t.Context(), b.Now()); err != nil {
		t.Fatal(err)
	}
	if is := standing(t, b, "d"); is.Exhausted != 2 || is.NeedsOperator != 1 || is.Waiting != 0 {
		t.Fatalf("it stands %+v", is)
	}
	if _, due, err := b.Store.Resume(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now(), nil); err != nil || due != 0 {
		t.Errorf("resumed %d, %v", due, err)
	}
	for _, state := range []string{"delivered", "queued", "lost"} {
		_, err := b.Store.RetryAll(t.Context(), deliverytest.Actor, webhook.Kind, "d", state, b.Now(), nil)
		refusal(t, err, deliveries.CodeNotRetryable, "needs_operator")
	}
	n, err := b.Store.RetryAll(t.Context(), deliverytest.Actor, webhook.Kind, "d", "exhausted", b.Now(), nil)
	if err != nil || n != 2 {
		t.Errorf("retried %d, %v", n, err)
	}
	b.Advance(3 * time.Second)
	deliverytest.Eventually(t, "both are produced", func() bool { return len(produced(t, b)) == 2 })
	for _, d := range produced(t, b) {
		if d.EventID != "last" && d.EventID != "long" || len(d.Body) == 0 {
			t.Errorf("produced %s with %d bytes", d.EventID, len(d.Body))
		}
	}
	if s := b.State(t, webhook.Kind, "parked", "d"); s != "needs_operator" {
		t.Errorf("another state: %s", s)
	}
	// An earlier release deleted the bytes of exhausted deliveries.
	if _, err := b.Pool.Exec(t.Context(), `UPDATE deliveries SET body = NULL WHERE destination_id = 'd2'`); err != nil {
		t.Fatal(err)
	}
	_, err = b.Store.Retry(t.Context(), deliverytest.Actor, id("other", "d2"), b.Now())
	refusal(t, err, deliveries.CodeBodyGone)
}

// Pages of the list contain every delivery once, the newest first, over several days.
func TestListAndShowDeliveries(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	far := b.Now().Add(time.Hour)
	begin := time.Date(b.Now().Year(), b.Now().Month(), b.Now().Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, -3)
	var all []*record.Attempt
	var want []string
	for i := range 9 {
		dest, o := "d1", deliveries.OutcomeFailed
		if i%3 == 0 {
			dest, o = "d2", deliveries.OutcomeNeedsOperator
		}
		a := outcome(b, fmt.Sprintf("e%d", i), dest, o, 0, 1, far)
		a.Delivery.OccurredAt = begin.Add(time.Duration(i/2) * 12 * time.Hour) // two at a time, two times a day
		all = append(all, a)
		want = append(want, a.Delivery.DeliveryID)
	}
	slices.Reverse(want)
	applied(t, b, all...)
	list := func(f deliveries.Filter) []deliveries.Delivery {
		t.Helper()
		found, err := b.Store.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	var got []string
	for after, pages := "", 0; pages < 9; pages++ {
		page := list(deliveries.Filter{After: after, Limit: 2})
		for _, d := range page {
			got = append(got, d.ID)
			after = d.ID
		}
		if len(page) < 2 {
			break
		}
	}
	for i := 1; i+1 < len(want); i += 2 { // of one moment: by id
		if want[i] < want[i+1] {
			want[i], want[i+1] = want[i+1], want[i]
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("by pages\n%v, want\n%v", got, want)
	}
	for _, c := range []struct {
		name string
		f    deliveries.Filter
		n    int
	}{
		{"of a destination", deliveries.Filter{Kind: webhook.Kind, DestinationID: "d2"}, 3},
		{"of an event", deliveries.Filter{EventID: "e4"}, 1},
		{"of sessions", deliveries.Filter{SessionIDs: []string{"chs_e4", "chs_e5", "chs_nothing"}}, 2},
		{"of no session", deliveries.Filter{SessionIDs: []string{}}, 0},
		{"of a type", deliveries.Filter{Event: "checkout.failed"}, 0},
		{"of an agency", deliveries.Filter{TenantID: "agency"}, 9},
		{"in a state", deliveries.Filter{State: "needs_operator"}, 3},
		{"of a kind", deliveries.Filter{Kind: erp.Kind}, 0},
		{"since", deliveries.Filter{Since: begin.Add(24 * time.Hour)}, 5},
		{"until", deliveries.Filter{Until: begin.Add(24 * time.Hour)}, 4},
		{"between", deliveries.Filter{Since: begin.Add(12 * time.Hour), Until: begin.Add(36 * time.Hour), State: "waiting"}, 3},
	} {
		if c.f.Limit = 100; len(list(c.f)) != c.n {
			t.Errorf("%s: %d, want %d", c.name, len(list(c.f)), c.n)
		}
	}
	_, err := b.Store.List(t.Context(), deliveries.Filter{After: "dlv_nobody", Limit: 1})
	refusal(t, err, deliveries.CodeUnknown)

	second := outcome(b, "e0", "d2", deliveries.OutcomeDelivered, 0, 2, far)
	second.Delivery.OccurredAt, second.HTTPStatus, second.Answer, second.DurationMs = begin, 201, "taken", 12
	applied(t, b, second)
	d, calls, err := b.Store.Show(t.Context(), id("e0", "d2"))
	if err != nil || d.State != "delivered" || d.Attempts != 2 || d.Sendable || len(calls) != 2 {
		t.Fatalf("%+v %+v %v", d, calls, err)
	}
	if c := calls[1]; c.Number != 2 || c.Outcome != deliveries.OutcomeDelivered || c.HTTPStatus != 201 || c.Answer != "taken" || c.Duration != 12*time.Millisecond {
		t.Errorf("%+v", c)
	}
}

// Like TestDestinationsAreLockedFirst, for the operations.
func TestOperationsLockTheDestinationFirst(t *testing.T) {
	t.Parallel()
	b := bench(t)
	stop := deliverytest.Start(t, b.Schedule(t))
	applied(t, b, today(b, "e", "d", deliveries.OutcomeFailed, 0, 1, b.Now().Add(time.Hour)))
	stop()
	for name, do := range map[string]func(context.Context) error{
		"retry": func(ctx context.Context) error {
			_, err := b.Store.Retry(ctx, deliverytest.Actor, id("e", "d"), b.Now())
			return err
		},
		"retry all": func(ctx context.Context) error {
			_, err := b.Store.RetryAll(ctx, deliverytest.Actor, webhook.Kind, "d", "waiting", b.Now(), nil)
			return err
		},
		"resume": func(ctx context.Context) error {
			_, _, err := b.Store.Resume(ctx, deliverytest.Actor, webhook.Kind, "d", b.Now(), nil)
			return err
		},
	} {
		done := make(chan error, 1)
		err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT FROM delivery_destinations FOR UPDATE`); err != nil {
				return err
			}
			go func() { done <- do(t.Context()) }()
			deliverytest.Eventually(t, name+" waits", func() bool {
				var n int
				if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n == 1
			})
			_, err := tx.Exec(t.Context(), `SELECT FROM deliveries FOR UPDATE NOWAIT`)
			return err
		})
		if err != nil {
			t.Errorf("%s has locked deliveries before their destination: %v", name, err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An operator resumes an endpoint while a worker puts off what is on its way, because it reads suspensions once a
// second. Such a delivery waited for a minute, beside those that the resumption made due. While the endpoint is
// suspended it waits on.
func TestResumeHastensWhatWasPutOff(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	put := func(event string) *record.Attempt {
		a := today(b, event, "d", deliveries.OutcomeDeferred, 0, 1, b.Now().Add(time.Minute))
		a.Reason = deliveries.ReasonSuspended
		return a
	}
	if _, _, err := b.Store.Suspend(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now()); err != nil {
		t.Fatal(err)
	}
	applied(t, b, put("before"))
	if state := b.State(t, webhook.Kind, "before", "d"); state != deliveries.StateWaiting {
		t.Errorf("it is %s at a suspended endpoint", state)
	}
	if _, due, err := b.Store.Resume(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now(), nil); err != nil || due != 1 {
		t.Fatalf("%d due, %v", due, err)
	}
	applied(t, b, put("after"))
	b.Advance(3 * time.Second)
	for _, event := range []string{"before", "after"} {
		deliverytest.Eventually(t, event+" is sent", func() bool { return b.State(t, webhook.Kind, event, "d") == deliveries.StateQueued })
	}
}

// A 410 from before a resumption, applied after it, does not suspend the endpoint again.
// A later 410 does. Deliveries that were deferred during the suspension put no hold on
// the endpoint.
func TestResumeOutlivesLateOutcomes(t *testing.T) {
	t.Parallel()
	b := bench(t)
	deliverytest.Start(t, b.Schedule(t))
	far := b.Now().Add(time.Hour)
	gone := func(event string, at time.Time) *record.Attempt {
		a := today(b, event, "d", deliveries.OutcomeFailed, 0, 1, far)
		a.At, a.HTTPStatus = at, 410
		return a
	}
	before := b.Now()
	applied(t, b, gone("first", before))
	if s := standing(t, b, "d"); s.SuspendedReason != deliveries.SuspendedGone {
		t.Fatalf("it stands %+v", s)
	}
	if _, _, err := b.Store.Resume(t.Context(), deliverytest.Actor, webhook.Kind, "d", b.Now(), nil); err != nil {
		t.Fatal(err)
	}
	put := today(b, "put-off", "d", deliveries.OutcomeDeferred, 0, 1, far)
	put.Reason = deliveries.ReasonSuspended
	applied(t, b, gone("late", before.Add(time.Millisecond)), put)
	if s := standing(t, b, "d"); !s.SuspendedAt.IsZero() || !s.HoldUntil.IsZero() {
		t.Errorf("after what came late it stands %+v", s)
	}
	b.Advance(time.Minute)
	applied(t, b, gone("again", b.Now()))
	if s := standing(t, b, "d"); s.SuspendedReason != deliveries.SuspendedGone {
		t.Errorf("after another 410 it stands %+v", s)
	}
}
