package deliveries

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"quittance/internal/kafka/consume"
	"quittance/schemas/record"
)

// failingFor is how long nothing but failures suspends a destination.
const failingFor = 5 * 24 * time.Hour

// Apply writes outcomes together with the moves of the positions in one
// transaction, or nothing. An outcome of an earlier round than its row's decides
// nothing, except that Delivered is final whenever it comes. Errors are consume.ErrMoved
// and those of Postgres; after one of those Apply may have written.
func (s *Store) Apply(ctx context.Context, outcomes []*record.Attempt, moves []consume.Move) error {
	occurred := make([]time.Time, len(outcomes))
	for i, o := range outcomes {
		occurred[i] = o.Delivery.OccurredAt
	}
	if err := s.ensureDays(ctx, occurred); err != nil {
		return err
	}
	return s.tx(ctx, "applying outcomes", func(tx pgx.Tx) error {
		if err := positions.Move(ctx, tx, moves); err != nil || len(outcomes) == 0 {
			return err
		}
		// Destinations first, as everywhere (lockDestinations).
		if err := s.upsertDestinations(ctx, tx, s.fold(outcomes)); err != nil {
			return err
		}
		if err := upsertDeliveries(ctx, tx, outcomes); err != nil {
			return err
		}
		if err := insertAttempts(ctx, tx, outcomes); err != nil {
			return err
		}
		return s.acceptConfirmations(ctx, tx, outcomes)
	})
}

// change is the effect of a batch on one destination.
type change struct {
	kind, id    string
	due         *time.Time // earliest next attempt
	succeeded   bool
	failing     *time.Time // first failure since the last success in the batch
	lastFailure *time.Time
	hold        *time.Time // nothing is to be sent until then
	gone        *time.Time // when it answered 410
}

// fold sums outcomes up by destination, in the order of lockDestinations.
func (s *Store) fold(outcomes []*record.Attempt) []*change {
	suspending := s.kinds.Names(func(r Registration) bool { return r.Suspends })
	byID := map[[2]string]*change{}
	for _, a := range outcomes {
		key := [2]string{a.Delivery.Kind, a.Delivery.DestinationID}
		c := byID[key]
		if c == nil {
			c = &change{kind: key[0], id: key[1]}
			byID[key] = c
		}
		switch Outcome(a.Outcome) {
		case OutcomeDelivered:
			c.succeeded, c.failing, c.lastFailure, c.hold = true, nil, nil, nil
		case OutcomeFailed, OutcomeExhausted, OutcomeNeedsOperator:
			if c.failing == nil {
				c.failing = &a.At
			}
			c.lastFailure = &a.At
			if a.HTTPStatus == http.StatusGone && slices.Contains(suspending, c.kind) {
				c.gone = &a.At
			}
		case OutcomeDeferred:
			switch a.Reason {
			case ReasonMailboxFull, ReasonRateLimited: // these say how much is waiting, not how the destination is
			case ReasonSuspended: // suspended_at holds it, and the suspension may be over by now
			default:
				c.hold = &a.NextAttemptAt
			}
		}
		if stateOf[Outcome(a.Outcome)] == StateWaiting && (c.due == nil || a.NextAttemptAt.Before(*c.due)) {
			c.due = &a.NextAttemptAt
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b *change) int { return strings.Compare(a.kind+"\x00"+a.id, b.kind+"\x00"+b.id) })
}

