package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
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
}

// Change runs do in a transaction. After an error nothing has changed. Without keys
// Before holds no secrets, and do cannot seal any.
func Change(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, now time.Time, do func(*Tx) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		t := &Tx{Tx: tx, Now: now, keys: keys, q: db.New(tx)}
		if _, err := t.q.LockRevision(ctx); err != nil {
			return fmt.Errorf("locking the registry: %w", err)
		}
		var err error
		if t.Before, err = load(ctx, t.q, keys, ""); err != nil {
			return err
		}
		return do(t)
	})
}

// View reads the registry as it is now, without secrets, and calls read in the same
// snapshot of the database. simulators is the address of the simulators.
func View(ctx context.Context, pool *pgxpool.Pool, simulators string, read func(pgx.Tx, *Snapshot) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		s, err := load(ctx, db.New(tx), nil, simulators)
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
// transaction. It is 0 for an unknown agency.
func SingleApprovalBelow(ctx context.Context, tx pgx.Tx, agencyID string) (int64, error) {
	id, ok := form.CanonicalUUID(agencyID)
	if !ok {
		return 0, nil
	}
	below, err := db.New(tx).SingleApprovalBelow(ctx, id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("reading the agency's policy: %w", err)
	}
	return below, nil
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
	if ok && !old.Locked && old.BaseURL == e.BaseURL && old.Auth.Type == e.Auth.Type && old.Auth.Name == e.Auth.Name &&
		old.Auth.Secret.Equal(e.Auth.Secret) && old.ConflictIsDone == e.ConflictIsDone && slices.Equal(old.Networks, e.Networks) {
		return nil
	}
	sealed, err := t.keys.Seal(LabelERP, []byte(e.Auth.Secret.Reveal()), erpAAD(e.AgencyID, e.Live))
	if err != nil {
		return err
	}
	return t.q.UpsertERPSettings(ctx, db.UpsertERPSettingsParams{
		AgencyID: e.AgencyID, Live: e.Live, BaseUrl: ToStored(e.BaseURL), AuthType: string(e.Auth.Type), AuthName: e.Auth.Name,
		AuthSealed: sealed, ConflictIsDone: e.ConflictIsDone, Networks: e.Networks,
	})
}

// AddCashin gives an application the deprecated cash-in surface, where it may do nothing until
// it is configured. An application that has it stays as it is.
func (t *Tx) AddCashin(ctx context.Context, applicationID string) error {
	return t.q.AddCashinAccess(ctx, applicationID)
}

// PutCashin stores what an application may do on the deprecated cash-in surface.
func (t *Tx) PutCashin(ctx context.Context, applicationID string, c Cashin) error {
	return t.q.UpsertCashinAccess(ctx, db.UpsertCashinAccessParams{
		ApplicationID: applicationID, RedirectOrigins: c.RedirectOrigins, WebhookUrl: ToStored(c.WebhookURL), Providers: c.Providers,
	})
}
