package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

const (
	replayAtOnce = 500
	// replayPatience bounds the wait until the schedule has applied all recorded
	// outcomes. Before that it is unknown what was delivered.
	replayPatience = 15 * time.Second
	// reasonReplayed is the reason in a row before its first attempt.
	reasonReplayed = "replayed"
)

// Replay describes a replay of notifications. All fields except FromEvents, Source, Only, SessionIDs,
// EventID, Redelivery, DryRun and Progress are required.
type Replay struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	Kind  Kind
	// FromEvents makes the notifications again from checkout.events, which is kept for
	// ever. Only kinds that confirm payments have it. The deliveries have the same ids and
	// the same bodies.
	FromEvents bool
	// Source is the topic of one of the kind's Sources, of which the notifications are made again; empty: the kind's
	// notifications are read.
	Source string
	// Since (inclusive) and Until (exclusive) bound the time at which the notifications
	// were written, by the broker's clock.
	Since, Until time.Time
	// Now is the service's clock.
	Now func() time.Time

	// Only is the id of the destination to replay for; empty: all destinations.
	Only string
	// SessionIDs are the sessions whose events are replayed; nil: all sessions.
	SessionIDs []string
	// EventID is the event that is replayed; empty: all events.
	EventID string
	// Redelivery is the name of a redelivery. An accepted delivery is then sent once
	// more, as a delivery of its own. The event and its id stay the same. The
	// delivery's id is derived from this name, so a repeated replay sends nothing
	// twice. Empty: accepted deliveries are not sent again.
	Redelivery string
	// Bodies proves the bodies, see origin.SignBody. It is required for kinds that prove them.
	Bodies origin.MACs
	// DryRun counts and changes nothing.
	DryRun bool
	// Progress is called from time to time with the number of records done and in all.
	Progress kafka.Progress
}

// Replayed has the numbers of a replay; of a dry run, the numbers that a replay would
// have.
type Replayed struct {
	Events      int64
	Unaddressed int64 // events without a destination, as configured now
	Reversed    int64 // payments that were given back since and are not confirmed any more
	// Numbers of deliveries.
	Made      int64 // did not exist and are now due
	Accepted  int64 // were accepted and are not sent again
	Scheduled int64 // wait for their next attempt
	Parked    int64 // need an operator or are exhausted: a retry or a recovery sends them
	// Superseded are not sent, because a later event of their payment was accepted.
	Superseded int64
	// Forgotten happened so long ago that nobody knows any more whether they were accepted. They are sent with a
	// Redelivery only.
	Forgotten int64
	UnderWay  int64 // are planned and not settled
	// Unreadable is the number of records that cannot be decoded.
	Unreadable int64
}

