package deliveries

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/schemas/record"
)

const (
	claimLease     = 30 * time.Second       // from the claim to Kafka's acknowledgement
	queuedLease    = 24 * time.Hour         // from the acknowledgement to the worker's outcome; the topic keeps 7 days
	perDestination = 2                      // deliveries on the topic at once, as a multiple of the destination's cap
	destinations   = 200                    // per claim
	lineWait       = 200 * time.Millisecond // between two claims of one destination
	holdFor        = 30 * 24 * time.Hour    // for which deliveries to a suspended destination wait
)

// KeepDays is the number of days for which closed deliveries are kept and can be sent again. After them
// nobody knows whether a webhook was accepted.
const KeepDays = 60

// Claim leases due deliveries and returns them as they go on their topic, in a new
// round. It passes over destinations that are suspended or on hold. At most twice a
// destination's cap is on the topic at once. After a hold it is one delivery at a
// time until one is delivered. A lease lasts 30 s: produce the deliveries within it,
// then call MarkQueued. now is the service's clock.
func (s *Store) Claim(ctx context.Context, now time.Time) ([]record.Delivery, error) {
	type due struct {
		Kind    Kind
		ID      string
		Probing bool
	}
	const doing = "claiming due deliveries"
	var claimed []record.Delivery
	err := s.tx(ctx, doing, func(tx pgx.Tx) error {
		list, err := collect[due](ctx, tx, "choosing destinations", `
			SELECT kind, destination_id, hold_until IS NOT NULL FROM delivery_destinations
			WHERE next_due_at <= $1 AND suspended_at IS NULL AND (hold_until IS NULL OR hold_until <= $1) AND kind = ANY($3)
			ORDER BY next_due_at LIMIT $2 FOR UPDATE SKIP LOCKED`, now, destinations, s.kinds.Names(nil))
		if err != nil {
			return err
		}
		for _, d := range list {
			kind, err := s.kinds.Of(d.Kind)
			if err != nil {
				return err
			}
			to, _ := kind.Directory.Destination(d.ID)
			room := perDestination * max(to.MaxInFlight, 1)
			if d.Probing {
				room = 1
			}
			got, err := claimOf(ctx, tx, d.Kind, d.ID, now, room)
			if err != nil {
				return err
			}
			claimed = append(claimed, got...)
		}
		return nil
	})
	return claimed, err
}

func claimOf(ctx context.Context, tx pgx.Tx, kind Kind, id string, now time.Time, room int) ([]record.Delivery, error) {
	claimed, err := collect[record.Delivery](ctx, tx, "claiming of a destination", `
		WITH chosen AS (
			SELECT occurred_on, delivery_id FROM deliveries
			WHERE kind = $1 AND destination_id = $2 AND state = 'waiting' AND next_attempt_at <= $3
			ORDER BY next_attempt_at
			LIMIT greatest(0, $4::int - (SELECT count(*)::int FROM deliveries WHERE kind = $1 AND destination_id = $2 AND state = 'queued'))
		)
		UPDATE deliveries d SET state = 'queued', round = d.round + 1, next_attempt_at = NULL, lease_until = clock_timestamp() + $5::interval
		FROM chosen c WHERE d.occurred_on = c.occurred_on AND d.delivery_id = c.delivery_id
		RETURNING d.delivery_id, d.kind, d.destination_id, d.event_id, d.event, d.application_id, d.tenant_id, d.session_id, d.livemode,
			d.occurred_at, d.attempts + 1, d.round, coalesce(d.first_attempt_at, '0001-01-01Z'),
			CASE WHEN substr(d.body, 1, 1) = '\x01' THEN substr(d.body, 34) ELSE d.body END, coalesce(d.url, ''),
			CASE WHEN substr(d.body, 1, 1) = '\x01' THEN substr(d.body, 2, 32) END`, kind, id, now, room, claimLease)
	if err != nil {
		return nil, err
	}
	// The destination goes to the end of the line, so that destinations without room
	// do not block the front. When nothing waits it leaves the line.
	_, err = tx.Exec(ctx, `
		UPDATE delivery_destinations SET next_due_at =
			(SELECT greatest(min(next_attempt_at), $3) FROM deliveries WHERE kind = $1 AND destination_id = $2 AND state = 'waiting' HAVING count(*) > 0)
		WHERE kind = $1 AND destination_id = $2`, kind, id, now.Add(lineWait))
	return claimed, err
}

