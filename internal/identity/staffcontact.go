package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/contact"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/money"
)

// SealedContacts are the addresses of staff, for `secrets reseal`.
var SealedContacts = personal.Sealed{Table: "staff_contacts", Label: "staff address"}

// Opener opens sealed addresses: secret.Keys.
type Opener interface {
	Open(label string, ciphertext, aad []byte) ([]byte, error)
}

// StaffContact is where a member of staff gets digests, as operators see it. The zero value is
// none.
type StaffContact struct {
	// Email is the masked address; empty for none.
	Email    string
	Language money.Language
	// SetAt is when the address was given last.
	SetAt time.Time

	id     string
	sealed []byte
}

func toStaffContact(r contactRow) StaffContact {
	return StaffContact{Email: r.Masked, Language: money.Language(r.Locale), SetAt: r.SetAt, id: r.ID, sealed: r.Sealed}
}

// Open returns the address. Errors wrap secret.ErrUnknownKey and secret.ErrSealed.
func (c StaffContact) Open(keys Opener) (contact.Address, error) {
	row, err := uuid.Parse(c.id)
	if err != nil {
		return contact.Address{}, fmt.Errorf("opening the address of a member of staff: %w", err)
	}
	text, err := keys.Open(SealedContacts.Label, c.sealed, row[:])
	if err != nil {
		return contact.Address{}, fmt.Errorf("opening the address of a member of staff: %w", err)
	}
	return contact.ParseEmail(string(text))
}

// StaffContactRequest says where a member of staff gets digests.
type StaffContactRequest struct {
	// Email is an e-mail address as people write it. Empty leaves the address as it is.
	Email string
	// Language is that of the digests. Empty leaves it as it is; French for a first address.
	Language money.Language
}

// parse returns the address of the request. The errors do not repeat it.
func (r StaffContactRequest) parse() (contact.Address, error) {
	if r.Language != "" && !slices.Contains(money.Languages, r.Language) {
		return contact.Address{}, operation.Refuse("staff.language_unknown", "language", operation.Args{"languages": []string{string(money.French), string(money.English)}})
	}
	if r.Email == "" {
		return contact.Address{}, nil
	}
	a, err := contact.ParseEmail(r.Email)
	if err != nil {
		return contact.Address{}, operation.Refuse("staff.email_malformed", "email", nil)
	}
	return a, nil
}

// SetStaffContact gives a member of staff an e-mail address for digests, or another language.
// Giving the present address again lets messages reach it again after it was suppressed. named
// is the id or the name. now is the time of the service's clock. A refusal is an
// *operation.Error with the field id, email or language. After an error nothing has changed.
func SetStaffContact(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, req StaffContactRequest, now time.Time) (StaffEntry, error) {
	var changed StaffEntry
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		m, err := t.staffNamed(named)
		if err != nil {
			return err
		}
		if m.State() == StaffStateRevoked {
			return operation.Refuse("staff.contact_revoked", "id", operation.Args{"name": m.Name})
		}
		if err := t.setContact(ctx, m, req); err != nil {
			return err
		}
		if _, err := t.reread(ctx, ""); err != nil {
			return err
		}
		changed = t.staffEntry(t.member(m.ID))
		return t.recordContact(ctx, actor, "staff.set_contact", changed, map[string]any{"email_set": req.Email != "", "language": changed.Contact.Language})
	})
	if err != nil {
		return StaffEntry{}, fmt.Errorf("setting the address of a member of staff: %w", err)
	}
	return changed, nil
}

// setContact stores what a request gives.
func (t *Tx) setContact(ctx context.Context, m Staff, req StaffContactRequest) error {
	address, err := req.parse()
	if err != nil {
		return err
	}
	before := t.contacts[m.ID]
	language := req.Language
	if language == "" {
		language = before.Language
	}
	if language == "" {
		language = money.French
	}
	switch {
	case req.Email == "" && before.Email == "":
		return operation.Refuse("staff.no_contact", "email", operation.Args{"name": m.Name})
	case req.Email == "":
		return t.q.UpdateStaffLocale(ctx, db.UpdateStaffLocaleParams{StaffID: m.ID, Locale: string(language)})
	}
	row := uuid.Must(uuid.NewV7())
	sealed, err := t.tx.Keys().Seal(SealedContacts.Label, []byte(address.Text()), row[:])
	if err != nil {
		return err
	}
	if err := t.q.DeleteStaffContact(ctx, m.ID); err != nil {
		return err
	}
	return t.q.InsertStaffContact(ctx, db.InsertStaffContactParams{
		ID: row.String(), StaffID: m.ID, Sealed: sealed, Masked: address.Masked(), Locale: string(language), SetAt: t.tx.Now,
	})
}

// RemoveStaffContact removes the e-mail address of a member of staff, who gets no digests then, also one that does not
// verify.
// changed is false for a member without one. named is the id or the name. now is the time of
// the service's clock. A refusal is an *operation.Error with the field id. After an error
// nothing has changed.
func RemoveStaffContact(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, now time.Time) (removed StaffEntry, changed bool, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		m, err := t.staffNamed(named)
		if err != nil {
			return err
		}
		if changed = t.contacts[m.ID].Email != "" || t.refused[m.ID]; !changed {
			removed = t.staffEntry(m)
			return nil
		}
		if err := t.q.DeleteStaffContact(ctx, m.ID); err != nil {
			return err
		}
		if _, err := t.reread(ctx, ""); err != nil {
			return err
		}
		removed = t.staffEntry(t.member(m.ID))
		return t.recordContact(ctx, actor, "staff.remove_contact", removed, nil)
	})
	if err != nil {
		return StaffEntry{}, false, fmt.Errorf("removing the address of a member of staff: %w", err)
	}
	return removed, changed, nil
}

// recordContact records an operation on an address, without the address.
func (t *Tx) recordContact(ctx context.Context, actor operation.Actor, action string, e StaffEntry, detail map[string]any) error {
	return operation.Record(ctx, t.tx, actor, t.tx.Now, operation.Entry{Action: action, Subject: e.ID, AgencyID: e.AgencyID, Detail: detail})
}
