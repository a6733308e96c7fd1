package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/schemas/record"
	"quittance/sinks/delivery"
)

// States of a delivery's row.
const (
	stateWaiting       = "waiting"
	stateQueued        = "queued"
	stateDelivered     = "delivered"
	stateNeedsOperator = "needs_operator"
	stateExhausted     = "exhausted"
)

// states that outcomes lead to.
var states = map[delivery.Outcome]string{
	delivery.OutcomeDelivered:     stateDelivered,
	delivery.OutcomeFailed:        stateWaiting,
	delivery.OutcomeDeferred:      stateWaiting,
	delivery.OutcomeNeedsOperator: stateNeedsOperator,
	delivery.OutcomeExhausted:     stateExhausted,
}

// lockDays serialises the making and dropping of daily tables.
const lockDays = 0x71756974 // "quit"

// day is the UTC day that a delivery is kept under.
func day(occurredAt time.Time) time.Time {
	return occurredAt.UTC().Truncate(24 * time.Hour)
}

func suffix(day time.Time) string { return day.Format("20060102") }

// dailyTables are those that deliveries and attempts are kept in, made when first
// needed. Safe for concurrent use.
type dailyTables struct {
	pool *pgxpool.Pool
	mu   sync.Mutex
	made map[string]bool // known to exist
}

func newDailyTables(pool *pgxpool.Pool) *dailyTables {
	return &dailyTables{pool: pool, made: map[string]bool{}}
}

