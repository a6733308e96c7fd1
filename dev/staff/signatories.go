package staff

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/passkeys"
)

// Times before the present at which the demo's commands about an agency's roster are dated. The domain has no other way for
// developers: what the first two people sign counts a day after their enrolment, and what they sign settles for a day.
const (
	firstEnrolled = 73 * time.Hour
	othersSigned  = 48 * time.Hour
)

// Agent is the role in the demo policy whose people approve.
const Agent = "agent"

// TwoFrom is the sum of a day, in minor units of the demo policy's currency, above which two people approve.
const TwoFrom = 10_000_000

// demoPolicy asks for one person up to TwoFrom a day, and for two above.
func demoPolicy() policy.Policy {
	return policy.Policy{
		Currency: "XAF",
		Tiers: []policy.Tier{
			{UpTo: TwoFrom, Rules: []policy.Rule{{Role: Agent, Needed: 1}}},
			{Rules: []policy.Rule{{Role: Agent, Needed: 2}}},
		},
		ApproveWithin: 72 * time.Hour, PayWithinDays: 5, NameCheck: policy.CheckOff, Release: policy.ReleaseManual,
	}
}

// delegatedFor is how long the demo's delegation lasts.
const delegatedFor = 365 * 24 * time.Hour

// Signatories are how demo people sign for batches.
type Signatories struct {
	// PreparerKey is the st_ key of the preparer; empty in a data folder whose agency had people before.
	PreparerKey string
}

// ErrSignatories says that other people than the demo's, or other passkeys of theirs, sign for batches of the agency.
var ErrSignatories = errors.New("the roster of the agency has other people or passkeys than the demo's")

// Enrol enrols the demo people who sign for batches of DemoAgency, which has the id tenantID, and sets the policy of its test
// mode. The commands are dated two and three days back, so that all of it is in force; they are signed by passkeys of the first
// two people, and the processor verifies them as any other. Steps that were taken before are left out. The error is
// ErrSignatories when the roster is not the demo's.
func (p *People) Enrol(ctx context.Context, tenantID string, processor disbursements.Asker, batches *disbursements.Store) (out Signatories, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := enrolment{People: p, ctx: ctx, tenantID: tenantID, processor: processor, people: map[string]signatory{}}
	for _, name := range []string{Preparer, Approver1, Approver2, Delegate} {
		who, err := p.person(ctx, name)
		if err != nil {
			return out, err
		}
		e.people[name] = signatory{keptPerson: who}
		if name == Preparer {
			out.PreparerKey = who.StaffKey
		}
	}
	if err := e.known(); err != nil {
		return out, err
	}
	agency, roster, err := batches.Agency(ctx, tenantID, false)
	if err != nil {
		return out, err
	}
	for _, s := range e.people {
		if member, ok := roster.Find(s.ID.String()); ok && !slices.ContainsFunc(member.Keys, func(k policy.Key) bool { return k.Hash == s.hashes[0] }) {
			return out, ErrSignatories
		}
	}
	if _, ours := roster.Find(e.people[Preparer].ID.String()); !ours && len(roster.People) > 0 {
		return out, ErrSignatories
	}
	if agency.InForce(p.cfg.Now()).Version > 0 {
		return out, nil
	}
	return out, e.enrol(roster.Changes)
}

// signatory is a demo person with the hashes of the passkeys, and the public key of the one that signs.
type signatory struct {
	keptPerson
	number string
	hashes [][32]byte
	public []byte
}

// enrolment is the enrolling of an agency's demo people.
type enrolment struct {
	*People
	ctx       context.Context //nolint:containedctx // of one call
	tenantID  string
	processor disbursements.Asker
	people    map[string]signatory
}

