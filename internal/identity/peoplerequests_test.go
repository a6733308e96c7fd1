package identity_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/test/office"
	"quittance/test/registries"
)

// counterpart is the pages, which sign requests, and the sink, which carries them out, with the keys of each.
type counterpart struct {
	team
	office, cases *secret.Keys
	pages, sink   *identity.Book
}

func openCounterpart(t *testing.T, agency string, roles []identity.Role, names ...string) counterpart {
	t.Helper()
	o := openTeam(t, agency, roles, names...)
	verify := []secret.Use{{Purpose: secret.PurposeVerify, Label: secret.LabelRegistryRows}, {Purpose: secret.PurposeVerify, Label: secret.LabelStaffRows}, {Purpose: secret.PurposeVerify, Label: secret.LabelPeopleRows}}
	manifest := secret.Use{Purpose: secret.PurposeSign, Label: secret.LabelStaffRows}
	office := o.Keys.Subset("office", append([]secret.Use{manifest}, verify...))
	cases := o.Keys.Subset("cases", append([]secret.Use{manifest, {Purpose: secret.PurposeSign, Label: secret.LabelPeopleRows}}, verify...))
	return counterpart{o, office, cases, identity.OpenBook(o.Pool, office), identity.OpenBook(o.Pool, cases)}
}

func request(kind identity.PeopleKind, subject string, body identity.PeopleBody) identity.PeopleRequest {
	return identity.PeopleRequest{ID: uuid.NewString(), Kind: kind, Subject: subject, Body: body}
}

// press has a person press what the page has prepared, and the pages store the request.
func (o counterpart) press(t *testing.T, name string, r identity.PeopleRequest) (identity.PeopleRequest, secret.Text, error) {
	t.Helper()
	a := o.acting(t, name)
	if r.Kind.Pressed() {
		s, err := o.pages.Prepare(o.ctx, a, r, o.Now())
		if err != nil {
			return r, secret.Text{}, err
		}
		a = o.Signs(t, a, name, s)
	}
	return o.pages.Ask(o.ctx, a, r, o.Now())
}

// asks is press that succeeds.
func (o counterpart) asks(t *testing.T, name string, r identity.PeopleRequest) (identity.PeopleRequest, secret.Text) {
	t.Helper()
	asked, link, err := o.press(t, name, r)
	if err != nil {
		t.Fatal(err)
	}
	if asked.State != identity.PeopleWaiting || asked.AskedBy != o.IDs[name] {
		t.Fatalf("asked: %+v", asked)
	}
	return asked, link
}

// carry carries a request out, and checks how it ends.
func (o counterpart) carry(t *testing.T, r identity.PeopleRequest, code string) {
	t.Helper()
	ended, err := o.sink.CarryOut(o.ctx, r.ID, o.Now())
	if err != nil {
		t.Fatal(err)
	}
	state := identity.PeopleDone
	if code != "" {
		state = identity.PeopleRefused
	}
	if ended.State != state || ended.Code != code || ended.DoneAt.IsZero() {
		t.Errorf("%s ended as %s %q, want %q: %+v", r.Kind, ended.State, ended.Code, code, ended)
	}
}

// tries writes rows and signs them with keys, as whoever has taken a role.
func (o counterpart) tries(keys *secret.Keys, sql string, args ...any) error {
	return registry.Change(o.ctx, o.Pool, keys, o.Now(), func(tx *registry.Tx) error {
		_, err := tx.Exec(o.ctx, sql, args...)
		return err
	})
}

func (o counterpart) shownPerson(t *testing.T, name string) (id, shown string) {
	t.Helper()
	e := o.person(t, name)
	return e.ID, e.Shown()
}

func (o counterpart) suspends(t *testing.T, name string) identity.PeopleRequest {
	t.Helper()
	id, shown := o.shownPerson(t, name)
	r := request(identity.PeopleSuspend, id, identity.PeopleBody{Reason: "Clé perdue"})
	r.Shown = shown
	return r
}

func (o counterpart) invitation(t *testing.T, id string) identity.InvitationEntry {
	t.Helper()
	list, err := identity.ListInvitations(o.ctx, o.Pool, signed.NewVerifier(o.Keys))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.ID == id {
			return i
		}
	}
	t.Fatalf("no invitation %s", id)
	return identity.InvitationEntry{}
}

