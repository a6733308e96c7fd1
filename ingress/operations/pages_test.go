package operations_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/test/backoffice"
)

// leads checks where an answer leads, without the language.
func leads(t *testing.T, a *httptest.ResponseRecorder, path string) {
	t.Helper()
	if at := a.Header().Get("Location"); a.Code != http.StatusSeeOther || at != path {
		t.Errorf("%d to %q, want 303 to %q", a.Code, at, path)
	}
}

func operator(t *testing.T) (*backoffice.World, *backoffice.Browser) {
	t.Helper()
	w := backoffice.New(t)
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	return w, w.Enter(t, "Olive")
}

// A list of payments names each by its place: no address and no page has a session id. Conditions narrow it, a faulty
// one is named, and a page with a condition that nobody meets says so.
func TestListOfPayments(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	place := sessions.Place(w.Paid.ID)
	a := b.Get("/ops/payments")
	backoffice.Want(t, a, http.StatusOK, "DOSSIER-17", "DOSSIER-18", "DOSSIER-19", sum(5000), "Payé", `href="/ops/payments/`+place+`?lang=fr"`, "Résultats\u00a0: 3.", "quittance sessions list --mode live", "Direction générale des impôts")
	backoffice.Lacks(t, a, "ESSAI-1", "chs_", w.Paid.ID[4:])
	backoffice.Want(t, b.Get("/ops/payments?mode=test&lang=en"), http.StatusOK, "ESSAI-1", "Test mode: no real money.")
	backoffice.Want(t, b.Get("/ops/payments?status=completed"), http.StatusOK, "DOSSIER-17", "Résultats\u00a0: 1.")
	backoffice.Want(t, b.Get("/ops/payments?order=DOSSIER-18&text=patente"), http.StatusOK, "DOSSIER-18")
	backoffice.Want(t, b.Get("/ops/payments?day=2026-02-28"), http.StatusOK, "DOSSIER-17")
	backoffice.Want(t, b.Get("/ops/payments?from=9+000"), http.StatusOK, "Aucun paiement ne remplit ces conditions")
	backoffice.Want(t, b.Get("/ops/payments?day=28.02.2026"), http.StatusUnprocessableEntity, `<a href="#day">Le jour s’écrit AAAA-MM-JJ`)
	backoffice.Want(t, b.Get("/ops/payments?from=beaucoup"), http.StatusUnprocessableEntity, `<a href="#from">Le montant`)
	backoffice.Want(t, b.Get("/ops/payments?after=xyz"), http.StatusUnprocessableEntity, "revenez à la première page")
}

// The script asks whether the list has changed. It gets 304, and no row of the audit table.
func TestAListIsAskedAgain(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	path := "/ops/payments/" + sessions.Place(w.Paid.ID)
	tag := b.Get(path).Header().Get("ETag")
	b.Header.Set("If-None-Match", tag)
	b.Header.Set("Quittance-Asks", "1")
	if a := b.Get(path); a.Code != http.StatusNotModified || a.Body.Len() > 0 {
		t.Errorf("the same page: %d, %d bytes", a.Code, a.Body.Len())
	}
	var reads int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'session.read' AND actor = $1 AND subject = $2`, w.IDs["Olive"], w.Paid.ID).Scan(&reads); err != nil || reads != 1 {
		t.Errorf("%d reads are recorded, %v", reads, err)
	}
	// Fourteen minutes of asking prolong nothing.
	w.MoveTo(w.Now().Add(14 * time.Minute))
	b.Get(path)
	w.MoveTo(w.Now().Add(2 * time.Minute))
	if a := b.Get(path); a.Code != http.StatusUnauthorized {
		t.Errorf("after 16 minutes without the person: %d", a.Code)
	}
}

// The record of a payment says what became of it, masks the payer, lists its deliveries, and says what it lacks. A
// delivery that needs a person is sent again by the same noun as a command, once however often the form is sent.
func TestRecordOfAPayment(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	path := "/ops/payments/" + sessions.Place(w.Paid.ID)
	a := b.Get(path)
	backoffice.Want(t, a, http.StatusOK, "Payé le", "06 6•• •• 01", "MP260301.1200.A1", "DUE-1", "À reprendre", "quittance deliveries retry dlv_parked", "quittance sessions find 0000000000000040", "Non lu\u00a0: Journal")
	backoffice.Lacks(t, a, "chs_", backoffice.Contact)
	backoffice.Want(t, b.Get("/ops/payments/"+sessions.Place(w.Undecided.ID)+"?lang=en"), http.StatusOK, "Not decided by the operator since", "Late payment", "/ops/cases/"+backoffice.LateCase)
	backoffice.Want(t, b.Get("/ops/payments/"+sessions.Place(w.Undecided.ID)+"?commands=1"), http.StatusOK)

	retry := path + "/deliveries/" + w.Parked + "/retry"
	leads(t, b.Post(retry, nil), path+"?done=retried&lang=fr")
	backoffice.Want(t, b.Get(path+"?done=retried"), http.StatusOK, "L’envoi part de nouveau dans un instant.", "En attente")
	var retries int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'delivery.retry' AND actor = $1 AND actor_kind = 'person' AND subject = $2`, w.IDs["Olive"], w.Parked).Scan(&retries); err != nil || retries != 1 {
		t.Errorf("%d retries are recorded, %v", retries, err)
	}
	// The delivery of another payment is not at this address.
	backoffice.Want(t, b.Post("/ops/payments/"+sessions.Place(w.Open.ID)+"/deliveries/"+w.Parked+"/retry", nil), http.StatusNotFound, "Introuvable")
}

