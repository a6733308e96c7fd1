package operations_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/test/backoffice"
	"quittance/test/registries"
)

// twoAgencies returns pages with a second agency, douanes, that has no payments.
func twoAgencies(t *testing.T) *backoffice.World {
	t.Helper()
	w := backoffice.New(t)
	w.Seed(t, registries.Full+"  - {id: "+registries.AgencyB+", slug: douanes, name: Direction générale des douanes}\n")
	return w
}

// An agency's people see the payments and cases of their agency, decide on them by two with a passkey, and are told the
// same of another agency's as of nothing.
func TestAnAgencyDecides(t *testing.T) {
	t.Parallel()
	w := twoAgencies(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	w.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Blaise")
	w.Add(t, "douanes", []identity.Role{identity.RoleAccountant, identity.RoleApprover}, "Chantal")
	accountant, approver, stranger := w.Enter(t, "Awa"), w.Enter(t, "Blaise"), w.Enter(t, "Chantal")

	payment, path := "/agency/payments/"+sessions.Place(w.Undecided.ID), "/agency/cases/"+backoffice.LateCase
	list := accountant.Get("/agency/payments")
	backoffice.Want(t, list, http.StatusOK, "DOSSIER-17", `href="`+payment+`?lang=fr"`, `action="/agency/payments"`, `action="/agency/search"`)
	backoffice.Lacks(t, list, "/ops/", `name="agency"`, "chs_", backoffice.Contact)
	backoffice.Want(t, accountant.Get(payment), http.StatusOK, "Paiement tardif", path)
	leads(t, accountant.Post("/agency/search", url.Values{"q": {w.Paid.OrderID}}), "/agency/search?lang=fr&q=DOSSIER-17")
	leads(t, accountant.Get("/agency/search?q=DOSSIER-17"), "/agency/payments/"+sessions.Place(w.Paid.ID)+"?lang=fr")
	ownCases := accountant.Get("/agency/cases")
	backoffice.Want(t, ownCases, http.StatusOK, path)
	backoffice.Lacks(t, ownCases, backoffice.OrphanCase, backoffice.PoisonCase, "/ops/") // they are no agency's

	// Another agency is answered as if there were nothing, whatever names the record.
	for real, none := range map[string]string{
		payment: "/agency/payments/" + strings.Repeat("0", len(sessions.Place(w.Paid.ID))),
		path:    "/agency/cases/case_none",
		"/agency/search?q=" + w.Undecided.OrderID:         "/agency/search?q=RIEN",
		"/agency/payments?agency=" + w.Undecided.TenantID: "/agency/payments?agency=" + strings.Repeat("0", len(w.Undecided.TenantID)),
	} {
		one, two := stranger.Get(real), stranger.Get(none)
		same := bytes.Equal(bytes.ReplaceAll(one.Body.Bytes(), []byte(real[strings.LastIndexAny(real, "/=")+1:]), nil), bytes.ReplaceAll(two.Body.Bytes(), []byte(none[strings.LastIndexAny(none, "/=")+1:]), nil))
		if one.Code != two.Code || !same {
			t.Errorf("%s: %d, %s: %d, other bytes:\n%s\n%s", real, one.Code, none, two.Code, one.Body, two.Body)
		}
		backoffice.Lacks(t, one, "DOSSIER-19\"", "Paiement tardif")
	}
	form := url.Values{"number": {"1"}, "resolution": {"refund"}, "reference": {"VIR-17"}, "reason": {"payé deux fois"}}
	backoffice.Want(t, propose(t, stranger, "Chantal", path, form), http.StatusNotFound, "Aucun cas n’a cet identifiant.")
	backoffice.Want(t, stranger.Send(path+"/propose", backoffice.Pressed(t, form, nil)), http.StatusNotFound, "Aucun cas n’a cet identifiant.")

	// The accountant proposes, the approver may not, and decides with a passkey.
	backoffice.Want(t, approver.Post(path+"/propose/begin", form), http.StatusForbidden)
	backoffice.Want(t, approver.Send(path+"/propose", backoffice.Pressed(t, form, nil)), http.StatusForbidden)
	leadsTo(t, propose(t, accountant, "Awa", path, form), path+"?done=proposed&lang=fr")
	backoffice.Want(t, approver.Get("/work"), http.StatusOK, path)
	backoffice.Want(t, stranger.Post(path+"/reject", url.Values{"number": {"1"}, "reason": {"non"}}), http.StatusNotFound)
	leads(t, approver.Post(path+"/reject", url.Values{"number": {"1"}, "reason": {"le relevé ne le montre pas"}}), path+"?done=rejected&lang=fr")
	form.Set("number", "2")
	leadsTo(t, propose(t, accountant, "Awa", path, form), path+"?done=proposed&lang=fr")
	fields := url.Values{"number": {"2"}, "shown": {value(t, approver.Get(path).Body.String(), "shown")}}
	backoffice.Want(t, stranger.Prove(t, "Chantal", path+"/approve/begin", fields, path+"/approve/2"), http.StatusNotFound)
	backoffice.Want(t, accountant.Prove(t, "Awa", path+"/approve/begin", fields, path+"/approve/2"), http.StatusForbidden) // the own proposal, and above the limit
	backoffice.Want(t, approver.Prove(t, "Blaise", path+"/approve/begin", fields, path+"/approve/2"), http.StatusOK, `"next":"/agency/cases/case_late?done=approved`)
	if d := show(t, w, backoffice.LateCase); d.Proposals[1].State != cases.ProposalApproved || d.Proposals[1].Decider != "Blaise" {
		t.Errorf("the proposals are %+v", d.Proposals)
	}
}

// A delivery of another agency's payment is not sent again, and the own one is.
func TestAnAgencyRetries(t *testing.T) {
	t.Parallel()
	w := twoAgencies(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	w.Add(t, "douanes", []identity.Role{identity.RoleAccountant}, "Chantal")
	accountant, stranger := w.Enter(t, "Awa"), w.Enter(t, "Chantal")
	path := "/agency/payments/" + sessions.Place(w.Paid.ID)
	retry := path + "/deliveries/" + w.Parked + "/retry"
	backoffice.Want(t, stranger.Post(retry, nil), http.StatusNotFound, "Introuvable")
	backoffice.Want(t, stranger.Post("/agency/search", url.Values{"q": {w.Parked}}), http.StatusNotFound, "Rien ne correspond")
	leads(t, accountant.Post("/agency/search", url.Values{"q": {w.Parked}}), path+"?lang=fr")
	leads(t, accountant.Post(retry, nil), path+"?done=retried&lang=fr")
}

// Below the limit of the agency whoever has proposed approves alone, with a passkey. Above it the page has no form, and a
// form of one's own is refused.
func TestOneDecidesBelowTheLimit(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	b := w.Enter(t, "Awa")
	path := "/agency/cases/" + backoffice.LateCase
	form := url.Values{"number": {"1"}, "resolution": {"refund"}, "reference": {"VIR-17"}, "reason": {"payé deux fois"}}
	leadsTo(t, propose(t, b, "Awa", path, form), path+"?done=proposed&lang=fr")
	backoffice.Lacks(t, b.Get(path), "/approve/begin") // 7 500, the limit is 5 000
	fields := url.Values{"number": {"1"}, "shown": {show(t, w, backoffice.LateCase).Shown(1)}}
	backoffice.Want(t, b.Prove(t, "Awa", path+"/approve/begin", fields, path+"/approve/1"), http.StatusForbidden)

	w.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 8000"))
	fields.Set("shown", value(t, b.Get(path).Body.String(), "shown"))
	backoffice.Want(t, b.Prove(t, "Awa", path+"/approve/begin", fields, path+"/approve/1"), http.StatusOK, `"next":"`+path+`?done=approved`)
	if d := show(t, w, backoffice.LateCase); d.Proposals[0].State != cases.ProposalApproved || d.Proposals[0].Decider != "Awa" {
		t.Errorf("the proposals are %+v", d.Proposals)
	}
}
