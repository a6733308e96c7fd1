package oversight_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/test/backoffice"
	"quittance/test/registries"
)

// leads checks where an answer leads.
func leads(t *testing.T, a *httptest.ResponseRecorder, path string) {
	t.Helper()
	if at := a.Header().Get("Location"); a.Code != http.StatusSeeOther || at != path {
		t.Errorf("%d to %q, want 303 to %q", a.Code, at, path)
	}
}

// seen is a world with a second agency, in which an operator has read a payment and proposed about a case.
func seen(t *testing.T) *backoffice.World {
	t.Helper()
	w := backoffice.New(t)
	w.Seed(t, registries.Full+"  - {id: "+registries.AgencyB+", slug: douanes, name: Direction générale des douanes}\n")
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive Makaya")
	w.Add(t, "", []identity.Role{identity.RoleAuditor}, "Aude")
	w.Add(t, "impots", []identity.Role{identity.RoleAgencyAdmin}, "Nadège")
	w.Add(t, "douanes", []identity.Role{identity.RoleAgencyAdmin}, "Didier")
	b := w.Enter(t, "Olive Makaya")
	b.Get("/ops/payments/" + sessions.Place(w.Paid.ID))
	path := "/ops/cases/" + backoffice.LateCase
	form := url.Values{"number": {"1"}, "resolution": {"refund"}, "reference": {"VIR-17"}, "reason": {"payé deux fois"}}
	backoffice.Want(t, b.Press(t, "Olive Makaya", path+"/propose/begin", form, path+"/propose"), http.StatusOK)
	return w
}

