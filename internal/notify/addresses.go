package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/provider"
)

// The most messages besides codes that an address gets in an hour and in a day.
const (
	PerHour = 4
	PerDay  = 10
)

// unknownAtMost is the number of answers or reports in a row that an address reaches nobody
// after which it gets nothing but codes: a mailbox that does not exist says so at once, a number may be
// between two SIM cards.
var unknownAtMost = map[provider.Channel]int{provider.ChannelEmail: 1, provider.ChannelSMS: 3}

// Addresses remembers what the addresses of messages got, and whether they reach anybody. It
// knows them by the ids of their destinations. Safe for concurrent use.
type Addresses struct{ pool *pgxpool.Pool }

// NewAddresses makes Addresses over the pool, which the caller closes.
func NewAddresses(pool *pgxpool.Pool) *Addresses { return &Addresses{pool} }

// Admission says whether an address may get a message that is no code.
type Admission struct {
	// Suppressed is true for an address that reached nobody.
	Suppressed bool
	// FreeAt is when the limits of the address admit a message; zero: now.
	FreeAt time.Time
}

// Admit returns whether the destination may get a message now. The sink sends one message at a
// time to a destination, so the answer holds until Sent.
func (a *Addresses) Admit(ctx context.Context, destinationID string, now time.Time) (out Admission, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var sent []time.Time
	err = a.pool.QueryRow(ctx, `SELECT sent, suppressed_at IS NOT NULL FROM message_addresses WHERE destination_id = $1`, destinationID).Scan(&sent, &out.Suppressed)
	if errors.Is(err, pgx.ErrNoRows) {
		return Admission{}, nil
	}
	if err != nil {
		return Admission{}, fmt.Errorf("reading the limits of an address: %w", err)
	}
	for _, l := range []struct {
		most int
		in   time.Duration
	}{{PerHour, time.Hour}, {PerDay, 24 * time.Hour}} {
		if len(sent) < l.most {
			continue
		}
		if free := sent[len(sent)-l.most].Add(l.in).UTC(); free.After(now) && free.After(out.FreeAt) {
			out.FreeAt = free
		}
	}
	return out, nil
}

// Sent records that the provider has accepted a message to the destination that is no code.
// Where a report follows, the answers in a row stand until it comes: the acceptance does not
// say that the number has a subscriber.
func (a *Addresses) Sent(ctx context.Context, destinationID string, reportFollows bool, now time.Time) error {
	return a.write(ctx, `
		INSERT INTO message_addresses AS a (destination_id, sent, changed_at) VALUES ($1, ARRAY[$2::timestamptz], $2)
		ON CONFLICT (destination_id) DO UPDATE SET unknown = CASE WHEN $3 THEN a.unknown ELSE 0 END, changed_at = $2,
			sent = (SELECT coalesce(array_agg(at ORDER BY at), '{}') FROM (SELECT at FROM unnest(a.sent || $2::timestamptz) at WHERE at > $2::timestamptz - interval '1 day') day)`,
		destinationID, now, reportFollows)
}

// Unknown records the provider's answer that the address reaches nobody.
func (a *Addresses) Unknown(ctx context.Context, channel provider.Channel, destinationID string, now time.Time) error {
	return a.within(ctx, func(ctx context.Context) error { return countUnknown(ctx, a.pool, channel, destinationID, now) })
}

// countUnknown counts an answer or a report that the address reaches nobody.
func countUnknown(ctx context.Context, q executor, channel provider.Channel, destinationID string, now time.Time) error {
	_, err := q.Exec(ctx, `
		INSERT INTO message_addresses AS a (destination_id, unknown, suppressed_at, changed_at)
		VALUES ($1, 1, CASE WHEN 1 >= $3::integer THEN $2::timestamptz END, $2)
		ON CONFLICT (destination_id) DO UPDATE SET unknown = a.unknown + 1, changed_at = $2,
			suppressed_at = CASE WHEN a.unknown + 1 >= $3::integer THEN coalesce(a.suppressed_at, $2) ELSE a.suppressed_at END`,
		destinationID, now, unknownAtMost[channel])
	return err
}

// endUnknown ends the answers and reports in a row, because a message to the address was
// delivered. A suppression stays, and its count with it: only a code that was entered ends it,
// because the number may be somebody else's by now.
func endUnknown(ctx context.Context, q executor, destinationID string, now time.Time) error {
	_, err := q.Exec(ctx, `UPDATE message_addresses SET unknown = 0, changed_at = $2 WHERE destination_id = $1 AND unknown > 0 AND suppressed_at IS NULL`, destinationID, now)
	return err
}

// reached records that somebody has the address: a code that it got was entered.
func (a *Addresses) reached(ctx context.Context, destinationID string, now time.Time) error {
	return a.write(ctx, `UPDATE message_addresses SET unknown = 0, suppressed_at = NULL, changed_at = $2 WHERE destination_id = $1 AND (unknown > 0 OR suppressed_at IS NOT NULL)`, destinationID, now)
}

// LongestLift is the longest span of a Lift.
const LongestLift = 24 * time.Hour

// Lift ends the suppressions of a channel that began from since to before until, because the
// provider was wrong then, and returns their number. A span longer than LongestLift is an error.
func (a *Addresses) Lift(ctx context.Context, actor operation.Actor, channel provider.Channel, since, until, now time.Time) (lifted int64, err error) {
	if until.Sub(since) > LongestLift {
		return 0, fmt.Errorf("lifting suppressions: the span is longer than %v", LongestLift)
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE message_addresses SET unknown = 0, suppressed_at = NULL, changed_at = $4 WHERE `+suppressedWithin, string(channel)+"_", since, until, now)
		if lifted = tag.RowsAffected(); err != nil || lifted == 0 {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{
			Action: "suppressions.lift", Subject: string(channel), Detail: map[string]any{"since": since, "until": until, "addresses": lifted},
		})
	})
	if err != nil {
		return 0, fmt.Errorf("lifting suppressions: %w", err)
	}
	return lifted, nil
}

// CountSuppressed counts what Lift would end.
func (a *Addresses) CountSuppressed(ctx context.Context, channel provider.Channel, since, until time.Time) (n int64, err error) {
	if err := a.pool.QueryRow(ctx, `SELECT count(*) FROM message_addresses WHERE `+suppressedWithin, string(channel)+"_", since, until).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting suppressions: %w", err)
	}
	return n, nil
}

// suppressedWithin selects the addresses of a channel that were suppressed in a time.
const suppressedWithin = `starts_with(destination_id, $1) AND suppressed_at >= $2 AND suppressed_at < $3`

// executor is a pool or a transaction.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func (a *Addresses) write(ctx context.Context, sql string, args ...any) error {
	return a.within(ctx, func(ctx context.Context) error {
		_, err := a.pool.Exec(ctx, sql, args...)
		return err
	})
}

func (a *Addresses) within(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := write(ctx); err != nil {
		return fmt.Errorf("recording what an address got: %w", err)
	}
	return nil
}

// keptAddresses is how long a row without a suppression says something: the limits look back a
// day, and answers in a row may be further apart.
const keptAddresses = 90 * 24 * time.Hour

// Sweep deletes rows that say nothing any more.
func (a *Addresses) Sweep(ctx context.Context, now time.Time) (deleted int64, err error) {
	tag, err := a.pool.Exec(ctx, `DELETE FROM message_addresses WHERE suppressed_at IS NULL AND changed_at < $1`, now.Add(-keptAddresses))
	if err != nil {
		return 0, fmt.Errorf("deleting what old addresses got: %w", err)
	}
	return tag.RowsAffected(), nil
}