// What is typed into the search box decides where it leads. A session id does not come into an address, and a phone
// number is not searched.
func TestSearch(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	search := func(q string) *httptest.ResponseRecorder { return b.Post("/ops/search", url.Values{"q": {q}}) }
	record := "/ops/payments/" + sessions.Place(w.Paid.ID) + "?lang=fr"
	leads(t, search(w.Paid.ID), record)
	leads(t, search(" "+backoffice.LateCase+" "), "/ops/cases/"+backoffice.LateCase+"?lang=fr")
	leads(t, search(w.Parked), record)
	leads(t, search("DOSSIER-17"), "/ops/search?lang=fr&q=DOSSIER-17")
	leads(t, b.Get("/ops/search?q=DOSSIER-17"), record)
	leads(t, search(""), "/ops/payments?lang=fr")
	backoffice.Want(t, search("06 600 00 01"), http.StatusUnprocessableEntity, "ne se recherche pas ici")
	backoffice.Want(t, search("awa@example.org"), http.StatusUnprocessableEntity, "ne se recherche pas ici")
	unknown := search(checkout.NewSessionID(w.Now(), 0, [16]byte{99}))
	backoffice.Want(t, unknown, http.StatusNotFound, "Rien ne correspond")
	backoffice.Lacks(t, unknown, "chs_")
	backoffice.Want(t, search("case_none"), http.StatusNotFound, "Rien ne correspond")
	backoffice.Want(t, b.Get("/ops/search?q=RIEN"), http.StatusNotFound, "Rien ne correspond")
	backoffice.Want(t, b.Get("/ops/search?q=1234567890123456"), http.StatusNotFound, "un chiffre est sans doute mal saisi")
	backoffice.Want(t, b.Get("/ops/search?q=UNKNOWN-1"), http.StatusOK, "Somme sans paiement", "quittance sessions find UNKNOWN-1")
	backoffice.Want(t, b.Get("/ops/search?q="+url.QueryEscape(w.Paid.ID)), http.StatusOK, "Saisissez dans le champ")
	// The audit table has no term.
	var terms int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'session.find' AND detail::text ~ 'DOSSIER|UNKNOWN|RIEN'`).Scan(&terms); err != nil || terms != 0 {
		t.Errorf("%d terms are recorded, %v", terms, err)
	}
	for range 40 {
		if a := search("DOSSIER-17"); a.Code == http.StatusTooManyRequests {
			backoffice.Want(t, a, http.StatusTooManyRequests, "plus de 30 recherches")
			return
		}
	}
	t.Error("a person may search without end")
}

// One person proposes, another rejects or approves, each with a passkey. A repeat of the form is the first proposal, a form
// that was shown before somebody else's proposal is refused, and the words of a fault name its field.
func TestCase(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Léa")
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Opale")
	lead, other := w.Enter(t, "Léa"), w.Enter(t, "Opale")
	path := "/ops/cases/" + backoffice.LateCase
	backoffice.Want(t, b.Get("/ops/cases"), http.StatusOK, "Paiement tardif", "Somme sans paiement", "Enregistrement illisible", "quittance cases list")
	backoffice.Want(t, b.Get("/ops/cases?kind=orphan&state=open&mode=live"), http.StatusOK, "Somme sans paiement", "quittance cases list --kind orphan --state open --mode live")
	backoffice.Want(t, b.Get("/ops/cases/"+backoffice.PoisonCase), http.StatusOK, "checkout.events · 1 · 42")
	a := b.Get(path)
	backoffice.Want(t, a, http.StatusOK, sum(7500), sum(5075), "MP260301.1300.B2", `action="/ops/cases/case_late/propose?lang=fr"`, `data-begin="/ops/cases/case_late/propose/begin?lang=fr"`, `name="number" value="1"`, "/ops/payments/"+sessions.Place(w.Undecided.ID))
	backoffice.Lacks(t, a, "chs_")

	form := url.Values{"number": {"1"}, "resolution": {"refund"}, "reference": {"VIR-17 du 1er mars"}, "reason": {"payé deux fois"}}
	with := func(name, value string) url.Values {
		out := url.Values{}
		for k, v := range form {
			out[k] = v
		}
		out.Set(name, value)
		return out
	}
	// Without the script nobody proposes, and the page says so.
	backoffice.Want(t, a, http.StatusOK, "<noscript>", "Proposer demande une clé d’accès, que seul JavaScript peut lire.")
	backoffice.Want(t, b.Get(path+"?lang=en"), http.StatusOK, "Proposing needs a passkey, which only JavaScript can read.")
	backoffice.Want(t, b.Post(path+"/propose", form), http.StatusConflict, "n’a pas signé")
	// The page keeps what was typed, and the text names the field.
	backoffice.Want(t, propose(t, b, "Olive", path, with("resolution", "")), http.StatusUnprocessableEntity, "Choisissez une issue.")
	backoffice.Want(t, propose(t, b, "Olive", path, with("reason", "")), http.StatusUnprocessableEntity, "Indiquez le motif")
	backoffice.Want(t, propose(t, b, "Olive", path, with("reference", "")), http.StatusUnprocessableEntity, "Indiquez la pièce")
	backoffice.Want(t, propose(t, b, "Olive", path, with("resolution", "match")), http.StatusConflict, "Issues possibles")
	backoffice.Want(t, propose(t, b, "Opale", path, form), http.StatusConflict, "n’a pas signé") // another person's passkey
	backoffice.Want(t, b.Send(path+"/propose", backoffice.Pressed(t, with("reason", "autre motif"), b.Answer(t, "Olive", path+"/propose/begin", form))), http.StatusConflict, "Le dossier a changé")
	if d := show(t, w, backoffice.LateCase); len(d.Proposals) != 0 {
		t.Errorf("the proposals are %+v", d.Proposals)
	}
	leadsTo(t, propose(t, b, "Olive", path, form), path+"?done=proposed&lang=fr")
	leadsTo(t, b.Post(path+"/propose/begin", form), path+"?done=proposed&lang=fr")                       // sent twice
	leadsTo(t, b.Send(path+"/propose", backoffice.Pressed(t, form, nil)), path+"?done=proposed&lang=fr") // the answer was lost
	if d := show(t, w, backoffice.LateCase); len(d.Proposals) != 1 || d.Proposals[0].Proposer != "Olive" {
		t.Errorf("the proposals are %+v", d.Proposals)
	}
	backoffice.Want(t, other.Post(path+"/propose/begin", form), http.StatusConflict, "Une autre proposition a été faite")
	backoffice.Want(t, other.Send(path+"/propose", backoffice.Pressed(t, form, nil)), http.StatusConflict, "Une autre proposition a été faite")
	own := b.Get(path)
	backoffice.Want(t, own, http.StatusOK, "attend la décision d’une autre personne", "/reject")
	backoffice.Lacks(t, own, "/approve/begin", "/propose?")
	theirs := other.Get(path)
	backoffice.Lacks(t, theirs, "/approve/begin", "/reject", "/propose?")
	backoffice.Want(t, other.Post(path+"/reject", url.Values{"number": {"1"}, "reason": {"non"}}), http.StatusForbidden)

	// The lead rejects what the page has shown.
	backoffice.Want(t, lead.Post(path+"/reject", url.Values{"number": {"2"}, "reason": {"non"}}), http.StatusConflict, "Le dossier a changé")
	leads(t, lead.Post(path+"/reject", url.Values{"number": {"1"}, "reason": {"le relevé ne le montre pas"}}), path+"?done=rejected&lang=fr")
	backoffice.Want(t, lead.Get(path), http.StatusOK, "Rejetée", "le relevé ne le montre pas")

	// And approves the next one with a passkey.
	form.Set("number", "2")
	leadsTo(t, propose(t, b, "Olive", path, form), path+"?done=proposed&lang=fr")
	shown := value(t, lead.Get(path).Body.String(), "shown")
	begin, finish := path+"/approve/begin", path+"/approve/2"
	fields := url.Values{"number": {"2"}, "shown": {strings.Repeat("0", 64)}}
	backoffice.Want(t, lead.Prove(t, "Léa", begin, fields, finish), http.StatusConflict, "Le dossier a changé")
	fields.Set("shown", shown)
	backoffice.Want(t, lead.Post(finish, nil), http.StatusConflict, "n’a pas signé")
	backoffice.Want(t, lead.Prove(t, "Opale", begin, fields, finish), http.StatusConflict, "n’a pas signé") // another person's passkey
	approved := lead.Prove(t, "Léa", begin, fields, finish)
	backoffice.Want(t, approved, http.StatusOK, `"next":"/ops/cases/case_late?done=approved`)
	backoffice.Want(t, lead.Get(path), http.StatusOK, "Approuvée")
	if d := show(t, w, backoffice.LateCase); d.Proposals[1].State != cases.ProposalApproved || d.Proposals[1].Decider != "Léa" {
		t.Errorf("the proposals are %+v", d.Proposals)
	}
	var proofs int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM case_proposals p JOIN decisions o ON p.proposed_proof = o.id JOIN decisions d ON p.decided_proof = d.id WHERE o.staff_id = $1 AND d.staff_id = $2`,
		w.IDs["Olive"], w.IDs["Léa"]).Scan(&proofs); err != nil || proofs != 1 {
		t.Errorf("%d proofs are stored, %v", proofs, err)
	}
}

// propose has a person's passkey sign a proposal about the case of a page.
func propose(t *testing.T, b *backoffice.Browser, name, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return b.Press(t, name, path+"/propose/begin", form, path+"/propose")
}

// leadsTo checks where the script of a page is led.
func leadsTo(t *testing.T, a *httptest.ResponseRecorder, path string) {
	t.Helper()
	var said struct{ Next string }
	if err := json.Unmarshal(a.Body.Bytes(), &said); a.Code != http.StatusOK || err != nil || said.Next != path {
		t.Errorf("%d %s, want 200 to %q", a.Code, a.Body, path)
	}
}

// value returns the value of a hidden field.
func value(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `name="`+name+`" value="`)
	if !found {
		t.Fatalf("the page has no field %s", name)
	}
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// What waits for a person is on the first page; whoever proposed sees it among the own ones.
func TestWork(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Léa")
	w.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Awa")
	lead, agency := w.Enter(t, "Léa"), w.Enter(t, "Awa")
	backoffice.Want(t, lead.Get("/work"), http.StatusOK, "Rien n’attend votre décision", "Vous n’avez aucune proposition en attente")
	leads(t, lead.Get("/"), "/work?lang=fr")
	path := "/ops/cases/" + backoffice.LateCase
	leadsTo(t, propose(t, b, "Olive", path, url.Values{"number": {"1"}, "resolution": {"honour"}, "reason": {"le montant couvre la créance"}}), path+"?done=proposed&lang=fr")
	backoffice.Want(t, lead.Get("/work"), http.StatusOK, "/ops/cases/"+backoffice.LateCase, "Paiement tardif", "Vous n’avez aucune proposition en attente")
	backoffice.Want(t, b.Get("/work"), http.StatusOK, "Rien n’attend votre décision", "/ops/cases/"+backoffice.LateCase)
	own := agency.Get("/work")
	backoffice.Want(t, own, http.StatusOK, "/agency/cases/"+backoffice.LateCase, "Direction générale des impôts")
	backoffice.Lacks(t, own, "/ops/") // an agency's people have no page of operations
}

// A destination is suspended and resumed by the nouns of the commands, and each step is recorded. What it has not accepted is sent
// again by a job.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	path := "/ops/endpoints/webhook/" + w.Endpoint
	backoffice.Want(t, b.Get("/ops/endpoints"), http.StatusOK, "http://127.0.0.1:8081/inbox/guichet", "En échec depuis", "quittance endpoints list", path+"?lang=fr")
	page := b.Get(path)
	backoffice.Want(t, page, http.StatusOK, "Envoyer de nouveau (1, À reprendre)", "Suspendre", "quittance jobs start --endpoint "+w.Endpoint+" --state needs_operator", "/ops/payments/"+sessions.Place(w.Paid.ID))
	backoffice.Lacks(t, page, "whsec_", "chs_")
	prepared := b.Post("/ops/jobs", form(t, page.Body.String(), "/ops/jobs"))
	if to := prepared.Header().Get("Location"); prepared.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/ops/jobs/") {
		t.Fatalf("sending again is answered %d to %s:\n%s", prepared.Code, to, prepared.Body)
	} else {
		backoffice.Want(t, b.Get(to), http.StatusOK, "À reprendre", "/inbox/guichet") // of the simulators here
	}
	leads(t, b.Post(path+"/suspend", nil), path+"?done=suspended&lang=fr")
	backoffice.Want(t, b.Get(path), http.StatusOK, "Suspendue depuis le", "par un agent", "Rétablir")
	backoffice.Lacks(t, b.Get(path), "Envoyer de nouveau (")
	leads(t, b.Post(path+"/resume", nil), path+"?done=resumed&lang=fr")
	erp := "/ops/endpoints/erp/018f0000-0000-7000-8000-000000000001%2Ftest"
	if a := b.Get("/ops/endpoints"); strings.Contains(a.Body.String(), erp) {
		backoffice.Lacks(t, b.Get(erp), "Suspendre")
		backoffice.Want(t, b.Post(erp+"/suspend", nil), http.StatusConflict, "Un ERP n’est jamais suspendu")
	} else {
		t.Errorf("the list has no link to %s:\n%s", erp, a.Body)
	}
	rows, _ := w.Pool.Query(t.Context(), `SELECT action FROM audit WHERE actor = $1 AND action LIKE 'destination.%' ORDER BY at, action`, w.IDs["Olive"])
	var actions []string
	for rows.Next() {
		var action string
		if err := rows.Scan(&action); err != nil {
			t.Fatal(err)
		}
		actions = append(actions, action)
	}
	if got := strings.Join(actions, " "); got != "destination.resume destination.suspend" {
		t.Errorf("recorded: %s", got)
	}
}