// The audit table says who did what to what, with what speaks for each row: the signature of the program and the decision of a
// passkey. A session is named by its place, and what people type comes into an address as ids.
func TestAudit(t *testing.T) {
	t.Parallel()
	w := seen(t)
	auditor, manager, other := w.Enter(t, "Aude"), w.Enter(t, "Nadège"), w.Enter(t, "Didier")
	place, olive := sessions.Place(w.Paid.ID), w.IDs["Olive Makaya"]

	a := auditor.Get("/admin/audit")
	backoffice.Want(t, a, http.StatusOK, "Olive Makaya", "Paiement consulté", "session.read", `href="/ops/payments/`+place+`?lang=fr"`, `href="/ops/cases/case_late?lang=fr"`, "Proposition sur un cas",
		"Clé d’accès\u00a0: propose", "quittance decisions verify --subject case_late", "quittance audit verify --since 20", "<code id=\"command\">quittance audit list</code>", ", signée", "Direction générale des impôts", "Connecté\u00a0: Aude")
	backoffice.Lacks(t, a, "chs_", backoffice.Contact, "sans signature valable")
	// A row that somebody inserts has no signature of a program, and its detail may be of any shape.
	w.Exec(t, `INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail, agency_id) VALUES ($1, 'person', $2, '', 'session.read', $3, '{"proof": "x", "sessions": ["`+w.Paid.ID+`"]}', $4)`, w.Now(), olive, w.Paid.ID, registries.AgencyA)
	a = auditor.Get("/admin/audit?lang=en&payment=" + place)
	backoffice.Want(t, a, http.StatusOK, "no valid signature", "Not in Kafka yet", "proof x; sessions [&#34;"+place+"&#34;]", "quittance audit list --subject SESSION")
	backoffice.Lacks(t, a, "chs_", "case_late")

	t.Run("what is typed", func(t *testing.T) {
		post := func(name, value string) *httptest.ResponseRecorder {
			return auditor.Post("/admin/audit", url.Values{name: {value}})
		}
		leads(t, post("who", "olive makaya"), "/admin/audit?lang=fr&who="+olive)
		leads(t, post("who", "cases"), "/admin/audit?lang=fr&who=cases")
		leads(t, post("subject", "https://pay.example/c/"+w.Paid.ID), "/admin/audit?lang=fr&payment="+place)
		leads(t, post("subject", place), "/admin/audit?lang=fr&payment="+place)
		leads(t, post("subject", "case_late"), "/admin/audit?lang=fr&subject=case_late")
		leads(t, auditor.Get("/admin/audit?subject="+w.Paid.ID), "/admin/audit?lang=fr&payment="+place)
		backoffice.Want(t, post("who", "Personne Inconnue"), http.StatusUnprocessableEntity, `<a href="#who">Aucun agent ne porte ce nom`, `value="Personne Inconnue"`)
		faulty := post("subject", "06 600 00 01")
		backoffice.Want(t, faulty, http.StatusUnprocessableEntity, `<a href="#subject">Un numéro de téléphone`)
		backoffice.Lacks(t, faulty, "subject=06")
		backoffice.Want(t, auditor.Get("/admin/audit?who="+olive), http.StatusOK, `value="Olive Makaya"`, "session.read", "case.propose", "quittance audit list --who "+olive)
		backoffice.Want(t, auditor.Get("/admin/audit?action=case"), http.StatusOK, "case.propose")
		backoffice.Want(t, auditor.Get("/admin/audit?day=2026-03-01&agency="+registries.AgencyA), http.StatusOK, "case.propose", "quittance audit list --agency impots --since 2026-02-28T23:00:00Z --until 2026-03-01T23:00:00Z")
		backoffice.Want(t, auditor.Get("/admin/audit?day=1.3.2026"), http.StatusUnprocessableEntity, `<a href="#day">Le jour s’écrit`)
		backoffice.Want(t, auditor.Get("/admin/audit?action=nothing"), http.StatusOK, "Aucune opération ne remplit ces conditions")
		backoffice.Want(t, auditor.Get("/admin/audit?after=x"), http.StatusUnprocessableEntity, "revenez à la première page")
	})

	t.Run("an agency", func(t *testing.T) {
		own := manager.Get("/agency/audit")
		backoffice.Want(t, own, http.StatusOK, "Olive Makaya", "session.read", "case.propose", `action="/agency/audit"`, "quittance audit list --agency impots")
		backoffice.Lacks(t, own, "chs_", "/ops/", "/admin/", "192.0.2.1", "Direction générale des douanes", `name="agency"`, "/agency/payments/")
		nothing := other.Get("/agency/audit")
		backoffice.Lacks(t, nothing, "Olive Makaya", "session.read", "case_late")
		// Another agency's payment is answered as one that does not exist.
		none := strings.Repeat("0", len(place))
		one, two := other.Get("/agency/audit?payment="+place), other.Get("/agency/audit?payment="+none)
		if one.Code != http.StatusOK || !bytes.Equal(bytes.ReplaceAll(one.Body.Bytes(), []byte(place), nil), bytes.ReplaceAll(two.Body.Bytes(), []byte(none), nil)) {
			t.Errorf("%d, other bytes:\n%s\n%s", one.Code, one.Body, two.Body)
		}
		backoffice.Lacks(t, other.Get("/agency/audit?agency="+registries.AgencyA), "session.read")
		backoffice.Lacks(t, other.Get("/agency/audit?subject=case_late"), "case.propose")
		// A name of another agency's people is not known.
		backoffice.Want(t, other.Post("/agency/audit", url.Values{"who": {"Nadège"}}), http.StatusUnprocessableEntity)
	})

	t.Run("pages", func(t *testing.T) {
		w.Exec(t, `INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail) SELECT $1::timestamptz + n * interval '1 second', 'service', 'cases', '', 'test.row', 'row-' || n, '{}' FROM generate_series(1, 120) n`, w.Now().Add(time.Hour))
		next := regexp.MustCompile(`rel="next" href="([^"]*)"`)
		rows := map[string]bool{}
		path := "/admin/audit?action=test.row"
		for pages := 0; path != ""; pages++ {
			body := auditor.Get(path).Body.String()
			for n := 1; n <= 120; n++ {
				if row := fmt.Sprintf(">row-%d<", n); strings.Contains(body, row) {
					if rows[row] {
						t.Errorf("%s comes twice", row)
					}
					rows[row] = true
				}
			}
			path = ""
			if m := next.FindStringSubmatch(body); m != nil && pages < 5 {
				path = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		if len(rows) != 120 {
			t.Errorf("%d rows, want 120", len(rows))
		}
	})
}

// The record of a payment and of a case says who has looked and acted, to whoever may know it.
func TestTrail(t *testing.T) {
	t.Parallel()
	w := seen(t)
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Paul")
	w.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Blaise")
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	payment, late := "payments/"+sessions.Place(w.Paid.ID), "cases/"+backoffice.LateCase
	const title, all = "Consultations et opérations", "Toutes les opérations"
	for name, root := range map[string]string{"Aude": "/ops/", "Paul": "/ops/", "Blaise": "/agency/"} {
		b := w.Enter(t, name)
		for path, action := range map[string]string{payment: "session.read", late: "case.propose"} {
			a := b.Get(root + path)
			backoffice.Want(t, a, http.StatusOK, title, "Olive Makaya", action)
			backoffice.Lacks(t, a, "chs_")
			if strings.Contains(a.Body.String(), all) != (name == "Aude") {
				t.Errorf("%s of %s: the link to all rows", path, name)
			}
		}
	}
	for name, root := range map[string]string{"Olive Makaya": "/ops/", "Awa": "/agency/"} {
		backoffice.Lacks(t, w.Enter(t, name).Get(root+payment), title)
	}
	backoffice.Want(t, w.Enter(t, "Aude").Get("/ops/"+payment), http.StatusOK, `href="/admin/audit?lang=fr&amp;payment=`+sessions.Place(w.Paid.ID)+`"`)
}
