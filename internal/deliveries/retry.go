package deliveries

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// Operations change rows. The running schedules and workers see a change within a
// second.

// atOnce is the largest number of deliveries that change under one lock of their
// destination. The schedule waits for that lock with the outcomes of all
// destinations.
const atOnce = 2000

// Progress is called with the number of deliveries changed so far and in all.
type Progress func(done, total int)

// Retried is a delivery that will be sent again.
type Retried struct {
	Delivery
	// OnItsWay is true when the delivery was already on its topic and nothing changed.
	OnItsWay bool
	// HoldUntil is the end of its destination's hold; zero: not on hold.
	HoldUntil time.Time
}

// Retry makes a delivery due now. Late outcomes of earlier rounds no longer count,
// except Delivered. now is the service's clock. Retry is refused when the delivery was
// accepted, superseded or is unknown, when its bytes are deleted, and when its destination is
// suspended, or is configured no more as far as this process knows.
func (s *Store) Retry(ctx context.Context, actor operation.Actor, id string, now time.Time) (Retried, error) {
	var out Retried
	err := s.tx(ctx, "retrying a delivery", func(tx pgx.Tx) (err error) {
		out, err = s.RetryIn(ctx, tx, actor, id, now, nil, nil)
		return err
	})
	if err != nil {
		return Retried{}, err
	}
	return out, nil
}

// RetryIn is Retry in a transaction of the caller, which locks no destination before. After a refusal, which is an
// *operation.Error, nothing is changed, and the transaction may go on. may is asked for the agency of the delivery,
// unless it is nil; detail is added to the row of the audit table, which there is then also of a delivery that is on its way.
func (s *Store) RetryIn(ctx context.Context, tx pgx.Tx, actor operation.Actor, id string, now time.Time, may func(agencyID string) error, detail map[string]any) (Retried, error) {
	d, err := find(ctx, tx, id)
	if err == nil && may != nil {
		err = may(d.TenantID)
	}
	if err != nil {
		return Retried{}, err
	}
	at, err := lockDestination(ctx, tx, d.Kind, d.DestinationID)
	if err != nil {
		return Retried{}, err
	}
	if d, err = find(ctx, tx, id); err != nil { // again: it may have changed before the lock
		return Retried{}, err
	}
	out := Retried{Delivery: d}
	if err := s.refuseRetry(d, at); err != nil {
		return Retried{}, err
	}
	of := map[string]any{"kind": d.Kind, "destination": d.DestinationID, "was": d.State}
	maps.Copy(of, detail)
	entry := operation.Entry{Action: "delivery.retry", Subject: id, AgencyID: d.TenantID, Detail: of}
	if d.State == StateQueued {
		if out.OnItsWay = true; detail == nil {
			return out, nil
		}
		return out, operation.Record(ctx, tx, actor, now, entry) // the caller counts it as done
	}
	if !d.Sendable {
		return Retried{}, operation.Refuse(CodeBodyGone, "id", nil)
	}
	if at.HoldUntil.After(now) {
		out.HoldUntil = at.HoldUntil
	}
	out.State, out.NextAttemptAt = StateWaiting, now
	if _, err = sendNow(ctx, tx, d.Kind, d.DestinationID, []keyed{{day(d.OccurredAt), id, d.OccurredAt}}, []string{d.State}, now); err != nil {
		return Retried{}, err
	}
	return out, operation.Record(ctx, tx, actor, now, entry)
}

// RetryRefusals lists the codes of refused retries of one delivery.
func RetryRefusals() []string {
	return []string{CodeUnknown, CodeAccepted, CodeSuperseded, CodeBodyGone, CodeSuspended, CodeRemoved}
}