// Two people invite and confirm a third by what the pages store and the sink carries out, each with its own keys. A taken
// office needs the presses of both: nothing is in force before. The rows verify, and the audit table names the people.
func TestPeopleAskOnPages(t *testing.T) {
	t.Parallel()
	o := openCounterpart(t, "impots", admins, "Awa", "Ben")
	invite := request(identity.PeopleInvite, "", identity.PeopleBody{Name: "Chloé", Number: "4711", Agency: registries.AgencyA, Add: []identity.Role{identity.RoleReader}})
	asked, link := o.asks(t, "Awa", invite)
	if asked.AgencyID != registries.AgencyA {
		t.Errorf("the group is %q", asked.AgencyID)
	}
	if _, _, err := identity.AcceptInvitation(o.ctx, o.Pool, o.office, link, "", o.Now()); err == nil {
		t.Error("the link works before the invitation is carried out")
	}
	again, none, err := o.pages.Ask(o.ctx, o.acting(t, "Awa"), invite, o.Now())
	if err != nil || again.ID != asked.ID || !none.Empty() {
		t.Errorf("the same form again: %+v, %v", again, err)
	}
	_, _, err = o.pages.Ask(o.ctx, o.acting(t, "Ben"), invite, o.Now())
	refusedBy(t, err, "staff_request.other", "")
	o.carry(t, asked, "")
	i := o.join(t, link)
	if i.ID != asked.ID || i.InvitedBy != o.IDs["Awa"] {
		t.Errorf("invited: %+v", i)
	}

	confirm := request(identity.PeopleConfirm, i.ID, identity.PeopleBody{Digits: "0000 0000"})
	_, _, err = o.press(t, "Ben", confirm)
	refusedBy(t, err, "record.changed", "") // the page has shown another invitation
	confirm.Shown = i.Shown()
	_, _, err = o.press(t, "Awa", confirm)
	refusedBy(t, err, "invitation.second_person", "id")
	wrong, _ := o.asks(t, "Ben", confirm)
	o.carry(t, wrong, "invitation.digits_wrong")
	if n := o.invitation(t, i.ID).Wrong; n != 1 {
		t.Errorf("%d wrong digits are counted", n)
	}
	confirm = request(identity.PeopleConfirm, i.ID, identity.PeopleBody{Digits: i.Digits()[:4] + " " + i.Digits()[4:]})
	confirm.Shown = i.Shown()
	right, _ := o.asks(t, "Ben", confirm)
	if o.person(t, "Chloé").InForce() {
		t.Error("the pages put a person in force by themselves")
	}
	o.carry(t, right, "")
	chloe := o.person(t, "Chloé")
	if !chloe.InForce() || chloe.ProposedBy != o.IDs["Awa"] || chloe.ApprovedBy != o.IDs["Ben"] || chloe.Number != "4711" || !chloe.May(identity.MaySeePayments) || len(chloe.InForcePasskeys()) != 2 {
		t.Errorf("%+v", chloe)
	}

	// Roles, a suspension, its end by another person, a passkey of the own.
	id, shown := o.shownPerson(t, "Chloé")
	propose := request(identity.PeoplePropose, id, identity.PeopleBody{Change: identity.StaffChangeRoles, Add: []identity.Role{identity.RoleAccountant}, Remove: []identity.Role{identity.RoleReader}, Reason: "Mutation"})
	propose.Shown = shown
	proposed, _ := o.asks(t, "Ben", propose)
	o.carry(t, proposed, "")
	list, err := identity.ListStaffChanges(o.ctx, o.Pool, signed.NewVerifier(o.Keys), o.Now())
	if err != nil || len(list) != 1 || list[0].ID != proposed.ID || list[0].Forged {
		t.Fatalf("proposed: %+v, %v", list, err)
	}
	approve := request(identity.PeopleApprove, proposed.ID, identity.PeopleBody{})
	approve.Shown = list[0].Shown()
	_, _, err = o.press(t, "Ben", approve)
	refusedBy(t, err, "staff_change.second_person", "id")
	approved, _ := o.asks(t, "Awa", approve)
	o.carry(t, approved, "")
	if chloe := o.person(t, "Chloé"); !chloe.May(identity.MayPropose) || len(chloe.Roles) != 1 {
		t.Errorf("roles %v", chloe.Roles)
	}
	suspended, _ := o.asks(t, "Awa", o.suspends(t, "Chloé"))
	o.carry(t, suspended, "")
	id, shown = o.shownPerson(t, "Chloé")
	lift := request(identity.PeopleLift, id, identity.PeopleBody{Reason: "Clé retrouvée"})
	lift.Shown = shown
	_, _, err = o.press(t, "Awa", lift)
	refusedBy(t, err, "staff.lifts_own", "id")
	lifted, _ := o.asks(t, "Ben", lift)
	o.carry(t, lifted, "")
	if !o.person(t, "Chloé").InForce() {
		t.Error("the suspension is not lifted")
	}
	o.GivePasskey(t, "Ben", "Clé 3", registries.Epoch)
	passkeys := o.person(t, "Ben").Passkeys // in no order: Ben signs with another one below
	third := passkeys[slices.IndexFunc(passkeys, func(p identity.StaffPasskey) bool { return p.Name == "Clé 3" })]
	removed, _ := o.asks(t, "Ben", request(identity.PeopleRemovePasskey, third.ID, identity.PeopleBody{}))
	o.carry(t, removed, "")

	// What ends something needs no press.
	id, shown = o.shownPerson(t, "Chloé")
	revoke := request(identity.PeoplePropose, id, identity.PeopleBody{Change: identity.StaffChangeRevoke, Reason: "Départ"})
	revoke.Shown = shown
	proposed, _ = o.asks(t, "Awa", revoke)
	o.carry(t, proposed, "")
	rejected, _ := o.asks(t, "Ben", request(identity.PeopleReject, proposed.ID, identity.PeopleBody{}))
	o.carry(t, rejected, "")
	other, _ := o.asks(t, "Awa", request(identity.PeopleInvite, "", identity.PeopleBody{Name: "Dan", Agency: registries.AgencyA}))
	o.carry(t, other, "")
	withdrawn, _ := o.asks(t, "Ben", request(identity.PeopleWithdraw, other.ID, identity.PeopleBody{}))
	o.carry(t, withdrawn, "")
	if s := o.invitation(t, other.ID).State(o.Now()); s != identity.InvitationWithdrawn {
		t.Errorf("the invitation is %s", s)
	}

	findings, err := registry.LookAtRows(o.ctx, o.Pool, o.Keys)
	if err != nil || len(findings.Rows) != 0 || len(findings.Lost) != 0 {
		t.Errorf("rows that do not verify: %+v, %v", findings, err)
	}
	history, err := o.pages.History(o.ctx, chloe.ID, 50)
	if err != nil || len(history) < 8 || history[len(history)-1].Action != "staff.invite" || history[len(history)-1].By != o.IDs["Awa"] {
		t.Errorf("history %+v, %v", history, err)
	}
	if ids, _, err := o.sink.Waiting(o.ctx); err != nil || len(ids) != 0 {
		t.Errorf("waiting: %v, %v", ids, err)
	}
}