// known reads numbers and public keys of the people.
func (e *enrolment) known() error {
	list, err := identity.ListStaff(e.ctx, e.cfg.Pool, nil)
	if err != nil {
		return err
	}
	for name, s := range e.people {
		i := slices.IndexFunc(list, func(m identity.StaffEntry) bool { return m.ID == s.ID.String() })
		if i < 0 {
			return fmt.Errorf("the demo person %s is not in the database", name)
		}
		s.number = list[i].Number
		for _, id := range s.Keys {
			for _, k := range list[i].Passkeys {
				if !k.InForce() || string(k.Credential.ID) != string(id.ID) {
					continue
				}
				s.hashes = append(s.hashes, [32]byte(k.SPKIHash))
				if s.public == nil {
					if s.public, err = k.Credential.SPKI(); err != nil {
						return err
					}
				}
			}
		}
		if len(s.hashes) != identity.MinPasskeys || s.number == "" {
			return fmt.Errorf("the demo person %s has no staff number or has lost a passkey: start with an empty data folder", name)
		}
		e.people[name] = s
	}
	return nil
}

// enrol takes the steps that follow a number of changes of the roster.
func (e *enrolment) enrol(changes int64) error {
	first := disbursement.Enrol{People: []disbursement.Enrolled{e.enrolled(Preparer), e.enrolled(Approver1, Agent)}, RPID: e.cfg.Party.Host(), Origin: e.cfg.URL}
	others := disbursement.Enrol{People: []disbursement.Enrolled{e.enrolled(Approver2, Agent), e.enrolled(Delegate)}}
	others.People[1].For, others.People[1].Until = e.people[Approver2].ID.String(), e.at(-delegatedFor)
	set := disbursement.SetPolicy{Policy: demoPolicy()}
	if changes < 1 {
		if err := e.ask(firstEnrolled, first); err != nil {
			return err
		}
	}
	var err error
	if changes < 2 {
		if others.Confirmed, err = e.signed(2, others.Content()); err == nil {
			err = e.ask(othersSigned, others)
		}
	}
	if err == nil {
		if set.Confirmed, err = e.signed(3, set.Content(false)); err == nil {
			err = e.ask(othersSigned, set)
		}
	}
	return err
}

// at returns a time before the present.
func (e *enrolment) at(ago time.Duration) time.Time {
	return e.cfg.Now().Add(-ago).UTC().Truncate(time.Millisecond)
}

func (e *enrolment) enrolled(name string, roles ...string) disbursement.Enrolled {
	s := e.people[name]
	return disbursement.Enrolled{ID: s.ID.String(), Number: s.number, Roles: roles, Keys: s.hashes}
}

// signed has the first two people sign a change with a number.
func (e *enrolment) signed(number int64, content map[string]string) (out []disbursement.Signed, err error) {
	for _, name := range []string{Preparer, Approver1} {
		s := e.people[name]
		statement, err := digest.Change{Agency: e.tenantID, Number: number, Content: content, Person: s.ID.String()}.Statement()
		if err != nil {
			return nil, err
		}
		challenge := make([]byte, assertion.ChallengeSize-len(statement), assertion.ChallengeSize)
		_, _ = rand.Read(challenge) // never fails
		options, err := json.Marshal(passkeyOptions{Challenge: append(challenge, statement[:]...), RPID: e.cfg.Party.Host()})
		if err != nil {
			return nil, err
		}
		answer, err := e.press(s.keptPerson, options)
		if err != nil {
			return nil, err
		}
		parsed, err := passkeys.ParseAssertion(answer)
		if err != nil {
			return nil, err
		}
		proof := parsed.Evidence()
		out = append(out, disbursement.Signed{Person: s.ID.String(), Assertion: assertion.Assertion{
			PublicKey: s.public, ClientData: proof.ClientData, AuthenticatorData: proof.AuthenticatorData, Signature: proof.Signature,
		}})
	}
	return out, nil
}

// passkeyOptions are what a browser is given to have a passkey sign a challenge.
type passkeyOptions struct {
	Challenge protocol.URLEncodedBase64 `json:"challenge"`
	RPID      string                    `json:"rpId"`
}

// ask sends a command that is dated in the past.
func (e *enrolment) ask(ago time.Duration, do disbursement.Action) error {
	a, err := e.processor.Ask(e.ctx, disbursement.Command{At: e.at(ago), TenantID: e.tenantID, Do: do})
	switch {
	case err != nil:
		return err
	case a.Refusal != nil:
		return &disbursements.RefusedError{Refusal: *a.Refusal}
	}
	return nil
}