// MarkQueued lengthens the leases of claimed deliveries, which are on their topic
// now.
func (s *Store) MarkQueued(ctx context.Context, claimed []record.Delivery) error {
	var rows, destinations [][]any
	for i := range claimed {
		d := &claimed[i]
		rows = append(rows, []any{day(d.OccurredAt), d.DeliveryID, d.Round})
		destinations = append(destinations, []any{d.Kind, d.DestinationID})
	}
	return s.tx(ctx, "marking deliveries as queued", func(tx pgx.Tx) error {
		if err := lockDestinations(ctx, tx, destinations); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			UPDATE deliveries d SET lease_until = clock_timestamp() + $4::interval
			FROM unnest($1::date[], $2::text[], $3::int[]) AS c (occurred_on, delivery_id, round)
			WHERE d.occurred_on = c.occurred_on AND d.delivery_id = c.delivery_id AND d.round = c.round AND d.state = 'queued'`,
			append(byColumn(rows), queuedLease)...)
		return err
	})
}

// lateSQL names the destinations with deliveries whose lease has run out.
const lateSQL = `SELECT DISTINCT kind, destination_id FROM deliveries WHERE state = 'queued' AND lease_until < clock_timestamp()`

// ReturnLeases sets deliveries whose lease has run out to waiting and due now. now is
// the service's clock.
func (s *Store) ReturnLeases(ctx context.Context, now time.Time) error {
	late, err := destinationsOf(ctx, s.pool, lateSQL)
	if err != nil || len(late) == 0 {
		return err
	}
	return s.tx(ctx, "returning leases", func(tx pgx.Tx) error {
		if err := lockDestinations(ctx, tx, late); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			WITH late AS (
				UPDATE deliveries SET state = 'waiting', next_attempt_at = $3, lease_until = NULL
				WHERE state = 'queued' AND lease_until < clock_timestamp()
					AND (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
				RETURNING kind, destination_id
			)
			UPDATE delivery_destinations d SET next_due_at = least(d.next_due_at, $3)
			FROM (SELECT DISTINCT kind, destination_id FROM late) l WHERE d.kind = l.kind AND d.destination_id = l.destination_id`,
			append(byColumn(late), now)...)
		return err
	})
}

// Tidy exhausts deliveries that have waited for a suspended destination for 30 days.
// It drops the tables of days that are older than 60 days and have no open
// deliveries. now is the service's clock.
func (s *Store) Tidy(ctx context.Context, now time.Time) error {
	if err := s.expireHeld(ctx, now.Add(-holdFor)); err != nil {
		return err
	}
	days, err := s.daysKept(ctx)
	if err != nil {
		return err
	}
	for _, d := range days {
		if d.Before(day(now.AddDate(0, 0, -KeepDays))) {
			if err := s.dropDay(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// expireHeld exhausts waiting deliveries whose last outcome and whose destination's
// suspension are both older than the given time.
func (s *Store) expireHeld(ctx context.Context, before time.Time) error {
	return s.tx(ctx, "expiring held deliveries", func(tx pgx.Tx) error {
		suspended, err := destinationsOf(ctx, tx, `
			SELECT kind, destination_id FROM delivery_destinations WHERE suspended_at < $1
			ORDER BY kind COLLATE "C", destination_id COLLATE "C" FOR UPDATE`, before)
		if err != nil || len(suspended) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE deliveries SET state = 'exhausted', next_attempt_at = NULL, reason = '`+heldTooLong+`'
			WHERE (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
				AND state = 'waiting' AND last_outcome_at < $3`, append(byColumn(suspended), before)...)
		return err
	})
}
