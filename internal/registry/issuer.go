package registry

import (
	"context"
	"fmt"
	"time"

	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// LabelStaffIssuers is of the sealed secrets with which the pages of staff ask identity providers (identity.Issuer).
const LabelStaffIssuers = "staff issuers"

// IssuerAAD is what the secret of an identity provider is bound to: the row, the address that it is sent to, and the group
// whose people sign in there; nil is operations.
func IssuerAAD(id, address string, agencyID *string) []byte {
	group := "operations"
	if agencyID != nil {
		group = *agencyID
	}
	return []byte(id + "/" + group + "/" + address)
}

// StaffIssuer is the row of an identity provider of staff. AgencyID is nil for operations.
type StaffIssuer struct {
	ID, Address, ClientID string
	Secret                secret.Text
	AgencyID              *string
	Algorithms            []string
	CreatedAt             time.Time
}

// PutStaffIssuer stores an identity provider. One with the id gets another client, secret and algorithms.
func (t *Tx) PutStaffIssuer(ctx context.Context, i StaffIssuer) error {
	sealed, err := t.keys.Seal(LabelStaffIssuers, []byte(i.Secret.Reveal()), IssuerAAD(i.ID, i.Address, i.AgencyID))
	if err == nil {
		err = t.q.PutStaffIssuer(ctx, db.PutStaffIssuerParams{
			ID: i.ID, Address: i.Address, ClientID: i.ClientID, SecretSealed: sealed, AgencyID: i.AgencyID, Algorithms: i.Algorithms, CreatedAt: i.CreatedAt,
		})
	}
	if err != nil {
		return fmt.Errorf("storing an identity provider: %w", err)
	}
	return nil
}

// RemoveStaffIssuer deletes an identity provider.
func (t *Tx) RemoveStaffIssuer(ctx context.Context, id string) error {
	if err := t.q.DeleteStaffIssuer(ctx, id); err != nil {
		return fmt.Errorf("removing an identity provider: %w", err)
	}
	return nil
}

// SetStaffIssuerOutage stores until when a passkey alone signs in, and why; nil for no outage.
func (t *Tx) SetStaffIssuerOutage(ctx context.Context, id string, until *time.Time, reason string) error {
	if err := t.q.SetIssuerOutage(ctx, db.SetIssuerOutageParams{ID: id, OutageUntil: until, OutageReason: reason}); err != nil {
		return fmt.Errorf("storing an outage: %w", err)
	}
	return nil
}
