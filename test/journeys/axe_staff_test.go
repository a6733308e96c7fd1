package journeys_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/ingress/oversight"
	"quittance/internal/clickhouse"
	"quittance/internal/identity"
	"quittance/internal/journal"
	"quittance/internal/sessions"
	"quittance/internal/statements"
	"quittance/money"
	"quittance/test/backoffice"
	"quittance/test/harness"
	journaltest "quittance/test/journal"
	"quittance/test/office"
	"quittance/test/registries"
)

// staff adds the pages of staff, in both languages.
func (g *gallery) staff(t *testing.T) {
	t.Helper()
	w := backoffice.New(t)
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Paul")
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Awa")
	w.Add(t, "", []identity.Role{identity.RoleAuditor}, "Aude")
	lead, operator, reader, nobody, auditor := w.Enter(t, "Paul"), w.Enter(t, "Olive"), w.Enter(t, "Awa"), w.NewBrowser(), w.Enter(t, "Aude")
	for _, path := range w.Site.Assets() {
		g.mux.Handle("GET "+path, w.Handler)
	}
	proposed := "/ops/cases/" + backoffice.OrphanCase
	if a := operator.Press(t, "Olive", proposed+"/propose/begin", url.Values{"number": {"1"}, "resolution": {"refund"}, "reference": {"VIR-17"}, "reason": {"aucune créance"}}, proposed+"/propose"); a.Code != http.StatusOK {
		t.Fatalf("the proposal is answered %d:\n%s", a.Code, a.Body)
	}
	accepted, held := "/ops/imports/"+w.Import(t, backoffice.Statement(1, 0, 300, 200), statements.VerdictAccepted), "/ops/imports/"+w.Import(t, backoffice.Statement(1, 0, 400, 200), statements.VerdictQuarantined)
	asked := url.Values{"request": {uuid.NewString()}, "reason": {"MTN a corrigé la ligne 2"}}
	if a := operator.Press(t, "Olive", held+"/ask/release/begin", asked, held+"/ask/release"); a.Code != http.StatusOK {
		t.Fatalf("a request is answered %d:\n%s", a.Code, a.Body)
	}
	person, invitation, change := g.people(t, w)
	officer, manager := w.Enter(t, "Olga"), w.Enter(t, "Nadège")
	w.Held.Lock() // a request waits
	t.Cleanup(w.Held.Unlock)
	waits := officer.Get("/people/" + w.IDs["Rémi"] + "/suspend").Body.String()
	_, waits, _ = strings.Cut(waits, `name="id" value="`)
	waits, _, _ = strings.Cut(waits, `"`)
	fields := url.Values{"id": {waits}, "kind": {"withdraw"}, "subject": {strings.TrimPrefix(invitation, "/people/invitations/")}}
	if a := officer.Post("/people/end", fields); a.Code != http.StatusSeeOther {
		t.Fatalf("a request is answered %d:\n%s", a.Code, a.Body)
	}
	g.health(t, w)
	g.journal(t, w)
	record := "/ops/payments/" + sessions.Place(w.Paid.ID)
	prepared, proposing, done := staffJobs(t, w)
	for _, row := range []struct {
		name   string
		by     *backoffice.Browser
		path   string
		form   url.Values // of a POST; nil for a GET
		status int        // 200 if zero
	}{
		{name: "signin", by: nobody, path: "/sign-in?ended=1"},
		{name: "work", by: lead, path: "/work"},
		{name: "work.none", by: reader, path: "/work"},
		{name: "sessions", by: lead, path: "/sessions"},
		{name: "refused", by: reader, path: "/ops/payments", status: http.StatusForbidden},
		{name: "unknown", by: lead, path: "/ops/cases/none", status: http.StatusNotFound},
		{name: "payments", by: lead, path: "/ops/payments"},
		{name: "payments.test", by: lead, path: "/ops/payments?mode=test"},
		{name: "payments.none", by: lead, path: "/ops/payments?order=RIEN"},
		{name: "payments.faulty", by: lead, path: "/ops/payments?day=x&from=y", status: http.StatusUnprocessableEntity},
		{name: "payment", by: lead, path: record + "?done=retried"},
		{name: "payment.undecided", by: lead, path: "/ops/payments/" + sessions.Place(w.Undecided.ID)},
		{name: "search", by: lead, path: "/ops/search?q=UNKNOWN-1"},
		{name: "search.none", by: lead, path: "/ops/search?q=RIEN", status: http.StatusNotFound},
		{name: "cases", by: lead, path: "/ops/cases"},
		{name: "case", by: lead, path: "/ops/cases/" + backoffice.LateCase},
		{name: "case.faulty", by: lead, path: proposed + "/reject", form: url.Values{"number": {"1"}}, status: http.StatusUnprocessableEntity},
		{name: "case.proposed", by: lead, path: proposed},
		{name: "case.poison", by: lead, path: "/ops/cases/" + backoffice.PoisonCase},
		{name: "imports", by: lead, path: "/ops/imports"},
		{name: "imports.none", by: lead, path: "/ops/imports?state=withdrawn"},
		{name: "imports.faulty", by: lead, path: "/ops/imports?day=x", status: http.StatusUnprocessableEntity},
		{name: "import", by: lead, path: accepted},
		{name: "import.asked", by: lead, path: held},
		{name: "import.own", by: operator, path: held + "?done=asked"},
		{name: "endpoints", by: lead, path: "/ops/endpoints"},
		{name: "endpoint", by: lead, path: "/ops/endpoints/webhook/" + w.Endpoint},
		{name: "deliveries", by: operator, path: "/ops/deliveries?state=needs_operator&day=2026-02-28"},
		{name: "deliveries.none", by: lead, path: "/ops/deliveries?kind=erp"},
		{name: "deliveries.faulty", by: lead, path: "/ops/deliveries?day=x", status: http.StatusUnprocessableEntity},
		{name: "jobs", by: operator, path: "/ops/jobs"},
		{name: "jobs.none", by: reader, path: "/agency/jobs"},
		{name: "job", by: operator, path: prepared},
		{name: "job.faulty", by: operator, path: prepared + "/start", form: url.Values{"count": {"12"}}, status: http.StatusUnprocessableEntity},
		{name: "job.two", by: operator, path: proposing},
		{name: "job.done", by: operator, path: done + "?done=started"},
		{name: "stuck", by: lead, path: "/ops/stuck"},
		{name: "people", by: officer, path: "/people"},
		{name: "people.few", by: officer, path: "/people?agency=" + registries.AgencyA},
		{name: "people.agency", by: manager, path: "/people"},
		{name: "people.invite", by: officer, path: "/people/invite"},
		{name: "person", by: officer, path: person},
		{name: "person.roles", by: officer, path: person + "/roles"},
		{name: "person.suspend", by: officer, path: person + "/suspend"},
		{name: "invitation", by: officer, path: invitation},
		{name: "change", by: officer, path: change},
		{name: "request", by: officer, path: "/requests/" + waits},
		{name: "passkeys", by: officer, path: "/passkeys"},
		{name: "work.people", by: officer, path: "/work"},
		{name: "reports", by: lead, path: "/ops/reports"},
		{name: "reports.takings", by: lead, path: "/ops/reports?report=takings&month=2026-03"},
		{name: "reports.agency", by: reader, path: "/agency/reports?report=channels&month=2026-03"},
		{name: "reports.none", by: lead, path: "/ops/reports?report=breaks&month=2026-01&mode=test"},
		{name: "reports.faulty", by: lead, path: "/ops/reports?report=takings&month=mars", status: http.StatusUnprocessableEntity},
		{name: "health", by: lead, path: "/ops/health"},
		{name: "audit", by: auditor, path: "/admin/audit"},
		{name: "audit.none", by: auditor, path: "/admin/audit?action=nothing"},
		{name: "audit.faulty", by: auditor, path: "/admin/audit", form: url.Values{"who": {"Personne Inconnue"}, "subject": {"06 600 00 01"}}, status: http.StatusUnprocessableEntity},
		{name: "audit.agency", by: manager, path: "/agency/audit"},
		{name: "payment.trail", by: auditor, path: record},
	} {
		for _, lang := range money.Languages {
			path, query, _ := strings.Cut(row.path, "?")
			var a *httptest.ResponseRecorder
			if row.form == nil {
				a = row.by.Get(path + "?lang=" + string(lang) + "&" + query)
			} else {
				row.form.Set("lang", string(lang))
				a = row.by.Post(path, row.form)
			}
			if a.Code != max(row.status, http.StatusOK) {
				t.Fatalf("%s answers %d:\n%s", row.name, a.Code, a.Body)
			}
			g.tours = append(g.tours, tour{{name: "staff." + row.name + "-" + string(lang), widths: []int{320, 1280}, pictured: true, page: withForms(a)}})
		}
	}
}

