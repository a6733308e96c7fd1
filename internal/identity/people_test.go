package identity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/test/office"
	"quittance/test/registries"
)

// team is an office whose people change the people.
type team struct {
	office.Office
	ctx context.Context //nolint:containedctx // of the test
}

func openTeam(t *testing.T, agency string, roles []identity.Role, names ...string) team {
	t.Helper()
	return team{office.Open(t, agency, roles, names...), t.Context()}
}

// commandLine is whoever runs the installation.
var commandLine = identity.By{Actor: registries.Actor}

// acting signs a person in. A second goes by, so that sessions have an order.
func (o team) acting(t *testing.T, name string) identity.Acting {
	t.Helper()
	o.MoveTo(o.Now().Add(time.Second))
	return o.Acting(t, name)
}

// page is a person on a page who has signed nothing.
func (o team) page(t *testing.T, name string) identity.By {
	t.Helper()
	return identity.By{Signer: o.acting(t, name).Signer()}
}

// signs is a person on a page whose passkey has signed a statement.
func (o team) signs(t *testing.T, name string, s identity.Statement) identity.By {
	t.Helper()
	return identity.By{Signer: o.Signs(t, o.acting(t, name), name, s).Signer()}
}

// captured is a person who is asked for a signature.
type captured struct {
	who  identity.Staff
	what identity.Statement
	err  error
}

func (c *captured) Person() identity.Staff { return c.who }

func (c *captured) Signed(_ context.Context, _ pgx.Tx, s identity.Statement) error {
	c.what, c.err = s, errors.New("asked for a signature")
	return c.err
}

// presses has a person do something and sign what the noun asks for.
func (o team) presses(t *testing.T, name string, do func(identity.By) error) error {
	t.Helper()
	c := &captured{who: o.acting(t, name).Person}
	if err := do(identity.By{Signer: c}); c.err == nil || !errors.Is(err, c.err) {
		return err
	}
	return do(o.signs(t, name, c.what))
}

// invites has a person invite, who signs it.
func (o team) invites(t *testing.T, name string, req identity.InvitationRequest) (made identity.NewInvitation, err error) {
	t.Helper()
	err = o.presses(t, name, func(by identity.By) error {
		made, err = o.invite(by, req)
		return err
	})
	return made, err
}

// proposes has a person propose a change, and sign it.
func (o team) proposes(t *testing.T, name string, req identity.StaffChangeRequest) (c identity.StaffChangeEntry, err error) {
	t.Helper()
	err = o.presses(t, name, func(by identity.By) error {
		c, err = identity.ProposeStaffChange(o.ctx, o.Pool, o.Keys, by, req, o.Now())
		return err
	})
	return c, err
}

func (o team) invite(by identity.By, req identity.InvitationRequest) (identity.NewInvitation, error) {
	return identity.InviteStaff(o.ctx, o.Pool, o.Keys, by, req, o.Now())
}

// join uses a link and makes passkeys on devices of their own. The devices are the person's from then on.
func (o team) join(t *testing.T, link secret.Text) identity.InvitationEntry {
	t.Helper()
	entry, browser, err := identity.AcceptInvitation(o.ctx, o.Pool, o.Keys, link, "203.0.113.9", o.Now())
	if err != nil {
		t.Fatal(err)
	}
	o.Devices[entry.Of.Name], o.IDs[entry.Of.Name] = nil, entry.StaffID
	for n := range 2 {
		device, err := staff.NewDevice(uuid.MustParse(entry.StaffID), office.URL)
		if err != nil {
			t.Fatal(err)
		}
		if entry, err = o.makePasskey(browser, device, fmt.Sprint("Clé ", n+1)); err != nil {
			t.Fatal(err)
		}
		o.Devices[entry.Of.Name] = append(o.Devices[entry.Of.Name], device)
	}
	return entry
}

func (o team) makePasskey(browser secret.Text, device *staff.Device, name string) (identity.InvitationEntry, error) {
	options, err := identity.BeginInvitedPasskey(o.ctx, o.Pool, o.Keys, o.Party(), browser, o.Now())
	if err != nil {
		return identity.InvitationEntry{}, err
	}
	response, err := device.Register(options)
	if err != nil {
		return identity.InvitationEntry{}, err
	}
	return identity.AddInvitedPasskey(o.ctx, o.Pool, o.Keys, o.Party(), browser, name, response, "203.0.113.9", o.Now())
}

