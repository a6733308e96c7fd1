package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// sealed is one ciphertext in the database.
type sealed struct {
	value []byte
	aad   []byte
	// put replaces the value if it is still the one that was read.
	put func(ctx context.Context, with []byte) (int64, error)
}

// sealedColumn is a column of ciphertexts.
type sealedColumn struct {
	table, column, label string
	read                 func(ctx context.Context, q *db.Queries) ([]sealed, error)
}

// sealedColumns lists all columns of ciphertexts.
var sealedColumns = []sealedColumn{
	{"erp_settings", "auth_sealed", LabelERP, func(ctx context.Context, q *db.Queries) ([]sealed, error) {
		rows, err := q.ERPSettings(ctx)
		return mapSealed(rows, err, func(r db.ErpSetting) sealed {
			return sealed{r.AuthSealed, erpAAD(r.AgencyID, r.Live), func(ctx context.Context, with []byte) (int64, error) {
				return q.ResealERP(ctx, db.ResealERPParams{Sealed: with, AgencyID: r.AgencyID, Live: r.Live, Was: r.AuthSealed})
			}}
		})
	}},
	{"connector_accounts", "sealed", LabelConnector, func(ctx context.Context, q *db.Queries) ([]sealed, error) {
		rows, err := q.ConnectorAccounts(ctx)
		return mapSealed(rows, err, func(r db.ConnectorAccount) sealed {
			return sealed{r.Sealed, AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), func(ctx context.Context, with []byte) (int64, error) {
				return q.ResealAccount(ctx, db.ResealAccountParams{Sealed: with, AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, Was: r.Sealed})
			}}
		})
	}},
	{"replaced_accounts", "sealed", LabelConnector, func(ctx context.Context, q *db.Queries) ([]sealed, error) {
		rows, err := q.ReplacedAccounts(ctx)
		return mapSealed(rows, err, func(r db.ReplacedAccount) sealed {
			return sealed{r.Sealed, AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), func(ctx context.Context, with []byte) (int64, error) {
				return q.ResealReplacedAccount(ctx, db.ResealReplacedAccountParams{Sealed: with, ID: r.ID, Was: r.Sealed})
			}}
		})
	}},
	{"connector_accounts (reports)", "reports_sealed", LabelReports, func(ctx context.Context, q *db.Queries) ([]sealed, error) {
		rows, err := q.ConnectorAccounts(ctx)
		out, err := mapSealed(rows, err, func(r db.ConnectorAccount) sealed {
			return sealed{r.ReportsSealed, AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), func(ctx context.Context, with []byte) (int64, error) {
				return q.ResealAccountReports(ctx, db.ResealAccountReportsParams{Sealed: with, AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, Was: r.ReportsSealed})
			}}
		})
		return notEmpty(out), err
	}},
	{"replaced_accounts (reports)", "reports_sealed", LabelReports, func(ctx context.Context, q *db.Queries) ([]sealed, error) {
		rows, err := q.ReplacedAccounts(ctx)
		out, err := mapSealed(rows, err, func(r db.ReplacedAccount) sealed {
			return sealed{r.ReportsSealed, AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), func(ctx context.Context, with []byte) (int64, error) {
				return q.ResealReplacedAccountReports(ctx, db.ResealReplacedAccountReportsParams{Sealed: with, ID: r.ID, Was: r.ReportsSealed})
			}}
		})
		return notEmpty(out), err
	}},
	{"webhook_secrets", "sealed", LabelWebhook, func(ctx context.Context, q *db.Queries) ([]sealed, error) {
		rows, err := q.WebhookSecrets(ctx)
		return mapSealed(rows, err, func(r db.WebhookSecret) sealed {
			return sealed{r.Sealed, []byte(r.EndpointID), func(ctx context.Context, with []byte) (int64, error) {
				return q.ResealWebhookSecret(ctx, db.ResealWebhookSecretParams{Sealed: with, EndpointID: r.EndpointID, Digest: r.Digest, Was: r.Sealed})
			}}
		})
	}},
}

// notEmpty leaves out rows of before the column was filled (SealReports).
func notEmpty(values []sealed) []sealed {
	return slices.DeleteFunc(values, func(v sealed) bool { return len(v.value) == 0 })
}

func mapSealed[R any](rows []R, err error, one func(R) sealed) ([]sealed, error) {
	out := make([]sealed, len(rows))
	for i, r := range rows {
		out[i] = one(r)
	}
	return out, err
}

// Reseal seals everything in the registry with the newest master key, in transactions of at
// most batch values, each recorded in the audit table. Other changes of the registry wait
// for a transaction, and none is lost. Every process must have the newest key before. Reseal
// may be interrupted and called again. progress is called after each transaction. After an
// error the counts are of what was done until then.
func Reseal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, now time.Time, batch int, progress func(done int)) ([]secret.Resealed, error) {
	var out []secret.Resealed
	done := 0
	for _, column := range sealedColumns {
		total := secret.Resealed{Table: column.table}
		for more := true; more; {
			var r secret.Resealed
			err := Change(ctx, pool, nil, now, func(t *Tx) (err error) {
				r, more, err = column.reseal(ctx, t, keys, batch)
				if err != nil || r.Sealed == 0 {
					return err
				}
				return operation.Record(ctx, t, actor, now, operation.Entry{
					Action: "secrets.reseal", Subject: column.table, Detail: map[string]any{"key": keys.Entries()[0].ID, "values": r.Sealed},
				})
			})
			if err != nil {
				return append(out, total), fmt.Errorf("sealing %s again: %w", column.table, err)
			}
			total.Sealed, total.Unopened = total.Sealed+r.Sealed, r.Unopened
			total.Before = r.Before + r.Sealed - total.Sealed // the last time it reads all values
			done += r.Sealed
			progress(done)
		}
		out = append(out, total)
	}
	return out, nil
}

// reseal seals up to batch values of the column. more means that others may be left.
func (c sealedColumn) reseal(ctx context.Context, t *Tx, keys *secret.Keys, batch int) (r secret.Resealed, more bool, err error) {
	values, err := c.read(ctx, t.q)
	if err != nil {
		return r, false, err
	}
	for _, v := range values {
		if r.Sealed == batch {
			return r, true, nil
		}
		with, err := keys.Reseal(c.label, v.value, v.aad)
		switch {
		case secret.Unopened(err):
			r.Unopened++
			continue
		case err != nil:
			return r, false, err
		case with == nil:
			r.Before++
			continue
		}
		n, err := v.put(ctx, with)
		if err != nil {
			return r, false, err
		}
		r.Sealed += int(n)
	}
	return r, false, nil
}

// Sealed counts all ciphertexts of the registry, in one snapshot of the database.
func Sealed(ctx context.Context, pool *pgxpool.Pool) (out []secret.SealedValues, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for _, column := range sealedColumns {
			values, err := column.read(ctx, db.New(tx))
			if err != nil {
				return fmt.Errorf("reading %s: %w", column.table, err)
			}
			counts := secret.SealedValues{Table: column.table, Keys: map[string]int{}}
			for _, v := range values {
				id, _ := secret.SealedWith(v.value)
				counts.Keys[id]++
			}
			out = append(out, counts)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("counting sealed values: %w", err)
	}
	return out, nil
}
