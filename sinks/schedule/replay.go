package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
)

const (
	replayAtOnce = 500
	// replayPatience bounds the wait for the schedule to have applied what is
	// recorded: without that nobody can say what has been delivered.
	replayPatience = 15 * time.Second
)

// ErrBehind says that the schedule has not applied all outcomes, so that a replay
// could send again what was accepted.
var ErrBehind = errors.New("the schedule has not applied all outcomes")

// ReplayConfig is what Replay needs. All fields but Only, Again and Progress are
// required.
type ReplayConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	Pool  *pgxpool.Pool
	Kind  delivery.Kind
	// Destinations are the ids that a notification goes to, as configured now.
	Destinations func(n *record.Notification) []string
	// Now is the service's clock.
	Now func() time.Time

	// Only is the destination to replay for; empty for all.
	Only string
	// Again sends once more what was accepted, as a delivery of its own: the event
	// and its id are the same, the delivery's id derives from this word, so that a
	// replay that is repeated sends nothing twice. Empty: what was accepted stays
	// accepted.
	Again string
	// DryRun changes nothing.
	DryRun bool
	// Progress is told, now and then, how many records of how many are done.
	Progress kafka.Progress
}

// Replayed says what became of the deliveries that a range of notifications
// makes; in a dry run, what would.
type Replayed struct {
	Events int64
	// Unaddressed events go nowhere, as configured now.
	Unaddressed int64
	// Made are deliveries that did not exist and are now due.
	Made int64
	// Accepted ones have been accepted and are left alone.
	Accepted int64
	// Scheduled ones wait for their next attempt.
	Scheduled int64
	// Parked ones wait for a person, or are exhausted: a retry or a recovery sends
	// those.
	Parked int64
	// UnderWay ones are planned and not settled yet.
	UnderWay int64
	// Unreadable records cannot be decoded.
	Unreadable int64
}