// ensure makes the tables that a batch needs.
func (t *dailyTables) ensure(ctx context.Context, outcomes []outcome) error {
	missing := map[string]time.Time{}
	t.mu.Lock()
	for _, o := range outcomes {
		d := day(o.attempt.Delivery.OccurredAt)
		if name := suffix(d); !t.made[name] {
			missing[name] = d
		}
	}
	t.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	err := pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockDays); err != nil {
			return err
		}
		for name, d := range missing {
			for _, table := range []string{"deliveries", "delivery_attempts"} {
				if _, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s_%s PARTITION OF %s FOR VALUES FROM ('%s') TO ('%s')`,
					table, name, table, d.Format(time.DateOnly), d.AddDate(0, 0, 1).Format(time.DateOnly))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("making daily tables of deliveries: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range missing {
		t.made[name] = true
	}
	return nil
}

func positions(ctx context.Context, pool *pgxpool.Pool, topic string) (map[int32]int64, error) {
	rows, err := pool.Query(ctx, `SELECT partition, next_offset FROM delivery_positions WHERE topic = $1`, topic)
	if err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	at := map[int32]int64{}
	var p int32
	var next int64
	if _, err := pgx.ForEachRow(rows, []any{&p, &next}, func() error { at[p] = next; return nil }); err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	return at, nil
}

func lockPosition(ctx context.Context, tx pgx.Tx, topic string, partition int32) (int64, error) {
	if _, err := tx.Exec(ctx, `INSERT INTO delivery_positions (topic, partition, next_offset) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`, topic, partition); err != nil {
		return 0, fmt.Errorf("locking a position: %w", err)
	}
	var next int64
	if err := tx.QueryRow(ctx, `SELECT next_offset FROM delivery_positions WHERE topic = $1 AND partition = $2 FOR UPDATE`, topic, partition).Scan(&next); err != nil {
		return 0, fmt.Errorf("locking a position: %w", err)
	}
	return next, nil
}

func setPosition(ctx context.Context, tx pgx.Tx, topic string, partition int32, next int64) error {
	if _, err := tx.Exec(ctx, `UPDATE delivery_positions SET next_offset = $3 WHERE topic = $1 AND partition = $2`, topic, partition, next); err != nil {
		return fmt.Errorf("writing a position: %w", err)
	}
	return nil
}

// change is what a batch says of one destination.
type change struct {
	kind, id    string
	due         *time.Time // earliest next attempt
	succeeded   bool
	failing     *time.Time // first failure since the last success in the batch
	lastFailure *time.Time
	hold        *time.Time // nothing is to be sent until then
	gone        *time.Time
}

// fold sums outcomes up by destination, sorted, so that concurrent batches lock
// in one order.
func fold(outcomes []outcome) []*change {
	byID := map[[2]string]*change{}
	for _, o := range outcomes {
		a := o.attempt
		key := [2]string{a.Delivery.Kind, a.Delivery.DestinationID}
		c := byID[key]
		if c == nil {
			c = &change{kind: key[0], id: key[1]}
			byID[key] = c
		}
		switch delivery.Outcome(a.Outcome) {
		case delivery.OutcomeDelivered:
			c.succeeded, c.failing, c.lastFailure, c.hold = true, nil, nil, nil
		case delivery.OutcomeFailed, delivery.OutcomeExhausted, delivery.OutcomeNeedsOperator:
			if c.failing == nil {
				c.failing = &a.At
			}
			c.lastFailure = &a.At
			if a.HTTPStatus == statusGone && a.Delivery.Kind == string(delivery.KindWebhook) {
				c.gone = &a.At
			}
		case delivery.OutcomeDeferred:
			switch a.Reason {
			case delivery.ReasonMailboxFull, delivery.ReasonRateLimited: // how much there is, not how the destination is
			case delivery.ReasonSuspended: // that is a hold of its own, and may be over by now
			default:
				c.hold = &a.NextAttemptAt
			}
		}
		if states[delivery.Outcome(a.Outcome)] == stateWaiting && (c.due == nil || a.NextAttemptAt.Before(*c.due)) {
			c.due = &a.NextAttemptAt
		}
	}
	out := make([]*change, 0, len(byID))
	for _, c := range byID {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *change) int { return strings.Compare(a.kind+"\x00"+a.id, b.kind+"\x00"+b.id) })
	return out
}

// lockDestinations comes before any change of the destinations' deliveries. It is
// a statement of its own: the next one sees what others have written meanwhile.
// One order for all, and deliveries only under their destination's lock: so no
// two transactions wait for each other. What is named twice is locked once.
func lockDestinations(ctx context.Context, tx pgx.Tx, kinds, ids []string) error {
	if _, err := tx.Exec(ctx, `
		SELECT FROM delivery_destinations
		WHERE (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY kind COLLATE "C", destination_id COLLATE "C" FOR UPDATE`, kinds, ids); err != nil {
		return fmt.Errorf("locking destinations: %w", err)
	}
	return nil
}

// destinationsOf reads kinds and ids.
func destinationsOf(rows pgx.Rows) (kinds, ids []string, err error) {
	var kind, id string
	_, err = pgx.ForEachRow(rows, []any{&kind, &id}, func() error {
		kinds, ids = append(kinds, kind), append(ids, id)
		return nil
	})
	return kinds, ids, err
}

func upsertDestinations(ctx context.Context, tx pgx.Tx, changes []*change) error {
	n := len(changes)
	kinds, ids, succeeded := make([]string, n), make([]string, n), make([]bool, n)
	due, failing, last, hold, gone := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	for i, c := range changes {
		kinds[i], ids[i], succeeded[i] = c.kind, c.id, c.succeeded
		due[i], failing[i], last[i], hold[i], gone[i] = c.due, c.failing, c.lastFailure, c.hold, c.gone
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO delivery_destinations (kind, destination_id)
		SELECT kind, destination_id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS c (kind, destination_id, n) ORDER BY n
		ON CONFLICT DO NOTHING`, kinds, ids)
	if err == nil {
		err = lockDestinations(ctx, tx, kinds, ids)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `
		WITH change AS (
			SELECT c.*, CASE WHEN c.succeeded THEN c.failing ELSE coalesce(d.failing_since, c.failing) END AS failing_since
			FROM unnest($1::text[], $2::text[], $3::bool[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[])
				AS c (kind, destination_id, succeeded, due, failing, last_failure, hold, gone)
			JOIN delivery_destinations d USING (kind, destination_id)
		)
		UPDATE delivery_destinations d SET
			next_due_at = least(d.next_due_at, c.due),
			failing_since = c.failing_since,
			hold_until = CASE WHEN c.hold IS NOT NULL THEN c.hold WHEN c.succeeded THEN NULL ELSE d.hold_until END,
			suspended_at = CASE
				WHEN d.suspended_at IS NOT NULL THEN d.suspended_at
				WHEN c.gone > coalesce(d.resumed_at, '-infinity') THEN c.gone
				WHEN c.kind = 'webhook' AND c.last_failure - c.failing_since >= $9::interval THEN c.last_failure END,
			suspended_reason = CASE
				WHEN d.suspended_at IS NOT NULL THEN d.suspended_reason
				WHEN c.gone > coalesce(d.resumed_at, '-infinity') THEN 'gone'
				WHEN c.kind = 'webhook' AND c.last_failure - c.failing_since >= $9::interval THEN 'failing' END
		FROM change c WHERE d.kind = c.kind AND d.destination_id = c.destination_id`,
			kinds, ids, succeeded, due, failing, last, hold, gone, failingFor)
	}
	if err != nil {
		return fmt.Errorf("writing destinations: %w", err)
	}
	return nil
}

