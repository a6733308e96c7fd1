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

// failingFor is the time without a success after which a destination is suspended.
const failingFor = 5 * 24 * time.Hour

// Apply writes outcomes and the moves of the positions in one transaction. An outcome
// of an earlier round than its row's changes nothing, unless it is Delivered, which
// always counts. Errors are consume.ErrMoved and those of Postgres. After an error of
// Postgres the transaction may have committed.
func (s *Store) Apply(ctx context.Context, outcomes []*record.Attempt, moves []consume.Move) error {
	if err := s.ensureDays(ctx, outcomes); err != nil {
		return err
	}
	return s.tx(ctx, "applying outcomes", func(tx pgx.Tx) error {
		if err := positions.Move(ctx, tx, moves); err != nil || len(outcomes) == 0 {
			return err
		}
		// Destinations are locked before deliveries (lockDestinations).
		if err := s.upsertDestinations(ctx, tx, s.fold(outcomes)); err != nil {
			return err
		}
		outcomes, err := hasten(ctx, tx, outcomes)
		if err != nil {
			return err
		}
		if err := upsertDeliveries(ctx, tx, outcomes); err != nil {
			return err
		}
		if err := insertAttempts(ctx, tx, outcomes); err != nil {
			return err
		}
		if err := s.supersede(ctx, tx, outcomes); err != nil {
			return err
		}
		return s.acceptConfirmations(ctx, tx, outcomes)
	})
}

// hasten makes deliveries due soon that a worker put off because of a suspension that has ended: it had not read
// the resumption yet, or its outcome is applied after it. They would wait for a minute, beside those that the
// resumption made due. The destinations are locked.
func hasten(ctx context.Context, tx pgx.Tx, outcomes []*record.Attempt) ([]*record.Attempt, error) {
	type named struct{ Kind, ID string }
	late := func(a *record.Attempt) bool {
		return Outcome(a.Outcome) == OutcomeDeferred && a.Reason == ReasonSuspended && a.NextAttemptAt.After(a.At.Add(resumeAfter))
	}
	var rows [][]any
	for _, a := range outcomes {
		if late(a) {
			rows = append(rows, []any{a.Delivery.Kind, a.Delivery.DestinationID, a.At.Add(resumeAfter)})
		}
	}
	if len(rows) == 0 {
		return outcomes, nil
	}
	called, err := collect[named](ctx, tx, "hastening deliveries of resumed destinations", `
		UPDATE delivery_destinations d SET next_due_at = least(d.next_due_at, r.due)
		FROM (SELECT kind, destination_id, min(due) AS due FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS u (kind, destination_id, due) GROUP BY 1, 2) r
		WHERE d.kind = r.kind AND d.destination_id = r.destination_id AND d.suspended_at IS NULL
		RETURNING d.kind, d.destination_id`, byColumn(rows)...)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(outcomes)
	for i, a := range out {
		if late(a) && slices.Contains(called, named{a.Delivery.Kind, a.Delivery.DestinationID}) {
			soon := *a
			soon.NextAttemptAt = a.At.Add(resumeAfter)
			out[i] = &soon
		}
	}
	return out, nil
}

// change is the effect of a batch on one destination.
type change struct {
	kind, id    string
	due         *time.Time // earliest next attempt
	succeeded   bool
	failing     *time.Time // first failure since the last success in the batch
	lastFailure *time.Time
	hold        *time.Time // end of a hold
	gone        *time.Time // time of a 410
	refused     *time.Time // first refusal of our credentials since the last success in the batch
}

