package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// Tx is a transaction that changes the registry or tables that refer to it. Only one
// runs at a time, so nothing else changes the registry after Before was read.
type Tx struct {
	pgx.Tx
	// Before is the registry as it was when the transaction began.
	Before *Snapshot
	// Now is the service's clock, in UTC.
	Now  time.Time
	keys *secret.Keys
	q    *db.Queries
	rows *signed.Set
}

// attempts is how often a transaction begins that meets a change of somebody else, such as the last use
// of a key.
const attempts = 5

// serializationFailure is Postgres' code for a transaction that must be tried again.
const serializationFailure = "40001"

// Change runs do in a transaction, which sees one snapshot of the database, and signs the rows that do
// has changed (internal/signed). After an error nothing has changed. Without keys Before holds no
// secrets, do cannot seal any, and a change of rows that are signed is refused. do is called again when
// somebody else has changed a row meanwhile.
func Change(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, now time.Time, do func(*Tx) error) (err error) {
	for range attempts {
		err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			t, err := begin(ctx, tx, keys, now)
			if err != nil {
				return err
			}
			if err := do(t); err != nil {
				return err
			}
			return t.rows.Sign(ctx, tx, now)
		})
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != serializationFailure {
			return err
		}
	}
	return err
}

func begin(ctx context.Context, tx pgx.Tx, keys *secret.Keys, now time.Time) (*Tx, error) {
	t := &Tx{Tx: tx, Now: now, keys: keys, q: db.New(tx)}
	// Before the first query, so that the transaction sees what the one before it has changed.
	if _, err := tx.Exec(ctx, `LOCK TABLE registry_lock IN EXCLUSIVE MODE`); err != nil {
		return nil, fmt.Errorf("locking the registry: %w", err)
	}
	var err error
	if t.rows, err = signed.Begin(ctx, tx, keys); err != nil {
		return nil, err
	}
	t.Before, err = load(ctx, tx, loading{keys: keys})
	return t, err
}

// Keys are those of the transaction; nil for none.
func (t *Tx) Keys() *secret.Keys { return t.keys }

// Rows are the rows that decide, as they were when the transaction began.
func (t *Tx) Rows() *signed.Set { return t.rows }

// Forged reports whether a row does not verify that was there when the transaction began. It is false
// without keys.
func (t *Tx) Forged(r signed.Row) bool { return t.rows.Forged(r.ID) }

// Anew prepares a row to be written with a value in each column: if it does not verify, nothing of it
// stays.
func (t *Tx) Anew(ctx context.Context, table string, key ...any) error {
	return t.rows.Anew(ctx, t, signed.NewID(table, key...))
}

// View reads the registry as it is now, without secrets, and calls read in the same
// snapshot of the database. simulators is the address of the simulators.
func View(ctx context.Context, pool *pgxpool.Pool, simulators string, read func(pgx.Tx, *Snapshot) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		s, err := load(ctx, tx, loading{simulators: simulators})
		if err != nil {
			return err
		}
		return read(tx, s)
	})
}

// Read returns the registry as it is now, without secrets.
func Read(ctx context.Context, pool *pgxpool.Pool) (s *Snapshot, err error) {
	err = View(ctx, pool, "", func(_ pgx.Tx, now *Snapshot) error {
		s = now
		return nil
	})
	return s, err
}

// SingleApprovalBelow returns Agency.SingleApprovalBelow of an agency within a
// transaction. It is 0 for an unknown agency, and for one whose row does not verify with the keys.
func SingleApprovalBelow(ctx context.Context, tx pgx.Tx, keys *secret.Keys, agencyID string) (below int64, err error) {
	id, ok := form.CanonicalUUID(agencyID)
	if !ok {
		return 0, nil
	}
	err = signed.One(ctx, tx, signed.NewVerifier(keys), func(r db.Agency, row signed.Row) {
		if row.Verified {
			below = r.SingleApprovalBelow
		}
	}, "agencies", id)
	if err != nil {
		return 0, fmt.Errorf("reading the agency's policy: %w", err)
	}
	return below, nil
}

// TakesCash reports within a transaction whether a statement account is one of the counters'. One whose
// row does not verify with the keys may be.
func (k StatementAccountKey) TakesCash(ctx context.Context, tx pgx.Tx, keys *secret.Keys) (cash bool, err error) {
	id, ok := form.CanonicalUUID(k.AgencyID)
	if !ok {
		return false, nil
	}
	err = signed.One(ctx, tx, signed.NewVerifier(keys), func(r db.StatementAccount, row signed.Row) {
		cash = AccountKind(r.Kind) == AccountCash || keys != nil && !row.Verified
	}, "statement_accounts", id, k.Live, k.Code)
	if err != nil {
		return false, fmt.Errorf("reading the account of the case: %w", err)
	}
	return cash, nil
}

// Changed reports whether the transaction has changed the registry.
func (t *Tx) Changed(ctx context.Context) (bool, error) {
	revision, err := t.q.Revision(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the registry's revision: %w", err)
	}
	return revision != t.Before.Revision, nil
}

func erpAAD(agencyID string, live bool) []byte { return []byte(agencyID + "/" + Mode(live)) }

// PutERP stores the settings of an agency's ERP. It writes nothing when they are the
// stored ones, because sealing the same secret again would count as a change.
func (t *Tx) PutERP(ctx context.Context, e ERPSettings) error {
	old, ok := t.Before.erp[modeKey{e.AgencyID, e.Live}]
	forged := t.rows.Forged(signed.NewID("erp_settings", e.AgencyID, e.Live))
	if ok && !forged && !old.Locked && old.BaseURL == e.BaseURL && old.Auth.Type == e.Auth.Type && old.Auth.Name == e.Auth.Name &&
		old.Auth.Secret.Equal(e.Auth.Secret) && old.ConflictIsDone == e.ConflictIsDone && slices.Equal(old.Networks, e.Networks) && slices.Equal(old.Channels, e.Channels) {
		return nil
	}
	if err := t.Anew(ctx, "erp_settings", e.AgencyID, e.Live); err != nil {
		return err
	}
	sealed, err := t.keys.Seal(LabelERP, []byte(e.Auth.Secret.Reveal()), erpAAD(e.AgencyID, e.Live))
	if err != nil {
		return err
	}
	channels := make([]string, len(e.Channels))
	for i, c := range e.Channels {
		channels[i] = string(c)
	}
	return t.q.UpsertERPSettings(ctx, db.UpsertERPSettingsParams{
		AgencyID: e.AgencyID, Live: e.Live, BaseUrl: ToStored(e.BaseURL), AuthType: string(e.Auth.Type), AuthName: e.Auth.Name,
		AuthSealed: sealed, ConflictIsDone: e.ConflictIsDone, Networks: e.Networks, Channels: channels,
	})
}

// AddCashin gives an application the deprecated cash-in surface, where it may do nothing until
// it is configured. An application that has it stays as it is.
func (t *Tx) AddCashin(ctx context.Context, applicationID string) error {
	return t.q.AddCashinAccess(ctx, applicationID)
}

// PutCashin stores what an application may do on the deprecated cash-in surface.
func (t *Tx) PutCashin(ctx context.Context, applicationID string, c Cashin) error {
	if err := t.Anew(ctx, "cashin_access", applicationID); err != nil {
		return err
	}
	return t.q.UpsertCashinAccess(ctx, db.UpsertCashinAccessParams{
		ApplicationID: applicationID, RedirectOrigins: c.RedirectOrigins, WebhookUrl: ToStored(c.WebhookURL), Providers: c.Providers,
	})
}