// columns of deliveries, as arrays for unnest.
type columns struct {
	on                                                       []time.Time
	id, kind, dest, event, name, app, tenant, session, state []string
	live                                                     []bool
	occurred, last                                           []time.Time
	attempts, round                                          []int32
	first, next                                              []*time.Time
	status                                                   []*int32
	reason                                                   []*string
	body                                                     [][]byte
}

func (c *columns) add(a *record.Attempt) {
	d := &a.Delivery
	c.on, c.id = append(c.on, day(d.OccurredAt)), append(c.id, d.DeliveryID)
	c.kind, c.dest = append(c.kind, d.Kind), append(c.dest, d.DestinationID)
	c.event, c.name = append(c.event, d.EventID), append(c.name, d.Event)
	c.app, c.tenant, c.session = append(c.app, d.ApplicationID), append(c.tenant, d.TenantID), append(c.session, d.SessionID)
	c.live, c.occurred, c.last = append(c.live, d.Livemode), append(c.occurred, d.OccurredAt), append(c.last, a.At)
	state := states[delivery.Outcome(a.Outcome)]
	made := d.Attempt
	if delivery.Outcome(a.Outcome) == delivery.OutcomeDeferred {
		made-- // put off: costs no attempt
	}
	c.state, c.attempts, c.round = append(c.state, state), append(c.attempts, made), append(c.round, d.Round)
	c.first, c.next = append(c.first, nullTime(d.FirstAttemptAt)), append(c.next, nil)
	if state == stateWaiting {
		c.next[len(c.next)-1] = nullTime(a.NextAttemptAt)
	}
	c.status, c.reason = append(c.status, nullOf(a.HTTPStatus)), append(c.reason, nullOf(a.Reason))
	var body []byte
	if state != stateDelivered { // an operator may still send what is exhausted
		body = d.Body
	}
	c.body = append(c.body, body)
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func nullOf[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// upsertDeliveries applies outcomes in order. A statement changes a row once, so
// outcomes of one delivery go into successive statements.
func upsertDeliveries(ctx context.Context, tx pgx.Tx, outcomes []outcome) error {
	c, seen := &columns{}, map[string]bool{}
	for i := range outcomes {
		a := &outcomes[i].attempt
		if seen[a.Delivery.DeliveryID] {
			if err := c.write(ctx, tx); err != nil {
				return err
			}
			c = &columns{}
			clear(seen)
		}
		seen[a.Delivery.DeliveryID] = true
		c.add(a)
	}
	return c.write(ctx, tx)
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

func (c *columns) write(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, insertDeliveries+`
		ON CONFLICT (occurred_on, delivery_id) DO UPDATE SET
			state = excluded.state, attempts = greatest(d.attempts, excluded.attempts), round = greatest(d.round, excluded.round),
			first_attempt_at = coalesce(d.first_attempt_at, excluded.first_attempt_at), last_outcome_at = excluded.last_outcome_at,
			next_attempt_at = excluded.next_attempt_at, lease_until = NULL, http_status = excluded.http_status, reason = excluded.reason, body = excluded.body
		WHERE d.state <> 'delivered'
			AND (excluded.state = 'delivered' OR (excluded.round >= d.round AND d.state IN ('waiting', 'queued')))`, c.values()...)
	if err != nil {
		return fmt.Errorf("writing deliveries: %w", err)
	}
	return nil
}

// insertAttempts keeps the calls that were made; what was put off was none.
func insertAttempts(ctx context.Context, tx pgx.Tx, outcomes []outcome) error {
	var rows [][]any
	for _, o := range outcomes {
		a := o.attempt
		if delivery.Outcome(a.Outcome) == delivery.OutcomeDeferred {
			continue
		}
		rows = append(rows, []any{
			day(a.Delivery.OccurredAt), a.Delivery.DeliveryID, a.Delivery.Attempt, a.At, a.Outcome, a.DurationMs,
			nullOf(a.HTTPStatus), nullOf(a.Reason), nullOf(a.Answer),
		})
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"delivery_attempts"},
		[]string{"occurred_on", "delivery_id", "attempt", "at", "outcome", "duration_ms", "http_status", "reason", "answer"}, pgx.CopyFromRows(rows))
	if err != nil {
		return fmt.Errorf("writing attempts: %w", err)
	}
	return nil
}

// lease claims due deliveries of destinations that are not on hold, at most twice
// a destination's cap being on the topic at once, and one at a time after its
// breaker was open, until something is delivered.
func (s *Schedule) lease(ctx context.Context) ([]record.Delivery, error) {
	now := s.cfg.Now()
	var claimed []record.Delivery
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		claimed = nil
		type due struct {
			kind, id string
			probing  bool
		}
		rows, err := tx.Query(ctx, `
			SELECT kind, destination_id, hold_until IS NOT NULL FROM delivery_destinations
			WHERE next_due_at <= $1 AND suspended_at IS NULL AND (hold_until IS NULL OR hold_until <= $1)
			ORDER BY next_due_at LIMIT $2 FOR UPDATE SKIP LOCKED`, now, destinations)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (due, error) {
			var d due
			return d, row.Scan(&d.kind, &d.id, &d.probing)
		})
		if err != nil {
			return err
		}
		for _, d := range list {
			room := perDestination * max(s.cfg.MaxInFlight(delivery.Kind(d.kind), d.id), 1)
			if d.probing {
				room = 1
			}
			got, err := leaseOf(ctx, tx, d.kind, d.id, now, room)
			if err != nil {
				return err
			}
			claimed = append(claimed, got...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claiming due deliveries: %w", err)
	}
	return claimed, nil
}

func leaseOf(ctx context.Context, tx pgx.Tx, kind, id string, now time.Time, room int) ([]record.Delivery, error) {
	rows, err := tx.Query(ctx, `
		WITH chosen AS (
			SELECT occurred_on, delivery_id FROM deliveries
			WHERE kind = $1 AND destination_id = $2 AND state = 'waiting' AND next_attempt_at <= $3
			ORDER BY next_attempt_at
			LIMIT greatest(0, $4::int - (SELECT count(*)::int FROM deliveries WHERE kind = $1 AND destination_id = $2 AND state = 'queued'))
		)
		UPDATE deliveries d SET state = 'queued', round = d.round + 1, next_attempt_at = NULL, lease_until = clock_timestamp() + $5::interval
		FROM chosen c WHERE d.occurred_on = c.occurred_on AND d.delivery_id = c.delivery_id
		RETURNING d.delivery_id, d.kind, d.destination_id, d.event_id, d.event, d.application_id, d.tenant_id, d.session_id, d.livemode,
			d.occurred_at, d.attempts, d.round, d.first_attempt_at, d.body`, kind, id, now, room, claimLease)
	if err != nil {
		return nil, err
	}
	claimed, err := pgx.CollectRows(rows, toDelivery)
	if err != nil {
		return nil, err
	}
	// To the end of the line, so that destinations that have no room keep none
	// from the front; or out of it when nothing waits.
	_, err = tx.Exec(ctx, `
		UPDATE delivery_destinations SET next_due_at =
			(SELECT greatest(min(next_attempt_at), $3) FROM deliveries WHERE kind = $1 AND destination_id = $2 AND state = 'waiting' HAVING count(*) > 0)
		WHERE kind = $1 AND destination_id = $2`, kind, id, now.Add(lineWait))
	return claimed, err
}

func toDelivery(row pgx.CollectableRow) (record.Delivery, error) {
	var d record.Delivery
	var first *time.Time
	err := row.Scan(&d.DeliveryID, &d.Kind, &d.DestinationID, &d.EventID, &d.Event, &d.ApplicationID, &d.TenantID, &d.SessionID, &d.Livemode,
		&d.OccurredAt, &d.Attempt, &d.Round, &first, &d.Body)
	d.Attempt++ // the one to come
	d.OccurredAt = d.OccurredAt.UTC()
	if first != nil {
		d.FirstAttemptAt = first.UTC()
	}
	return d, err
}

// markQueued lengthens the leases of what stands on the topic: from here on
// Kafka holds it.
func markQueued(ctx context.Context, pool *pgxpool.Pool, claimed []record.Delivery) error {
	n := len(claimed)
	on, ids, rounds, kinds, to := make([]time.Time, n), make([]string, n), make([]int32, n), make([]string, n), make([]string, n)
	for i := range claimed {
		d := &claimed[i]
		on[i], ids[i], rounds[i], kinds[i], to[i] = day(d.OccurredAt), d.DeliveryID, d.Round, d.Kind, d.DestinationID
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := lockDestinations(ctx, tx, kinds, to); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			UPDATE deliveries d SET lease_until = clock_timestamp() + $4::interval
			FROM unnest($1::date[], $2::text[], $3::int[]) AS c (occurred_on, delivery_id, round)
			WHERE d.occurred_on = c.occurred_on AND d.delivery_id = c.delivery_id AND d.round = c.round AND d.state = 'queued'`,
			on, ids, rounds, queuedLease)
		return err
	})
	if err != nil {
		return fmt.Errorf("marking deliveries as queued: %w", err)
	}
	return nil
}

// returnLeases makes deliveries whose lease has run out wait again, due at once.
func (s *Schedule) returnLeases(ctx context.Context) error {
	rows, err := s.cfg.Pool.Query(ctx, `SELECT DISTINCT kind, destination_id FROM deliveries WHERE state = 'queued' AND lease_until < clock_timestamp()`)
	if err != nil {
		return err
	}
	kinds, ids, err := destinationsOf(rows)
	if err != nil || len(ids) == 0 {
		return err
	}
	return pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := lockDestinations(ctx, tx, kinds, ids); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			WITH late AS (
				UPDATE deliveries SET state = 'waiting', next_attempt_at = $1, lease_until = NULL
				WHERE state = 'queued' AND lease_until < clock_timestamp()
					AND (kind, destination_id) IN (SELECT * FROM unnest($2::text[], $3::text[]))
				RETURNING kind, destination_id
			)
			UPDATE delivery_destinations d SET next_due_at = least(d.next_due_at, $1)
			FROM (SELECT DISTINCT kind, destination_id FROM late) l WHERE d.kind = l.kind AND d.destination_id = l.destination_id`, s.cfg.Now(), kinds, ids)
		return err
	})
}