func (o team) confirm(by identity.By, i identity.InvitationEntry, digits string) error {
	_, err := identity.ConfirmInvitation(o.ctx, o.Pool, o.Keys, by, i.ID, digits, o.Now())
	return err
}

func (o team) person(t *testing.T, name string) identity.StaffEntry {
	t.Helper()
	list, err := identity.ListStaff(o.ctx, o.Pool, signed.NewVerifier(o.Keys))
	if err != nil {
		t.Fatal(err)
	}
	n := slices.IndexFunc(list, func(e identity.StaffEntry) bool { return e.Name == name })
	if n < 0 {
		t.Fatalf("no %s", name)
	}
	return list[n]
}

func newPerson(name, agency string, roles ...identity.Role) identity.InvitationRequest {
	return identity.InvitationRequest{Person: identity.StaffRequest{Name: name, Agency: agency, Roles: roles}}
}

var admins = []identity.Role{identity.RoleAgencyAdmin}

// The first two people of a group are invited and confirmed on the command line. After that one of them invites, the
// other confirms with the digits, and the command line does neither.
func TestFirstPeopleAreInvited(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", nil)
	for _, name := range []string{"Awa", "Ben"} {
		made, err := o.invite(commandLine, newPerson(name, "impots", identity.RoleAgencyAdmin))
		if err != nil {
			t.Fatal(err)
		}
		if made.Of.State() != identity.StaffStateProposed || len(made.Of.Roles) != 0 {
			t.Errorf("invited: %+v", made.Of)
		}
		i := o.join(t, made.Secret)
		if len(i.Digits()) != 8 || strings.Trim(i.Digits(), "0123456789") != "" {
			t.Errorf("digits %q", i.Digits())
		}
		if _, err := o.SignInAs(t, name); err == nil {
			t.Error("the passkeys sign in before the confirmation")
		}
		if err := o.confirm(commandLine, i, " "+i.Digits()[:4]+" "+i.Digits()[4:]); err != nil {
			t.Fatal(err)
		}
	}
	awa := o.person(t, "Awa")
	if !awa.InForce() || !slices.Equal(awa.Roles, admins) || len(awa.InForcePasskeys()) != 2 || !awa.Passkeys[0].ApprovesFrom.Equal(o.Now().Add(identity.ApprovesAfter)) {
		t.Errorf("%+v", awa)
	}
	_, err := o.invite(commandLine, newPerson("Eve", "impots"))
	refusedBy(t, err, "staff.page_decides", "", "group=impots", "url=https://staff.example/")
	_, err = identity.SetStaffRoles(o.ctx, o.Pool, o.Keys, registries.Actor, "Ben", identity.RolesRequest{Add: []identity.Role{identity.RoleAccountant}}, o.Now())
	refusedBy(t, err, "staff.page_decides", "")
	_, err = identity.AddStaff(o.ctx, o.Pool, o.Keys, registries.Actor, "", identity.StaffRequest{Name: "Eve", Agency: "impots"}, o.Now().Add(identity.ApprovesAfter))
	refusedBy(t, err, "staff.invite_instead", "")

	_, err = o.invite(o.page(t, "Awa"), newPerson("Chloé", "impots", identity.RoleAccountant))
	refusedBy(t, err, "decision.passkey_needed", "")
	o.MoveTo(o.Now().Add(identity.ApprovesAfter))
	made, err := o.invites(t, "Awa", newPerson("Chloé", "impots", identity.RoleAccountant))
	if err != nil {
		t.Fatal(err)
	}
	i := o.join(t, made.Secret)
	refusedBy(t, o.confirm(commandLine, i, i.Digits()), "staff.page_decides", "")
	refusedBy(t, o.confirm(o.page(t, "Awa"), i, i.Digits()), "invitation.second_person", "id")
	refusedBy(t, o.confirm(o.page(t, "Ben"), i, i.Digits()), "decision.passkey_needed", "")
	refusedBy(t, o.confirm(o.signs(t, "Ben", i.Statement("00000000")), i, i.Digits()), "record.changed", "")
	if err := o.confirm(o.signs(t, "Ben", i.Statement(i.Digits())), i, i.Digits()); err != nil {
		t.Fatal(err)
	}
	chloe := o.person(t, "Chloé")
	if !chloe.InForce() || chloe.ProposedBy != o.IDs["Awa"] || chloe.ApprovedBy != o.IDs["Ben"] || !chloe.May(identity.MayPropose) {
		t.Errorf("%+v", chloe)
	}
	_, err = o.invites(t, "Chloé", newPerson("Eve", "impots"))
	refusedBy(t, err, "staff.not_permitted", "", "people.manage")
	if _, err := o.Challenge(o.ctx, o.acting(t, "Chloé"), office.Statement("case_1")); err == nil {
		t.Error("new passkeys approve at once")
	}
	got := slices.DeleteFunc(o.Audited(t), func(action string) bool { return action == "staff.sign_in" })
	if !slices.Equal(got[len(got)-5:], []string{"staff.invite", "staff.invitation_accept", "staff.invitation_passkey", "staff.invitation_passkey", "staff.confirm"}) {
		t.Errorf("recorded %v", got)
	}
}

