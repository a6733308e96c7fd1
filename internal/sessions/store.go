package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/kafka/consume"
	"quittance/internal/sessions/internal/db"
)

// Errors of Store, for errors.Is.
var (
	// ErrMoved says that a position is not where the writer believed: another writer
	// has applied the same records. Nothing was written.
	ErrMoved = errors.New("another writer has moved the position")
	// ErrRefused says that Postgres cannot hold a value, such as a text with a
	// zero byte: writing it again gives the same answer. Nothing was written.
	ErrRefused = fmt.Errorf("value cannot be stored: %w", consume.ErrRefused)
)

// Store writes the read model. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore makes a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Positions are the stored positions of a topic by partition.
func (s *Store) Positions(ctx context.Context, topic string) (map[int32]int64, error) {
	rows, err := db.New(s.pool).Positions(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	out := make(map[int32]int64, len(rows))
	for _, r := range rows {
		out[r.Partition] = r.Next
	}
	return out, nil
}

// Apply writes sessions as they stand after the records that moves pass, together
// with the new positions, or nothing. Positions count control records. A session
// with a higher sequence stays as it is, so order and repetition do not matter.
// Errors are ErrMoved, ErrRefused and those of a Postgres that is away. After one
// of those the batch may have been written; applying it again does no harm.
func (s *Store) Apply(ctx context.Context, sessions []checkout.Session, moves []consume.Move) error {
	rows, err := latest(sessions)
	if err != nil {
		return fmt.Errorf("applying events: %w: %w", ErrRefused, err)
	}
	owed := confirmations(sessions)
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		// Positions first: a second writer waits here, and then finds them moved.
		for _, m := range moves {
			if err := move(ctx, q, m); err != nil {
				return err
			}
		}
		if len(rows) == 0 {
			return nil
		}
		var failed error
		if len(owed) > 0 {
			q.OweConfirmation(ctx, owed).Exec(func(i int, err error) {
				if err != nil && failed == nil {
					failed = fmt.Errorf("confirmation of %s: %w", *owed[i].SessionID, err)
				}
			})
		}
		if failed != nil {
			return failed
		}
		q.UpsertSession(ctx, rows).Exec(func(i int, err error) {
			if err != nil && failed == nil {
				failed = fmt.Errorf("session %s: %w", rows[i].ID, err)
			}
		})
		return failed
	})
	if refused(err) {
		return fmt.Errorf("applying events: %w: %w", ErrRefused, err)
	}
	if err != nil {
		return fmt.Errorf("applying events: %w", err)
	}
	return nil
}

func move(ctx context.Context, q *db.Queries, m consume.Move) error {
	var n int64
	var err error
	if m.From == consume.None {
		n, err = q.InsertPosition(ctx, db.InsertPositionParams{Topic: m.Topic, Partition: m.Partition, Next: m.To})
	} else {
		n, err = q.MovePosition(ctx, db.MovePositionParams{Topic: m.Topic, Partition: m.Partition, Next: m.To, Expected: m.From})
	}
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("partition %d at %d: %w", m.Partition, m.From, ErrMoved)
	}
	return nil
}

// latest is one row a session: what it came to in this batch. In the order of
// ids, so that two writers cannot wait for each other.
func latest(sessions []checkout.Session) ([]db.UpsertSessionParams, error) {
	last := make(map[string]checkout.Session, len(sessions))
	for _, s := range sessions {
		if known, ok := last[s.ID]; !ok || known.Sequence < s.Sequence {
			last[s.ID] = s
		}
	}
	rows := make([]db.UpsertSessionParams, 0, len(last))
	for _, s := range last {
		row, err := toRow(s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b db.UpsertSessionParams) int { return strings.Compare(a.ID, b.ID) })
	return rows, nil
}

// confirmations are those that ERPs owe for sessions; in one order as well.
func confirmations(sessions []checkout.Session) []db.OweConfirmationParams {
	var rows []db.OweConfirmationParams
	for _, s := range sessions {
		if s.Confirms() {
			rows = append(rows, db.OweConfirmationParams{
				TransactionID: s.TransactionID, SessionID: &s.ID, TenantID: s.TenantID, Livemode: s.Live, CompletedAt: &s.EndedAt,
			})
		}
	}
	slices.SortFunc(rows, func(a, b db.OweConfirmationParams) int { return strings.Compare(a.TransactionID, b.TransactionID) })
	return rows
}

// refused tells a value that Postgres cannot hold (SQLSTATE classes 22 and 23)
// or a row that is too large for it from a Postgres that is away.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || pg.Code == "54000")
}