// What nobody gets on with is on one page.
func TestStuck(t *testing.T) {
	t.Parallel()
	_, b := operator(t)
	backoffice.Want(t, b.Get("/ops/stuck"), http.StatusOK, "DOSSIER-19", "checkout.completed", "Toutes les décisions approuvées sont exécutées")
	backoffice.Lacks(t, b.Get("/ops/stuck"), "DOSSIER-17", "DOSSIER-18")
	backoffice.Want(t, b.Get("/ops/stuck?mode=test"), http.StatusOK, "Aucun paiement n’est sans réponse définitive", "Mode test")
}

// show returns a case as it is now.
func show(t *testing.T, w *backoffice.World, id string) cases.Detail {
	t.Helper()
	d, err := w.Cases.Show(t.Context(), nil, id, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sum is an amount as the French pages have it.
func sum(minor int64) string {
	c, _ := money.Lookup(money.Default)
	return c.Format(money.French, minor)
}

// The case about an ERP that refuses our credentials says so in words, and how many confirmations wait for it.
func TestCaseAboutAnERP(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	refused := cases.Case{
		Case:      casework.Case{ID: "case_erp", Kind: checkout.CaseConfirmation, Amount: 5000, Currency: "XAF", Reason: checkout.ReasonCredentials, OpenedAt: w.Now()},
		InSession: true, Sequence: 9, SessionID: w.Paid.ID, AgencyID: w.Paid.TenantID, Mode: "live", Clerks: []string{}, Evidence: map[string]string{},
	}
	if err := w.Cases.Apply(t.Context(), []cases.Case{refused}, nil); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, body)
		SELECT occurred_on, 'dlv_' || n, 'erp', tenant_id || '/live', 'tx-' || n, event, application_id, tenant_id, session_id, true, occurred_at, CASE n WHEN 1 THEN 'queued' WHEN 4 THEN 'delivered' ELSE 'waiting' END, 0, 0, last_outcome_at, body
		FROM deliveries, generate_series(1, 4) n WHERE delivery_id = $1`, w.Parked)
	backoffice.Want(t, b.Get("/ops/cases/case_erp"), http.StatusOK, "L’ERP refuse nos identifiants.", "Confirmations en attente chez cet ERP</dt><dd>3</dd>")
	backoffice.Want(t, b.Get("/ops/cases/case_erp?lang=en"), http.StatusOK, "The ERP refuses our credentials.", "Confirmations that wait for this ERP</dt><dd>3</dd>")
	backoffice.Lacks(t, b.Get("/ops/cases/"+backoffice.LateCase), "Confirmations en attente")
}
