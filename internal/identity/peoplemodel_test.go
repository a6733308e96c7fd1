package identity_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/test/office"
	"quittance/test/registries"
)

// hand is a person whose passkey signs whatever is asked, so that the model is about who may decide and not about signatures
// (TestDecisionsArePassTheirPasskey). Like a sign-in it knows the person as of earlier.
type hand struct{ who identity.Staff }

func (h hand) Person() identity.Staff { return h.who }

func (h hand) Signed(context.Context, pgx.Tx, identity.Statement) error { return nil }

// No sequence of invitations, confirmations, suspensions, revocations and changes of roles lets one human decide alone,
// or leaves a group without a way back.
//
// The model knows nothing of how the service decides. It watches who took part: a person comes to a group, gets a role or is
// revoked by two different people, or by whoever runs the installation while fewer than two people can decide.
func TestNoHumanDecidesAlone(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "impots", nil)
	names := []string{"Awa", "Ben", "Chloé", "Dan"}
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue { // each is hundreds of transactions
		if err := checks.Value.Set("12"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		o.Write(t, `TRUNCATE staff CASCADE`)
		clear(o.Devices)
		o.Add(t, "impots", admins, names[:rapid.IntRange(1, 3).Draw(rt, "people")]...)
		w := walk{Office: o, t: t, rt: rt, now: o.Now(), names: names, inviters: map[string]string{}, proposers: map[string]string{}}
		for range rapid.IntRange(4, 10).Draw(rt, "steps") {
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, 25 * time.Hour}).Draw(rt, "later"))
			w.MoveTo(w.now)
			w.step()
		}
		w.comesBack()
	})
}

// walk is one sequence.
type walk struct {
	office.Office
	t     *testing.T
	rt    *rapid.T
	now   time.Time
	names []string
	// Who invited and who proposed, by id of the invitation or the change; empty for the command line.
	inviters, proposers map[string]string
}

func (w *walk) people() map[string]identity.StaffEntry {
	list, err := identity.ListStaff(w.t.Context(), w.Pool, nil)
	if err != nil {
		w.rt.Fatal(err)
	}
	out := map[string]identity.StaffEntry{}
	for _, e := range list {
		out[e.Name] = e
	}
	return out
}

// deciders counts those who can decide about people on a page.
func deciders(people map[string]identity.StaffEntry) (n int) {
	for _, e := range people {
		if e.InForce() && e.May(identity.MayManagePeople) && len(e.InForcePasskeys()) >= 2 {
			n++
		}
	}
	return n
}

func (w *walk) step() {
	before := w.people()
	actors := append([]string{""}, w.names...)
	who := rapid.SampledFrom(actors).Draw(w.rt, "who")
	whom := rapid.SampledFrom(w.names).Draw(w.rt, "whom")
	by := commandLine
	if who != "" {
		by = identity.By{Signer: hand{before[who].Staff}}
	}
	ctx := w.t.Context()
	var err error
	var second string // who took the first of two steps
	two := false
	switch what := rapid.SampledFrom([]string{"invite", "confirm", "suspend", "lift", "revoke", "propose", "approve", "roles"}).Draw(w.rt, "what"); what {
	case "invite":
		req := identity.InvitationRequest{Known: whom, Lost: rapid.Bool().Draw(w.rt, "lost")}
		if _, known := before[whom]; !known {
			req = newPerson(whom, "impots", identity.RoleAgencyAdmin)
		}
		var made identity.NewInvitation
		if made, err = identity.InviteStaff(ctx, w.Pool, w.Keys, by, req, w.now); err == nil {
			w.inviters[made.ID] = who
			team{w.Office, ctx}.join(w.t, made.Secret)
		}
	case "confirm":
		i, ok := w.invitation()
		if !ok {
			return
		}
		_, err = identity.ConfirmInvitation(ctx, w.Pool, w.Keys, by, i.ID, i.Digits(), w.now)
		two, second, whom = err == nil, w.inviters[i.ID], i.Of.Name
	case "suspend":
		_, err = identity.SuspendStaff(ctx, w.Pool, w.Keys, by, whom, "r", w.now)
	case "lift":
		suspendedBy := ""
		for _, e := range before {
			if e.ID == before[whom].SuspendedBy {
				suspendedBy = e.Name
			}
		}
		_, err = identity.LiftSuspension(ctx, w.Pool, w.Keys, by, whom, "r", w.now)
		two, second = err == nil, suspendedBy
	case "revoke": // the installation's emergency
		if before[whom].ID == "" || rapid.IntRange(0, 3).Draw(w.rt, "seldom") > 0 {
			return
		}
		_, _, err = identity.RevokeStaff(ctx, w.Pool, w.Keys, registries.Actor, whom, w.now)
	case "propose":
		req := identity.StaffChangeRequest{Staff: whom, Kind: identity.StaffChangeRevoke, Reason: "r"}
		if rapid.Bool().Draw(w.rt, "of roles") {
			req.Kind, req.Roles.Add = identity.StaffChangeRoles, []identity.Role{rapid.SampledFrom(identity.Roles()).Draw(w.rt, "add")}
			req.Roles.Remove = admins[:rapid.IntRange(0, 1).Draw(w.rt, "remove")]
		}
		var c identity.StaffChangeEntry
		if c, err = identity.ProposeStaffChange(ctx, w.Pool, w.Keys, by, req, w.now); err == nil {
			w.proposers[c.ID] = who
		}
	case "approve":
		c, ok := w.change()
		if !ok {
			return
		}
		_, err = identity.ApproveStaffChange(ctx, w.Pool, w.Keys, by, c.ID, w.now)
		two, second, whom = err == nil, w.proposers[c.ID], c.Of.Name
	case "roles":
		_, err = identity.SetStaffRoles(ctx, w.Pool, w.Keys, registries.Actor, whom, identity.RolesRequest{Add: []identity.Role{identity.RoleReader}}, w.now)
		who = ""
	}
	if err != nil && !errors.As(err, new(*operation.Error)) {
		w.rt.Fatalf("no refusal: %v", err)
	}
	w.check(before, who, second, whom, two, err)
}

