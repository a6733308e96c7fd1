package deliveries

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// EventRef names an event. The time selects the table.
type EventRef struct {
	ID         string
	OccurredAt time.Time
}

// ofEvents selects the deliveries of events of a kind. A redelivery is on the day of its event,
// like the first delivery.
const ofEvents = `
	SELECT ` + deliveryColumns + `
	FROM deliveries d
	WHERE d.occurred_on = ANY($1) AND d.event_id = ANY($2) AND d.kind = $3
	ORDER BY d.first_attempt_at NULLS LAST, d.last_outcome_at, d.delivery_id`

// OfEvents returns the deliveries of events of a kind that have an outcome or were asked for, the
// oldest first. Those of events older than KeepDays are gone.
func (s *Store) OfEvents(ctx context.Context, kind Kind, events ...EventRef) ([]Delivery, error) {
	return ofEventsIn(ctx, s.pool, kind, events)
}

func ofEventsIn(ctx context.Context, q querier, kind Kind, events []EventRef) ([]Delivery, error) {
	days, ids := make([]time.Time, len(events)), make([]string, len(events))
	for i, e := range events {
		days[i], ids[i] = day(e.OccurredAt), e.ID
	}
	return collect[Delivery](ctx, q, "reading the deliveries of events", ofEvents, days, ids, kind)
}

// Redelivery asks for an event to be sent once more.
type Redelivery struct {
	Kind Kind
	// Notification is the event with the bytes to send.
	Notification *record.Notification
	// Destinations are the ids of those that get it; at least one.
	Destinations []string
	// Bodies proves the body, see origin.SignBody.
	Bodies origin.MACs
	// Name is unique for each request. The ids of the deliveries are derived from it.
	Name string
}

// Redeliver sends an event once more to each of the destinations, with the same event id and the
// same bytes. A delivery that waits for its next attempt or was given up is due now; one that is on
// its topic stays as it is; next to an accepted one there is a further delivery. A destination
// that has none gets its first one: if the planner's is under way, the event may arrive twice. The
// deliveries of a suspended destination wait for its resumption. now is the service's clock.
func (s *Store) Redeliver(ctx context.Context, actor operation.Actor, r Redelivery, now time.Time) error {
	var planned []*record.Attempt
	var destinations [][]any
	kind, err := s.kinds.Of(r.Kind)
	if err != nil {
		return err
	}
	origin.SignBody(kind.Notifications, r.Notification, r.Bodies)
	for _, id := range r.Destinations {
		// Like a deferred delivery: no attempt is counted.
		planned = append(planned, &record.Attempt{
			Delivery: *Plan(r.Kind, r.Notification, id), Outcome: string(OutcomeDeferred), At: now, NextAttemptAt: now, Reason: reasonReplayed,
		})
		destinations = append(destinations, []any{r.Kind, id})
	}
	if err := s.ensureDays(ctx, planned); err != nil {
		return err
	}
	return s.tx(ctx, "sending an event once more", func(tx pgx.Tx) error {
		if err := insertDestinations(ctx, tx, destinations); err != nil {
			return err
		}
		known, err := ofEventsIn(ctx, tx, r.Kind, []EventRef{{r.Notification.EventID, r.Notification.OccurredAt}})
		if err != nil {
			return err
		}
		for _, a := range planned {
			if err := r.send(ctx, tx, a, known, now); err != nil {
				return err
			}
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "delivery.redeliver", Subject: r.Notification.EventID, AgencyID: r.Notification.TenantID, Detail: map[string]any{
			"kind": r.Kind, "session": r.Notification.SessionID, "destinations": r.Destinations,
		}})
	})
}

// send makes one delivery of the event to the destination of a due now. known are the
// deliveries of the event.
func (r Redelivery) send(ctx context.Context, tx pgx.Tx, a *record.Attempt, known []Delivery, now time.Time) error {
	to := a.Delivery.DestinationID
	known = slices.DeleteFunc(slices.Clone(known), func(d Delivery) bool { return d.DestinationID != to })
	for _, d := range known {
		if d.State == StateQueued {
			return nil
		}
	}
	for _, d := range known {
		if slices.Contains(Retryable, d.State) && d.Sendable {
			_, err := sendNow(ctx, tx, r.Kind, to, []keyed{{day(d.OccurredAt), d.ID, d.OccurredAt}}, []string{d.State}, now)
			return err
		}
	}
	if len(known) > 0 {
		a.Delivery.DeliveryID = RedeliveryID(r.Kind, a.Delivery.EventID, to, r.Name)
	}
	if _, err := tx.Exec(ctx, insertDeliveries+` ON CONFLICT (occurred_on, delivery_id) DO NOTHING`, byColumn([][]any{rowOf(a)})...); err != nil {
		return failed("writing deliveries", err)
	}
	_, err := tx.Exec(ctx, `UPDATE delivery_destinations SET next_due_at = least(next_due_at, $3) WHERE kind = $1 AND destination_id = $2`, r.Kind, to, now)
	return failed("making deliveries due", err)
}