// Replay makes the deliveries of notifications that were written from since to
// until, not including, by the broker's clock, that do not exist: those of
// endpoints that did not subscribe then, or that a lost database knew of. It puts
// them into the schedule, which sends them under each destination's cap. Nothing
// is sent that is under way or was accepted, also while planners and workers run.
func Replay(ctx context.Context, cfg ReplayConfig, since, until time.Time) (Replayed, error) {
	planning, sending, err := delivery.Stages(cfg.Kind)
	if err != nil {
		return Replayed{}, err
	}
	cl, err := cfg.Kafka.Client()
	if err != nil {
		return Replayed{}, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	r := &replay{cfg: cfg, underWay: map[string]struct{}{}, tables: newDailyTables(cfg.Pool)}

	// The order matters. What the planner has settled by now is on the topic of
	// deliveries; what the workers have not settled of that is under way; what they
	// have is an outcome, which the schedule then has.
	topic := cfg.Kafka.Prefix + planning.Topic
	spans, err := kafka.Between(ctx, adm, topic, since, until)
	if err != nil {
		return Replayed{}, err
	}
	unplanned, err := kafka.Unsettled(ctx, adm, topic, cfg.Kafka.Prefix+planning.Group)
	if err != nil {
		return Replayed{}, err
	}
	for p, s := range spans {
		if open, ok := unplanned[p]; ok {
			s.To = min(s.To, open.From) // the planner comes to the rest
			spans[p] = s
		}
	}
	deliveries := cfg.Kafka.Prefix + sending.Topic
	open, err := kafka.Unsettled(ctx, adm, deliveries, cfg.Kafka.Prefix+sending.Group)
	if err != nil {
		return Replayed{}, err
	}
	if err := cfg.Kafka.Read(ctx, deliveries, open, nil, func(rec *kgo.Record) (bool, error) {
		var d record.Delivery
		err := cfg.Codec.Decode(rec.Value, &d)
		if err == nil {
			r.underWay[d.DeliveryID] = struct{}{}
		}
		return true, ignoreUndecodable(err)
	}); err != nil {
		return Replayed{}, err
	}
	if err := caughtUp(ctx, adm, cfg.Kafka.Prefix+schemas.TopicAttempts, cfg.Pool); err != nil {
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

func ignoreUndecodable(err error) error {
	if errors.Is(err, schemas.ErrUndecodable) {
		return nil
	}
	return err
}

// caughtUp waits until Postgres has all outcomes that are recorded now.
func caughtUp(ctx context.Context, adm *kadm.Client, topic string, pool *pgxpool.Pool) error {
	h := History{pool: pool, adm: adm, topic: topic}
	behind, err := h.behind(ctx)
	if err != nil {
		return err
	}
	for begun := time.Now(); ; {
		is, err := behind(ctx)
		switch {
		case err != nil:
			return err
		case !is:
			return nil
		case time.Since(begun) > replayPatience:
			return ErrBehind
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
}

type replay struct {
	cfg      ReplayConfig
	tables   *dailyTables
	underWay map[string]struct{}
	batch    []record.Delivery
	replayed Replayed
}

// take adds a notification's deliveries to the batch.
func (r *replay) take(ctx context.Context, rec *kgo.Record) error {
	var n record.Notification
	if err := r.cfg.Codec.Decode(rec.Value, &n); errors.Is(err, schemas.ErrUndecodable) {
		r.replayed.Unreadable++
		return nil
	} else if err != nil {
		return err
	}
	r.replayed.Events++
	addressed := false
	for _, id := range r.cfg.Destinations(&n) {
		if r.cfg.Only != "" && r.cfg.Only != id {
			continue
		}
		addressed = true
		d := delivery.Plan(r.cfg.Kind, &n, id)
		if _, is := r.underWay[d.DeliveryID]; is {
			r.replayed.UnderWay++
			continue
		}
		r.batch = append(r.batch, *d)
	}
	if !addressed {
		r.replayed.Unaddressed++
	}
	if len(r.batch) < replayAtOnce {
		return nil
	}
	return r.flush(ctx)
}

// flush makes the batch's deliveries that do not exist.
func (r *replay) flush(ctx context.Context) error {
	batch := r.batch
	r.batch = nil
	if len(batch) == 0 {
		return nil
	}
	missing, accepted, err := r.sort(ctx, batch)
	if err != nil {
		return err
	}
	if r.cfg.Again != "" {
		for i := range accepted {
			accepted[i].DeliveryID = delivery.AgainID(r.cfg.Kind, accepted[i].EventID, accepted[i].DestinationID, r.cfg.Again)
		}
		var again []record.Delivery
		if again, accepted, err = r.sort(ctx, accepted); err != nil {
			return err
		}
		missing = append(missing, again...)
	}
	r.replayed.Accepted += int64(len(accepted))
	made := int64(len(missing))
	if !r.cfg.DryRun {
		if made, err = r.make(ctx, missing); err != nil {
			return err
		}
	}
	r.replayed.Made += made
	r.replayed.Scheduled += int64(len(missing)) - made // somebody else has made them meanwhile
	return nil
}

// sort counts the deliveries that exist and are left alone, and returns those that
// do not, and those that were accepted.
func (r *replay) sort(ctx context.Context, batch []record.Delivery) (missing, accepted []record.Delivery, err error) {
	known, err := r.states(ctx, batch)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range batch {
		switch known[d.DeliveryID] {
		case "":
			missing = append(missing, d)
		case stateDelivered:
			accepted = append(accepted, d)
		case stateWaiting, stateQueued:
			r.replayed.Scheduled++
		default:
			r.replayed.Parked++
		}
	}
	return missing, accepted, nil
}

// states are those of the deliveries that exist.
func (r *replay) states(ctx context.Context, batch []record.Delivery) (map[string]string, error) {
	on, ids := make([]time.Time, len(batch)), make([]string, len(batch))
	for i := range batch {
		on[i], ids[i] = day(batch[i].OccurredAt), batch[i].DeliveryID
	}
	rows, err := r.cfg.Pool.Query(ctx, `
		SELECT d.delivery_id, d.state FROM unnest($1::date[], $2::text[]) AS k (occurred_on, delivery_id)
		JOIN deliveries d ON d.occurred_on = k.occurred_on AND d.delivery_id = k.delivery_id`, on, ids)
	if err != nil {
		return nil, fmt.Errorf("asking what is delivered: %w", err)
	}
	known := map[string]string{}
	var id, state string
	if _, err := pgx.ForEachRow(rows, []any{&id, &state}, func() error { known[id] = state; return nil }); err != nil {
		return nil, fmt.Errorf("asking what is delivered: %w", err)
	}
	return known, nil
}

// make puts deliveries into the schedule, due now, and says how many there were
// not before.
func (r *replay) make(ctx context.Context, batch []record.Delivery) (int64, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	now := r.cfg.Now()
	outcomes := make([]outcome, len(batch))
	kinds, ids := make([]string, len(batch)), make([]string, len(batch))
	c := &columns{}
	for i := range batch {
		// As if it had been put off: no attempt is counted.
		outcomes[i].attempt = record.Attempt{Delivery: batch[i], Outcome: string(delivery.OutcomeDeferred), At: now, NextAttemptAt: now, Reason: reasonReplayed}
		kinds[i], ids[i] = batch[i].Kind, batch[i].DestinationID
		c.add(&outcomes[i].attempt)
	}
	if err := r.tables.ensure(ctx, outcomes); err != nil {
		return 0, err
	}
	var made int64
	err := pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			INSERT INTO delivery_destinations (kind, destination_id)
			SELECT * FROM unnest($1::text[], $2::text[]) AS c (kind, destination_id)
			ORDER BY kind COLLATE "C", destination_id COLLATE "C"
			ON CONFLICT DO NOTHING`, kinds, ids); err != nil {
			return err
		}
		if err := lockDestinations(ctx, tx, kinds, ids); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, insertDeliveries+` ON CONFLICT (occurred_on, delivery_id) DO NOTHING`, c.values()...)
		if err != nil {
			return err
		}
		made = tag.RowsAffected()
		_, err = tx.Exec(ctx, `
			UPDATE delivery_destinations SET next_due_at = least(next_due_at, $3)
			WHERE (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, kinds, ids, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("putting deliveries into the schedule: %w", err)
	}
	return made, nil
}

// reasonReplayed is a row's until its first attempt.
const reasonReplayed = "replayed"
