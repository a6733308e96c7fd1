package roles

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	device "quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/test/backoffice"
	"quittance/test/office"
	"quittance/test/registries"
	"quittance/test/servers"
)

// The pages of staff do all that they offer with the rights in Postgres and the keys of the role office, and no others.
func TestOfficeWorksWithItsRights(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t, func(h registries.House) (*pgxpool.Pool, *secret.Keys) {
		servers.Grant(t, h.DSN, strings.Join(Statements(Options{}, "public"), "\n"))
		pool := open(t, servers.Login(t, h.DSN, "office"))
		if err := (&Settings{Program: "quittance"}).CheckDatabase(t.Context(), pool, "office"); err != nil {
			t.Fatal(err)
		}
		table := Table()
		for i := range table {
			if table[i].Name == "office" {
				return pool, h.Keys.Subset("office", table[i].Keys)
			}
		}
		t.Fatal("there is no role office")
		return nil, nil
	})
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Paul")
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	lead, operator := w.Enter(t, "Paul"), w.Enter(t, "Olive")
	record, one := "/ops/payments/"+sessions.Place(w.Paid.ID), "/ops/cases/"+backoffice.LateCase
	for _, path := range []string{"/work", "/sessions", "/ops/payments", record, record + "?commands=1", "/ops/cases", one, "/ops/endpoints", "/ops/endpoints/webhook/" + w.Endpoint, "/ops/stuck", "/ops/search?q=UNKNOWN-1"} {
		if a := lead.Get(path); a.Code != http.StatusOK {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	propose := func(number string) url.Values {
		return url.Values{"number": {number}, "resolution": {"honour"}, "reason": {"le montant couvre la créance"}}
	}
	endpoint := "/ops/endpoints/webhook/" + w.Endpoint
	for _, form := range []struct {
		path   string
		fields url.Values
	}{
		{record + "/deliveries/" + w.Parked + "/retry", nil},
		{endpoint + "/suspend", nil},
		{endpoint + "/resume", nil},
		{endpoint + "/retry", url.Values{"state": {"waiting"}}},
		{one + "/propose", propose("1")},
		{one + "/reject", url.Values{"number": {"1"}, "reason": {"une faute"}}},
		{one + "/propose", propose("2")},
		{"/sessions/end", nil},
	} {
		if a := operator.Post(form.path, form.fields); a.Code != http.StatusSeeOther {
			t.Errorf("%s: %d\n%.1500s", form.path, a.Code, a.Body)
		}
	}
	_, shown, _ := strings.Cut(lead.Get(one).Body.String(), `name="shown" value="`)
	shown, _, _ = strings.Cut(shown, `"`)
	if a := lead.Prove(t, "Paul", one+"/approve/begin", url.Values{"number": {"2"}, "shown": {shown}}, one+"/approve/2"); a.Code != http.StatusOK {
		t.Errorf("the approval: %d %s", a.Code, a.Body)
	}
	if a := operator.Get("/ops/payments/x"); a.Code != http.StatusNotFound {
		t.Errorf("an unknown payment: %d", a.Code)
	}

	// And an invited person makes passkeys.
	invited, err := identity.InviteStaff(t.Context(), w.Pool, w.Keys, identity.By{Actor: registries.Actor}, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Nadège", Agency: "impots", Roles: []identity.Role{identity.RoleReader}}}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := w.NewBrowser()
	b.Post("/join/accept", url.Values{"link": {invited.Secret.Reveal()}})
	made, err := device.NewDevice(uuid.MustParse(invited.StaffID), office.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := made.Register(b.Post("/join/passkey/begin", nil).Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if a := b.Send("/join/passkey", answer); a.Code != http.StatusOK {
		t.Errorf("a passkey of an invited person: %d %s", a.Code, a.Body)
	}
	if a := lead.Post("/sign-out", nil); a.Code != http.StatusSeeOther {
		t.Errorf("the sign-out: %d", a.Code)
	}
}