// Replay makes the missing deliveries of a range of notifications. They are missing
// when the destination did not subscribe at the time, or when the database was lost.
// Replay puts them into the schedule, which sends them under each destination's cap.
// It sends nothing that is under way or was accepted, and may run beside planners and
// workers. It is refused while the schedule has not applied all outcomes. It makes no
// confirmation of a payment that was given back.
func (s *Store) Replay(ctx context.Context, actor operation.Actor, cfg Replay) (Replayed, error) {
	kind, err := s.kinds.Of(cfg.Kind)
	if err != nil {
		return Replayed{}, err
	}
	cl, err := cfg.Kafka.Client()
	if err != nil {
		return Replayed{}, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if kind.Proves() && cfg.Bodies == nil {
		return Replayed{}, errors.New("replay: Bodies is required")
	}
	if cfg.FromEvents && !kind.Confirms {
		return Replayed{}, fmt.Errorf("%s deliveries are not made from %s", kind.Kind, schemas.TopicEvents)
	}
	if _, ok := kind.source(cfg.Source); cfg.Source != "" && !ok {
		return Replayed{}, fmt.Errorf("%s deliveries are not made from %s", kind.Kind, cfg.Source)
	}
	r := &replay{Replay: cfg, store: s, actor: actor, kind: kind, underWay: map[string]struct{}{}, unplanned: map[string]struct{}{}, reversed: map[string]struct{}{}}

	// The order matters. Each notification that the planner has settled by now has its
	// deliveries on their topic. Of those deliveries, the ones that the workers have
	// not settled are under way. The settled ones have an outcome, and the schedule has
	// applied it at the end of the wait.
	topic, spans, err := r.source(ctx, adm)
	if err != nil {
		return Replayed{}, err
	}
	deliveries := cfg.Kafka.Prefix + kind.Deliveries
	open, err := kafka.Unsettled(ctx, adm, deliveries, cfg.Kafka.Prefix+kind.Sending().Group)
	if err != nil {
		return Replayed{}, err
	}
	if err := cfg.Kafka.Read(ctx, deliveries, open, nil, func(rec *kgo.Record) (bool, error) {
		var d record.Delivery
		err := cfg.Codec.Decode(rec.Value, &d)
		if err == nil {
			r.underWay[d.DeliveryID] = struct{}{}
		}
		return true, readable(err)
	}); err != nil {
		return Replayed{}, err
	}
	switch done, err := NewHistory(cfg.Kafka, cl, s).caughtUp(ctx, replayPatience); {
	case err != nil:
		return Replayed{}, err
	case !done:
		return Replayed{}, operation.Refuse(CodeBehind, "", nil)
	}

	if err := r.findReversed(ctx); err != nil {
		return Replayed{}, err
	}
	err = cfg.Kafka.Read(ctx, topic, spans, cfg.Progress, func(rec *kgo.Record) (bool, error) {
		return true, r.take(ctx, rec)
	})
	if err == nil {
		err = r.flush(ctx)
	}
	return r.replayed, err
}

// replay is a running Replay.
type replay struct {
	Replay
	store    *Store
	actor    operation.Actor
	kind     Registration
	underWay map[string]struct{}
	// unplanned has the ids of events that the planner has not planned yet, and reversed
	// the transaction ids of dues whose money was given back. Both stay empty where they do not
	// matter.
	unplanned, reversed map[string]struct{}
	batch               []record.Delivery
	replayed            Replayed
}

// take adds the deliveries of a record to the batch.
func (r *replay) take(ctx context.Context, rec *kgo.Record) error {
	if r.kind.Plan != nil {
		planned, err := r.kind.Plan(r.Codec, rec.Value)
		planned = slices.DeleteFunc(planned, func(d record.Delivery) bool { return !r.asks(d.SessionID, d.EventID) })
		if err == nil && len(planned) == 0 && r.selects() {
			return nil
		}
		if err == nil {
			return r.add(ctx, planned)
		}
		return r.unreadable(err)
	}
	notifications, err := r.notifications(rec)
	for _, n := range notifications {
		if err == nil && r.asks(n.SessionID, n.EventID) {
			err = r.plan(ctx, n)
		}
	}
	return r.unreadable(err)
}

// selects reports whether the replay is about some events only, and asks whether an event is one of them.
func (r *replay) selects() bool { return r.SessionIDs != nil || r.EventID != "" }

func (r *replay) asks(sessionID, eventID string) bool {
	return (r.SessionIDs == nil || slices.Contains(r.SessionIDs, sessionID)) && (r.EventID == "" || r.EventID == eventID)
}

// unreadable counts a record that cannot be decoded. It returns other errors.
func (r *replay) unreadable(err error) error {
	if errors.Is(err, schemas.ErrUndecodable) {
		r.replayed.Unreadable++
		return nil
	}
	return err
}

// plan adds a notification's deliveries to the batch.
func (r *replay) plan(ctx context.Context, n *record.Notification) error {
	if n.Request != "" {
		return nil // the payment has a notification of its own, and its request was carried out
	}
	if _, is := r.reversed[n.EventID]; is {
		r.replayed.Events++
		r.replayed.Reversed++
		return nil
	}
	// Only the processor writes what is replayed. What a release wrote that proved nothing is proved now.
	origin.SignBody(r.kind.Notifications, n, r.Bodies)
	var planned []record.Delivery
	for _, id := range r.kind.Directory.Destinations(n) {
		planned = append(planned, *Plan(r.kind.Kind, n, id))
	}
	return r.add(ctx, planned)
}

// add adds the deliveries of one event to the batch.
func (r *replay) add(ctx context.Context, planned []record.Delivery) error {
	r.replayed.Events++
	addressed := false
	for _, d := range planned {
		if r.Only != "" && r.Only != d.DestinationID {
			continue
		}
		addressed = true
		_, underWay := r.underWay[d.DeliveryID]
		if _, unplanned := r.unplanned[d.EventID]; underWay || unplanned {
			r.replayed.UnderWay++
			continue
		}
		r.batch = append(r.batch, d)
	}
	if !addressed {
		r.replayed.Unaddressed++
	}
	if len(r.batch) < replayAtOnce {
		return nil
	}
	return r.flush(ctx)
}

// flush makes those deliveries of the batch that do not exist.
func (r *replay) flush(ctx context.Context) error {
	batch := r.batch
	r.batch = nil
	missing, accepted, err := r.sort(ctx, batch, day(r.Now().AddDate(0, 0, -KeepDays)))
	if err != nil {
		return err
	}
	if r.Redelivery != "" {
		for i := range accepted {
			accepted[i].DeliveryID = RedeliveryID(r.kind.Kind, accepted[i].EventID, accepted[i].DestinationID, r.Redelivery)
		}
		var again []record.Delivery
		if again, accepted, err = r.sort(ctx, accepted, time.Time{}); err != nil {
			return err
		}
		missing = append(missing, again...)
	}
	r.replayed.Accepted += int64(len(accepted))
	if missing, err = r.withoutSuperseded(ctx, missing); err != nil {
		return err
	}
	made := int64(len(missing))
	if !r.DryRun && made > 0 {
		if made, err = r.make(ctx, missing); err != nil {
			return err
		}
	}
	r.replayed.Made += made
	r.replayed.Scheduled += int64(len(missing)) - made // another process made these in the meantime
	return nil
}

// withoutSuperseded returns the deliveries that no later event supersedes. It counts the
// others.
func (r *replay) withoutSuperseded(ctx context.Context, batch []record.Delivery) (out []record.Delivery, err error) {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].SessionID
	}
	superseded, err := r.store.superseded(ctx, r.kind, ids)
	if err != nil {
		return nil, err
	}
	for i := range batch {
		if superseded[batch[i].SessionID] && batch[i].Event != r.kind.Final {
			r.replayed.Superseded++
		} else {
			out = append(out, batch[i])
		}
	}
	return out, nil
}

