package staff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/dev/simulator"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
)

// demoPerson is a person of developer mode.
type demoPerson struct {
	name   string
	agency string // slug; empty for operations
	roles  []identity.Role
	// number is the staff number; empty for none. Who signs for batches has one.
	number string
	// keyed gives the person an st_ key besides, with which commands are sent. It is made for the first person of an agency
	// only: later ones need a proposer.
	keyed bool
	// subject is who the person is at the identity provider of the agency; empty for a group without one.
	subject string
}

// manages reports whether the person decides about people of the group.
func (d demoPerson) manages() bool { return identity.Allowed(d.roles, identity.MayManagePeople) }

// DemoAgency is the slug of the agency whose demo people sign for batches. They are there from the first start, so keys of the
// agency's people approve nothing: it is not the agency of which examples add staff with keys.
const DemoAgency = "douanes"

// Names of demo people who sign for batches of DemoAgency.
const (
	Preparer  = "Démo Préparateur"
	Approver1 = "Démo Approbateur 1"
	Approver2 = "Démo Approbateur 2"
	Delegate  = "Démo Délégué"
)

// demo are the people of developer mode. Two leads decide about a case together, an accountant and an approver about
// one of their agency, whose people sign in at an identity provider, too, and two security officers about people. The preparer makes batches of the agency, which the approvers
// approve; the delegate stands for one of them.
var demo = []demoPerson{
	{name: "Démo Lead 1", roles: []identity.Role{identity.RoleLead}},
	{name: "Démo Lead 2", roles: []identity.Role{identity.RoleLead}},
	{name: "Démo Support", roles: []identity.Role{identity.RoleSupport}},
	{name: "Démo Audit", roles: []identity.Role{identity.RoleAuditor}},
	{name: Preparer, agency: DemoAgency, roles: []identity.Role{identity.RolePreparer}, number: "D-1", keyed: true},
	{name: Approver1, agency: DemoAgency, roles: []identity.Role{identity.RoleApprover}, number: "D-2"},
	{name: Approver2, agency: DemoAgency, roles: []identity.Role{identity.RoleApprover}, number: "D-3"},
	{name: Delegate, agency: DemoAgency, roles: []identity.Role{identity.RoleApprover}, number: "D-4"},
	{name: "Démo Comptable", agency: "impots", roles: []identity.Role{identity.RoleAccountant}, subject: simulator.IdPAccountant},
	{name: "Démo Approbateur", agency: "impots", roles: []identity.Role{identity.RoleApprover}, subject: simulator.IdPApprover},
	{name: "Démo Sécurité 1", roles: []identity.Role{identity.RoleSecurityOfficer}},
	{name: "Démo Sécurité 2", roles: []identity.Role{identity.RoleSecurityOfficer}},
}

// actor is who makes the demo people.
var actor = operation.Actor{Kind: operation.ActorService, Name: "quittance-dev"}

// demoAge is how long ago demo people were made: their passkeys approve, and signatures of the first two people of an agency's
// roster were in force when the others were enrolled.
const demoAge = 4 * 24 * time.Hour

// PeopleConfig configures People.
type PeopleConfig struct {
	// File keeps the passkeys of the people. It is made at the first sign-in.
	File string
	Pool *pgxpool.Pool
	// Keys sign the rows of people.
	Keys *secret.Keys
	// Party is that of the pages at URL.
	Party *passkeys.Party
	URL   string
	// Now is the service's clock, UTC.
	Now func() time.Time
	// Issuer is the simulated identity provider of the people with a subject there; empty for none: the one optional field.
	Issuer string
}

// People are the demo people of developer mode. A person is made at the first sign-in, as the command line makes the
// first people of a group: invited, with two passkeys, and confirmed. It implements the demo of the staff pages. Safe for
// concurrent use.
type People struct {
	cfg PeopleConfig

	mu     sync.Mutex
	kept   map[string]keptPerson // by name
	loaded bool
}

// keptPerson is a person in the file.
type keptPerson struct {
	ID   uuid.UUID                    `json:"id"`
	Keys []virtualwebauthn.Credential `json:"keys"`
	// StaffKey is the person's st_ key; empty for none.
	StaffKey string `json:"staff_key,omitempty"`
}

// NewPeople makes the demo people of an installation.
func NewPeople(cfg PeopleConfig) *People { return &People{cfg: cfg} }

// Names returns the names of the people.
func (p *People) Names() (names []string) {
	for _, d := range demo {
		names = append(names, d.name)
	}
	return names
}

// Answer answers options (PublicKeyCredentialRequestOptionsJSON) with the passkey of a person, who is made at first.
func (p *People) Answer(ctx context.Context, name string, options json.RawMessage) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, err := p.person(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.press(who, options)
}

// press answers options with the first passkey of a person.
func (p *People) press(who keptPerson, options json.RawMessage) ([]byte, error) {
	device, err := NewDevice(who.ID, p.cfg.URL)
	if err != nil {
		return nil, err
	}
	device.key, device.counts = who.Keys[0], false
	device.device.AddCredential(device.key)
	return device.Answer(options)
}

