package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/sinks/delivery"
)

// What operators do with deliveries. Each is a function of the database alone: a
// running schedule and its workers find what was changed within a second.

const (
	// atOnce is how many deliveries change under one lock of their destination:
	// the schedule waits for it with the outcomes of everybody.
	atOnce = 2000
	// resumeAfter lets the workers, which ask once a second, learn first that the
	// destination is resumed: they would put off what came sooner.
	resumeAfter = 2 * time.Second
)

// Reasons of a suspension.
const (
	SuspendedGone     = "gone"     // it answered 410
	SuspendedFailing  = "failing"  // nothing but failures for five days
	SuspendedOperator = "operator" // somebody said so
)

// States of a delivery that was tried or put off at least once. One that never
// was is on the topic alone.
var States = []string{stateWaiting, stateQueued, stateDelivered, stateNeedsOperator, stateExhausted}

// Retryable are the states from which an operator can have a delivery sent again.
var Retryable = []string{stateWaiting, stateNeedsOperator, stateExhausted}

// RefusedError says why an operation is refused, in words for the operator who
// asked for it. Nothing was changed.
type RefusedError struct{ Message string }

// Error is the message.
func (e *RefusedError) Error() string { return e.Message }

func refused(format string, args ...any) error {
	return &RefusedError{Message: fmt.Sprintf(format, args...)}
}

// Standing is what the schedule knows of a destination.
type Standing struct {
	Kind          delivery.Kind
	DestinationID string
	// Deliveries by state.
	Waiting, Queued, NeedsOperator, Exhausted int64
	// Oldest event that is waiting, queued or needs an operator; zero: none.
	Oldest time.Time
	// FailingSince is the first failure after the last success; zero: not failing.
	FailingSince time.Time
	// HoldUntil is until when nothing is sent; in the past: one at a time until
	// one succeeds; zero: not held.
	HoldUntil time.Time
	// SuspendedAt is when sending ended until somebody resumes it, and why; zero:
	// not suspended.
	SuspendedAt     time.Time
	SuspendedReason string
}

