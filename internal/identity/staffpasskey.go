package identity

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// StaffPasskey is a passkey of a member of staff. It works at the pages of one host.
type StaffPasskey struct {
	ID, StaffID string
	// Host is the RP id, the name of the host of the pages.
	Host string
	// Name is what the person calls it.
	Name string
	// Credential has a count of zero. SignCount is the count that was seen last; the row's signature does not cover it.
	Credential passkeys.Credential
	SignCount  uint32
	// SPKIHash is the SHA-256 of the public key as SubjectPublicKeyInfo. No two passkeys have the same, also not removed ones.
	SPKIHash  []byte
	CreatedAt time.Time
	// ApprovesFrom is when the passkey begins to approve. Until then it signs in and proposes.
	ApprovesFrom time.Time
	RemovedAt    time.Time // zero: not removed
	LastUsedAt   time.Time // zero: never
	// Forged means that the row is not as it was signed: the passkey opens nothing.
	Forged bool
}

func toStaffPasskey(r passkeyRow, forged bool) StaffPasskey {
	return StaffPasskey{
		ID: r.ID, StaffID: r.StaffID, Host: r.Host, Name: r.Name, Credential: r.Credential, SignCount: uint32(r.SignCount), //nolint:gosec // a count of WebAuthn has 32 bits
		SPKIHash: r.SpkiHash, CreatedAt: r.CreatedAt, ApprovesFrom: r.ApprovesFrom, RemovedAt: value(r.RemovedAt), LastUsedAt: value(r.LastUsedAt), Forged: forged,
	}
}

// InForce reports whether the passkey opens anything.
func (p StaffPasskey) InForce() bool { return p.RemovedAt.IsZero() && !p.Forged }

// Approves reports whether the passkey approves at a time.
func (p StaffPasskey) Approves(now time.Time) bool { return p.InForce() && !now.Before(p.ApprovesFrom) }

// InForcePasskeys returns the passkeys of the person that open something.
func (s Staff) InForcePasskeys() []StaffPasskey {
	return slices.DeleteFunc(slices.Clone(s.Passkeys), func(p StaffPasskey) bool { return !p.InForce() })
}

// May reports whether a role of the person has a permission. Whether the person is in force is another question.
func (s Staff) May(p Permission) bool { return Allowed(s.Roles, p) }

// grant adds the role of a row.
func (s *Staff) grant(r roleRow, forged bool) {
	if forged {
		s.doubted = append(s.doubted, Role(r.Role))
		return
	}
	s.Roles = append(s.Roles, Role(r.Role))
	slices.Sort(s.Roles)
}

// loadPortals reads the roles and passkeys of staff, who are read before.
func (s *snapshot) loadPortals(ctx context.Context, tx pgx.Tx, v *signed.Verifier, forged func(signed.Row) bool) error {
	at := map[string]int{}
	for i, m := range s.staff {
		at[m.ID] = i
	}
	return errors.Join(
		signed.Read(ctx, tx, v, "staff_roles", func(r roleRow, row signed.Row) {
			if i, ok := at[r.StaffID]; ok {
				s.staff[i].grant(r, forged(row))
			}
		}),
		signed.Read(ctx, tx, v, "staff_passkeys", func(r passkeyRow, row signed.Row) {
			if i, ok := at[r.StaffID]; ok {
				s.staff[i].Passkeys = append(s.staff[i].Passkeys, toStaffPasskey(r, forged(row)))
			}
		}),
	)
}

// RemoveStatement is what the person signs to remove a passkey of the own.
func (p StaffPasskey) RemoveStatement(of Staff) Statement {
	return Statement{Kind: "staff_passkey", Subject: p.ID, Verdict: "remove", AgencyID: of.AgencyID, Digest: hex.EncodeToString(casework.Digest(map[string]string{
		"passkey": p.ID, "person": of.ID, "name": p.Name, "spki_hash": hex.EncodeToString(p.SPKIHash),
	}))}
}

// RemoveStaffPasskey removes a passkey of the person who acts, who signs RemoveStatement, while another one is in force. Nobody
// removes another person's: a person who lost them is invited again, or is revoked. now is the time of the service's clock. A refusal is an
// *operation.Error with the field id. After an error nothing has changed.
func RemoveStaffPasskey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, id string, now time.Time) (owner StaffEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		owner, err = t.removePasskey(ctx, by, id)
		return err
	})
	if err != nil {
		return StaffEntry{}, fmt.Errorf("removing a passkey of a member of staff: %w", err)
	}
	return owner, nil
}

// removePasskey is RemoveStaffPasskey within a transaction.
func (t *Tx) removePasskey(ctx context.Context, by By, id string) (owner StaffEntry, err error) {
	me, err := t.now(by.Signer.Person())
	if err != nil {
		return owner, err
	}
	parsed, _ := form.CanonicalUUID(id)
	own := me.InForcePasskeys()
	n := slices.IndexFunc(own, func(p StaffPasskey) bool { return p.ID == parsed })
	switch {
	case n < 0:
		return owner, operation.Refuse("passkey.unknown", "id", nil)
	case len(own) == 1:
		return owner, operation.Refuse("passkey.last", "id", nil)
	case len(own) <= MinPasskeys:
		if err := t.keepsManagers(me); err != nil {
			return owner, err
		}
	}
	if err := by.signed(ctx, t, own[n].RemoveStatement(me)); err != nil {
		return owner, err
	}
	if err := t.q.RemoveStaffPasskey(ctx, db.RemoveStaffPasskeyParams{ID: parsed, RemovedAt: &t.tx.Now}); err != nil {
		return owner, fmt.Errorf("removing passkey %s: %w", parsed, err)
	}
	if _, err := t.reread(ctx, ""); err != nil {
		return owner, err
	}
	owner = t.staffEntry(t.member(me.ID))
	return owner, operation.Record(ctx, t.tx, me.Actor(by.Actor.Origin), t.tx.Now, operation.Entry{Action: "staff.passkey_remove", Subject: me.ID, AgencyID: me.AgencyID, Detail: map[string]any{
		"group": owner.Group(), "passkey": parsed, "passkeys": len(own) - 1,
	}})
}