// refuseRetry returns why a delivery to a destination is not sent again; nil if it is.
func (s *Store) refuseRetry(d Delivery, at DestinationStatus) error {
	switch d.State {
	case StateDelivered:
		return operation.Refuse(CodeAccepted, "id", operation.Args{"at": d.LastOutcomeAt})
	case StateSuperseded:
		return operation.Refuse(CodeSuperseded, "id", nil)
	}
	if kind, err := s.kinds.Of(d.Kind); err == nil && (kind.Directory != nil || s.configured != nil && kind.Entries != nil) {
		known := false
		if kind.Directory != nil {
			_, known = kind.Directory.Destination(d.DestinationID)
		} else {
			known = s.configured[destinationKey{d.Kind, d.DestinationID}]
		}
		if !known {
			return operation.Refuse(CodeRemoved, "", operation.Args{"kind": d.Kind, "destination": d.DestinationID})
		}
	}
	return at.refuseSuspended()
}

// RetryAll retries all deliveries of a destination that are in a state and returns
// their number. An interruption undoes nothing. now is the service's clock. RetryAll is
// refused when the destination is suspended or the state is not one of Retryable.
func (s *Store) RetryAll(ctx context.Context, actor operation.Actor, kind Kind, id, state string, now time.Time, progress Progress) (int, error) {
	if !slices.Contains(Retryable, state) {
		return 0, operation.Refuse(CodeNotRetryable, "state", operation.Args{"state": state, "states": Retryable})
	}
	return s.makeDue(ctx, "retrying deliveries", actor, kind, id, state, now, progress, DestinationStatus.refuseSuspended)
}

// keyed is the key of a delivery's row.
type keyed struct {
	On time.Time // the day
	ID string
	At time.Time // of the event
}

// makeDue makes the deliveries of a destination that are in a state due, the oldest
// events first. It works in parts, so that the schedule waits for one part at most.
// check may refuse each part. Each part is recorded. doing is the beginning of an
// error's text.
func (s *Store) makeDue(ctx context.Context, doing string, actor operation.Actor, kind Kind, id, state string, now time.Time, progress Progress, check func(DestinationStatus) error) (int, error) {
	all, err := collect[keyed](ctx, s.pool, doing, `
		SELECT occurred_on, delivery_id, occurred_at FROM deliveries WHERE kind = $1 AND destination_id = $2 AND state = '`+state+`' AND body IS NOT NULL
		ORDER BY occurred_at, delivery_id`, kind, id)
	if err != nil {
		return 0, err
	}
	done, total := 0, len(all)
	for first := true; first || len(all) > 0; first = false { // once even without deliveries: check may refuse
		part := all[:ofOneDay(all)]
		var n int
		err := s.tx(ctx, doing, func(tx pgx.Tx) error {
			at, err := lockDestination(ctx, tx, kind, id)
			if err == nil && check != nil {
				err = check(at)
			}
			if err != nil || len(part) == 0 {
				return err
			}
			if n, err = sendNow(ctx, tx, kind, id, part, []string{state}, now); err != nil || n == 0 {
				return err
			}
			return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "destination.retry", Subject: id, Detail: map[string]any{"kind": kind, "state": state, "due": n}})
		})
		if err != nil {
			return done, err
		}
		all = all[len(part):]
		if done += n; progress != nil {
			progress(total-len(all), total)
		}
	}
	return done, nil
}

// ofOneDay returns the length of the first part: at most atOnce deliveries, all of one
// day, so that only one table is searched.
func ofOneDay(list []keyed) (n int) {
	for n < len(list) && n < atOnce && list[n].On.Equal(list[0].On) {
		n++
	}
	return n
}

// sendNow makes deliveries due now that are still in one of the states. They belong to
// one day and to one destination, which the caller has locked. Their round goes up, so
// that outcomes of the previous round no longer count.
func sendNow(ctx context.Context, tx pgx.Tx, kind Kind, id string, list []keyed, states []string, now time.Time) (int, error) {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	tag, err := tx.Exec(ctx, `
		UPDATE deliveries SET state = 'waiting', round = round + 1, next_attempt_at = $3, lease_until = NULL
		WHERE occurred_on = $1 AND delivery_id = ANY($2) AND state = ANY($4)`, list[0].On, ids, now, states)
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE delivery_destinations SET next_due_at = least(next_due_at, $3) WHERE kind = $1 AND destination_id = $2`, kind, id, now)
	}
	return int(tag.RowsAffected()), failed("making deliveries due", err)
}