// health fills the page of health: an operator is away, an ERP refuses, messages are on their way, ClickHouse is not known.
func (g *gallery) health(t *testing.T, w *backoffice.World) {
	t.Helper()
	w.Exec(t, `INSERT INTO operator_answers (operator, live, answered_at, failing_since, failed_at, agencies) VALUES ('mtn', true, $1, NULL, NULL, '{}'), ('airtel', true, $1::timestamptz - interval '1 hour', $1::timestamptz - interval '50 minutes', $1::timestamptz - interval '1 minute', ARRAY[$2])`, w.Now(), registries.AgencyA)
	w.Exec(t, `INSERT INTO delivery_destinations (kind, destination_id, refused_since) VALUES ('erp', $1, $2)`, registries.AgencyA+"/live", w.Now())
	w.Exec(t, `INSERT INTO message_reports (message_id, destination_id, provider, calls, sent_at, accepted_at) VALUES ('m-1', 'd', 'mtnsms', 1, $1, $1), ('m-2', 'd', 'mtnsms', 1, $1, NULL)`, w.Now())
	w.Lag = func(context.Context) ([]oversight.Lag, error) {
		return []oversight.Lag{{Group: "readmodel", Topic: "checkout.events", Records: 4}, {Group: "sink-disburse", Topic: "disbursement.commands", Never: true}}, nil
	}
	w.Models = []oversight.Model{{Name: "readmodel", Topic: "checkout.events", Position: 12840, PositionKnown: true, Behind: 4, BehindKnown: true}, {Name: "journal"}}
}

