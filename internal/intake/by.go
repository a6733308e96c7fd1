package intake

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// By is the person who takes a step, and the machine or address that the person uses.
type By struct {
	Staff  identity.Staff
	Origin string
	// Acting is the person's sign-in on a page, whose passkey signs the step; the zero value for one who acts with a key.
	Acting identity.Acting
	// RequestID is the id of what the person requests on a page, which names it before it is stored, so that a press is of
	// one request. Without it a request has a new id.
	RequestID string

	// prepares notes what the passkey is to sign, and ends the step there; nil for a step that is taken.
	prepares *identity.Statement
}

// OnPage returns the person who is signed in on a page.
func OnPage(a identity.Acting) By { return By{Staff: a.Person, Origin: a.Actor.Origin, Acting: a} }

// Prepare checks a step on a page as far as the signature of the person's passkey, by the code that takes it, and returns what
// the passkey signs. take takes the step as the person that it is given. Nothing changes. A refusal is that of take.
func Prepare(by By, take func(By) error) (identity.Statement, error) {
	var s identity.Statement
	by.prepares = &s
	return identity.Prepared(&s, take(by))
}

// actor is the person for the audit table.
func (b By) actor() operation.Actor { return b.Staff.Actor(b.Origin) }

// at returns the time of a step: that in the statement that the passkey has signed, else now.
func (b By) at(now time.Time) time.Time {
	if b.Acting.Proven() {
		return b.Acting.SignedAt()
	}
	return now
}

// newID returns the id of what the person requests.
func (b By) newID() (string, error) {
	if !b.Acting.SignedIn() {
		return uuid.Must(uuid.NewV7()).String(), nil
	}
	id, ok := form.CanonicalUUID(b.RequestID)
	if !ok {
		return "", operation.Refuse("record.changed", "", nil)
	}
	return id, nil
}

// still refuses a person on a page whose roles allow it no more. Of one who acts with a key no role is asked.
func (b By) still(ctx context.Context, tx pgx.Tx, p identity.Permission, agencyID string) error {
	if !b.Acting.SignedIn() {
		return nil
	}
	_, err := b.Acting.Still(ctx, tx, p, agencyID)
	return err
}

// mayEnd refuses whoever may not end a request: somebody else's needs the permission to approve, and with a key that the group
// approves with keys.
func (b By) mayEnd(ctx context.Context, tx pgx.Tx, requester, agencyID string, now time.Time) error {
	switch own := b.Staff.ID == requester; {
	case b.Acting.SignedIn() && own:
		return b.still(ctx, tx, identity.MayPropose, agencyID)
	case b.Acting.SignedIn():
		return b.still(ctx, tx, identity.MayApprove, agencyID)
	case own:
		return nil
	}
	return identity.ApprovesWithKey(ctx, tx, b.Staff.AgencyID, now)
}

// stamp is what is stored of a signed step.
type stamp struct {
	digest, signature []byte
	proof             *string // nil for a step with a key
}

// sign signs a step about what is decided on. last says that the step needs no other one after it: then a group that
// approves with passkeys needs one. On a page the person's passkey has signed it.
func (b By) sign(ctx context.Context, tx pgx.Tx, keys *secret.Keys, p pact, verdict casework.DecisionState, now time.Time, last bool) (s stamp, err error) {
	at := b.at(now)
	if !b.Acting.SignedIn() && last {
		if err := identity.ApprovesWithKey(ctx, tx, b.Staff.AgencyID, at); err != nil {
			return s, err
		}
	}
	if b.Acting.SignedIn() {
		what := identity.Statement{Kind: p.Kind, Subject: p.Subject, Digest: hex.EncodeToString(casework.Digest(p.content)), Verdict: string(verdict), AgencyID: p.agencyID}
		if b.prepares != nil {
			*b.prepares = what
			return s, identity.ErrPrepared
		}
		id, err := b.Acting.Prove(ctx, tx, what)
		if err != nil {
			return s, err
		}
		s.proof = &id
	}
	s.digest, s.signature, err = p.sign(keys, verdict, b.Staff, at)
	return s, err
}

// noted adds the proof to an entry of the audit table.
func (s stamp) noted(e operation.Entry) operation.Entry {
	if s.proof != nil {
		e.Detail["proof"] = *s.proof
	}
	return e
}

// doing says what was being done, in an error.
func doing(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
