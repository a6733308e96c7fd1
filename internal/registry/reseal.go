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
	"quittance/internal/signed"
)

// sealed is one ciphertext in the database.
type sealed struct {
	value []byte
	aad   []byte
	row   signed.ID
	// put replaces the value if it is still the one that was read.
	put func(ctx context.Context, with []byte) (int64, error)
}

// sealedColumn is a column of ciphertexts.
type sealedColumn struct {
	table, column, label string
	read                 func(ctx context.Context, tx pgx.Tx) ([]sealed, error)
}

// each reads the rows of a table as sealed values.
func each[R any](table string, one func(*db.Queries, R) sealed) func(context.Context, pgx.Tx) ([]sealed, error) {
	return func(ctx context.Context, tx pgx.Tx) (out []sealed, err error) {
		err = signed.Read(ctx, tx, nil, table, func(r R, row signed.Row) {
			s := one(db.New(tx), r)
			s.row = row.ID
			out = append(out, s)
		})
		return out, err
	}
}

// sealedColumns lists all columns of ciphertexts.
var sealedColumns = []sealedColumn{
	{"erp_settings", "auth_sealed", LabelERP, each("erp_settings", func(q *db.Queries, r db.ErpSetting) sealed {
		return sealed{value: r.AuthSealed, aad: erpAAD(r.AgencyID, r.Live), put: func(ctx context.Context, with []byte) (int64, error) {
			return q.ResealERP(ctx, db.ResealERPParams{Sealed: with, AgencyID: r.AgencyID, Live: r.Live, Was: r.AuthSealed})
		}}
	})},
	{"connector_accounts", "sealed", LabelConnector, each("connector_accounts", func(q *db.Queries, r db.ConnectorAccount) sealed {
		return sealed{value: r.Sealed, aad: AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), put: func(ctx context.Context, with []byte) (int64, error) {
			return q.ResealAccount(ctx, db.ResealAccountParams{Sealed: with, AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, Was: r.Sealed})
		}}
	})},
	{"replaced_accounts", "sealed", LabelConnector, each("replaced_accounts", func(q *db.Queries, r db.ReplacedAccount) sealed {
		return sealed{value: r.Sealed, aad: AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), put: func(ctx context.Context, with []byte) (int64, error) {
			return q.ResealReplacedAccount(ctx, db.ResealReplacedAccountParams{Sealed: with, ID: r.ID, Was: r.Sealed})
		}}
	})},
	{"connector_accounts (reports)", "reports_sealed", LabelReports, filled(each("connector_accounts", func(q *db.Queries, r db.ConnectorAccount) sealed {
		return sealed{value: r.ReportsSealed, aad: AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), put: func(ctx context.Context, with []byte) (int64, error) {
			return q.ResealAccountReports(ctx, db.ResealAccountReportsParams{Sealed: with, AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, Was: r.ReportsSealed})
		}}
	}))},
	{"replaced_accounts (reports)", "reports_sealed", LabelReports, filled(each("replaced_accounts", func(q *db.Queries, r db.ReplacedAccount) sealed {
		return sealed{value: r.ReportsSealed, aad: AccountKey{r.AgencyID, r.Live, r.Offer}.aad(), put: func(ctx context.Context, with []byte) (int64, error) {
			return q.ResealReplacedAccountReports(ctx, db.ResealReplacedAccountReportsParams{Sealed: with, ID: r.ID, Was: r.ReportsSealed})
		}}
	}))},
	{"webhook_secrets", "sealed", LabelWebhook, each("webhook_secrets", func(q *db.Queries, r db.WebhookSecret) sealed {
		return sealed{value: r.Sealed, aad: []byte(r.EndpointID), put: func(ctx context.Context, with []byte) (int64, error) {
			return q.ResealWebhookSecret(ctx, db.ResealWebhookSecretParams{Sealed: with, EndpointID: r.EndpointID, Digest: r.Digest, Was: r.Sealed})
		}}
	})},
	{"staff_issuers", "secret_sealed", LabelStaffIssuers, each("staff_issuers", func(q *db.Queries, r db.StaffIssuer) sealed {
		return sealed{value: r.SecretSealed, aad: IssuerAAD(r.ID, r.Address, r.AgencyID), put: func(ctx context.Context, with []byte) (int64, error) {
			return q.ResealStaffIssuer(ctx, db.ResealStaffIssuerParams{Sealed: with, ID: r.ID, Was: r.SecretSealed})
		}}
	})},
}

// filled leaves out rows of before the column was filled (SealReports).
func filled(read func(context.Context, pgx.Tx) ([]sealed, error)) func(context.Context, pgx.Tx) ([]sealed, error) {
	return func(ctx context.Context, tx pgx.Tx) ([]sealed, error) {
		values, err := read(ctx, tx)
		return slices.DeleteFunc(values, func(v sealed) bool { return len(v.value) == 0 }), err
	}
}

// signatures names the signatures of rows among the tables of sealed values.
const signatures = "signatures of rows"

// Reseal seals everything in the registry, and signs its rows, with the newest master key, in transactions of at
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
			err := Change(ctx, pool, keys, now, func(t *Tx) (err error) {
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
	total, err := signAgain(ctx, pool, keys, actor, now, batch, func(n int) { done += n; progress(done) })
	if err != nil {
		err = fmt.Errorf("signing rows again: %w", err)
	}
	return append(out, total), err
}

// signAgain signs the rows again that verify with an older master key. Those that do not verify stay as
// they are, and count as not opened.
func signAgain(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, now time.Time, batch int, progress func(n int)) (secret.Resealed, error) {
	total := secret.Resealed{Table: signatures}
	for more := true; more; {
		var n, before, unverified int
		err := Change(ctx, pool, keys, now, func(t *Tx) (err error) {
			if n, before, unverified, more, err = t.rows.Again(ctx, t, batch); err != nil || n == 0 {
				return err
			}
			if err := t.rows.Conclude(ctx, t, false, now); err != nil {
				return err
			}
			return operation.Record(ctx, t, actor, now, operation.Entry{
				Action: "secrets.reseal", Subject: signatures, Detail: map[string]any{"key": keys.Entries()[0].ID, "values": n},
			})
		})
		if err != nil {
			return total, err
		}
		total.Sealed, total.Unopened = total.Sealed+n, unverified
		total.Before = before + n - total.Sealed
		progress(n)
	}
	return total, nil
}

// reseal seals up to batch values of the column. more means that others may be left.
func (c sealedColumn) reseal(ctx context.Context, t *Tx, keys *secret.Keys, batch int) (r secret.Resealed, more bool, err error) {
	values, err := c.read(ctx, t)
	if err != nil {
		return r, false, err
	}
	for _, v := range values {
		if r.Sealed == batch {
			return r, true, nil
		}
		with, err := keys.Reseal(c.label, v.value, v.aad)
		switch {
		case with != nil && t.rows.Forged(v.row): // Reseal would sign what somebody else has written
			r.Unopened++
			continue
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
			values, err := column.read(ctx, tx)
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
		rows, err := signed.Begin(ctx, tx, nil)
		if err != nil {
			return err
		}
		out = append(out, secret.SealedValues{Table: signatures, Keys: rows.Keys()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("counting sealed values: %w", err)
	}
	return out, nil
}
