package deliveries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/keyset"
	"quittance/internal/operation"
)

// Codes of refused operations (operation.Error). Their Args are in brackets.
const (
	CodeUnknown        = "delivery.unknown"            // no delivery has this id (days: for which deliveries are kept)
	CodeAccepted       = "delivery.accepted"           // the destination has accepted it (at)
	CodeSuperseded     = "delivery.superseded"         // a later event of its payment was accepted
	CodeBodyGone       = "delivery.body_gone"          // the bytes to send are no longer kept
	CodeStateUnknown   = "delivery.state_unknown"      // no such state (states)
	CodeNotRetryable   = "delivery.not_retryable"      // deliveries in this state cannot be retried (state, states)
	CodeSuspended      = "destination.suspended"       // nothing is sent to it (kind, destination, at)
	CodeRemoved        = "destination.removed"         // it is configured no more (kind, destination)
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
	// FirstAttemptAt is zero before the first call. NextAttemptAt is zero unless the
	// delivery is waiting.
	FirstAttemptAt, LastOutcomeAt, NextAttemptAt time.Time
	// HTTPStatus and Reason of the last outcome; 0 and empty: none.
	HTTPStatus int
	Reason     string
	// URL is the delivery's own address; empty for those that go to the destination's. That of
	// a message to a person has its middle hidden.
	URL string
	// Sendable is true while the bytes to send are stored. Those of an accepted
	// delivery are deleted.
	Sendable bool
	// Suspended is true while nothing is sent to the destination. HoldUntil is the end of its
	// hold; zero: not on hold.
	Suspended bool
	HoldUntil time.Time
}

// NextCall returns when the delivery may be sent next: at NextAttemptAt, or when the hold of its destination ends.
// A time that is past means now. It is zero unless the delivery waits for a call: nobody makes one to a suspended
// destination.
func (d Delivery) NextCall() time.Time {
	switch {
	case d.NextAttemptAt.IsZero() || d.Suspended:
		return time.Time{}
	case d.HoldUntil.After(d.NextAttemptAt):
		return d.HoldUntil
	}
	return d.NextAttemptAt
}

// deliveryColumns are the columns of Delivery in the order of its fields. An EXISTS in place of the two queries of the
// destination may be planned as one that reads all destinations.
const deliveryColumns = `d.delivery_id, d.kind, d.destination_id, d.event_id, d.event, d.application_id, d.tenant_id, d.session_id, d.livemode, d.occurred_at,
	d.state, d.attempts, coalesce(d.first_attempt_at, '0001-01-01Z'), d.last_outcome_at, coalesce(d.next_attempt_at, '0001-01-01Z'), coalesce(d.http_status, 0), coalesce(d.reason, ''), coalesce(d.url, ''), d.body IS NOT NULL,
	coalesce((SELECT t.suspended_at IS NOT NULL FROM delivery_destinations t WHERE t.kind = d.kind AND t.destination_id = d.destination_id), false),
	coalesce((SELECT t.hold_until FROM delivery_destinations t WHERE t.kind = d.kind AND t.destination_id = d.destination_id), '0001-01-01Z')`

// keptDays selects the days that have a table of deliveries.
const keptDays = `SELECT to_date(right(relid::text, 8), 'YYYYMMDD') AS day FROM pg_partition_tree('deliveries') WHERE isleaf`