// Whoever writes Postgres inserts a request, edits one, puts one back or gives it the proof of another. It is not carried
// out, and the pages themselves change no person.
func TestForgedPeopleRequests(t *testing.T) {
	t.Parallel()
	o := openCounterpart(t, "impots", admins, "Awa", "Ben", "Chloé", "Dan")
	waits := func(want int) {
		t.Helper()
		ids, _, err := o.sink.Waiting(o.ctx)
		if err != nil || len(ids) != want {
			t.Errorf("%d requests wait, want %d, %v", len(ids), want, err)
		}
	}
	stays := func(r identity.PeopleRequest) {
		t.Helper()
		waits(0)
		ended, err := o.sink.CarryOut(o.ctx, r.ID, o.Now())
		if err != nil || ended.State != identity.PeopleWaiting {
			t.Errorf("a forged request: %+v, %v", ended, err)
		}
	}
	asked, _ := o.asks(t, "Awa", o.suspends(t, "Ben"))
	o.Exec(t, `UPDATE staff_requests SET subject = $1`, o.IDs["Chloé"]) // an edited request
	stays(asked)
	o.Exec(t, `UPDATE staff_requests SET subject = $1`, o.IDs["Ben"])
	waits(1)
	o.Exec(t, `UPDATE staff_requests SET body = '{"reason": "autre"}'`) // an edited body
	stays(asked)
	o.Exec(t, `UPDATE staff_requests SET body = '{"reason": "Clé perdue"}'`)
	o.Exec(t, `INSERT INTO staff_requests (id, kind, asked_by, origin, subject, body, created_at, ends_at, state, signature, agency_id)
		SELECT gen_random_uuid(), kind, asked_by, origin, subject, body, created_at, ends_at, state, signature, agency_id FROM staff_requests`)
	waits(1)
	o.carry(t, asked, "")
	if o.person(t, "Ben").State() != identity.StaffStateSuspended {
		t.Error("the true request is not carried out")
	}

	// The row of before the end verifies. It is not carried out a second time.
	id, shown := o.shownPerson(t, "Ben")
	lift := request(identity.PeopleLift, id, identity.PeopleBody{Reason: "Clé retrouvée"})
	lift.Shown = shown
	var signature []byte
	lifted, _ := o.asks(t, "Chloé", lift)
	o.carry(t, lifted, "")
	second, _ := o.asks(t, "Awa", o.suspends(t, "Ben"))
	if err := o.Pool.QueryRow(o.ctx, `SELECT signature FROM staff_requests WHERE id = $1`, second.ID).Scan(&signature); err != nil {
		t.Fatal(err)
	}
	o.carry(t, second, "")
	id, shown = o.shownPerson(t, "Ben")
	lift = request(identity.PeopleLift, id, identity.PeopleBody{Reason: "Clé retrouvée"})
	lift.Shown = shown
	lifted, _ = o.asks(t, "Chloé", lift)
	o.carry(t, lifted, "")
	o.Exec(t, `UPDATE staff_requests SET state = 'waiting', code = '', done_at = NULL, signature = $2 WHERE id = $1`, second.ID, signature)
	waits(1)
	o.carry(t, second, "staff_request.carried_out")
	if !o.person(t, "Ben").InForce() {
		t.Error("a request that was put back is carried out again")
	}

	// A taken office signs requests in anybody's name, with the proof of another press, or with none.
	takesAs := func(id string, decision any, created time.Time) identity.PeopleRequest {
		t.Helper()
		r := identity.PeopleRequest{ID: id, Kind: identity.PeopleSuspend}
		if err := o.tries(o.office, `INSERT INTO staff_requests (id, kind, agency_id, asked_by, origin, subject, body, decision_id, created_at, ends_at, state)
			VALUES ($1, 'suspend', $2, $3, '', $4, '{"reason": "Clé perdue"}', $5, $6, $7, 'waiting')`, r.ID, registries.AgencyA, o.IDs["Dan"], o.IDs["Ben"], decision, created, created.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	takes := func(decision any, created time.Time) identity.PeopleRequest {
		t.Helper()
		return takesAs(uuid.NewString(), decision, created)
	}
	o.carry(t, takes(nil, o.Now()), "decision.passkey_needed")
	proof := func(s identity.Statement) string {
		t.Helper()
		decision, err := o.Prove(t, o.Signs(t, o.acting(t, "Dan"), "Dan", s), s)
		if err != nil {
			t.Fatal(err)
		}
		return decision
	}
	o.carry(t, takes(proof(office.Statement("case_1#1")), o.Now()), "staff_request.not_proven")                                            // of another page
	o.carry(t, takes(proof(o.person(t, "Ben").Statement(identity.StaffChangeSuspend, "Clé perdue")), o.Now()), "staff_request.not_proven") // of no request
	decision := ""
	if err := o.Pool.QueryRow(o.ctx, `SELECT decision_id FROM staff_requests WHERE id = $1`, second.ID).Scan(&decision); err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `ALTER TABLE staff_requests DROP CONSTRAINT staff_requests_decision_id_key`)
	o.carry(t, takes(decision, o.Now()), "staff_request.not_proven") // the press of another person, for another request
	// It dates a press a day ahead, for a passkey that does not approve yet.
	now := o.Now()
	o.MoveTo(now.Add(25 * time.Hour))
	early := uuid.NewString()
	press := o.person(t, "Ben").Statement(identity.StaffChangeSuspend, "Clé perdue")
	press.Subject += "#" + early
	pressed := proof(press)
	r := takesAs(early, pressed, o.Now())
	o.MoveTo(now)
	o.carry(t, r, "staff_request.not_proven")
	if !o.person(t, "Ben").InForce() {
		t.Error("a request without a press is carried out")
	}
	refusedBy(t, o.tries(o.office, `UPDATE staff SET suspended_at = $2 WHERE id = $1`, o.IDs["Ben"], o.Now()), signed.CodeNoKey, "")
	refusedBy(t, o.tries(o.cases, `UPDATE agencies SET name = 'x'`), signed.CodeNoKey, "")
}

// What the page has shown is what is done: a record that changes between the press and the end is refused, also when the
// person who has pressed may not act any more, and when the sink comes too late.
func TestPeopleRequestsThatAreOver(t *testing.T) {
	t.Parallel()
	o := openCounterpart(t, "impots", admins, "Awa", "Ben", "Chloé", "Dan")
	asked, _ := o.asks(t, "Awa", o.suspends(t, "Ben"))
	o.Write(t, `UPDATE staff SET number = '12' WHERE id = $1`, o.IDs["Ben"])
	o.carry(t, asked, "record.changed")
	asked, _ = o.asks(t, "Awa", o.suspends(t, "Ben"))
	late, _ := o.asks(t, "Dan", o.suspends(t, "Chloé"))
	o.Write(t, `UPDATE staff SET suspended_at = $2 WHERE id = $1`, o.IDs["Awa"], o.Now())
	o.carry(t, asked, "staff.suspended")
	o.MoveTo(o.Now().Add(identity.PeopleRequestLife))
	o.carry(t, late, "staff_request.late")
	for _, name := range []string{"Ben", "Chloé"} {
		if !o.person(t, name).InForce() {
			t.Errorf("%s is suspended", name)
		}
	}
	r := o.suspends(t, "Ben")
	r.ID = "x"
	_, _, err := o.press(t, "Dan", r)
	refusedBy(t, err, "staff_request.id_malformed", "")
	o.Add(t, "", []identity.Role{identity.RoleLead}, "Zoé")
	for _, name := range []string{"Zoé", "Ben", "Personne"} { // a name says nothing, neither of other groups nor of the own one
		_, _, err = o.press(t, "Dan", request(identity.PeopleSuspend, name, identity.PeopleBody{Reason: "Clé perdue"}))
		refusedBy(t, err, "staff.unknown", "id")
	}
	id, _ := o.shownPerson(t, "Ben")
	for range 10 {
		o.Write(t, `INSERT INTO staff_requests (id, kind, asked_by, origin, subject, body, created_at, ends_at, state) VALUES (gen_random_uuid(), 'reject', $1, '', $2, '{}', $3, $3, 'waiting')`, o.IDs["Dan"], id, o.Now())
	}
	_, _, err = o.press(t, "Dan", o.suspends(t, "Ben"))
	refusedBy(t, err, "staff_request.too_many", "", "most=10")
	// Another person's request is unknown.
	_, err = o.pages.Request(o.ctx, o.IDs["Ben"], asked.ID)
	refusedBy(t, err, "staff_request.unknown", "id")
	if mine, err := o.pages.Request(o.ctx, o.IDs["Awa"], asked.ID); err != nil || mine.Refusal() == nil {
		t.Errorf("the own one: %+v, %v", mine, err)
	}
}

// A process that is killed in the middle leaves the request waiting, and nothing of it. Two processes carry it out once, at
// whatever time each of them comes.
func TestPeopleRequestsAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	o := openCounterpart(t, "impots", admins, "Awa", "Ben")
	asked, link := o.asks(t, "Awa", request(identity.PeopleInvite, "", identity.PeopleBody{Name: "Chloé", Agency: registries.AgencyA, Add: []identity.Role{identity.RoleReader}}))
	o.Exec(t, `CREATE FUNCTION dies() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
	o.Exec(t, `CREATE TRIGGER dies AFTER UPDATE OF state ON staff_requests FOR EACH ROW EXECUTE FUNCTION dies()`) // after the invitation, before its end
	if ended, err := o.sink.CarryOut(o.ctx, asked.ID, o.Now()); err == nil {
		t.Fatalf("the connection has not died: %+v", ended)
	}
	if ids, oldest, err := o.sink.Waiting(o.ctx); err != nil || len(ids) != 1 || !oldest.Equal(asked.CreatedAt) {
		t.Errorf("waiting: %v since %s, %v", ids, oldest, err)
	}
	if list, err := identity.ListInvitations(o.ctx, o.Pool, nil); err != nil || len(list) != 0 {
		t.Errorf("half of it was done: %+v, %v", list, err)
	}
	o.Exec(t, `DROP TRIGGER dies ON staff_requests`)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if ended, err := o.sink.CarryOut(o.ctx, asked.ID, o.Now()); err != nil || ended.State != identity.PeopleDone {
				t.Errorf("one of two: %+v, %v", ended, err)
			}
		})
	}
	both.Wait()
	if list, err := identity.ListInvitations(o.ctx, o.Pool, signed.NewVerifier(o.Keys)); err != nil || len(list) != 1 || list[0].Forged {
		t.Errorf("invitations: %+v, %v", list, err)
	}
	if n := strings.Count(strings.Join(o.Audited(t), " "), "staff.invite"); n != 1 {
		t.Errorf("%d rows of the audit table", n)
	}
	o.join(t, link)

	// A role without the key leaves it waiting.
	again, _ := o.asks(t, "Awa", o.suspends(t, "Ben"))
	_, err := o.pages.CarryOut(o.ctx, again.ID, o.Now())
	refusedBy(t, err, signed.CodeNoKey, "")
	o.carry(t, again, "")
}
