package journeys_test

import (
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

	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/test/backoffice"
	"quittance/test/harness"
)

// staff adds the pages of staff, in both languages.
func (g *gallery) staff(t *testing.T) {
	t.Helper()
	w := backoffice.New(t)
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Paul")
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Awa")
	lead, operator, reader, nobody := w.Enter(t, "Paul"), w.Enter(t, "Olive"), w.Enter(t, "Awa"), w.NewBrowser()
	for _, path := range w.Site.Assets() {
		g.mux.Handle("GET "+path, w.Handler)
	}
	proposed := "/ops/cases/" + backoffice.OrphanCase
	if a := operator.Post(proposed+"/propose", url.Values{"number": {"1"}, "resolution": {"refund"}, "reference": {"VIR-17"}, "reason": {"aucune créance"}}); a.Code != http.StatusSeeOther {
		t.Fatalf("the proposal is answered %d:\n%s", a.Code, a.Body)
	}
	record := "/ops/payments/" + sessions.Place(w.Paid.ID)
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
		{name: "case.faulty", by: lead, path: "/ops/cases/" + backoffice.LateCase + "/propose", form: url.Values{"number": {"1"}}, status: http.StatusUnprocessableEntity},
		{name: "case.proposed", by: lead, path: proposed},
		{name: "case.poison", by: lead, path: "/ops/cases/" + backoffice.PoisonCase},
		{name: "endpoints", by: lead, path: "/ops/endpoints"},
		{name: "endpoint", by: lead, path: "/ops/endpoints/webhook/" + w.Endpoint},
		{name: "stuck", by: lead, path: "/ops/stuck"},
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
			g.tours = append(g.tours, tour{{name: "staff." + row.name + "-" + string(lang), widths: []int{320, 1280}, pictured: true, page: pageOf(a)}})
		}
	}
}

// The pages of staff are audited in both languages at the smallest and the largest width: axe finds no fault, the browser
// reports no breach of the policy, no page scrolls sideways, and every target is at least 44 px wide and high.
// QUITTANCE_SHOTS names a folder for their pictures.
func TestStaffPagesForEverybody(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	g := galleryOf(t, (*gallery).staff)
	missing := map[string]bool{}
	for _, v := range slices.Concat(g.tours...) {
		for _, width := range v.widths {
			missing[fmt.Sprint(v.name, " at ", width)] = true
		}
	}
	audits := len(missing)
	task := g.task(func(v view) []int { return v.widths })
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