// daysKept returns the days that have a table of deliveries, the newest first.
func (s *Store) daysKept(ctx context.Context) ([]time.Time, error) {
	rows, _ := s.pool.Query(ctx, keptDays+` ORDER BY day DESC`) // the rows carry its error
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

// find returns a delivery by its id. The id does not contain the day, so find looks
// once into the index of each daily table. LIMIT forces that plan.
func find(ctx context.Context, q querier, id string) (Delivery, error) {
	found, err := collect[Delivery](ctx, q, "finding a delivery", `
		SELECT `+deliveryColumns+` FROM (`+keptDays+`) k
		CROSS JOIN LATERAL (SELECT * FROM deliveries WHERE occurred_on = k.day AND delivery_id = $1 LIMIT 1) d`, id)
	switch {
	case err != nil:
		return Delivery{}, err
	case len(found) == 0:
		return Delivery{}, operation.Refuse(CodeUnknown, "id", operation.Args{"days": KeepDays})
	}
	return found[0], nil
}

// Filter selects deliveries; empty fields select all.
type Filter struct {
	Kind                                           Kind
	DestinationID, EventID, Event, TenantID, State string
	// SessionIDs are the sessions that the deliveries are about; nil selects all sessions.
	SessionIDs []string
	// Since and Until bound the time of the event; Since is inclusive.
	Since, Until time.Time
	// After is the id of the last delivery of the previous list.
	After string
	// Limit is the largest number of deliveries to return, at least 1.
	Limit int
}

// List returns deliveries, those of the newest events first. An unknown State or
// After is refused.
func (s *Store) List(ctx context.Context, f Filter) ([]Delivery, error) {
	const doing = "listing deliveries"
	if f.After == "" {
		return s.list(ctx, doing, f, keyed{})
	}
	last, err := find(ctx, s.pool, f.After)
	if err != nil {
		return nil, failed(doing, err)
	}
	return s.list(ctx, doing, f, keyed{ID: last.ID, At: last.OccurredAt})
}

// Page returns deliveries, those of the newest events first, and the cursor of the next page; empty for none. cursor is
// that of the page before, empty for the first one; that of another list, or of other conditions, is refused
// (keyset.List). An unknown State is refused. After is not used.
func (s *Store) Page(ctx context.Context, f Filter, cursor string) (list []Delivery, next string, err error) {
	of := keyset.Of("deliveries", f.Kind, f.DestinationID, f.EventID, f.Event, f.TenantID, f.State, f.SessionIDs, f.Since, f.Until)
	var last keyed
	key, err := of.Key(cursor, 2)
	if err != nil {
		return nil, "", err
	}
	if key != nil {
		last.ID = key[1]
		if last.At, err = time.Parse(time.RFC3339Nano, key[0]); err != nil {
			return nil, "", keyset.Malformed()
		}
	}
	size := f.Limit
	f.Limit++ // one more shows whether there is a further page
	if list, err = s.list(ctx, "listing deliveries", f, last); err != nil || len(list) <= size {
		return list, "", err
	}
	list = list[:size]
	end := list[size-1]
	return list, of.Cursor(end.OccurredAt.UTC().Format(time.RFC3339Nano), end.ID), nil
}

// Retryables returns the ids of the deliveries that a filter selects and that can be sent again, those of the oldest events
// first, Limit at most. Without a State they are those in any of Retryable; another one is refused. After is not used.
func (s *Store) Retryables(ctx context.Context, f Filter) ([]string, error) {
	const doing = "listing deliveries to send again"
	states := Retryable
	if f.State != "" {
		if !slices.Contains(Retryable, f.State) {
			return nil, operation.Refuse(CodeNotRetryable, "state", operation.Args{"state": f.State, "states": Retryable})
		}
		states = []string{f.State}
	}
	days, err := s.daysKept(ctx)
	if err != nil {
		return nil, failed(doing, err)
	}
	var found []keyed
	for _, on := range slices.Backward(days) {
		if !f.Until.IsZero() && !on.Before(f.Until) || !f.Since.IsZero() && !on.AddDate(0, 0, 1).After(f.Since) {
			continue
		}
		var ofDay []keyed
		for _, state := range states { // one query a state: each has an index
			f.State = state
			where := f.where()
			where.texts = append(where.texts, "d.body IS NOT NULL")
			list, err := collect[keyed](ctx, s.pool, doing, where.oldest(on, f.Limit), where.args...)
			if err != nil {
				return nil, err
			}
			ofDay = append(ofDay, list...)
		}
		slices.SortFunc(ofDay, func(a, b keyed) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
		if found = append(found, ofDay...); len(found) >= f.Limit {
			found = found[:f.Limit]
			break
		}
	}
	ids := make([]string, len(found))
	for i, k := range found {
		ids[i] = k.ID
	}
	return ids, nil
}

// list returns the deliveries that a filter selects, those of the newest events first, after the last one of the page before;
// its zero value stands for none.
func (s *Store) list(ctx context.Context, doing string, f Filter, last keyed) ([]Delivery, error) {
	if f.State != "" && !slices.Contains(States, f.State) {
		return nil, operation.Refuse(CodeStateUnknown, "state", operation.Args{"states": States})
	}
	where := f.where()
	until := f.Until
	if last.ID != "" {
		where.and("(d.occurred_at, d.delivery_id) < (?, ?)", last.At, last.ID)
		if until.IsZero() || last.At.Before(until) {
			until = last.At
		}
	}
	days, err := s.daysKept(ctx)
	if err != nil {
		return nil, failed(doing, err)
	}
	// One query a day: the newest deliveries need no search of all days.
	var out []Delivery
	for _, on := range days {
		if !until.IsZero() && on.After(until) || !f.Since.IsZero() && !on.AddDate(0, 0, 1).After(f.Since) {
			continue
		}
		found, err := collect[Delivery](ctx, s.pool, doing, where.query(on, f.Limit-len(out)), where.args...)
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) >= f.Limit {
			break
		}
	}
	return out, nil
}

// conditions are parts of a WHERE that are joined with AND, and the arguments that they name.
type conditions struct {
	texts []string
	args  []any
}

// and adds a condition; each ? in it stands for one of the values.
func (c *conditions) and(condition string, values ...any) {
	for _, v := range values {
		c.args = append(c.args, v)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(c.args)), 1)
	}
	c.texts = append(c.texts, condition)
}

