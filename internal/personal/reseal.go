package personal

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Sealed is a table whose column sealed holds personal data or keys, sealed with a master key. Its primary key is a UUID, which is the additional data.
type Sealed struct{ Table, Label string }

// DataKeys are the data keys.
var DataKeys = Sealed{"personal_keys", Label}

// Reseal seals all rows with the newest master key, in transactions of at most batch
// rows, each recorded in the audit table. A row that is being deleted is left out. It may be
// interrupted and called again. progress is called after each transaction. After an error
// the counts are of what was done until then.
func (s Sealed) Reseal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, now time.Time, batch int, progress func(done int)) (secret.Resealed, error) {
	total := secret.Resealed{Table: s.Table}
	after := uuid.UUID{}
	for rows := batch; rows == batch; {
		var r secret.Resealed
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
			if r, after, rows, err = s.resealBatch(ctx, tx, keys, after, batch); err != nil || r.Sealed == 0 {
				return err
			}
			return operation.Record(ctx, tx, actor, now, operation.Entry{
				Action: "secrets.reseal", Subject: s.Table, Detail: map[string]any{"key": keys.Entries()[0].ID, "values": r.Sealed},
			})
		})
		if err != nil {
			return total, fmt.Errorf("sealing %s again: %w", s.Table, err)
		}
		total.Sealed, total.Before, total.Unopened = total.Sealed+r.Sealed, total.Before+r.Before, total.Unopened+r.Unopened
		progress(total.Sealed)
	}
	return total, nil
}

// resealBatch seals the next rows after an id. It returns the last id and how many rows it
// has read.
func (s Sealed) resealBatch(ctx context.Context, tx pgx.Tx, keys *secret.Keys, after uuid.UUID, batch int) (r secret.Resealed, last uuid.UUID, n int, err error) {
	last = after
	// With SKIP LOCKED this transaction waits for nobody, so that it cannot deadlock with a
	// deletion. Rows only change here and are otherwise deleted.
	rows, _ := tx.Query(ctx, `SELECT id, sealed FROM `+s.Table+` WHERE id > $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED`, after, batch) // the rows return its error
	updates := &pgx.Batch{}
	var row []byte
	_, err = pgx.ForEachRow(rows, []any{&last, &row}, func() error {
		n++
		with, err := keys.Reseal(s.Label, row, last[:])
		switch {
		case secret.Unopened(err):
			r.Unopened++
		case err != nil:
			return err
		case with == nil:
			r.Before++
		default:
			r.Sealed++
			updates.Queue(`UPDATE `+s.Table+` SET sealed = $2 WHERE id = $1`, last, with)
		}
		return nil
	})
	if err != nil {
		return r, last, n, fmt.Errorf("reading sealed rows: %w", err)
	}
	if err := tx.SendBatch(ctx, updates).Close(); err != nil {
		return r, last, n, fmt.Errorf("writing sealed rows: %w", err)
	}
	return r, last, n, nil
}

// Count counts the rows by the id of the master key that sealed them.
func (s Sealed) Count(ctx context.Context, pool *pgxpool.Pool) (secret.SealedValues, error) {
	out := secret.SealedValues{Table: s.Table, Keys: map[string]int{}}
	// The id follows the format and its length (internal/secret).
	rows, _ := pool.Query(ctx, `SELECT substring(sealed FROM 1 FOR 2 + get_byte(sealed, 1)), count(*) FROM `+s.Table+` GROUP BY 1`)
	var header []byte
	var n int
	_, err := pgx.ForEachRow(rows, []any{&header, &n}, func() error {
		id, _ := secret.SealedWith(header)
		out.Keys[id] += n
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("counting sealed rows: %w", err)
	}
	return out, nil
}