// A link opens once, for 72 hours, and gives nothing without the digits. Five wrong ones end the invitation.
func TestInvitationLinks(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", admins, "Awa", "Ben")
	made, err := o.invites(t, "Awa", newPerson("Chloé", "impots", identity.RoleReader))
	if err != nil {
		t.Fatal(err)
	}
	accept := func(s secret.Text) error {
		_, _, err := identity.AcceptInvitation(o.ctx, o.Pool, o.Keys, s, "", o.Now())
		return err
	}
	_, err = o.invites(t, "Awa", identity.InvitationRequest{Known: "Chloé"})
	refusedBy(t, err, "invitation.open", "id")
	i := o.join(t, made.Secret)
	refusedBy(t, accept(made.Secret), "invitation.link_over", "") // forwarded, or used twice
	refusedBy(t, accept(secret.NewText("inv_x")), "invitation.link_over", "")
	for n := range identity.MaxWrongDigits {
		refusedBy(t, o.confirm(o.signs(t, "Ben", i.Statement("x")), i, "x"), "invitation.digits_wrong", "digits", fmt.Sprint("left=", identity.MaxWrongDigits-1-n))
	}
	refusedBy(t, o.confirm(o.signs(t, "Ben", i.Statement(i.Digits())), i, i.Digits()), "invitation.over", "id", "state=withdrawn")

	again, err := o.invites(t, "Awa", identity.InvitationRequest{Known: "Chloé"})
	if err != nil {
		t.Fatal(err)
	}
	second := o.join(t, again.Secret)
	if second.Digits() == i.Digits() {
		t.Error("the digits are those of other passkeys")
	}
	o.MoveTo(o.Now().Add(identity.InvitationLife))
	refusedBy(t, o.confirm(o.signs(t, "Ben", second.Statement(second.Digits())), second, second.Digits()), "invitation.over", "id", "state=ended")
	third, err := o.invites(t, "Awa", identity.InvitationRequest{Known: "Chloé"})
	if err != nil {
		t.Fatal(err)
	}
	o.MoveTo(o.Now().Add(identity.InvitationLife))
	refusedBy(t, accept(third.Secret), "invitation.link_over", "")
	fourth, err := o.invites(t, "Awa", identity.InvitationRequest{Known: "Chloé"})
	if err != nil {
		t.Fatal(err)
	}
	if _, changed, err := identity.WithdrawInvitation(o.ctx, o.Pool, o.Keys, commandLine, fourth.ID, o.Now()); err != nil || !changed {
		t.Errorf("withdrawn: %v, %v", changed, err)
	}
	refusedBy(t, accept(fourth.Secret), "invitation.link_over", "")

	// The other one invites in the end, and the first confirms.
	fifth, err := o.invites(t, "Ben", identity.InvitationRequest{Known: "Chloé"})
	if err != nil {
		t.Fatal(err)
	}
	last := o.join(t, fifth.Secret)
	if err := o.confirm(o.signs(t, "Awa", last.Statement(last.Digits())), last, last.Digits()); err != nil {
		t.Fatal(err)
	}
	if e := o.person(t, "Chloé"); e.ProposedBy != o.IDs["Ben"] || e.ApprovedBy != o.IDs["Awa"] {
		t.Errorf("%+v", e)
	}
}

