package cases_test

import (
	"testing"

	"github.com/google/uuid"

	"quittance/internal/identity"
	"quittance/internal/signed"
	"quittance/test/registries"
)

// Two sinks find what a person has asked for on the page about people, and one of them carries it out, once. A row that
// somebody has inserted is not carried out, and does not hold up the others.
func TestPeopleRequestsAreCarriedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Write(t, `INSERT INTO staff_roles (staff_id, role, granted_at) VALUES ($1, 'agency-admin', $2)`, w.one.Staff.ID, registries.Epoch)
	invite := func(name string) string {
		t.Helper()
		made, err := identity.InviteStaff(t.Context(), w.Pool, w.House.Keys, identity.By{Actor: registries.Actor}, identity.InvitationRequest{Person: identity.StaffRequest{Name: name, Agency: "impots"}}, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
	}
	const withdraw = `INSERT INTO staff_requests (id, kind, agency_id, asked_by, origin, subject, body, created_at, ends_at, state)
		VALUES ($1, 'withdraw', $2, $3, '203.0.113.7', $4, '{}', $5::timestamptz, $5::timestamptz + interval '1 hour', 'waiting')`
	stays, ends, forged, asked := invite("Nadège"), invite("Eric"), uuid.NewString(), uuid.NewString()
	w.Exec(t, withdraw, forged, registries.AgencyA, w.one.Staff.ID, stays, w.Now().Add(-1))
	w.Write(t, withdraw, asked, registries.AgencyA, w.one.Staff.ID, ends, w.Now())
	w.runs(t, w)
	w.runs(t, w)
	book := identity.OpenBook(w.Pool, w.House.Keys)
	w.within(t, "the end of the request", func() bool {
		r, err := book.Request(t.Context(), w.one.Staff.ID, asked)
		return err == nil && r.State == identity.PeopleDone
	})
	list, err := identity.ListInvitations(t.Context(), w.Pool, signed.NewVerifier(w.House.Keys))
	if err != nil || len(list) != 2 {
		t.Fatalf("%d invitations, %v", len(list), err)
	}
	for _, i := range list {
		if want := map[string]identity.InvitationState{stays: identity.InvitationSent, ends: identity.InvitationWithdrawn}[i.ID]; i.State(w.Now()) != want {
			t.Errorf("the invitation of %s is %s, want %s", i.Of.Name, i.State(w.Now()), want)
		}
	}
	var rows int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'staff.invitation_withdraw' AND actor = $1 AND origin = '203.0.113.7'`, w.one.Staff.ID).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows of the audit table, %v", rows, err)
	}
}