// check holds what a step may have changed.
func (w *walk) check(before map[string]identity.StaffEntry, who, second, whom string, two bool, err error) {
	after := w.people()
	if who != "" && err == nil && !before[who].InForce() {
		w.rt.Fatalf("%s acts, who is %s", who, before[who].State())
	}
	if two && who != "" && who == second {
		w.rt.Fatalf("%s took both steps about %s", who, whom)
	}
	if two && who == "" && deciders(before) >= 2 {
		w.rt.Fatalf("the command line decides about %s beside two people", whom)
	}
	for name, e := range after {
		was := before[name]
		gained := e.InForce() && !was.InForce() || len(e.InForcePasskeys()) > len(was.InForcePasskeys())
		for _, r := range e.Roles {
			gained = gained || !slices.Contains(was.Roles, r)
		}
		if gained && !two && (who != "" || deciders(before) >= 2) {
			w.rt.Fatalf("%s gained by one step of %q: %+v, before %+v", name, who, e, was)
		}
		if a, b, both := identity.Exclusive(e.Roles); both {
			w.rt.Fatalf("%s has %s and %s", name, a, b)
		}
	}
	if n, m := deciders(before), deciders(after); two && n >= 2 && m < 2 {
		w.rt.Fatalf("a decision of two people leaves %d of %d who decide", m, n)
	}
}

// comesBack shows that the group gets two people who decide, by the commands and pages alone: the command line ends who is
// there, if nobody else may act, and invites others.
func (w *walk) comesBack() {
	ctx := w.t.Context()
	for n := 0; deciders(w.people()) < 2; n++ {
		if n == 2 {
			w.rt.Fatal("two invitations made nobody who decides")
		}
		made, err := identity.InviteStaff(ctx, w.Pool, w.Keys, commandLine, newPerson(fmt.Sprint("Retour ", n), "impots", identity.RoleAgencyAdmin), w.now)
		if err != nil {
			w.rt.Fatalf("no way back: %v", err)
		}
		i := team{w.Office, ctx}.join(w.t, made.Secret)
		if _, err := identity.ConfirmInvitation(ctx, w.Pool, w.Keys, commandLine, i.ID, i.Digits(), w.now); err != nil {
			w.rt.Fatalf("no way back: %v", err)
		}
	}
}

// invitation draws one that waits for its digits.
func (w *walk) invitation() (identity.InvitationEntry, bool) {
	list, err := identity.ListInvitations(w.t.Context(), w.Pool, nil)
	if err != nil {
		w.rt.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(i identity.InvitationEntry) bool { return i.Digits() == "" })
	if len(list) == 0 {
		return identity.InvitationEntry{}, false
	}
	return rapid.SampledFrom(list).Draw(w.rt, "invitation"), true
}

// change draws a proposal.
func (w *walk) change() (identity.StaffChangeEntry, bool) {
	list, err := identity.ListStaffChanges(w.t.Context(), w.Pool, nil, w.now)
	if err != nil {
		w.rt.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(c identity.StaffChangeEntry) bool { return w.proposers[c.ID] == "" })
	if len(list) == 0 {
		return identity.StaffChangeEntry{}, false
	}
	return rapid.SampledFrom(list).Draw(w.rt, "change"), true
}
