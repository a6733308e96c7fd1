package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// Codes of refused operations (operation.Error). In brackets: their Args.
const (
	CodeUnknown        = "delivery.unknown"            // no delivery has this id (days: how long deliveries are kept)
	CodeAccepted       = "delivery.accepted"           // the destination has accepted it (at)
	CodeBodyGone       = "delivery.body_gone"          // the bytes to send are no longer kept
	CodeStateUnknown   = "delivery.state_unknown"      // no such state (states)
	CodeNotRetryable   = "delivery.not_retryable"      // deliveries in this state cannot be retried (state, states)
	CodeSuspended      = "destination.suspended"       // nothing is sent to it (kind, destination, at)
	CodeNeverSuspended = "destination.never_suspended" // this kind is never suspended (kind)
	CodeNoRecovery     = "recovery.unknown"            // no recovery has this id, or the destination never had one
	CodeBehind         = "replay.behind"               // the schedule has not applied all outcomes
)

// Delivery is a delivery's row.
type Delivery struct {
	ID            string
	Kind          Kind
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
	// FirstAttemptAt is zero before the first call, NextAttemptAt unless the
	// delivery waits.
	FirstAttemptAt, LastOutcomeAt, NextAttemptAt time.Time
	// HTTPStatus and Reason of the last outcome; 0 and empty: none.
	HTTPStatus int
	Reason     string
	// Sendable: the bytes to send are kept. Those of an accepted delivery are not.
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

// daysKept are those, the newest first.
func (s *Store) daysKept(ctx context.Context) ([]time.Time, error) {
	rows, err := s.pool.Query(ctx, keptDays+` ORDER BY day DESC`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// find is a delivery by its id. The id does not tell the day, so it looks once
// into the index of each daily table; LIMIT forces that plan.
func find(ctx context.Context, q querier, id string) (Delivery, error) {
	rows, err := q.Query(ctx, `
		SELECT `+deliveryColumns+` FROM (`+keptDays+`) k
		CROSS JOIN LATERAL (SELECT * FROM deliveries WHERE occurred_on = k.day AND delivery_id = $1 LIMIT 1) d`, id)
	if err != nil {
		return Delivery{}, err
	}
	d, err := pgx.CollectExactlyOneRow(rows, scanDelivery)
	if errors.Is(err, pgx.ErrNoRows) {
		return Delivery{}, operation.Refuse(CodeUnknown, "id", operation.Args{"days": keepDays})
	}
	return d, err
}

// Filter selects deliveries; empty fields select all.
type Filter struct {
	Kind                                           Kind
	DestinationID, EventID, Event, TenantID, State string
	// Since and Until bound the time of the event; Since is inclusive.
	Since, Until time.Time
	// After is the id of the last delivery of the previous list.
	After string
	// Limit is how many at most, at least 1.
	Limit int
}

// List lists deliveries, those of the newest events first. An unknown State or
// After is refused.
func (s *Store) List(ctx context.Context, f Filter) ([]Delivery, error) {
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
			return nil, operation.Refuse(CodeStateUnknown, "state", operation.Args{"states": States})
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
		last, err := find(ctx, s.pool, f.After)
		if err != nil {
			return nil, fmt.Errorf("listing deliveries: %w", err)
		}
		and("(d.occurred_at, d.delivery_id) < (?, ?)", last.OccurredAt, last.ID)
		if until.IsZero() || last.OccurredAt.Before(until) {
			until = last.OccurredAt
		}
	}
	days, err := s.daysKept(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing deliveries: %w", err)
	}
	// Day by day, so that the newest do not wait for a search of all days.
	var out []Delivery
	for _, on := range days {
		if !until.IsZero() && on.After(until) || !f.Since.IsZero() && !on.AddDate(0, 0, 1).After(f.Since) {
			continue
		}
		conditions := append([]string{fmt.Sprintf("d.occurred_on = '%s'", on.Format(time.DateOnly))}, where...)
		rows, err := s.pool.Query(ctx, fmt.Sprintf(`SELECT %s FROM deliveries d WHERE %s ORDER BY d.occurred_at DESC, d.delivery_id DESC LIMIT %d`,
			deliveryColumns, strings.Join(conditions, " AND "), f.Limit-len(out)), args...)
		var found []Delivery
		if err == nil {
			found, err = pgx.CollectRows(rows, scanDelivery)
		}
		if err != nil {
			return nil, fmt.Errorf("listing deliveries: %w", err)
		}
		if out = append(out, found...); len(out) >= f.Limit {
			break
		}
	}
	return out, nil
}

// Attempt is a call that was made.
type Attempt struct {
	Number   int // from 1
	At       time.Time
	Outcome  Outcome
	Duration time.Duration
	// HTTPStatus is 0 when there was no answer; Reason says why.
	HTTPStatus int
	Reason     string
	// Answer is the beginning of the answer's body. It comes from a stranger: make
	// control characters harmless before a terminal shows it.
	Answer string
}

// Show is a delivery with all calls that were made, the oldest first. An unknown
// id is refused.
func (s *Store) Show(ctx context.Context, id string) (Delivery, []Attempt, error) {
	d, err := find(ctx, s.pool, id)
	if err != nil {
		return Delivery{}, nil, fmt.Errorf("reading a delivery: %w", err)
	}
	rows, err := s.pool.Query(ctx, `
		SELECT attempt, at, outcome, duration_ms, coalesce(http_status, 0), coalesce(reason, ''), coalesce(answer, '')
		FROM delivery_attempts WHERE occurred_on = $1 AND delivery_id = $2 ORDER BY at, attempt`, day(d.OccurredAt), id)
	var attempts []Attempt
	if err == nil {
		attempts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Attempt, err error) {
			var ms int64
			err = row.Scan(&a.Number, &a.At, &a.Outcome, &ms, &a.HTTPStatus, &a.Reason, &a.Answer)
			a.At, a.Duration = a.At.UTC(), time.Duration(ms)*time.Millisecond
			return a, err
		})
	}
	if err != nil {
		return Delivery{}, nil, fmt.Errorf("reading the attempts of a delivery: %w", err)
	}
	return d, attempts, nil
}
