package sessions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/internal/tally"
	"quittance/schemas"
)

// Empty removes all sessions, their events and movements of cash, and sets the positions of a topic's partitions, in one
// transaction. The next writer goes on from there. Reads answer ErrBehind until the
// positions have reached the end of the topic again. Acceptances of ERPs stay, because
// checkout.events does not have those of earlier releases; Sweep removes the rows that no event makes.
func (s *Store) Empty(ctx context.Context, actor operation.Actor, now time.Time, topic string, next map[int32]int64) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Positions come first and in order, as in Apply. A writer that is at work then
		// finds its position moved.
		for _, p := range slices.Sorted(maps.Keys(next)) {
			if _, err := tx.Exec(ctx, `
				INSERT INTO readmodel_positions (topic, partition, next) VALUES ($1, $2, $3)
				ON CONFLICT (topic, partition) DO UPDATE SET next = excluded.next`, topic, p, next[p]); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `SELECT empty_readmodel()`); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "readmodel.rebuild", Subject: topic})
	})
	if err != nil {
		return fmt.Errorf("emptying the read model: %w", err)
	}
	return nil
}

// Sweep removes the rows of erp_confirmations that no event makes, which Empty leaves, and returns how many. They are found as
// Verify finds them, so that an acceptance that checkout.events does not have keeps its row.
func (s *Store) Sweep(ctx context.Context, cfg VerifyConfig) (removed int64, err error) {
	for {
		got, err := s.Verify(ctx, cfg)
		if err != nil {
			return removed, fmt.Errorf("looking for rows that no event makes: %w", err)
		}
		n := int64(0)
		for _, d := range got.Differences {
			if d.Table != confirmationsTable.name || d.Fault != FaultAdded {
				continue
			}
			found, err := deliveries.Forget(ctx, s.pool, d.Row, d.SessionID)
			if err != nil {
				return removed, err
			}
			if found {
				n++
			}
		}
		if removed += n; n == 0 || got.Unnamed == 0 {
			return removed, nil
		}
	}
}

// Tally returns the sums of all sessions, and the positions of a topic at the same moment.
func (s *Store) Tally(ctx context.Context, codec *schemas.Codec, topic string) (sums tally.Tally, at map[int32]int64, err error) {
	sums = tally.Tally{}
	err = pgx.BeginTxFunc(ctx, s.pool, oneSnapshot, func(tx pgx.Tx) error {
		if at, err = positions.Read(ctx, tx, topic); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `SELECT sequence, snapshot FROM sessions`) // the rows return its error
		var sequence int64
		var value []byte
		_, err := pgx.ForEachRow(rows, []any{&sequence, &value}, func() error {
			_, found, err := read(codec, value)
			if err != nil {
				return err
			}
			sums.Add(found.tally(sequence))
			return nil
		})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("summing the read model: %w", err)
	}
	return sums, at, nil
}

// Latest keeps the last snapshot of each session of a partition, to sum them.
type Latest map[string]Snapshot

// Add notes a snapshot. It keeps what the sum needs.
func (l Latest) Add(s *Snapshot) {
	if known, ok := l[s.ID]; !ok || known.Sequence < s.Sequence {
		var small Snapshot
		small.Sequence, small.Live, small.Currency, small.Status, small.Amount = s.Sequence, s.Live, s.Currency, s.Status, s.Amount
		l[s.ID] = small
	}
}

// Sum adds the sessions to a tally.
func (l Latest) Sum(sums tally.Tally) {
	for _, s := range l {
		sums.Add(s.tally(s.Sequence))
	}
}

// tally returns the session's part of a sum. A session has as many events as its sequence
// says.
func (s *Snapshot) tally(sequence int64) (tally.Key, tally.Count) {
	return tally.Key{Live: s.Live, Currency: s.Currency, Status: string(s.Status)}, tally.Count{Sessions: 1, Events: sequence, Amount: s.Amount}
}