// oldest returns the query of the keys of the oldest deliveries of a day, which has the arguments of the conditions.
func (c *conditions) oldest(on time.Time, limit int) string {
	parts := append([]string{fmt.Sprintf("d.occurred_on = '%s'", on.Format(time.DateOnly))}, c.texts...)
	return fmt.Sprintf(`SELECT d.occurred_on, d.delivery_id, d.occurred_at FROM deliveries d WHERE %s ORDER BY d.occurred_at, d.delivery_id LIMIT %d`, strings.Join(parts, " AND "), limit)
}

// query returns the query of the deliveries of a day, which has the arguments of the conditions.
func (c *conditions) query(on time.Time, limit int) string {
	parts := append([]string{fmt.Sprintf("d.occurred_on = '%s'", on.Format(time.DateOnly))}, c.texts...)
	return fmt.Sprintf(`SELECT %s FROM deliveries d WHERE %s ORDER BY d.occurred_at DESC, d.delivery_id DESC LIMIT %d`, deliveryColumns, strings.Join(parts, " AND "), limit)
}

// where returns the conditions of the filter's fields, except for After.
func (f Filter) where() *conditions {
	c := &conditions{}
	for column, value := range map[string]string{
		"kind": string(f.Kind), "destination_id": f.DestinationID, "event_id": f.EventID, "event": f.Event, "tenant_id": f.TenantID,
	} {
		if value != "" {
			c.and("d."+column+" = ?", value)
		}
	}
	if f.State != "" {
		c.and("d.state = '" + f.State + "'") // one of States, a constant for the partial indexes
	}
	if f.SessionIDs != nil {
		c.and("d.session_id = ANY(?)", f.SessionIDs)
	}
	if !f.Since.IsZero() {
		c.and("d.occurred_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		c.and("d.occurred_at < ?", f.Until)
	}
	return c
}

// Attempt is one call to the destination.
type Attempt struct {
	Number   int // from 1
	At       time.Time
	Outcome  Outcome
	Duration time.Duration
	// HTTPStatus is 0 when there was no answer. Reason then says why.
	HTTPStatus int
	Reason     string
	// Answer is the beginning of the answer's body. It is untrusted: escape control
	// characters before a terminal shows it.
	Answer string
}

// Show returns a delivery and its attempts, the oldest first. An unknown id is
// refused.
func (s *Store) Show(ctx context.Context, id string) (Delivery, []Attempt, error) {
	d, err := find(ctx, s.pool, id)
	if err != nil {
		return Delivery{}, nil, fmt.Errorf("reading a delivery: %w", err)
	}
	attempts, err := collect[Attempt](ctx, s.pool, "reading the attempts of a delivery", `
		SELECT attempt, at, outcome, duration_ms * interval '1 millisecond', coalesce(http_status, 0), coalesce(reason, ''), coalesce(answer, '')
		FROM delivery_attempts WHERE occurred_on = $1 AND delivery_id = $2 ORDER BY at, attempt`, day(d.OccurredAt), id)
	return d, attempts, err
}