// fold combines outcomes by destination, in the order of lockDestinations.
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
		switch outcome := Outcome(a.Outcome); {
		case a.OwnAddress: // nothing is known of the destination
		case outcome == OutcomeDelivered:
			if !called(a) {
				break // nothing is known of the destination
			}
			c.succeeded, c.failing, c.lastFailure, c.hold, c.refused = true, nil, nil, nil, nil
		case refused(a):
			c.failing, c.refused = first(c.failing, &a.At), first(c.refused, &a.At)
			c.lastFailure, c.hold = &a.At, &a.NextAttemptAt
		case outcome == OutcomeFailed, outcome == OutcomeExhausted, outcome == OutcomeNeedsOperator:
			c.failing, c.lastFailure = first(c.failing, &a.At), &a.At
			if a.HTTPStatus == http.StatusGone && slices.Contains(suspending, c.kind) {
				c.gone = &a.At
			}
		case outcome == OutcomeDeferred:
			switch a.Reason {
			case ReasonMailboxFull, ReasonRateLimited, ReasonRetried, ReasonOrderUnknown, ReasonLimited: // the destination itself is not at fault
			case ReasonSuspended: // suspended_at decides; the suspension may have ended
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

// first returns known, or at when nothing is known.
func first(known, at *time.Time) *time.Time {
	if known != nil {
		return known
	}
	return at
}

func (s *Store) upsertDestinations(ctx context.Context, tx pgx.Tx, changes []*change) error {
	var rows, destinations [][]any
	for _, c := range changes {
		rows = append(rows, []any{c.kind, c.id, c.succeeded, c.due, c.failing, c.lastFailure, c.hold, c.gone, c.refused})
		destinations = append(destinations, []any{c.kind, c.id})
	}
	if err := insertDestinations(ctx, tx, destinations); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		WITH change AS (
			-- Failures up to the last resumption decide nothing: outcomes may be applied again.
			SELECT c.*, CASE WHEN c.succeeded THEN f.failing ELSE coalesce(d.failing_since, f.failing) END AS failing_since
			FROM unnest($1::text[], $2::text[], $3::bool[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[])
				AS c (kind, destination_id, succeeded, due, failing, last_failure, hold, gone, refused)
			JOIN delivery_destinations d USING (kind, destination_id)
			CROSS JOIN LATERAL (SELECT CASE WHEN c.last_failure > coalesce(d.resumed_at, '-infinity') THEN greatest(c.failing, d.resumed_at) END AS failing) f
		)
		UPDATE delivery_destinations d SET
			next_due_at = least(d.next_due_at, c.due),
			failing_since = c.failing_since,
			hold_until = CASE WHEN c.hold IS NOT NULL THEN c.hold WHEN c.succeeded THEN NULL ELSE d.hold_until END,
			refused_since = CASE WHEN c.succeeded THEN c.refused ELSE coalesce(d.refused_since, c.refused) END,
			suspended_at = CASE
				WHEN d.suspended_at IS NOT NULL THEN d.suspended_at
				WHEN c.gone > coalesce(d.resumed_at, '-infinity') THEN c.gone
				WHEN c.kind = ANY($11) AND c.last_failure - c.failing_since >= $10::interval THEN c.last_failure END,
			suspended_reason = CASE
				WHEN d.suspended_at IS NOT NULL THEN d.suspended_reason
				WHEN c.gone > coalesce(d.resumed_at, '-infinity') THEN 'gone'
				WHEN c.kind = ANY($11) AND c.last_failure - c.failing_since >= $10::interval THEN 'failing' END
		FROM change c WHERE d.kind = c.kind AND d.destination_id = c.destination_id`,
		append(byColumn(rows), failingFor, s.kinds.Names(func(r Registration) bool { return r.Suspends }))...)
	return failed("writing destinations", err)
}

// insertDestinations makes the missing rows of destinations (kind and id) and locks
// all of them.
func insertDestinations(ctx context.Context, tx pgx.Tx, destinations [][]any) error {
	if _, err := tx.Exec(ctx, `
		INSERT INTO delivery_destinations (kind, destination_id)
		SELECT * FROM unnest($1::text[], $2::text[]) AS c (kind, destination_id)
		ORDER BY kind COLLATE "C", destination_id COLLATE "C"
		ON CONFLICT DO NOTHING`, byColumn(destinations)...); err != nil {
		return fmt.Errorf("writing destinations: %w", err)
	}
	return lockDestinations(ctx, tx, destinations)
}

// insertDeliveries inserts the rows that rowOf returns.
const insertDeliveries = `
		INSERT INTO deliveries AS d (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id,
			livemode, occurred_at, state, attempts, round, first_attempt_at, last_outcome_at, next_attempt_at, http_status, reason, body, url)
		SELECT * FROM unnest($1::date[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
			$10::bool[], $11::timestamptz[], $12::text[], $13::int[], $14::int[], $15::timestamptz[], $16::timestamptz[], $17::timestamptz[], $18::int[], $19::text[], $20::bytea[], $21::text[])`

// A body that the processor proved is stored behind its MAC, and a byte with which no other body begins.
const (
	provedBody = 1
	macSize    = 32
)

// rowOf returns the row of a delivery after its first outcome.
func rowOf(a *record.Attempt) []any {
	d, state, attempts, next, body := &a.Delivery, stateOf[Outcome(a.Outcome)], a.Delivery.Attempt, zeronull.Timestamptz{}, a.Delivery.Body
	if Outcome(a.Outcome) == OutcomeDeferred {
		attempts-- // no call was made
	}
	if state == StateWaiting {
		next = zeronull.Timestamptz(a.NextAttemptAt)
	}
	if state == StateDelivered || state == StateSuperseded {
		body = nil // in every other state, also exhausted, it may still be sent
	}
	if len(body) > 0 && len(d.Mac) == macSize {
		body = append(append([]byte{provedBody}, d.Mac...), body...)
	}
	return []any{
		day(d.OccurredAt), d.DeliveryID, d.Kind, d.DestinationID, d.EventID, d.Event, d.ApplicationID, d.TenantID, d.SessionID,
		d.Livemode, d.OccurredAt, state, attempts, d.Round, zeronull.Timestamptz(d.FirstAttemptAt), a.At, next,
		zeronull.Int4(a.HTTPStatus), zeronull.Text(a.Reason), body, zeronull.Text(d.URL),
	}
}

// upsertDeliveries applies outcomes in order. A statement can change a row only
// once, so several outcomes of one delivery go into successive statements. A retry makes a
// row due that waits or was given up, unless an outcome came after it.
func upsertDeliveries(ctx context.Context, tx pgx.Tx, outcomes []*record.Attempt) error {
	for len(outcomes) > 0 {
		var rows [][]any
		for seen := map[string]bool{}; len(rows) < len(outcomes); {
			a := outcomes[len(rows)]
			if seen[a.Delivery.DeliveryID] {
				break
			}
			seen[a.Delivery.DeliveryID] = true
			rows = append(rows, rowOf(a))
		}
		outcomes = outcomes[len(rows):]
		if _, err := tx.Exec(ctx, insertDeliveries+`
			ON CONFLICT (occurred_on, delivery_id) DO UPDATE SET
				state = excluded.state, attempts = greatest(d.attempts, excluded.attempts),
				round = CASE excluded.reason WHEN 'retried' THEN d.round + 1 ELSE greatest(d.round, excluded.round) END,
				first_attempt_at = coalesce(d.first_attempt_at, excluded.first_attempt_at), last_outcome_at = excluded.last_outcome_at,
				next_attempt_at = excluded.next_attempt_at, lease_until = NULL, http_status = excluded.http_status, reason = excluded.reason,
				body = CASE excluded.reason WHEN 'retried' THEN coalesce(d.body, excluded.body) ELSE excluded.body END
			WHERE d.state <> 'delivered' AND CASE
				WHEN excluded.state = 'delivered' THEN true
				WHEN excluded.reason = 'retried' THEN d.state <> 'queued' AND d.last_outcome_at <= excluded.last_outcome_at
				ELSE excluded.round >= d.round AND d.state IN ('waiting', 'queued') END`, byColumn(rows)...); err != nil {
			return fmt.Errorf("writing deliveries: %w", err)
		}
	}
	return nil
}

// insertAttempts stores the attempts. An outcome without a call is none.
func insertAttempts(ctx context.Context, tx pgx.Tx, outcomes []*record.Attempt) error {
	var rows [][]any
	for _, a := range outcomes {
		if !called(a) {
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
