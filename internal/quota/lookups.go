package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quittance/internal/network"
)

// Executor is the part of a Postgres pool that Lookups uses.
type Executor interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Lookups limits the look-ups of references by people without an account, in a UTC minute and
// exactly over all instances together: those of each client, and those of unknown references
// by everybody, so that nobody finds references by trying. It is safe for concurrent use.
//
// Nobody can use up the limit of everybody to stop other people: above it only clients are
// refused that have looked up an unknown reference in this UTC hour. A client with many
// addresses so gets one more guess for each of them in an hour; counted by the minute it would
// get sixty. A mistyped reference is not looked up (checkout.ValidPaymentRef), so that few people
// look up an unknown one by mistake.
//
// A client is counted in all its networks (network.Of), because a subscriber of IPv6 may have
// 65536 of the narrowest kind.
type Lookups struct {
	// Postgres, with the migrations of internal/postgres.
	Postgres Executor
	// Now is the time in UTC.
	Now func() time.Time
	// PerClient is the number of look-ups of one client, Unknown that of unknown references
	// by all clients. Wider networks have multiples of PerClient (network.Multiples).
	PerClient, Unknown int
}

// Lookup is one look-up that Begin admitted.
type Lookup struct {
	lookups *Lookups
	// sources are the rows in which the look-up counts as one of an unknown reference.
	sources []source
	// minute is that of the row of everybody; zero when the look-up is not counted there.
	minute time.Time
}

// source is a row of the client, and the minute that it had.
type source struct {
	who    string
	minute time.Time
}

// everybody is the row of the unknown references. No client has this name.
const everybody = "unknown"

const (
	// countLookup counts a look-up as one of an unknown reference. It returns no row when the
	// limit is reached. The minute never goes back.
	countLookup = `INSERT INTO reference_lookups AS l (who, minute, count, unknown) VALUES ($1, $2, 1, 1)
ON CONFLICT (who) DO UPDATE SET
    minute  = GREATEST(l.minute, excluded.minute),
    count   = CASE WHEN l.minute < excluded.minute THEN 1 ELSE l.count + 1 END,
    unknown = CASE WHEN date_trunc('hour', l.minute, 'UTC') < date_trunc('hour', excluded.minute, 'UTC') THEN 1 ELSE l.unknown + 1 END
WHERE l.minute < excluded.minute OR l.count < $3
RETURNING minute, unknown, xmax = 0`

	uncountLookup = `UPDATE reference_lookups SET count = count - 1 WHERE who = $1 AND minute = $2 AND count > 0`

	// uncountUnknown leaves the look-up in the count of its client.
	uncountUnknown = `UPDATE reference_lookups SET unknown = unknown - 1
WHERE who = $1 AND date_trunc('hour', minute, 'UTC') = date_trunc('hour', $2::timestamptz, 'UTC') AND unknown > 0`

	// forgetLookups deletes more rows than a new client adds, so that the table stays small
	// without a task of its own. It never waits for a row that somebody else counts in.
	forgetLookups = `DELETE FROM reference_lookups WHERE who IN (
    SELECT who FROM reference_lookups WHERE minute < $1 AND who <> '` + everybody + `' ORDER BY minute LIMIT 20 FOR UPDATE SKIP LOCKED)`

	// keptLookups is an hour, and more than the clocks of instances differ.
	keptLookups = 70 * time.Minute
)

// Begin counts a look-up of a client (network.Client) as one of an unknown reference, until Found.
// ok is false when a limit is reached; until is then the time until the next minute begins. An
// error means that Postgres did not answer in time.
func (l *Lookups) Begin(ctx context.Context, client string) (q Lookup, until time.Duration, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := l.Now()
	minute := now.Truncate(time.Minute)
	until = minute.Add(time.Minute).Sub(now)
	q.lookups = l
	limits := l.limitsOf(client)
	if reached, err := l.reached(ctx, limits, minute); err != nil || reached {
		return Lookup{}, until, false, failed(err)
	}
	innocent := true // no other look-up of an unknown reference in this hour
	for _, of := range limits {
		counted, ok, err := l.count(ctx, of.who, minute, of.most)
		if err == nil && ok && counted.added {
			_, err = l.Postgres.Exec(ctx, forgetLookups, now.Add(-keptLookups))
		}
		if err != nil || !ok {
			return Lookup{}, until, false, errors.Join(failed(err), q.notUnknown(ctx))
		}
		q.sources = append(q.sources, source{of.who, counted.minute})
		innocent = innocent && (of.many || counted.unknown == 1)
	}
	counted, ok, err := l.count(ctx, everybody, minute, l.Unknown)
	switch {
	case err != nil || !ok && !innocent:
		return Lookup{}, until, false, errors.Join(failed(err), q.notUnknown(ctx))
	case ok:
		q.minute = counted.minute
	}
	return q, 0, true, nil
}

// limit is that of the look-ups of a row in a minute.
type limit struct {
	who  string
	most int
	// many says that many people are behind the network: the guess of one does not make the
	// others guess.
	many bool
}

// limitsOf are those of the networks of a client, from the narrow to the wide.
func (l *Lookups) limitsOf(client string) (limits []limit) {
	for w, name := range network.Of(client) {
		width := network.Width(w)
		limits = append(limits, limit{
			who: widths[w] + " " + name, most: network.Multiples[w] * l.PerClient,
			many: width == network.Provider || width == network.Site && network.Shared(client),
		})
	}
	return limits
}

// widths begin the names of rows.
var widths = [network.Widths]string{"client", "site", "provider"}

// full finds a row whose limit is reached.
const full = `SELECT EXISTS (SELECT FROM reference_lookups l JOIN unnest($1::text[], $2::integer[]) AS of (who, most) USING (who) WHERE l.minute >= $3 AND l.count >= of.most)`

// reached reports whether a limit is reached already. A flood from a wide network so adds no
// rows of its narrow ones.
func (l *Lookups) reached(ctx context.Context, limits []limit, minute time.Time) (reached bool, err error) {
	who, most := make([]string, len(limits)), make([]int, len(limits))
	for i, of := range limits {
		who[i], most[i] = of.who, of.most
	}
	err = l.Postgres.QueryRow(ctx, full, who, most, minute).Scan(&reached)
	return reached, err
}

// counted is a row after a look-up was counted in it. added says that the row is new.
type counted struct {
	minute  time.Time
	unknown int
	added   bool
}

// count counts one look-up in a row.
func (l *Lookups) count(ctx context.Context, who string, minute time.Time, most int) (row counted, ok bool, err error) {
	err = l.Postgres.QueryRow(ctx, countLookup, who, minute, most).Scan(&row.minute, &row.unknown, &row.added)
	if errors.Is(err, pgx.ErrNoRows) {
		return counted{}, false, nil
	}
	return row, err == nil, err
}

// Found says that the reference is known: the look-up counts for its client alone.
func (q Lookup) Found(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := q.notUnknown(ctx)
	if !q.minute.IsZero() {
		_, e := q.lookups.Postgres.Exec(ctx, uncountLookup, everybody, q.minute)
		err = errors.Join(err, failed(e))
	}
	return err
}

// notUnknown says that the look-up is not one of an unknown reference by its client.
func (q Lookup) notUnknown(ctx context.Context) (err error) {
	for _, s := range q.sources {
		_, e := q.lookups.Postgres.Exec(ctx, uncountUnknown, s.who, s.minute)
		err = errors.Join(err, failed(e))
	}
	return err
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("counting look-ups of references: %w", err)
}
