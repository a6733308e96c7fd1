package people_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	device "quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/office"
	"quittance/test/registries"
)

// group is the people of an agency who manage it, each in a browser.
type group struct {
	*backoffice.World
	browsers map[string]*backoffice.Browser
}

func openGroup(t *testing.T, agency string, roles []identity.Role, names ...string) group {
	t.Helper()
	g := group{backoffice.New(t), map[string]*backoffice.Browser{}}
	g.Add(t, agency, roles, names...)
	for _, name := range names {
		g.browsers[name] = g.Enter(t, name)
	}
	return g
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// form returns the hidden fields of the form of a page that ends with a button, and others.
func form(t *testing.T, page *httptest.ResponseRecorder, action string, more ...string) url.Values {
	t.Helper()
	_, rest, found := strings.Cut(page.Body.String(), `action="`+action)
	if !found {
		t.Fatalf("the page has no form to %s:\n%.5000s", action, page.Body)
	}
	rest, _, _ = strings.Cut(rest, "</form>")
	out := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(rest, -1) {
		out.Set(field[1], field[2])
	}
	for i := 0; i+1 < len(more); i += 2 {
		out.Add(more[i], more[i+1])
	}
	return out
}

// press has a person fill in the form of a page and sign it.
func (g group) press(t *testing.T, name, path string, more ...string) *httptest.ResponseRecorder {
	t.Helper()
	page := g.browsers[name].Get(path)
	return g.browsers[name].Press(t, name, "/people/ask/begin", form(t, page, "/people/ask", more...), "/people/ask")
}

// done follows an answer until the request is over, and returns the last page and what stands behind the #.
func (g group) done(t *testing.T, name string, a *httptest.ResponseRecorder) (page *httptest.ResponseRecorder, hash string) {
	t.Helper()
	next := a.Header().Get("Location")
	if next == "" {
		var said struct{ Next string }
		if err := json.Unmarshal(a.Body.Bytes(), &said); err != nil || said.Next == "" || a.Code != http.StatusOK {
			t.Fatalf("the answer is %d %s", a.Code, a.Body)
		}
		next = said.Next
	}
	next, hash, _ = strings.Cut(next, "#")
	await.Until(t, "the end of a request", func() bool {
		page = g.browsers[name].Get(next)
		return strings.Contains(page.Body.String(), "C’est fait.")
	})
	return page, hash
}

// join uses a link, makes two passkeys and returns the digits.
func (g group) join(t *testing.T, name, link string) string {
	t.Helper()
	b := g.NewBrowser()
	if a := b.Post("/join/accept", url.Values{"link": {link}}); a.Code != http.StatusSeeOther {
		t.Fatalf("the link is answered %d", a.Code)
	}
	i, err := identity.InvitationOf(t.Context(), g.Pool, g.Keys, secret.NewText(b.Cookies()["__Host-quittance_staff_joining"]), g.Now())
	if err != nil {
		t.Fatal(err)
	}
	g.IDs[name] = i.StaffID
	for range 2 {
		made, err := device.NewDevice(uuid.MustParse(i.StaffID), office.URL)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := made.Register(b.Post("/join/passkey/begin", nil).Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		backoffice.Want(t, b.Send("/join/passkey", answer), http.StatusOK, `"next"`)
		g.Devices[name] = append(g.Devices[name], made)
	}
	if i, err = identity.InvitationOf(t.Context(), g.Pool, g.Keys, secret.NewText(b.Cookies()["__Host-quittance_staff_joining"]), g.Now()); err != nil {
		t.Fatal(err)
	}
	return i.Digits()
}

var admins = []identity.Role{identity.RoleAgencyAdmin}

// A group that two people manage was stuck: the command line refuses. Now one invites on a page, the invited person makes
// passkeys, and the other one types the digits and confirms. The link is in no page of the server. Whoever invited does not
// confirm, wrong digits are said and counted, and each of the two sees what waits.
func TestTwoPeopleTakeAThirdIn(t *testing.T) {
	t.Parallel()
	g := openGroup(t, "impots", admins, "Awa", "Ben")
	_, err := identity.InviteStaff(t.Context(), g.Pool, g.Keys, identity.By{Actor: registries.Actor}, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Chloé", Agency: "impots"}}, g.Now())
	if err == nil {
		t.Fatal("the command line invites")
	}
	awa, ben := g.browsers["Awa"], g.browsers["Ben"]
	list := awa.Get("/people")
	backoffice.Want(t, list, http.StatusOK, "Direction générale des impôts", "Awa", "Ben", "gestionnaire des comptes", "Aucune invitation ni proposition", "commandes quittance staff invite, confirm, roles et lift refusent", "quittance staff list")
	backoffice.Lacks(t, list, `id="agency"`) // an agency's people see their own

	backoffice.Want(t, g.press(t, "Awa", "/people/invite", "name", "", "add", "reader"), http.StatusUnprocessableEntity, "Indiquez le nom, en une ligne")
	backoffice.Want(t, g.press(t, "Awa", "/people/invite", "name", "Ben", "add", "reader"), http.StatusConflict, "Ben existe déjà (actif)")
	backoffice.Want(t, g.press(t, "Awa", "/people/invite", "name", "Chloé", "add", "agency-admin", "add", "approver"), http.StatusConflict, "«\u00a0gestionnaire des comptes\u00a0» et «\u00a0approbateur\u00a0»")
	page, link := g.done(t, "Awa", g.press(t, "Awa", "/people/invite", "name", "Chloé", "number", "4711", "add", "reader"))
	backoffice.Want(t, page, http.StatusOK, `data-link="https://staff.example/join#"`, "Donnez ce lien à la personne seule", "/people/invitations/")
	backoffice.Lacks(t, page, link)
	if !strings.HasPrefix(link, "inv_") {
		t.Fatalf("the link is %q", link)
	}
	invitation := "/people/invitations/" + between(t, page, "/people/invitations/", "?")
	backoffice.Want(t, awa.Get(invitation), http.StatusOK, "lien pas encore ouvert", "une autre personne confirme", "Retirer l’invitation")
	backoffice.Lacks(t, ben.Get("/work"), invitation) // nothing to decide yet
	digits := g.join(t, "Chloé", link)
	todo := ben.Get("/work")
	backoffice.Want(t, todo, http.StatusOK, "Comptes d’agents\u00a0: à décider par vous", invitation, "Chloé", "attend la confirmation")
	backoffice.Lacks(t, todo, "Rien n’attend votre décision")
	backoffice.Want(t, awa.Get("/work"), http.StatusOK, "vos demandes en attente", invitation)
	backoffice.Lacks(t, awa.Get(invitation), "/people/ask/begin", digits)
	shown := ben.Get(invitation)
	backoffice.Want(t, shown, http.StatusOK, "Chloé", "4711", "lecteur", "Clé d’accès 1", "Clé d’accès 2", "Awa", "Appelez la personne", "commandes quittance staff invite, confirm, roles et lift refusent")
	backoffice.Lacks(t, shown, "quittance staff confirm", digits, digits[:4]+" "+digits[4:])
	fields := form(t, shown, "/people/ask", "digits", "0000 0000")
	wrong := ben.Press(t, "Ben", "/people/ask/begin", fields, "/people/ask")
	backoffice.Want(t, wrong, http.StatusConflict, "Essais restants\u00a0: 4")
	// The same form goes on as another request, after a refusal that the person sees at once.
	fields.Set("id", between(t, wrong, `"again":"`, `"`))
	fields.Set("digits", digits[:4]+" "+digits[4:])
	page, _ = g.done(t, "Ben", ben.Press(t, "Ben", "/people/ask/begin", fields, "/people/ask"))
	backoffice.Want(t, page, http.StatusOK, "Confirmation")
	backoffice.Want(t, ben.Get(invitation), http.StatusOK, "L’invitation est confirmée.")
	chloe := g.Enter(t, "Chloé")
	backoffice.Want(t, chloe.Get("/work"), http.StatusOK)
	backoffice.Want(t, chloe.Get("/people"), http.StatusForbidden)
	record := ben.Get("/people/" + g.IDs["Chloé"])
	backoffice.Want(t, record, http.StatusOK, "lecteur", "4711", "Clé d’accès 1", "Invitation confirmée", "Chiffres faux", "Ben", "/suspend")
}

// between returns what stands between two texts of a page.
func between(t *testing.T, a *httptest.ResponseRecorder, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(a.Body.String(), before)
	text, _, ends := strings.Cut(rest, after)
	if !found || !ends {
		t.Fatalf("the page lacks %s…%s:\n%.3000s", before, after, a.Body)
	}
	return text
}

// passkey returns the id of the passkey with a name.
func (g group) passkey(t *testing.T, called string) (id string) {
	t.Helper()
	if err := g.Pool.QueryRow(t.Context(), `SELECT id FROM staff_passkeys WHERE name = $1`, called).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// Roles take two: one proposes, the other approves what the page shows. One person suspends, another lifts it. A proposal is
// withdrawn without a passkey, and a passkey of the own is removed while another one is in force.
func TestPeopleChange(t *testing.T) {
	t.Parallel()
	g := openGroup(t, "impots", admins, "Awa", "Ben")
	g.Add(t, "impots", []identity.Role{identity.RoleReader}, "Chloé")
	g.GivePasskey(t, "Ben", "Clé de secours", registries.Epoch)
	of := "/people/" + g.IDs["Chloé"]
	page, _ := g.done(t, "Awa", g.press(t, "Awa", of+"/roles", "add", "accountant", "remove", "reader", "reason", "Mutation"))
	change := "/people/changes/" + between(t, page, "/people/changes/", "?")
	backoffice.Want(t, g.browsers["Awa"].Get(change), http.StatusOK, "une autre personne l’approuve", "Retirer votre proposition", "comptable")
	backoffice.Lacks(t, g.browsers["Awa"].Get(change), "/people/ask/begin")
	backoffice.Want(t, g.press(t, "Ben", of+"/roles", "add", "supervisor", "reason", "r"), http.StatusConflict, "Une proposition de Awa")
	backoffice.Want(t, g.browsers["Ben"].Get("/work"), http.StatusOK, change, "Changement de rôles")

	// A record that has changed since the page was shown is not approved.
	stale := g.browsers["Ben"].Get(change)
	g.Write(t, `UPDATE staff SET number = '12' WHERE id = $1`, g.IDs["Chloé"])
	backoffice.Want(t, g.browsers["Ben"].Press(t, "Ben", "/people/ask/begin", form(t, stale, "/people/ask"), "/people/ask"), http.StatusConflict, "Le dossier a changé")
	g.done(t, "Ben", g.press(t, "Ben", change))
	backoffice.Want(t, g.browsers["Ben"].Get(of), http.StatusOK, "comptable", "Proposition approuvée")

	page, _ = g.done(t, "Ben", g.press(t, "Ben", of+"/revoke", "reason", "Départ"))
	change = "/people/changes/" + between(t, page, "/people/changes/", "?")
	own := g.browsers["Ben"].Get(change)
	g.done(t, "Ben", g.browsers["Ben"].Post("/people/end", form(t, own, "/people/end")))
	backoffice.Want(t, g.browsers["Ben"].Get(change), http.StatusOK, "rejetée ou retirée")

	g.done(t, "Awa", g.press(t, "Awa", of+"/suspend", "reason", "Clé perdue"))
	backoffice.Want(t, g.browsers["Awa"].Get(of), http.StatusOK, "suspendu", "Suspendu par")
	backoffice.Want(t, g.browsers["Awa"].Get(of+"/lift"), http.StatusNotFound)
	g.done(t, "Ben", g.press(t, "Ben", of+"/lift", "reason", "Clé retrouvée"))
	backoffice.Want(t, g.browsers["Ben"].Get(of), http.StatusOK, "actif", "Suspension levée")

	keys := g.browsers["Ben"].Get("/passkeys")
	backoffice.Want(t, keys, http.StatusOK, "Clé de secours", "quittance staff passkeys")
	spare := form(t, keys, "/passkeys/remove")
	spare.Set("subject", g.passkey(t, "Clé de secours")) // not that of the session, which would end
	g.done(t, "Ben", g.browsers["Ben"].Press(t, "Ben", "/passkeys/begin", spare, "/passkeys/remove"))
	if n := strings.Count(g.browsers["Ben"].Get("/passkeys").Body.String(), `action="/passkeys/remove`); n != 2 {
		t.Errorf("%d passkeys are left", n)
	}
	// The two that are left keep the group from the command line.
	keys = g.browsers["Ben"].Get("/passkeys")
	backoffice.Want(t, g.browsers["Ben"].Press(t, "Ben", "/passkeys/begin", form(t, keys, "/passkeys/remove"), "/passkeys/remove"), http.StatusConflict, "deux dernières personnes")
}

// While the sink is away the page says that the request is being carried out, also to a second press of the same form, and
// nothing has changed. Another person's request is unknown.
func TestRequestWaits(t *testing.T) {
	t.Parallel()
	g := openGroup(t, "impots", admins, "Awa", "Ben")
	g.Held.Lock()
	awa := g.browsers["Awa"]
	fields := form(t, awa.Get("/people/"+g.IDs["Ben"]+"/suspend"), "/people/ask", "reason", "Clé perdue")
	first := awa.Press(t, "Awa", "/people/ask/begin", fields, "/people/ask")
	path := "/requests/" + fields.Get("id") + "?lang=fr"
	backoffice.Want(t, first, http.StatusOK, path)
	backoffice.Want(t, awa.Get(path), http.StatusOK, "en cours d’exécution")
	backoffice.Want(t, awa.Press(t, "Awa", "/people/ask/begin", fields, "/people/ask"), http.StatusOK, path)
	backoffice.Want(t, g.browsers["Ben"].Get(path), http.StatusNotFound)
	backoffice.Want(t, g.browsers["Ben"].Get("/work"), http.StatusOK)
	g.Held.Unlock()
	g.done(t, "Awa", first)
	backoffice.Want(t, g.browsers["Ben"].Get("/work"), http.StatusSeeOther) // the session has ended
	var n int
	if err := g.Pool.QueryRow(t.Context(), `SELECT count(*) FROM staff_requests`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d requests are stored, %v", n, err)
	}

	// What a passkey has signed is what is stored: fields that are changed on the way are refused.
	begun := form(t, awa.Get("/people/invite"), "/people/ask", "name", "Dan", "add", "reader")
	options := awa.Post("/people/ask/begin", begun)
	answer, err := g.Devices["Awa"][0].Answer(options.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	begun.Set("add", "agency-admin")
	body, err := json.Marshal(map[string]string{"form": begun.Encode(), "answer": string(answer)})
	if err != nil {
		t.Fatal(err)
	}
	backoffice.Want(t, awa.Send("/people/ask", body), http.StatusConflict, "Le dossier a changé")
}

// A security officer sees the people of the service and chooses an agency. The first people of an agency are invited so; once
// two of them decide, the officer only looks.
func TestSecurityOfficersChooseAnAgency(t *testing.T) {
	t.Parallel()
	g := openGroup(t, "", []identity.Role{identity.RoleSecurityOfficer}, "Olga", "Rémi")
	un := g.browsers["Olga"]
	backoffice.Want(t, un.Get("/people"), http.StatusOK, "Olga", "Rémi", `id="agency"`, "Direction générale des impôts")
	of := "?agency=" + registries.AgencyA
	backoffice.Want(t, un.Get("/people"+of), http.StatusOK, "Ce groupe n’a encore personne", "/people/invite?agency=", "deux responsables de la sécurité")
	backoffice.Want(t, un.Get("/people/invite"+of), http.StatusOK, "quittance staff invite --name NAME --agency impots --role ROLE")
	backoffice.Lacks(t, un.Get("/people/invite"), "quittance staff invite --name")
	backoffice.Want(t, un.Get("/people?agency=none"), http.StatusNotFound)
	_, link := g.done(t, "Olga", g.press(t, "Olga", "/people/invite"+of, "name", "Awa", "add", "agency-admin"))
	if !strings.HasPrefix(link, "inv_") {
		t.Errorf("the link is %q", link)
	}
	backoffice.Want(t, un.Get("/people"+of), http.StatusOK, "Awa", "invité", "lien pas encore ouvert")
	g.Add(t, "impots", admins, "Ben", "Chloé")
	list := un.Get("/people" + of)
	backoffice.Want(t, list, http.StatusOK, "Ben", "commandes quittance staff invite, confirm, roles et lift refusent")
	backoffice.Lacks(t, list, "/people/invite?agency=")
	record := un.Get("/people/" + g.IDs["Ben"])
	backoffice.Want(t, record, http.StatusOK, "Les personnes de Direction générale des impôts décident", "Clé 1")
	backoffice.Lacks(t, record, "/suspend")
	ben := g.Enter(t, "Ben")
	backoffice.Want(t, ben.Get("/people/"+g.IDs["Olga"]), http.StatusNotFound)
	backoffice.Want(t, ben.Get("/people"), http.StatusOK, "Chloé")
	backoffice.Lacks(t, ben.Get("/people"), "Rémi")
	backoffice.Want(t, ben.Get("/people?lang=en"), http.StatusOK, "People: ", "manager of accounts")
}