// Standings are those of all destinations that ever had an outcome or were
// suspended, by kind and id.
func Standings(ctx context.Context, pool *pgxpool.Pool) ([]Standing, error) {
	// In three parts, one for each partial index of the deliveries.
	rows, err := pool.Query(ctx, `
		WITH open AS (
			SELECT kind, destination_id, state, count(*) AS n, min(occurred_at) AS oldest FROM deliveries WHERE state = 'waiting' GROUP BY 1, 2, 3
			UNION ALL
			SELECT kind, destination_id, state, count(*), min(occurred_at) FROM deliveries WHERE state = 'queued' GROUP BY 1, 2, 3
			UNION ALL
			SELECT kind, destination_id, state, count(*), min(occurred_at) FROM deliveries WHERE state IN ('needs_operator', 'exhausted') GROUP BY 1, 2, 3
		), counts AS (
			SELECT kind, destination_id, sum(n) FILTER (WHERE state = 'waiting') AS waiting, sum(n) FILTER (WHERE state = 'queued') AS queued,
				sum(n) FILTER (WHERE state = 'needs_operator') AS needs_operator, sum(n) FILTER (WHERE state = 'exhausted') AS exhausted,
				min(oldest) FILTER (WHERE state <> 'exhausted') AS oldest
			FROM open GROUP BY 1, 2
		)
		SELECT kind, destination_id, coalesce(c.waiting, 0)::bigint, coalesce(c.queued, 0)::bigint, coalesce(c.needs_operator, 0)::bigint,
			coalesce(c.exhausted, 0)::bigint, c.oldest, d.failing_since, d.hold_until, d.suspended_at, coalesce(d.suspended_reason, '')
		FROM delivery_destinations d LEFT JOIN counts c USING (kind, destination_id) ORDER BY 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("reading what the schedule knows of destinations: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Standing, err error) {
		var oldest, failing, hold, suspended *time.Time
		err = row.Scan(&s.Kind, &s.DestinationID, &s.Waiting, &s.Queued, &s.NeedsOperator, &s.Exhausted, &oldest, &failing, &hold, &suspended, &s.SuspendedReason)
		s.Oldest, s.FailingSince, s.HoldUntil, s.SuspendedAt = timeOf(oldest), timeOf(failing), timeOf(hold), timeOf(suspended)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what the schedule knows of destinations: %w", err)
	}
	return out, nil
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// Suspend ends the sending to a webhook endpoint, within a second, until it is
// resumed; what waits for it is kept for thirty days. One that is suspended
// already keeps the time and reason: changed is false then. now is the service's
// clock. An ERP is a RefusedError.
func Suspend(ctx context.Context, pool *pgxpool.Pool, kind delivery.Kind, id string, now time.Time) (at time.Time, reason string, changed bool, err error) {
	if kind != delivery.KindWebhook {
		return time.Time{}, "", false, refused("an ERP is never suspended: every payment has to reach it; while it fails, its confirmations wait and are tried again by themselves")
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO delivery_destinations (kind, destination_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, string(kind), id); err != nil {
			return err
		}
		s, err := lockDestination(ctx, tx, kind, id)
		if err != nil {
			return err
		}
		if at, reason, changed = s.SuspendedAt, s.SuspendedReason, s.SuspendedAt.IsZero(); !changed {
			return nil
		}
		at, reason = now, SuspendedOperator
		_, err = tx.Exec(ctx, `UPDATE delivery_destinations SET suspended_at = $3, suspended_reason = $4 WHERE kind = $1 AND destination_id = $2`,
			string(kind), id, at, reason)
		return err
	})
	if err != nil {
		return time.Time{}, "", false, fmt.Errorf("suspending a destination: %w", err)
	}
	return at, reason, changed, nil
}

// Progress is told how many of how many deliveries were changed so far.
type Progress func(done, total int)

// Resume lets a destination have its deliveries again: it ends a suspension and a
// hold, forgets since when it has been failing, and makes all that waits due at
// once. was is how it stood before; due is how many waited. now is the service's
// clock. It may be broken off and repeated: a suspension ends last.
func Resume(ctx context.Context, pool *pgxpool.Pool, kind delivery.Kind, id string, now time.Time, told Progress) (was Standing, due int, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		was, err = lockDestination(ctx, tx, kind, id)
		return err
	})
	if err == nil {
		due, err = makeDue(ctx, pool, kind, id, stateWaiting, now, told, nil)
	}
	if err == nil {
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := lockDestinations(ctx, tx, []string{string(kind)}, []string{id}); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `
				UPDATE delivery_destinations SET suspended_at = NULL, suspended_reason = NULL, resumed_at = $4, failing_since = NULL, hold_until = NULL, next_due_at = $3
				WHERE kind = $1 AND destination_id = $2`, string(kind), id, now.Add(resumeAfter), now)
			return err
		})
	}
	if err != nil {
		return Standing{}, due, fmt.Errorf("resuming a destination: %w", err)
	}
	return was, due, nil
}

// Delivery is a delivery as its row has it.
type Delivery struct {
	ID            string
	Kind          delivery.Kind
	DestinationID string
	EventID       string
	Event         string
	ApplicationID string
	TenantID      string
	SessionID     string
	Live          bool
	OccurredAt    time.Time // of the event
	State         string
	Attempts      int // calls made
	// FirstAttemptAt is zero before the first call, NextAttemptAt unless it waits.
	FirstAttemptAt, LastOutcomeAt, NextAttemptAt time.Time
	// HTTPStatus and Reason of the last outcome; 0 and empty: none.
	HTTPStatus int
	Reason     string
	// Sendable says that the bytes to send are kept: not those of what was
	// delivered.
	Sendable bool
}

const deliveryColumns = `d.delivery_id, d.kind, d.destination_id, d.event_id, d.event, d.application_id, d.tenant_id, d.session_id, d.livemode, d.occurred_at,
	d.state, d.attempts, d.first_attempt_at, d.last_outcome_at, d.next_attempt_at, coalesce(d.http_status, 0), coalesce(d.reason, ''), d.body IS NOT NULL`

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var first, next *time.Time
	err = row.Scan(&d.ID, &d.Kind, &d.DestinationID, &d.EventID, &d.Event, &d.ApplicationID, &d.TenantID, &d.SessionID, &d.Live, &d.OccurredAt,
		&d.State, &d.Attempts, &first, &d.LastOutcomeAt, &next, &d.HTTPStatus, &d.Reason, &d.Sendable)
	d.OccurredAt, d.LastOutcomeAt = d.OccurredAt.UTC(), d.LastOutcomeAt.UTC()
	d.FirstAttemptAt, d.NextAttemptAt = timeOf(first), timeOf(next)
	return d, err
}

// keptDays are the days that have a table of deliveries.
const keptDays = `SELECT to_date(right(relid::text, 8), 'YYYYMMDD') AS day FROM pg_partition_tree('deliveries') WHERE isleaf`

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// find is a delivery by its id. The tables are by day first, which the id does
// not tell: one look into the index of each, which LIMIT makes sure of.
func find(ctx context.Context, q querier, id string) (Delivery, error) {
	rows, err := q.Query(ctx, `
		SELECT `+deliveryColumns+` FROM (`+keptDays+`) k
		CROSS JOIN LATERAL (SELECT * FROM deliveries WHERE occurred_on = k.day AND delivery_id = $1 LIMIT 1) d`, id)
	if err != nil {
		return Delivery{}, err
	}
	d, err := pgx.CollectExactlyOneRow(rows, scanDelivery)
	if errors.Is(err, pgx.ErrNoRows) {
		return Delivery{}, refused("no delivery has this id: either it was not tried yet, or its event is more than %d days old; `quittance deliveries list` shows the others", keepDays)
	}
	return d, err
}

// Filter says which deliveries to list; what is empty does not matter.
type Filter struct {
	Kind                                           delivery.Kind
	DestinationID, EventID, Event, TenantID, State string
	// Since and Until bound the time of the event, the first inclusive.
	Since, Until time.Time
	// After is the id of the last delivery of the list before.
	After string
	// Limit is how many at most, at least 1.
	Limit int
}

// ListDeliveries lists deliveries, those of the newest events first. An After
// that nobody knows is a RefusedError.
func ListDeliveries(ctx context.Context, pool *pgxpool.Pool, f Filter) ([]Delivery, error) {
	var where []string
	var args []any
	and := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	for column, value := range map[string]string{
		"kind": string(f.Kind), "destination_id": f.DestinationID, "event_id": f.EventID, "event": f.Event, "tenant_id": f.TenantID,
	} {
		if value != "" {
			and("d."+column+" = ?", value)
		}
	}
	if f.State != "" {
		if !slices.Contains(States, f.State) {
			return nil, refused("%q is no state of a delivery; there are: %s", f.State, strings.Join(States, ", "))
		}
		and("d.state = '" + f.State + "'") // a constant, for the partial indexes
	}
	if !f.Since.IsZero() {
		and("d.occurred_at >= ?", f.Since)
	}
	until := f.Until
	if !until.IsZero() {
		and("d.occurred_at < ?", until)
	}
	if f.After != "" {
		last, err := find(ctx, pool, f.After)
		if err != nil {
			return nil, fmt.Errorf("listing deliveries: %w", err)
		}
		and("(d.occurred_at, d.delivery_id) < (?, ?)", last.OccurredAt, last.ID)
		if until.IsZero() || last.OccurredAt.Before(until) {
			until = last.OccurredAt
		}
	}
	days, err := daysOf(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("listing deliveries: %w", err)
	}
	// Day by day, so that the newest do not wait for a look at all there are.
	var out []Delivery
	for _, on := range days {
		if !until.IsZero() && on.After(until) || !f.Since.IsZero() && !on.AddDate(0, 0, 1).After(f.Since) {
			continue
		}
		conditions := append([]string{fmt.Sprintf("d.occurred_on = '%s'", on.Format(time.DateOnly))}, where...)
		rows, err := pool.Query(ctx, fmt.Sprintf(`SELECT %s FROM deliveries d WHERE %s ORDER BY d.occurred_at DESC, d.delivery_id DESC LIMIT %d`,
			deliveryColumns, strings.Join(conditions, " AND "), f.Limit-len(out)), args...)
		if err != nil {
			return nil, fmt.Errorf("listing deliveries: %w", err)
		}
		found, err := pgx.CollectRows(rows, scanDelivery)
		if err != nil {
			return nil, fmt.Errorf("listing deliveries: %w", err)
		}
		if out = append(out, found...); len(out) >= f.Limit {
			break
		}
	}
	return out, nil
}

// daysOf are the days that have deliveries, the newest first.
func daysOf(ctx context.Context, pool *pgxpool.Pool) ([]time.Time, error) {
	rows, err := pool.Query(ctx, keptDays+` ORDER BY day DESC`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

// Attempt is a call that was made.
type Attempt struct {
	Number   int // from 1
	At       time.Time
	Outcome  delivery.Outcome
	Duration time.Duration
	// HTTPStatus is 0 when there was no answer; Reason says why then.
	HTTPStatus int
	Reason     string
	// Answer is the beginning of what it answered, as it came: for a terminal
	// only with its control characters made harmless.
	Answer string
}

// ShowDelivery is a delivery with all calls that were made, the oldest first. An
// id that nobody knows is a RefusedError.
func ShowDelivery(ctx context.Context, pool *pgxpool.Pool, id string) (Delivery, []Attempt, error) {
	d, err := find(ctx, pool, id)
	if err != nil {
		return Delivery{}, nil, fmt.Errorf("reading a delivery: %w", err)
	}
	rows, err := pool.Query(ctx, `
		SELECT attempt, at, outcome, duration_ms, coalesce(http_status, 0), coalesce(reason, ''), coalesce(answer, '')
		FROM delivery_attempts WHERE occurred_on = $1 AND delivery_id = $2 ORDER BY at, attempt`, day(d.OccurredAt), id)
	if err != nil {
		return Delivery{}, nil, fmt.Errorf("reading the attempts of a delivery: %w", err)
	}
	attempts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Attempt, err error) {
		var ms int64
		err = row.Scan(&a.Number, &a.At, &a.Outcome, &ms, &a.HTTPStatus, &a.Reason, &a.Answer)
		a.At, a.Duration = a.At.UTC(), time.Duration(ms)*time.Millisecond
		return a, err
	})
	if err != nil {
		return Delivery{}, nil, fmt.Errorf("reading the attempts of a delivery: %w", err)
	}
	return d, attempts, nil
}

// Retried is what became of a delivery that is to be sent again.
type Retried struct {
	Delivery
	// OnItsWay says that it was on the topic already, and nothing had to be done.
	OnItsWay bool
	// HoldUntil is set when its destination is sent nothing until then.
	HoldUntil time.Time
}

// Retry makes one more call due now, whatever the schedule had decided. Outcomes
// that come late from an earlier round no longer decide, except that it was
// accepted. now is the service's clock. RefusedErrors: it was accepted, its
// endpoint is suspended, its bytes are gone, nobody knows it.
func Retry(ctx context.Context, pool *pgxpool.Pool, id string, now time.Time) (Retried, error) {
	var out Retried
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		d, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		at, err := lockDestination(ctx, tx, d.Kind, d.DestinationID)
		if err != nil {
			return err
		}
		if d, err = find(ctx, tx, id); err != nil { // as it is now that nobody else changes it
			return err
		}
		out = Retried{Delivery: d}
		switch {
		case d.State == stateDelivered:
			return refused("was accepted at %s; `quittance replay` sends it again", moment(d.LastOutcomeAt))
		case !at.SuspendedAt.IsZero():
			return suspended(at)
		case d.State == stateQueued:
			out.OnItsWay = true
			return nil
		case !d.Sendable:
			return refused("what was to be sent is no longer kept; `quittance replay` sends the event again")
		}
		if at.HoldUntil.After(now) {
			out.HoldUntil = at.HoldUntil
		}
		out.State, out.NextAttemptAt = stateWaiting, now
		_, err = sendNow(ctx, tx, d.Kind, d.DestinationID, day(d.OccurredAt), []string{id}, []string{d.State}, now)
		return err
	})
	if err != nil {
		return Retried{}, fmt.Errorf("retrying a delivery: %w", err)
	}
	return out, nil
}

// RetryAll does that with all deliveries of a destination that are in a state,
// and says how many. It may be broken off: what was done stays. now is the
// service's clock. A RefusedError: the endpoint is suspended, or the state is not
// one of Retryable.
func RetryAll(ctx context.Context, pool *pgxpool.Pool, kind delivery.Kind, id, state string, now time.Time, told Progress) (int, error) {
	if !slices.Contains(Retryable, state) {
		return 0, refused("deliveries that are %s cannot be retried; those that can are: %s", state, strings.Join(Retryable, ", "))
	}
	n, err := makeDue(ctx, pool, kind, id, state, now, told, func(at Standing) error {
		if !at.SuspendedAt.IsZero() {
			return suspended(at)
		}
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("retrying deliveries: %w", err)
	}
	return n, nil
}

func suspended(at Standing) error {
	return refused("the endpoint is suspended since %s: nothing is sent to it; `quittance endpoints resume %s` sends all that waits", moment(at.SuspendedAt), at.DestinationID)
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// lockDestination is how a destination stands, which nobody else changes then;
// the zero Standing but for its name when it has none.
func lockDestination(ctx context.Context, tx pgx.Tx, kind delivery.Kind, id string) (Standing, error) {
	s := Standing{Kind: kind, DestinationID: id}
	if err := lockDestinations(ctx, tx, []string{string(kind)}, []string{id}); err != nil {
		return s, err
	}
	var failing, hold, at *time.Time
	err := tx.QueryRow(ctx, `SELECT failing_since, hold_until, suspended_at, coalesce(suspended_reason, '') FROM delivery_destinations WHERE kind = $1 AND destination_id = $2`,
		string(kind), id).Scan(&failing, &hold, &at, &s.SuspendedReason)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return s, fmt.Errorf("reading a destination: %w", err)
	}
	s.FailingSince, s.HoldUntil, s.SuspendedAt = timeOf(failing), timeOf(hold), timeOf(at)
	return s, nil
}

// makeDue makes deliveries of a destination due that are in a state now, the
// oldest events first, a part at a time: so the schedule, which locks the
// destination to apply outcomes, waits for a part at most. allowed may end it.
func makeDue(ctx context.Context, pool *pgxpool.Pool, kind delivery.Kind, id, state string, now time.Time, told Progress, allowed func(Standing) error) (int, error) {
	rows, err := pool.Query(ctx, `
		SELECT occurred_on, delivery_id FROM deliveries WHERE kind = $1 AND destination_id = $2 AND state = '`+state+`' AND body IS NOT NULL
		ORDER BY occurred_at, delivery_id`, string(kind), id)
	if err != nil {
		return 0, err
	}
	var on []time.Time
	var ids []string
	var d time.Time
	var name string
	if _, err := pgx.ForEachRow(rows, []any{&d, &name}, func() error { on, ids = append(on, d), append(ids, name); return nil }); err != nil {
		return 0, err
	}
	done, total := 0, len(ids)
	for begin, end := 0, 0; ; begin = end {
		end = ofOneDay(on, begin)
		var n int
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			at, err := lockDestination(ctx, tx, kind, id)
			if err == nil && allowed != nil {
				err = allowed(at)
			}
			if err != nil || begin == end {
				return err
			}
			n, err = sendNow(ctx, tx, kind, id, on[begin], ids[begin:end], []string{state}, now)
			return err
		})
		if err != nil {
			return done, err
		}
		if done += n; told != nil {
			told(end, total)
		}
		if end == total {
			return done, nil
		}
	}
}

// ofOneDay is where a part that begins there ends: atOnce of one day at most,
// whose table alone is looked at then.
func ofOneDay(on []time.Time, begin int) (end int) {
	for end = begin; end < len(on) && end-begin < atOnce && on[end].Equal(on[begin]); {
		end++
	}
	return end
}

// sendNow makes deliveries of one destination, which is locked, and one day due
// now if they are still in one of the states. The round goes up: what an earlier
// one says of them late is history, also while they wait.
func sendNow(ctx context.Context, tx pgx.Tx, kind delivery.Kind, id string, on time.Time, ids, states []string, now time.Time) (int, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE deliveries SET state = 'waiting', round = round + 1, next_attempt_at = $3, lease_until = NULL
		WHERE occurred_on = $1 AND delivery_id = ANY($2) AND state = ANY($4)`, on, ids, now, states)
	if err != nil {
		return 0, fmt.Errorf("making deliveries due: %w", err)
	}
	if _, err := tx.Exec(ctx, `UPDATE delivery_destinations SET next_due_at = least(next_due_at, $3) WHERE kind = $1 AND destination_id = $2`, string(kind), id, now); err != nil {
		return 0, fmt.Errorf("making deliveries due: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
