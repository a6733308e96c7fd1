package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// LookAtRows finds the rows that decide and are not as they were signed. keys may be those of a role
// that verifies.
func LookAtRows(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys) (f signed.Findings, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		f, err = signed.Look(ctx, tx, keys)
		return err
	})
	if err != nil {
		return signed.Findings{}, fmt.Errorf("looking at the rows that decide: %w", err)
	}
	return f, nil
}

// SignAll signs the rows of tables that are not signed yet: an earlier release has written them. It returns
// their numbers by table; none when they are signed. also is called when there were such tables.
func SignAll(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, now time.Time, also func(context.Context, *Tx) error) (counts map[string]int, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		counts = nil
		if !t.rows.Waits() {
			return nil
		}
		if counts, err = t.rows.SignAll(ctx, t, now); err != nil {
			return err
		}
		if err := also(ctx, t); err != nil {
			return err
		}
		return operation.Record(ctx, t, actor, now, operation.Entry{Action: "rows.sign_all", Subject: "registry", Detail: map[string]any{"rows": counts}})
	})
	if err != nil {
		return nil, fmt.Errorf("signing the rows that decide: %w", err)
	}
	return counts, nil
}

// SignRows signs rows as they are now, although they do not verify: seen are what somebody has looked
// at, from LookAtRows. A row that has changed since is refused. now is the time of the service's clock.
// A refusal is an *operation.Error. After an error nothing has changed.
func SignRows(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, seen []signed.Row, now time.Time) (rows []signed.Row, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		rows = nil
		for _, s := range seen {
			r, err := t.rows.SignAs(ctx, t, s)
			if err != nil {
				return err
			}
			rows = append(rows, r)
			if err := operation.Record(ctx, t, actor, now, operation.Entry{Action: "rows.sign", Subject: r.ID.String()}); err != nil {
				return err
			}
		}
		return t.rows.Conclude(ctx, t, false, now)
	})
	if err != nil {
		return nil, fmt.Errorf("signing rows: %w", err)
	}
	return rows, nil
}

// AcceptRows takes the rows as they are for all that there are: tables that had lost rows are no longer
// found. now is the time of the service's clock. It returns those tables.
func AcceptRows(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, now time.Time) (lost []string, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		if lost = t.rows.Lost(); len(lost) == 0 {
			return nil
		}
		if err := t.rows.Conclude(ctx, t, true, now); err != nil {
			return err
		}
		return operation.Record(ctx, t, actor, now, operation.Entry{Action: "rows.accept", Subject: "registry", Detail: map[string]any{"tables": lost}})
	})
	if err != nil {
		return nil, fmt.Errorf("accepting the rows: %w", err)
	}
	return lost, nil
}
