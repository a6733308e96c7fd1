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
}

// manages reports whether the person decides about people of the group.
func (d demoPerson) manages() bool { return identity.Allowed(d.roles, identity.MayManagePeople) }

// demo are the people of developer mode. Two leads decide about a case together, an accountant and an approver about
// one of their agency, and two security officers about people.
var demo = []demoPerson{
	{"Démo Lead 1", "", []identity.Role{identity.RoleLead}},
	{"Démo Lead 2", "", []identity.Role{identity.RoleLead}},
	{"Démo Support", "", []identity.Role{identity.RoleSupport}},
	{"Démo Audit", "", []identity.Role{identity.RoleAuditor}},
	{"Démo Comptable", "impots", []identity.Role{identity.RoleAccountant}},
	{"Démo Approbateur", "impots", []identity.Role{identity.RoleApprover}},
	{"Démo Sécurité 1", "", []identity.Role{identity.RoleSecurityOfficer}},
	{"Démo Sécurité 2", "", []identity.Role{identity.RoleSecurityOfficer}},
}

// PeopleConfig configures People. All fields are required.
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
		return who, nil
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
	who, err := p.make(ctx, demo[i], known >= 0)
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
	then := p.cfg.Now().Add(-identity.ApprovesAfter - time.Minute)
	by := identity.By{Actor: operation.Actor{Kind: operation.ActorService, Name: "quittance-dev"}}
	req := identity.InvitationRequest{Person: identity.StaffRequest{Name: d.name, Agency: d.agency, Roles: d.roles}}
	if known { // the data folder has lost the passkeys
		req = identity.InvitationRequest{Known: d.name, Lost: true}
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
