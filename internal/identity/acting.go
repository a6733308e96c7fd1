package identity

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/internal/passkeys"
)

// Acting is a member of staff who is signed in, for one request. Nouns ask it what the person may do.
type Acting struct {
	Person Staff
	// Actor is the person with the address of the browser, for the audit table.
	Actor operation.Actor
	// BegunAt is when the person signed in, EndsAt when the session ends whatever the person does.
	BegunAt, EndsAt time.Time

	desk    *Desk
	session []byte // hash
	proof   *proof // nil for a request without a signature
}

// SignedIn reports whether a person acts in a session; false for the zero value.
func (a Acting) SignedIn() bool { return a.desk != nil }

// Service reports whether the person is one of the service's people, who act for all agencies.
func (a Acting) Service() bool { return a.Person.Operations() }

// Sees reports whether the person may see what is an agency's. An empty id is no agency's: the service's people see it.
func (a Acting) Sees(agencyID string) bool { return a.Person.ActsFor(agencyID) }

// May refuses what the person's roles do not allow, or what is another agency's. An empty id asks for the permission
// alone. The refusal is an *operation.Error with the code staff.not_permitted.
func (a Acting) May(p Permission, agencyID string) error {
	if !a.Person.InForce() || !a.Person.May(p) || agencyID != "" && !a.Sees(agencyID) {
		return notPermitted(a.Person, p)
	}
	return nil
}

// notPermitted is the refusal of what no role of a person allows.
func notPermitted(who Staff, p Permission) error {
	return operation.Refuse("staff.not_permitted", "", operation.Args{"permission": string(p), "roles": joined(who.Roles)})
}

// Still reads the person again in a transaction, and asks as May does. A revocation, a suspension or a change of roles
// waits for the end of the transaction. Whatever changes something begins with it.
func (a Acting) Still(ctx context.Context, tx pgx.Tx, p Permission, agencyID string) (Acting, error) {
	now, err := LockInForce(ctx, tx, a.desk.cfg.Keys, a.Person)
	if err != nil {
		return a, err
	}
	a.Person = now
	return a, a.May(p, agencyID)
}

// Counted returns the passkey with the count that was seen last.
func (p StaffPasskey) Counted() passkeys.Credential {
	c := p.Credential
	c.Authenticator.SignCount = p.SignCount
	return c
}