// tidy ends what a suspended endpoint has not been resumed for in thirty days,
// and drops days of which everything has ended long ago.
func (s *Schedule) tidy(ctx context.Context) error {
	now := s.cfg.Now()
	if err := s.endHeld(ctx, now.Add(-holdFor)); err != nil {
		return err
	}
	rows, err := s.cfg.Pool.Query(ctx, `
		SELECT substr(relid::text, length('deliveries_') + 1) FROM pg_partition_tree('deliveries') WHERE isleaf AND relid::text < $1 AND relid::text LIKE 'deliveries\_%'`,
		"deliveries_"+suffix(now.AddDate(0, 0, -keepDays)))
	if err != nil {
		return err
	}
	old, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := s.dropDay(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// endHeld exhausts what has waited since before a time for endpoints that were
// suspended before it.
func (s *Schedule) endHeld(ctx context.Context, before time.Time) error {
	return pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT kind, destination_id FROM delivery_destinations WHERE kind = 'webhook' AND suspended_at < $1
			ORDER BY kind COLLATE "C", destination_id COLLATE "C" FOR UPDATE`, before)
		if err != nil {
			return err
		}
		kinds, ids, err := destinationsOf(rows)
		if err != nil || len(ids) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE deliveries SET state = 'exhausted', next_attempt_at = NULL, reason = 'held_too_long'
			WHERE (kind, destination_id) IN (SELECT * FROM unnest($2::text[], $3::text[]))
				AND state = 'waiting' AND last_outcome_at < $1`, before, kinds, ids)
		return err
	})
}

func (s *Schedule) dropDay(ctx context.Context, name string) error {
	table, attempts := pgx.Identifier{"deliveries_" + name}.Sanitize(), pgx.Identifier{"delivery_attempts_" + name}.Sanitize()
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockDays); err != nil {
			return err
		}
		var open bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+` WHERE state NOT IN ('delivered', 'exhausted'))`).Scan(&open); err != nil || open {
			return err // never dropped: somebody has still to get it
		}
		_, err := tx.Exec(ctx, `DROP TABLE `+table+`, `+attempts)
		return err
	})
	if err != nil {
		return fmt.Errorf("dropping the deliveries of %s: %w", name, err)
	}
	s.tables.forget(name)
	return nil
}

func (t *dailyTables) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.made, name)
}
