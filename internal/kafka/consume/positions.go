package consume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrMoved says that a stored position differs from Move.From: another writer has applied
// the same records. The caller must not commit its transaction.
var ErrMoved = errors.New("another writer has moved the position")

// Positions is a Postgres table of positions. It has the columns topic and partition, and a
// column for the next offset, whose name is Next.
type Positions struct{ Table, Next string }

// Select returns the query of a topic's positions. Collect reads its rows.
func (p Positions) Select() string {
	return fmt.Sprintf(`SELECT partition, %s FROM %s WHERE topic = $1`, p.Next, p.Table)
}

// Read returns the positions of a topic by partition. A partition that was never read has
// none.
func (p Positions) Read(ctx context.Context, q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, topic string,
) (map[int32]int64, error) {
	rows, _ := q.Query(ctx, p.Select(), topic) // the rows return its error
	return p.Collect(rows)
}

// Collect reads the rows of the query of Select.
func (Positions) Collect(rows pgx.Rows) (map[int32]int64, error) {
	out := map[int32]int64{}
	var partition int32
	var next int64
	if _, err := pgx.ForEachRow(rows, []any{&partition, &next}, func() error { out[partition] = next; return nil }); err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	return out, nil
}

// Move writes moves. If another transaction has changed a position, it waits for the end of
// that transaction and returns ErrMoved.
func (p Positions) Move(ctx context.Context, tx pgx.Tx, moves []Move) error {
	for _, m := range moves {
		sql, args := fmt.Sprintf(`UPDATE %s SET %s = $3 WHERE topic = $1 AND partition = $2 AND %[2]s = $4`, p.Table, p.Next), []any{m.Topic, m.Partition, m.To, m.From}
		if m.From == None {
			sql, args = fmt.Sprintf(`INSERT INTO %s (topic, partition, %s) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, p.Table, p.Next), args[:3]
		}
		tag, err := tx.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("partition %d at %d: %w", m.Partition, m.From, ErrMoved)
		}
		if err != nil {
			return fmt.Errorf("writing a position: %w", err)
		}
	}
	return nil
}

// Apply runs the writes of a batch of records and moves the positions after them, in one
// transaction. Errors are ErrMoved, ErrRefused for a value that Postgres cannot hold, such
// as a text with a zero byte, and those of a Postgres that is away. After the latter the
// writes may have been done.
func (p Positions) Apply(ctx context.Context, pool *pgxpool.Pool, moves []Move, writes *pgx.Batch) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// Positions come first. A second writer waits here and then finds them moved.
		if err := p.Move(ctx, tx, moves); err != nil {
			return err
		}
		return tx.SendBatch(ctx, writes).Close()
	})
	if refused(err) {
		return fmt.Errorf("value cannot be stored: %w: %w", ErrRefused, err)
	}
	return err
}

// refused reports whether Postgres cannot hold a value (SQLSTATE classes 22 and 23) or a
// row is too large. Other errors mean that Postgres is away.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || pg.Code == "54000")
}