// person returns a person with passkeys, and makes one that the database does not have.
func (p *People) person(ctx context.Context, name string) (keptPerson, error) {
	i := slices.IndexFunc(demo, func(d demoPerson) bool { return d.name == name })
	if i < 0 {
		return keptPerson{}, errors.New("there is no such demo person")
	}
	if err := p.load(); err != nil {
		return keptPerson{}, err
	}
	staff, err := identity.ListStaff(ctx, p.cfg.Pool, nil)
	if err != nil {
		return keptPerson{}, err
	}
	known := slices.IndexFunc(staff, func(s identity.StaffEntry) bool { return s.Name == name })
	if who, kept := p.kept[name]; kept && known >= 0 && staff[known].ID == who.ID.String() {
		if staff[known].Issuer == p.cfg.Issuer {
			return who, nil
		}
		return who, p.introduce(ctx, demo[i]) // also when the installation has moved to other ports
	}
	if demo[i].manages() { // once two manage the group, nobody else of it can be made here
		for _, other := range demo {
			if other.agency == demo[i].agency && !other.manages() {
				if _, err := p.person(ctx, other.name); err != nil {
					return keptPerson{}, err
				}
			}
		}
	}
	var who keptPerson
	if err = p.leaveIssuer(ctx, demo[i], ""); err == nil { // people are made with passkeys alone, and introduced after that
		who, err = p.make(ctx, demo[i], known >= 0)
	}
	if err == nil {
		err = p.introduce(ctx, demo[i])
	}
	if err != nil {
		return keptPerson{}, fmt.Errorf("making the demo person %s: %w", name, err)
	}
	p.kept[name] = who
	text, err := json.MarshalIndent(p.kept, "", "  ")
	if err == nil {
		err = os.WriteFile(p.cfg.File, text, 0o600)
	}
	if err != nil {
		return keptPerson{}, fmt.Errorf("keeping the passkeys of demo people: %w", err)
	}
	return who, nil
}

// introduce says who a person is at the identity provider of the agency, and gives the agency that provider.
func (p *People) introduce(ctx context.Context, d demoPerson) error {
	if d.subject == "" || p.cfg.Issuer == "" {
		return nil
	}
	if err := p.leaveIssuer(ctx, d, p.cfg.Issuer); err != nil {
		return err
	}
	if _, err := identity.AddIssuer(ctx, p.cfg.Pool, p.cfg.Keys, actor, identity.IssuerRequest{
		Address: p.cfg.Issuer, ClientID: "quittance", Secret: secret.Mint(""), Agency: d.agency, Loopback: true,
	}, p.cfg.Now()); err != nil {
		return err
	}
	_, err := identity.BindSubject(ctx, p.cfg.Pool, p.cfg.Keys, actor, d.name, d.subject, p.cfg.Now())
	return err
}

// leaveIssuer ends the identity provider of a person's group, unless it is at an address.
func (p *People) leaveIssuer(ctx context.Context, d demoPerson, unless string) error {
	list, err := identity.ListIssuers(ctx, p.cfg.Pool, nil)
	i := slices.IndexFunc(list, func(i identity.IssuerEntry) bool { return i.Agency == d.agency })
	if err != nil || d.subject == "" || i < 0 || list[i].Address == unless {
		return err
	}
	_, err = identity.RemoveIssuer(ctx, p.cfg.Pool, p.cfg.Keys, actor, list[i].ID, p.cfg.Now())
	return err
}

// load reads the file once.
func (p *People) load() error {
	if p.loaded {
		return nil
	}
	p.kept = map[string]keptPerson{}
	text, err := os.ReadFile(p.cfg.File)
	if err == nil {
		err = json.Unmarshal(text, &p.kept)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the passkeys of demo people: %w; remove %s to make them anew", err, p.cfg.File)
	}
	p.loaded = true
	return nil
}

// make invites a person, makes two passkeys and confirms them, at a time so long ago that the passkeys approve now.
func (p *People) make(ctx context.Context, d demoPerson, known bool) (who keptPerson, err error) {
	then := p.cfg.Now().Add(-demoAge)
	by := identity.By{Actor: actor}
	req := identity.InvitationRequest{Person: identity.StaffRequest{Name: d.name, Agency: d.agency, Number: d.number, Roles: d.roles}}
	var refusal *operation.Error
	switch {
	case known: // the data folder has lost the passkeys
		req = identity.InvitationRequest{Known: d.name, Lost: true}
	case d.keyed:
		minted, err := identity.AddStaff(ctx, p.cfg.Pool, p.cfg.Keys, by.Actor, "", req.Person, then)
		switch {
		case err == nil:
			who.StaffKey, req = minted.Secret.Reveal(), identity.InvitationRequest{Known: d.name}
		case !errors.As(err, &refusal): // a data folder whose agency has people already gives no key
			return who, err
		}
	}
	invited, err := identity.InviteStaff(ctx, p.cfg.Pool, p.cfg.Keys, by, req, then)
	if err != nil {
		return who, err
	}
	_, browser, err := identity.AcceptInvitation(ctx, p.cfg.Pool, p.cfg.Keys, invited.Secret, "", then)
	if err != nil {
		return who, err
	}
	if who.ID, err = uuid.Parse(invited.StaffID); err != nil {
		return who, err
	}
	var entry identity.InvitationEntry
	for n := range identity.MinPasskeys {
		device, err := NewDevice(who.ID, p.cfg.URL)
		if err != nil {
			return who, err
		}
		options, err := identity.BeginInvitedPasskey(ctx, p.cfg.Pool, p.cfg.Keys, p.cfg.Party, browser, then)
		if err != nil {
			return who, err
		}
		response, err := device.Register(options)
		if err != nil {
			return who, err
		}
		if entry, err = identity.AddInvitedPasskey(ctx, p.cfg.Pool, p.cfg.Keys, p.cfg.Party, browser, fmt.Sprint("Démo ", n+1), response, "", then); err != nil {
			return who, err
		}
		who.Keys = append(who.Keys, device.key)
	}
	_, err = identity.ConfirmInvitation(ctx, p.cfg.Pool, p.cfg.Keys, by, invited.ID, entry.Digits(), then)
	return who, err
}