func (s *Store) upsertDestinations(ctx context.Context, tx pgx.Tx, changes []*change) error {
	n := len(changes)
	kinds, ids, succeeded := make([]string, n), make([]string, n), make([]bool, n)
	due, failing, last, hold, gone := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	for i, c := range changes {
		kinds[i], ids[i], succeeded[i] = c.kind, c.id, c.succeeded
		due[i], failing[i], last[i], hold[i], gone[i] = c.due, c.failing, c.lastFailure, c.hold, c.gone
	}
	if err := insertDestinations(ctx, tx, kinds, ids); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		WITH change AS (
			-- Failures up to the last resumption decide nothing: outcomes may be applied again.
			SELECT c.*, CASE WHEN c.succeeded THEN f.failing ELSE coalesce(d.failing_since, f.failing) END AS failing_since
			FROM unnest($1::text[], $2::text[], $3::bool[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[])
				AS c (kind, destination_id, succeeded, due, failing, last_failure, hold, gone)
			JOIN delivery_destinations d USING (kind, destination_id)
			CROSS JOIN LATERAL (SELECT CASE WHEN c.last_failure > coalesce(d.resumed_at, '-infinity') THEN greatest(c.failing, d.resumed_at) END AS failing) f
		)
		UPDATE delivery_destinations d SET
			next_due_at = least(d.next_due_at, c.due),
			failing_since = c.failing_since,
			hold_until = CASE WHEN c.hold IS NOT NULL THEN c.hold WHEN c.succeeded THEN NULL ELSE d.hold_until END,
			suspended_at = CASE
				WHEN d.suspended_at IS NOT NULL THEN d.suspended_at
				WHEN c.gone > coalesce(d.resumed_at, '-infinity') THEN c.gone
				WHEN c.kind = ANY($10) AND c.last_failure - c.failing_since >= $9::interval THEN c.last_failure END,
			suspended_reason = CASE
				WHEN d.suspended_at IS NOT NULL THEN d.suspended_reason
				WHEN c.gone > coalesce(d.resumed_at, '-infinity') THEN 'gone'
				WHEN c.kind = ANY($10) AND c.last_failure - c.failing_since >= $9::interval THEN 'failing' END
		FROM change c WHERE d.kind = c.kind AND d.destination_id = c.destination_id`,
		kinds, ids, succeeded, due, failing, last, hold, gone, failingFor, s.kinds.Names(func(r Registration) bool { return r.Suspends }))
	return failed("writing destinations", err)
}

// insertDestinations makes the rows that are missing, and locks them all.
func insertDestinations(ctx context.Context, tx pgx.Tx, kinds, ids []string) error {
	if _, err := tx.Exec(ctx, `
		INSERT INTO delivery_destinations (kind, destination_id)
		SELECT * FROM unnest($1::text[], $2::text[]) AS c (kind, destination_id)
		ORDER BY kind COLLATE "C", destination_id COLLATE "C"
		ON CONFLICT DO NOTHING`, kinds, ids); err != nil {
		return fmt.Errorf("writing destinations: %w", err)
	}
	return lockDestinations(ctx, tx, kinds, ids)
}

// columns of deliveries, as arrays for unnest.
type columns struct {
	on                                                       []time.Time
	id, kind, dest, event, name, app, tenant, session, state []string
	live                                                     []bool
	occurred, last                                           []time.Time
	attempts, round                                          []int32
	first, next                                              []zeronull.Timestamptz
	status                                                   []zeronull.Int4
	reason                                                   []zeronull.Text
	body                                                     [][]byte
}

func (c *columns) add(a *record.Attempt) {
	d := &a.Delivery
	c.on, c.id = append(c.on, day(d.OccurredAt)), append(c.id, d.DeliveryID)
	c.kind, c.dest = append(c.kind, d.Kind), append(c.dest, d.DestinationID)
	c.event, c.name = append(c.event, d.EventID), append(c.name, d.Event)
	c.app, c.tenant, c.session = append(c.app, d.ApplicationID), append(c.tenant, d.TenantID), append(c.session, d.SessionID)
	c.live, c.occurred, c.last = append(c.live, d.Livemode), append(c.occurred, d.OccurredAt), append(c.last, a.At)
	state := stateOf[Outcome(a.Outcome)]
	made := d.Attempt
	if Outcome(a.Outcome) == OutcomeDeferred {
		made-- // no call was made
	}
	c.state, c.attempts, c.round = append(c.state, state), append(c.attempts, made), append(c.round, d.Round)
	var next time.Time
	if state == StateWaiting {
		next = a.NextAttemptAt
	}
	c.first, c.next = append(c.first, zeronull.Timestamptz(d.FirstAttemptAt)), append(c.next, zeronull.Timestamptz(next))
	c.status, c.reason = append(c.status, zeronull.Int4(a.HTTPStatus)), append(c.reason, zeronull.Text(a.Reason))
	var body []byte
	if state != StateDelivered { // an operator may still send an exhausted delivery
		body = d.Body
	}
	c.body = append(c.body, body)
}

// upsertDeliveries applies outcomes in order. A statement can change a row only
// once, so several outcomes of one delivery go into successive statements.
func upsertDeliveries(ctx context.Context, tx pgx.Tx, outcomes []*record.Attempt) error {
	c, seen := &columns{}, map[string]bool{}
	for _, a := range outcomes {
		if seen[a.Delivery.DeliveryID] {
			if err := c.upsert(ctx, tx); err != nil {
				return err
			}
			c = &columns{}
			clear(seen)
		}
		seen[a.Delivery.DeliveryID] = true
		c.add(a)
	}
	return c.upsert(ctx, tx)
}

const insertDeliveries = `
		INSERT INTO deliveries AS d (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id,
			livemode, occurred_at, state, attempts, round, first_attempt_at, last_outcome_at, next_attempt_at, http_status, reason, body)
		SELECT * FROM unnest($1::date[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
			$10::bool[], $11::timestamptz[], $12::text[], $13::int[], $14::int[], $15::timestamptz[], $16::timestamptz[], $17::timestamptz[], $18::int[], $19::text[], $20::bytea[])`

// values of insertDeliveries.
func (c *columns) values() []any {
	return []any{
		c.on, c.id, c.kind, c.dest, c.event, c.name, c.app, c.tenant, c.session, c.live, c.occurred, c.state, c.attempts, c.round,
		c.first, c.last, c.next, c.status, c.reason, c.body,
	}
}

func (c *columns) upsert(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, insertDeliveries+`
		ON CONFLICT (occurred_on, delivery_id) DO UPDATE SET
			state = excluded.state, attempts = greatest(d.attempts, excluded.attempts), round = greatest(d.round, excluded.round),
			first_attempt_at = coalesce(d.first_attempt_at, excluded.first_attempt_at), last_outcome_at = excluded.last_outcome_at,
			next_attempt_at = excluded.next_attempt_at, lease_until = NULL, http_status = excluded.http_status, reason = excluded.reason, body = excluded.body
		WHERE d.state <> 'delivered'
			AND (excluded.state = 'delivered' OR (excluded.round >= d.round AND d.state IN ('waiting', 'queued')))`, c.values()...)
	return failed("writing deliveries", err)
}

// insertAttempts keeps the calls that were made; a deferred delivery made none.
func insertAttempts(ctx context.Context, tx pgx.Tx, outcomes []*record.Attempt) error {
	var rows [][]any
	for _, a := range outcomes {
		if Outcome(a.Outcome) == OutcomeDeferred {
			continue
		}
		rows = append(rows, []any{
			day(a.Delivery.OccurredAt), a.Delivery.DeliveryID, a.Delivery.Attempt, a.At, a.Outcome, a.DurationMs,
			zeronull.Int4(a.HTTPStatus), zeronull.Text(a.Reason), zeronull.Text(a.Answer),
		})
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"delivery_attempts"},
		[]string{"occurred_on", "delivery_id", "attempt", "at", "outcome", "duration_ms", "http_status", "reason", "answer"}, pgx.CopyFromRows(rows))
	return failed("writing attempts", err)
}