// A passkey is one person's, once: not a second time in an invitation, not after it was removed.
func TestPasskeysAreUnique(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", admins, "Awa", "Ben")
	made, err := o.invites(t, "Awa", newPerson("Chloé", "impots"))
	if err != nil {
		t.Fatal(err)
	}
	_, browser, err := identity.AcceptInvitation(o.ctx, o.Pool, o.Keys, made.Secret, "", o.Now())
	if err != nil {
		t.Fatal(err)
	}
	device, err := staff.NewDevice(uuid.MustParse(made.StaffID), office.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.makePasskey(browser, device, "Clé"); err != nil {
		t.Fatal(err)
	}
	_, err = o.makePasskey(browser, device, "Autre")
	refusedBy(t, err, "passkey.known", "")
	o.Write(t, `UPDATE staff_passkeys SET removed_at = created_at WHERE staff_id = $1`, o.IDs["Ben"])
	_, err = o.makePasskey(browser, o.Devices["Ben"][0], "Autre")
	refusedBy(t, err, "passkey.known", "")
	_, err = identity.AddInvitedPasskey(o.ctx, o.Pool, o.Keys, o.Party(), browser, "Clé", []byte(`{}`), "", o.Now())
	refusedBy(t, err, "passkey.refused", "")
	_, err = identity.AddInvitedPasskey(o.ctx, o.Pool, o.Keys, o.Party(), browser, " ", nil, "", o.Now())
	refusedBy(t, err, "passkey.name_malformed", "name")
}

// Roles and revocations take two people of the group. The last two who manage people stay, and so does a role whose
// proposer no longer may propose.
func TestRolesTakeTwo(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", admins, "Awa", "Ben", "Chloé")
	propose := func(by, of string, kind identity.StaffChangeKind, req identity.RolesRequest) (identity.StaffChangeEntry, error) {
		return o.proposes(t, by, identity.StaffChangeRequest{Staff: of, Kind: kind, Roles: req, Reason: "Mutation"})
	}
	approve := func(by identity.By, c identity.StaffChangeEntry) error {
		_, err := identity.ApproveStaffChange(o.ctx, o.Pool, o.Keys, by, c.ID, o.Now())
		return err
	}
	for role, code := range map[identity.Role]string{"king": "staff.role_unknown", identity.RoleLead: "staff.role_of_others", identity.RoleApprover: "staff.roles_exclusive"} {
		_, err := propose("Awa", "Ben", identity.StaffChangeRoles, identity.RolesRequest{Add: []identity.Role{role}})
		refusedBy(t, err, code, "role")
	}
	c, err := propose("Awa", "Chloé", identity.StaffChangeRoles, identity.RolesRequest{Add: []identity.Role{identity.RoleApprover}, Remove: admins})
	if err != nil {
		t.Fatal(err)
	}
	_, err = propose("Ben", "Chloé", identity.StaffChangeRoles, identity.RolesRequest{Add: []identity.Role{identity.RoleReader}})
	refusedBy(t, err, "staff_change.waits", "id")
	refusedBy(t, approve(o.signs(t, "Awa", c.Statement()), c), "staff_change.second_person", "id")
	refusedBy(t, approve(o.page(t, "Ben"), c), "decision.passkey_needed", "")
	if o.person(t, "Chloé").May(identity.MayApprove) {
		t.Error("a proposal has an effect")
	}
	if err := approve(o.signs(t, "Ben", c.Statement()), c); err != nil {
		t.Fatal(err)
	}
	if got := o.person(t, "Chloé").Roles; !slices.Equal(got, []identity.Role{identity.RoleApprover}) {
		t.Errorf("roles %v", got)
	}
	refusedBy(t, approve(o.signs(t, "Ben", c.Statement()), c), "staff_change.decided", "id")
	_, err = propose("Awa", "Ben", identity.StaffChangeRoles, identity.RolesRequest{Remove: admins})
	refusedBy(t, err, "staff.last_managers", "", "name=Ben")
	_, err = propose("Awa", "Ben", identity.StaffChangeRevoke, identity.RolesRequest{})
	refusedBy(t, err, "staff.last_managers", "")
	_, err = o.proposes(t, "Chloé", identity.StaffChangeRequest{Staff: "Awa", Kind: identity.StaffChangeRevoke, Reason: "r"})
	refusedBy(t, err, "staff.not_permitted", "")

	if c, err = propose("Awa", "Chloé", identity.StaffChangeRevoke, identity.RolesRequest{}); err != nil {
		t.Fatal(err)
	}
	o.Write(t, `DELETE FROM staff_roles WHERE staff_id = $1`, o.IDs["Awa"]) // withdrawn between the page and the press
	err = approve(o.signs(t, "Ben", c.Statement()), c)
	refusedBy(t, err, "staff_change.lapsed", "id")
	o.Write(t, `INSERT INTO staff_roles (staff_id, role, granted_at) VALUES ($1, 'agency-admin', $2)`, o.IDs["Awa"], registries.Epoch)
	if err := approve(o.signs(t, "Ben", c.Statement()), c); err != nil || o.person(t, "Chloé").State() != identity.StaffStateRevoked {
		t.Errorf("revoked: %v", err)
	}
}

// One person suspends at once, two others a day at most. Another one lifts it. Two who have suspended each other come back by
// the command line, which has nothing to say while two can decide.
func TestSuspension(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", admins, "Awa", "Ben", "Chloé", "Dan")
	suspend := func(by identity.By, named string) error {
		_, err := identity.SuspendStaff(o.ctx, o.Pool, o.Keys, by, named, "Clé perdue", o.Now())
		return err
	}
	lift := func(by identity.By, named string) error {
		_, err := identity.LiftSuspension(o.ctx, o.Pool, o.Keys, by, named, "Clé retrouvée", o.Now())
		return err
	}
	signs := func(by string, kind identity.StaffChangeKind, named, reason string) identity.By {
		return o.signs(t, by, o.person(t, named).Statement(kind, reason))
	}
	proposal, err := o.proposes(t, "Ben", identity.StaffChangeRequest{Staff: "Dan", Kind: identity.StaffChangeRevoke, Reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	ben := o.acting(t, "Ben")
	refusedBy(t, suspend(o.page(t, "Awa"), "Ben"), "decision.passkey_needed", "")
	refusedBy(t, suspend(signs("Awa", identity.StaffChangeSuspend, "Awa", "Clé perdue"), "Awa"), "staff.suspends_self", "id")
	if err := suspend(signs("Awa", identity.StaffChangeSuspend, "Ben", "Clé perdue"), "Ben"); err != nil {
		t.Fatal(err)
	}
	if e := o.person(t, "Ben"); e.InForce() || e.State() != identity.StaffStateSuspended || e.SuspendedBy != o.IDs["Awa"] {
		t.Errorf("%+v", e)
	}
	refusedBy(t, suspend(identity.By{Signer: ben.Signer()}, "Awa"), "staff.suspended", "") // his session was open
	_, err = identity.ApproveStaffChange(o.ctx, o.Pool, o.Keys, o.signs(t, "Chloé", proposal.Statement()), proposal.ID, o.Now())
	refusedBy(t, err, "staff_change.lapsed", "id")
	refusedBy(t, suspend(o.page(t, "Awa"), "Ben"), "staff.not_active", "id")
	if err := suspend(signs("Awa", identity.StaffChangeSuspend, "Chloé", "Clé perdue"), "Chloé"); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, suspend(o.page(t, "Awa"), "Dan"), "staff.suspends_too_many", "id")
	refusedBy(t, lift(signs("Awa", identity.StaffChangeLift, "Ben", "Clé retrouvée"), "Ben"), "staff.lifts_own", "id")
	refusedBy(t, lift(commandLine, "Ben"), "staff.page_decides", "")
	if err := suspend(signs("Dan", identity.StaffChangeSuspend, "Awa", "Clé perdue"), "Awa"); err != nil {
		t.Fatal(err)
	}
	if err := lift(commandLine, "Awa"); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, lift(commandLine, "Chloé"), "staff.page_decides", "") // Awa and Dan decide
	for _, name := range []string{"Ben", "Chloé"} {
		if err := lift(signs("Dan", identity.StaffChangeLift, name, "Clé retrouvée"), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := suspend(commandLine, "Dan"); err != nil { // the installation stops anybody
		t.Fatal(err)
	}
}

// A person who has lost the passkeys is invited again. The earlier ones end with the confirmation, and two people who
// manage a group are not locked out by it.
func TestLostPasskeys(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", admins, "Awa", "Ben", "Chloé")
	_, err := o.invite(o.page(t, "Ben"), newPerson("Dan", "impots"))
	refusedBy(t, err, "decision.passkey_needed", "") // one press for each of the two
	_, err = o.invites(t, "Ben", identity.InvitationRequest{Known: "Awa"})
	refusedBy(t, err, "invitation.has_passkeys", "id")
	before := o.Devices["Awa"]
	made, err := o.invites(t, "Ben", identity.InvitationRequest{Known: "Awa", Lost: true})
	if err != nil {
		t.Fatal(err)
	}
	i := o.join(t, made.Secret)
	after := o.Devices["Awa"]
	o.Devices["Awa"] = before
	refusedBy(t, o.confirm(o.page(t, "Awa"), i, i.Digits()), "invitation.own", "id")
	if err := o.confirm(o.signs(t, "Chloé", i.Statement(i.Digits())), i, i.Digits()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.SignInAs(t, "Awa"); err == nil {
		t.Error("a lost passkey signs in")
	}
	o.Devices["Awa"] = after
	o.MoveTo(o.Now().Add(identity.ApprovesAfter))
	awa := o.person(t, "Awa")
	own := awa.InForcePasskeys()
	if len(own) != 2 || !slices.Equal(awa.Roles, admins) {
		t.Fatalf("%+v", awa)
	}
	remove := func(p identity.StaffPasskey) error {
		_, err := identity.RemoveStaffPasskey(o.ctx, o.Pool, o.Keys, o.signs(t, "Awa", p.RemoveStatement(awa.Staff)), p.ID, o.Now())
		return err
	}
	refusedBy(t, remove(o.person(t, "Ben").Passkeys[0]), "passkey.unknown", "id")
	if err := remove(own[1]); err != nil {
		t.Fatal(err)
	}
	_, err = identity.RemoveStaffPasskey(o.ctx, o.Pool, o.Keys, o.page(t, "Awa"), own[0].ID, o.Now())
	refusedBy(t, err, "passkey.last", "id")
}

// The first two people of an agency may be invited by two security officers of the service, who have no say after that.
func TestSecurityOfficersInviteTheFirst(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "", []identity.Role{identity.RoleSecurityOfficer}, "Un", "Deux")
	for _, name := range []string{"Awa", "Ben"} {
		made, err := o.invites(t, "Un", newPerson(name, "impots", identity.RoleAgencyAdmin))
		if err != nil {
			t.Fatal(err)
		}
		i := o.join(t, made.Secret)
		if err := o.confirm(o.signs(t, "Deux", i.Statement(i.Digits())), i, i.Digits()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := o.invites(t, "Un", newPerson("Chloé", "impots"))
	refusedBy(t, err, "staff.other_people", "", "own=operations")
	_, err = o.invites(t, "Awa", newPerson("Trois", ""))
	refusedBy(t, err, "staff.other_people", "", "own=impots")
}

// Whoever writes Postgres inserts a role, a passkey, an invitation or a proposal, or edits one. It opens nothing.
func TestForgedRolesAndPasskeys(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", admins, "Awa", "Ben", "Eve")
	o.Write(t, `DELETE FROM staff_roles WHERE staff_id = $1`, o.IDs["Eve"])
	o.Exec(t, `INSERT INTO staff_roles (staff_id, role, granted_at, signature) SELECT $1, role, granted_at, signature FROM staff_roles WHERE staff_id = $2`, o.IDs["Eve"], o.IDs["Awa"])
	if eve := o.person(t, "Eve"); eve.May(identity.MayManagePeople) || len(eve.Roles) != 0 {
		t.Errorf("a role that was inserted counts: %v", eve.Roles)
	}
	_, err := o.invites(t, "Eve", newPerson("Fils", "impots"))
	refusedBy(t, err, "staff.not_permitted", "")

	c, err := o.proposes(t, "Awa", identity.StaffChangeRequest{
		Staff: "Eve", Kind: identity.StaffChangeRoles, Roles: identity.RolesRequest{Add: []identity.Role{identity.RoleReader}}, Reason: "r",
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `UPDATE staff_changes SET add_roles = '{approver}'`)
	_, err = identity.ApproveStaffChange(o.ctx, o.Pool, o.Keys, o.signs(t, "Ben", c.Statement()), c.ID, o.Now())
	refusedBy(t, err, signed.CodeForged, "", "staff_changes")

	made, err := o.invites(t, "Awa", newPerson("Chloé", "impots", identity.RoleReader))
	if err != nil {
		t.Fatal(err)
	}
	i := o.join(t, made.Secret)
	o.Exec(t, `UPDATE staff_invitations SET roles = '{approver}'`)
	refusedBy(t, o.confirm(o.signs(t, "Ben", i.Statement(i.Digits())), i, i.Digits()), signed.CodeForged, "", "staff_invitations")
	o.Exec(t, `UPDATE staff_invitations SET roles = '{reader}', wrong = 0, token_hash = $1`, []byte("0123456789abcdef0123456789abcdef"))
	refusedBy(t, o.confirm(o.signs(t, "Ben", i.Statement(i.Digits())), i, i.Digits()), signed.CodeForged, "")

	// A thief's device takes the place of Ben's passkey, or stands beside it.
	thief, err := staff.NewDevice(uuid.MustParse(o.IDs["Ben"]), office.URL)
	if err != nil {
		t.Fatal(err)
	}
	options, challenge, err := o.Party().BeginRegistration(passkeys.Owner{ID: uuid.MustParse(o.IDs["Ben"]), Name: "Ben"})
	if err != nil {
		t.Fatal(err)
	}
	response, err := thief.Register(options)
	if err != nil {
		t.Fatal(err)
	}
	credential, err := o.Party().Register(passkeys.Owner{ID: uuid.MustParse(o.IDs["Ben"]), Name: "Ben"}, challenge, response)
	if err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `INSERT INTO staff_passkeys (id, staff_id, host, name, credential_id, spki_hash, credential, created_at, approves_from, signature)
		SELECT gen_random_uuid(), staff_id, host, name, $2, $3, $4, created_at, approves_from, signature FROM staff_passkeys WHERE staff_id = $1 LIMIT 1`, o.IDs["Ben"], credential.ID, []byte("x"), credential)
	if n := len(o.person(t, "Ben").InForcePasskeys()); n != 2 {
		t.Errorf("%d passkeys are in force", n)
	}
	o.Devices["Ben"] = []*staff.Device{thief}
	if _, err := o.SignInAs(t, "Ben"); err == nil {
		t.Error("a passkey that was inserted signs in")
	}

	// Whoever breaks the rows of a group does not bring the command line back.
	o.Exec(t, `UPDATE staff_roles SET granted_at = granted_at + interval '1 second'`)
	_, err = o.invite(commandLine, newPerson("Fils", "impots"))
	refusedBy(t, err, "staff.page_decides", "")
}

// The st_ keys of a group read and propose only, once two people have two passkeys each that approve, also when one of them
// removes passkeys or is suspended.
func TestKeysPropose(t *testing.T) {
	t.Parallel()
	o := openTeam(t, "impots", admins)
	keys := group(t, o.House, "impots", "Jean", "Mireille")
	proposed, err := identity.AddStaff(o.ctx, o.Pool, o.Keys, registries.Actor, keys[0], identity.StaffRequest{Name: "Paul", Agency: "impots"}, o.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Jean", "Mireille"} {
		o.IDs[name] = o.person(t, name).ID
		for range 2 {
			o.GivePasskey(t, name, "Clé", o.Now().Add(identity.ApprovesAfter))
		}
	}
	approve := func() error {
		_, err := identity.ApproveStaff(o.ctx, o.Pool, o.Keys, registries.Actor, keys[1], proposed.ID, o.Now())
		return err
	}
	o.MoveTo(o.Now().Add(identity.ApprovesAfter))
	refusedBy(t, approve(), "staff.keys_propose", "", "url=https://staff.example/")
	o.Write(t, `UPDATE staff_passkeys SET removed_at = $1`, o.Now())
	refusedBy(t, approve(), "staff.keys_propose", "")
	o.Exec(t, `UPDATE staff_passkeys SET approves_from = approves_from - interval '1 second', name = 'x'`) // whoever breaks the rows
	refusedBy(t, approve(), "staff.keys_propose", "")
	if _, err := identity.AuthenticateStaff(o.ctx, o.Pool, o.Keys, keys[0], o.Now()); err != nil {
		t.Errorf("the keys read: %v", err)
	}
	o.MoveTo(registries.Epoch) // before the passkeys approve
	if err := approve(); err != nil {
		t.Error(err)
	}
}