// sort returns the deliveries that are missing and those that were accepted. It counts
// the others. Of events before known there may be no row any more: those of closed deliveries are gone.
func (r *replay) sort(ctx context.Context, batch []record.Delivery, known time.Time) (missing, accepted []record.Delivery, err error) {
	if len(batch) == 0 {
		return nil, nil, nil
	}
	var rows [][]any
	for i := range batch {
		rows = append(rows, []any{day(batch[i].OccurredAt), batch[i].DeliveryID})
	}
	states, err := collectMap[string, string](ctx, r.store.pool, "asking what is delivered", `
		SELECT d.delivery_id, CASE WHEN d.state = 'needs_operator' AND d.reason = 'unproven_body' THEN d.reason ELSE d.state END FROM unnest($1::date[], $2::text[]) AS k (occurred_on, delivery_id)
		JOIN deliveries d ON d.occurred_on = k.occurred_on AND d.delivery_id = k.delivery_id`, byColumn(rows)...)
	if err != nil {
		return nil, nil, err
	}
	before, err := r.acceptedBefore(ctx, batch)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range batch {
		switch states[d.DeliveryID] {
		case "":
			// acceptedBefore knows of all confirmations, also of those without a row.
			switch forgotten := !r.kind.Confirms && d.OccurredAt.Before(known); {
			case before[d.EventID] || forgotten && r.Redelivery != "":
				accepted = append(accepted, d)
			case forgotten:
				r.replayed.Forgotten++
			default:
				missing = append(missing, d)
			}
		case StateDelivered:
			accepted = append(accepted, d)
		case ReasonUnproven: // its row has no body
			if r.Redelivery != "" {
				accepted = append(accepted, d)
			} else {
				r.replayed.Parked++
			}
		case StateWaiting, StateQueued:
			r.replayed.Scheduled++
		case StateSuperseded:
			r.replayed.Superseded++
		default:
			r.replayed.Parked++
		}
	}
	return missing, accepted, nil
}

// make puts deliveries into the schedule, due now. made is the number that did not
// exist.
func (r *replay) make(ctx context.Context, batch []record.Delivery) (made int64, err error) {
	now := r.Now()
	attempts := make([]*record.Attempt, len(batch))
	var rows, destinations [][]any
	for i, d := range batch {
		// Like a deferred delivery: no attempt is counted.
		attempts[i] = &record.Attempt{Delivery: d, Outcome: string(OutcomeDeferred), At: now, NextAttemptAt: now, Reason: reasonReplayed}
		rows, destinations = append(rows, rowOf(attempts[i])), append(destinations, []any{d.Kind, d.DestinationID})
	}
	if err := r.store.ensureDays(ctx, attempts); err != nil {
		return 0, err
	}
	err = r.store.tx(ctx, "putting deliveries into the schedule", func(tx pgx.Tx) error {
		if err := insertDestinations(ctx, tx, destinations); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, insertDeliveries+` ON CONFLICT (occurred_on, delivery_id) DO NOTHING`, byColumn(rows)...)
		if err != nil {
			return err
		}
		if made = tag.RowsAffected(); made == 0 {
			return nil
		}
		if err := r.store.supersede(ctx, tx, attempts); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE delivery_destinations SET next_due_at = least(next_due_at, $3)
			WHERE (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, append(byColumn(destinations), now)...); err != nil {
			return err
		}
		return operation.Record(ctx, tx, r.actor, now, operation.Entry{Action: "delivery.replay", Subject: string(r.kind.Kind), Detail: map[string]any{
			"since": r.Since, "until": r.Until, "destination": r.Only, "redelivery": r.Redelivery, "sessions": r.SessionIDs, "event": r.EventID, "made": made,
		}})
	})
	return made, err
}