// journal gives the pages a journal with the takings of March 2026.
func (g *gallery) journal(t *testing.T, w *backoffice.World) {
	t.Helper()
	addr, database := journaltest.Migrated(t)
	w.ClickHouse = "http://" + addr + "/" + database
	conn, err := clickhouse.Open(t.Context(), w.ClickHouse)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := journal.NewStore(conn).PutNames(t.Context(), []journal.Name{
		{Kind: journal.NameAgency, ID: registries.AgencyA, TenantID: registries.AgencyA, Name: "Direction générale des impôts"}, {Kind: journal.NameSlug, ID: registries.AgencyA, TenantID: registries.AgencyA, Name: "impots"},
	}); err != nil {
		t.Fatal(err)
	}
	for n, service := range []string{"Contribution de la patente", "Vignette automobile"} {
		if err := conn.Exec(t.Context(), `INSERT INTO receipt_rows (row_id, movement, occurred_at, local_date, approved_on, tenant_id, livemode, account, channel, offer_id, session_id, order_id, service_code, service_label, currency, amount, fee_amount, total_amount)
			VALUES (generateUUIDv4(), 'completed', '2026-03-01 09:00:00', '2026-03-01', '2026-03-01', ?, true, 'd41d8cd98f00b204', 'MOBILE_MONEY', 'momo', ?, 'DOSSIER-17', ?, ?, 'XAF', 1250000, 75, 1250075)`,
			registries.AgencyA, fmt.Sprint("s", n), fmt.Sprint("service-", n), service); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.NewStore(conn).SetPositions(t.Context(), journal.Position{Topic: "checkout.events", Partition: 0, Position: 1284, Goal: 1284}, journal.Position{Topic: "cases.events", Partition: 0, Position: 17, Goal: 17}); err != nil {
		t.Fatal(err)
	}
}

// staffJobs makes jobs of Olive: one to start, one that needs a second person, and one that has ended with refusals.
func staffJobs(t *testing.T, w *backoffice.World) (prepared, proposing, done string) {
	t.Helper()
	w.Exec(t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		SELECT '2026-02-28', 'dlv_nxoarniqj5sdkosvqmjkif' || n, 'webhook', $1, 'evt_' || n, 'checkout.failed', $2, $3, 'chs_' || n, true, '2026-02-28T12:00Z', CASE WHEN n <= 150 THEN 'exhausted' ELSE 'needs_operator' END, 4, 0, '2026-02-28T18:00Z', 503, 'body' FROM generate_series(1, 1151) n`,
		w.Endpoint, registries.AppA, registries.AgencyA)
	olive := w.Enter(t, "Olive")
	prepare := func(state string) string {
		t.Helper()
		a := olive.Post("/ops/jobs", url.Values{"id": {uuid.NewString()}, "state": {state}})
		path, _, _ := strings.Cut(a.Header().Get("Location"), "?")
		if a.Code != http.StatusSeeOther {
			t.Fatalf("a job is answered %d:\n%s", a.Code, a.Body)
		}
		return path
	}
	prepared, proposing, done = prepare("exhausted"), prepare("needs_operator"), prepare("exhausted")
	id := strings.TrimPrefix(done, "/ops/jobs/")
	w.Exec(t, `UPDATE job_rows SET state = 'refused', code = CASE n WHEN 1 THEN 'delivery.accepted' ELSE 'destination.removed' END, done_at = $2 WHERE job_id = $1 AND n < 4`, id, w.Now())
	w.Exec(t, `UPDATE jobs SET state = 'done', proposed_at = $2, finished_at = $2, done = total - 3, refused = 3 WHERE id = $1`, id, w.Now())
	return prepared, proposing, done
}

// withForms is a page whose forms of passkeys believe that they are at their address, so that they are seen.
func withForms(a *httptest.ResponseRecorder) *answered {
	page := pageOf(a)
	page.body = bytes.ReplaceAll(page.body, []byte(`data-host="`+office.Host+`"`), []byte(`data-host="127.0.0.1"`))
	return page
}

// people makes two security officers and a manager of an agency, with a person, an invitation that waits for its digits, and
// a proposal. It adds the page that shows a link once.
func (g *gallery) people(t *testing.T, w *backoffice.World) (person, invitation, change string) {
	t.Helper()
	w.Add(t, "", []identity.Role{identity.RoleSecurityOfficer}, "Olga", "Rémi")
	w.Add(t, "impots", []identity.Role{identity.RoleAgencyAdmin}, "Nadège")
	w.Add(t, "", nil, "Eric")
	invitation, change = uuid.NewString(), uuid.NewString()
	w.Write(t, `UPDATE staff SET number = '4711-B' WHERE id = $1`, w.IDs["Rémi"])
	w.Write(t, `INSERT INTO staff_invitations (id, staff_id, roles, token_hash, invited_by, invited_at, ends_at, accepted_at, passkeys)
		SELECT $1, $2, '{support,operator}', '\x00', $3, $4::timestamptz, $4::timestamptz + interval '72 hours', $4::timestamptz, jsonb_agg(jsonb_build_object('name', name, 'host', host, 'spki_hash', encode(spki_hash, 'base64'), 'credential', credential, 'created_at', '2026-03-01T12:00:00Z'))
		FROM staff_passkeys WHERE staff_id = $2`, invitation, w.IDs["Eric"], w.IDs["Rémi"], w.Now())
	w.Write(t, `INSERT INTO staff_changes (id, staff_id, kind, add_roles, end_roles, reason, proposed_by, proposed_at, state) VALUES ($1, $2, 'roles', '{lead}', '{operator}', 'Mutation à la direction de l’exploitation', $3, $4, 'proposed')`,
		change, w.IDs["Olive"], w.IDs["Rémi"], w.Now())
	link := uuid.NewString()
	w.Write(t, `INSERT INTO staff_requests (id, kind, asked_by, origin, subject, body, created_at, ends_at, state, done_at) VALUES ($1, 'invite', $2, '', '', '{}', $3, $3, 'done', $3)`, link, w.IDs["Olga"], w.Now())
	b := w.Enter(t, "Olga")
	for _, lang := range money.Languages {
		name := "staff.request.link-" + string(lang)
		g.tours = append(g.tours, tour{
			{name: name + ".before", page: withForms(b.Get("/requests/" + link + "?lang=" + string(lang)))},
			{name: name, run: `location.hash = "inv_7Q2mX4rT9bK1cV8nL5pW3sD6"; location.reload()`, until: "#shown-link:not([hidden])", widths: []int{320, 1280}, pictured: true},
		})
	}
	return "/people/" + w.IDs["Rémi"], "/people/invitations/" + invitation, "/people/changes/" + change
}

// The pages of staff are audited in both languages at the smallest and the largest width: axe finds no fault, the browser
// reports no breach of the policy, no page scrolls sideways, and every target is at least 44 px wide and high.
// QUITTANCE_SHOTS names a folder for their pictures.
func TestStaffPagesForEverybody(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	galleryOf(t, (*gallery).staff).forEverybody(t)
}

// forEverybody audits all views of the gallery.
func (g *gallery) forEverybody(t *testing.T) {
	t.Helper()
	of := g.sample(t)
	missing := map[string]bool{}
	for name, widths := range of.widths {
		for _, width := range widths {
			missing[fmt.Sprint(name, " at ", width)] = true
		}
	}
	audits := len(missing)
	task := g.task(func(v view) []int { return of.widths[v.name] }, func(v view) []int { return of.ruled[v.name] })
	if shots := os.Getenv("QUITTANCE_SHOTS"); shots != "" {
		task["shots"] = shots
	}
	harness.Browse(t, 20*time.Minute, "axe.mjs", task, func(line []byte) {
		var a audit
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("the browser's line %q: %v", line, err)
		}
		if a.Fault != "" {
			t.Errorf("%s: %s", a.Page, a.Fault)
			return
		}
		delete(missing, fmt.Sprint(a.Page, " at ", a.Width))
		for _, finding := range slices.Concat(a.Findings, a.Small, a.Broken) {
			t.Errorf("%s at %d px: %s", a.Page, a.Width, finding)
		}
		if a.Wide > a.Width {
			t.Errorf("%s is %d px wide in a window of %d px", a.Page, a.Wide, a.Width)
		}
	})
	if os.Getenv("QUITTANCE_SHOTS") == "" {
		for page := range missing {
			t.Errorf("the browser has not audited %s px", page)
		}
	}
	t.Logf("%d audits", audits)
}
