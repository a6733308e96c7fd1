package operations_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/jobs"
	"quittance/internal/sessions"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
	"quittance/test/backoffice"
	"quittance/test/registries"
	"quittance/test/servers"
)

// carriesOut has the sink carry out all jobs that run.
func carriesOut(t *testing.T, w *backoffice.World) {
	t.Helper()
	r, err := jobs.NewRunner(jobs.RunnerConfig{
		Pool: w.Pool, Keys: w.Keys, Deliveries: deliveries.NewStore(w.Pool, deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil)}),
		Service: "schedule", Now: w.Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	for more := true; more && err == nil; {
		more, err = r.Advance(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// park stores deliveries that need a person.
func park(t *testing.T, w *backoffice.World, agency string, n int) {
	t.Helper()
	w.Exec(t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		SELECT '2026-02-28', 'dlv_' || left($1::text, 36) || n, 'webhook', $2, 'evt_' || n, 'checkout.failed', $3, $1, 'chs_' || n, true, '2026-02-28T12:00Z'::timestamptz + n * interval '1 ms', 'needs_operator', 4, 0, '2026-02-28T18:00Z', 503, 'body' FROM generate_series(1, $4::int) n`,
		agency, w.Endpoint, registries.AppA, n)
}

// form returns the fields of the first form of a page that is sent to a path, with more of them.
func form(t *testing.T, page, path string, more ...string) url.Values {
	t.Helper()
	_, part, found := strings.Cut(page, `action="`+path+`?lang=fr"`)
	if !found {
		t.Fatalf("no form is sent to %s:\n%s", path, page)
	}
	part, _, _ = strings.Cut(part, "</form>")
	out := url.Values{}
	for _, m := range regexp.MustCompile(`type="hidden" name="([a-z]+)" value="([^"]*)"`).FindAllStringSubmatch(part, -1) {
		out.Set(m[1], m[2])
	}
	for i := 0; i < len(more); i += 2 {
		out.Set(more[i], more[i+1])
	}
	return out
}

// A list of deliveries has conditions in its address, names no session, and shows a service's people all agencies, an agency's
// theirs alone.
func TestListOfDeliveries(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	park(t, w, registries.AgencyA, 60)
	park(t, w, registries.AgencyB, 1)
	w.Exec(t, `UPDATE deliveries SET state = 'delivered', body = NULL WHERE event_id = 'evt_60'`)
	a := b.Get("/ops/deliveries")
	backoffice.Want(t, a, http.StatusOK, "checkout.completed", "checkout.failed", "À reprendre", "/ops/payments/"+sessions.Place(w.Paid.ID), "quittance deliveries list", "quittance jobs start", "Direction générale des impôts")
	backoffice.Lacks(t, a, "chs_", backoffice.Contact)
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(a.Body.String())
	if next == nil {
		t.Fatal("no further page")
	}
	second := b.Get(strings.ReplaceAll(next[1], "&amp;", "&"))
	if rows := strings.Count(a.Body.String(), "<th role=\"rowheader\"") + strings.Count(second.Body.String(), "<th role=\"rowheader\""); rows != 62 {
		t.Errorf("%d rows on two pages, want 62", rows)
	}
	backoffice.Want(t, b.Get("/ops/deliveries?state=delivered"), http.StatusOK, "Accepté")
	backoffice.Lacks(t, b.Get("/ops/deliveries?state=delivered"), "Préparer l’envoi")
	backoffice.Want(t, b.Get("/ops/deliveries?kind=erp"), http.StatusOK, "Aucun envoi ne remplit ces conditions")
	backoffice.Want(t, b.Get("/ops/deliveries?endpoint="+w.Endpoint+"&day=2026-02-28&state=needs_operator"), http.StatusOK, "checkout.failed", "--endpoint "+w.Endpoint+" --since 2026-02-27T23:00:00Z --until 2026-02-28T23:00:00Z")
	backoffice.Want(t, b.Get("/ops/deliveries?endpoint=rien"), http.StatusOK, "Aucun envoi ne remplit")
	backoffice.Want(t, b.Get("/ops/deliveries?day=hier"), http.StatusUnprocessableEntity, `<a href="#day">Le jour s’écrit`)
	backoffice.Want(t, b.Get("/ops/deliveries?state=waiting&after="+strings.Split(strings.Split(next[1], "after=")[1], "&")[0]), http.StatusUnprocessableEntity, "revenez à la première page")

	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Rita")
	reader := w.Enter(t, "Rita")
	for _, path := range []string{"/agency/deliveries", "/agency/deliveries?agency=" + registries.AgencyB} {
		own := reader.Get(path)
		backoffice.Want(t, own, http.StatusOK, "checkout.completed")
		backoffice.Lacks(t, own, "Préparer l’envoi", "dlv_"+registries.AgencyB)
	}
	var seen int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE tenant_id = $1`, registries.AgencyB).Scan(&seen); err != nil || seen != 1 {
		t.Fatal(seen, err)
	}
}

// An accountant sends again what waits for a person, of the own agency alone: lists it, types the count, sees what became of it,
// and sends again what was refused.
func TestAnAccountantSendsAgain(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	b := w.Enter(t, "Awa")
	park(t, w, registries.AgencyA, 120)
	park(t, w, registries.AgencyB, 3)
	backoffice.Want(t, b.Get("/agency/jobs"), http.StatusOK, "Aucune tâche", "quittance jobs list --agency impots")
	list := b.Get("/agency/deliveries?state=needs_operator").Body.String()
	prepared := b.Post("/agency/jobs", form(t, list, "/agency/jobs"))
	at := strings.TrimSuffix(prepared.Header().Get("Location"), "?lang=fr")
	if prepared.Code != http.StatusSeeOther || !strings.HasPrefix(at, "/agency/jobs/") {
		t.Fatalf("%d to %s %s", prepared.Code, at, prepared.Body)
	}
	page := b.Get(at)
	backoffice.Want(t, page, http.StatusOK, "Préparée", "<dd>121</dd>", "Pour confirmer, saisissez 121.", "quittance jobs show", "À reprendre", "Lancer (envois\u00a0: 121)", "Abandonner")
	backoffice.Want(t, b.Post(at+"/start", form(t, page.Body.String(), at+"/start", "count", "12")), http.StatusUnprocessableEntity, `<a href="#count">Le nombre saisi`, `value="12"`)
	leads(t, b.Post(at+"/start", form(t, page.Body.String(), at+"/start", "count", "121")), at+"?done=started&lang=fr")
	w.Exec(t, `UPDATE deliveries SET state = 'delivered', body = NULL WHERE event_id = 'evt_7' AND tenant_id = $1`, registries.AgencyA)
	// The same once more leads to the first one.
	leads(t, b.Post("/agency/jobs", form(t, b.Get("/agency/deliveries?state=needs_operator").Body.String(), "/agency/jobs")), at+"?done=same&lang=fr")
	carriesOut(t, w)
	done := b.Get(at)
	backoffice.Want(t, done, http.StatusOK, "Terminée\u00a0: 120 faits, 1 refusés", "L’envoi est déjà accepté.", "delivery.accepted", "Préparer l’envoi de ce qui reste (1)", "quittance jobs retry")
	again := b.Post(at+"/again", form(t, done.Body.String(), at+"/again"))
	other := strings.TrimSuffix(again.Header().Get("Location"), "?lang=fr")
	backoffice.Want(t, b.Get(other), http.StatusOK, "Reste de la tâche", "Lancer (envois\u00a0: 1)")
	leads(t, b.Post(other+"/stop", nil), other+"?done=stopped&lang=fr")
	backoffice.Want(t, b.Get("/agency/jobs?lang=en"), http.StatusOK, "Ended: 120 done, 1 refused", "Stopped")
	var touched int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND round > 0`, registries.AgencyB).Scan(&touched); err != nil || touched != 0 {
		t.Errorf("%d deliveries of another agency were sent, %v", touched, err)
	}
	// Another agency's people see nothing of it, and no form takes an agency of its own choice.
	foreign, err := w.Jobs.Prepare(t.Context(), jobs.OnCommandLine(registries.Actor, identity.Staff{}), uuid.NewString(), jobs.KindRetry, jobs.Conditions{State: "needs_operator"}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	backoffice.Want(t, b.Get("/agency/jobs/"+foreign.ID), http.StatusNotFound, "Introuvable")
	backoffice.Want(t, b.Post("/agency/jobs/"+foreign.ID+"/again", url.Values{"id": {uuid.NewString()}}), http.StatusNotFound)
	forced := b.Post("/agency/jobs", url.Values{"id": {uuid.NewString()}, "state": {"needs_operator"}, "agency": {registries.AgencyB}})
	backoffice.Want(t, forced, http.StatusConflict, "Aucun envoi ne remplit ces conditions")
}

// More than a thousand deliveries take a person and a lead, who sees the job among what waits.
func TestTwoPeopleSendAgain(t *testing.T) {
	t.Parallel()
	w, b := operator(t)
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Léa")
	lead := w.Enter(t, "Léa")
	park(t, w, registries.AgencyA, 1000)
	endpoint := b.Get("/ops/endpoints/webhook/" + w.Endpoint).Body.String()
	prepared := b.Post("/ops/jobs", form(t, endpoint, "/ops/jobs", "since", "2026-02-28"))
	at := strings.TrimSuffix(prepared.Header().Get("Location"), "?lang=fr")
	backoffice.Want(t, b.Get(at), http.StatusOK, "1001", "Plus de 1\u00a0000 envois", `data-begin="`+at+`/sign/begin`, "Pour confirmer, saisissez 1001.")
	backoffice.Want(t, b.Post(at+"/start", url.Values{"count": {"1001"}}), http.StatusConflict, "clé d’accès")
	press := func(who *backoffice.Browser, name, step string, fields url.Values) {
		t.Helper()
		if a := who.Press(t, name, at+"/"+step+"/begin", fields, at+"/"+step); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), at) {
			t.Fatalf("%s: %d %s", step, a.Code, a.Body)
		}
	}
	if a := b.Press(t, "Olive", at+"/sign/begin", url.Values{"count": {"1000"}}, at+"/sign"); a.Code != http.StatusUnprocessableEntity {
		t.Errorf("another count: %d %s", a.Code, a.Body)
	}
	press(b, "Olive", "sign", url.Values{"count": {"1 001"}})
	press(b, "Olive", "sign", url.Values{"count": {"1001"}}) // the form is sent again
	backoffice.Want(t, b.Get(at+"?done=proposed"), http.StatusOK, "Un responsable de l’exploitation décide", "En attente d’une autre personne", "Arrêter")
	backoffice.Want(t, b.Get("/work"), http.StatusOK, at)
	backoffice.Want(t, lead.Get("/work"), http.StatusOK, at)
	backoffice.Want(t, lead.Get(at), http.StatusOK, `data-begin="`+at+`/approve/begin`, "Olive", fmt.Sprint(1001))
	press(lead, "Léa", "approve", nil)
	carriesOut(t, w)
	backoffice.Want(t, lead.Get(at+"?lang=en"), http.StatusOK, "Ended: 1001 done, 0 refused", "Approved by")
}
