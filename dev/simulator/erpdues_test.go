package simulator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"quittance/internal/erp"
)

// dues reads the dues of a subject as the service reads them.
func (w *world) dues(subject string) (dues []erp.Due, refused []erp.Refused, err error) {
	w.t.Helper()
	a := w.call(http.MethodGet, "/erp/impots/dues?subject_ref="+subject, "", nil)
	if a.status != http.StatusOK {
		return nil, nil, fmt.Errorf("status %d", a.status)
	}
	return erp.ParseDues([]byte(a.body))
}

func (w *world) pay(t *testing.T, due string, amount int64) string {
	t.Helper()
	id := uuid.NewString()
	body := confirmationBody(id)
	body["erp_due_ref"], body["amount_minor"] = due, amount
	if a := w.confirm(id, body, nil); a.status != http.StatusCreated {
		t.Fatalf("paying %s: %d %s", due, a.status, a.body)
	}
	return id
}

// Every ERP has the standard subjects from the start and after a reset.
func TestStandardSubjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for range 2 {
		for subject, want := range map[string]string{
			"TP-1001": "TP-1001-A 50000 XAF 4711; TP-1001-B 120000 XAF 4712 from 10000; TP-1001-C 15000 XAF 4711 overdue;",
			"TP-1002": "TP-1002-A 25000 XAF 4711; TP-1002-B 8000 XAF 9999; TP-1002-C 2500 XAF ;",
			"TP-1003": "",
			"TP-1004": "TP-1004-A 4000 XAF 4711; TP-1004-C 6000 XAF 4712 from 1000; refused TP-1004-B minimum_amount_minor;",
			"TP-1005": "TP-1005-A 10000 EUR ;",
			"TP-1006": "TP-1006-A 35000 XAF 4711; TP-1006-B 12500 XAF 4712;",
			"TP-9999": "",
		} {
			dues, refused, err := w.dues(subject)
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, d := range dues {
				said += fmt.Sprintf("%s %d %s %s", d.Ref, d.Outstanding, d.Currency, d.RevenueLine)
				if d.AllowPartial {
					said += fmt.Sprintf(" from %d", d.Minimum)
				}
				if d.Overdue(w.clock.Now()) {
					said += " overdue"
				}
				said += "; "
			}
			for _, r := range refused {
				said += fmt.Sprintf("refused %s %s; ", r.Ref, r.Faults[0].Field)
			}
			if strings.TrimSpace(said) != want {
				t.Errorf("%s: %s", subject, said)
			}
		}
		w.control("/erp/impots", `{"change": {"TP-1001-A": {"outstanding_minor": 1}}, "dues": {"TP-1003": [{}]}}`)
		w.control("/erp/impots", `{"reset": true}`)
	}
}

// Confirmations are taken off the balances once each, until nothing is left.
func TestBalances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	left := func() (outstanding, minimum int64) {
		t.Helper()
		dues, refused, err := w.dues("TP-1001")
		if err != nil || len(refused) > 0 || len(dues) != 3 {
			t.Fatal(dues, refused, err)
		}
		return dues[1].Outstanding, dues[1].Minimum
	}
	id := w.pay(t, "TP-1001-B", 50_000)
	if o, m := left(); o != 70_000 || m != 10_000 {
		t.Errorf("after the first: %d from %d", o, m)
	}
	again := confirmationBody(id)
	again["erp_due_ref"], again["amount_minor"] = "TP-1001-B", 50_000
	if a := w.confirm(id, again, nil); a.status != http.StatusConflict {
		t.Errorf("again: %d", a.status)
	}
	w.pay(t, "TP-1001-B", 65_000)
	if o, m := left(); o != 5_000 || m != 5_000 {
		t.Errorf("after the second: %d from %d", o, m)
	}
	w.pay(t, "TP-1001-B", 5_000)
	if o, _ := left(); o != 0 {
		t.Errorf("after the last: %d", o)
	}
	w.pay(t, "unknown", 1)
	var view struct{ Dues map[string][]map[string]any }
	w.call(http.MethodGet, "/control/erp/impots", "", nil).decode(t, &view)
	if view.Dues["TP-1001"][1]["outstanding_minor"] != 0.0 || view.Dues["TP-1001"][0]["outstanding_minor"] != 50_000.0 {
		t.Errorf("/control shows %v", view.Dues["TP-1001"])
	}
}

// /control changes a due between list and checkout, and makes the ERP misbehave.
func TestMisbehaviours(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withERPToken)
	auth := map[string]string{"Authorization": "Bearer erp-token"}
	get := func(subject string) answer {
		t.Helper()
		return w.call(http.MethodGet, "/erp/impots/dues?subject_ref="+subject, "", auth)
	}
	w.control("/erp/impots", `{"change": {"TP-1001-A": {"outstanding_minor": 40000, "label": "Changée"}, "TP-1001-C": null}}`)
	dues, _, err := erp.ParseDues([]byte(get("TP-1001").body))
	if err != nil || len(dues) != 2 || dues[0].Outstanding != 40_000 || dues[0].Label != "Changée" {
		t.Errorf("%+v, %v", dues, err)
	}
	for body, status := range map[string]int{
		`{"change": {"TP-1001-C": {"outstanding_minor": 1}, "TP-1001-A": null}}`: http.StatusNotFound,
		`{"change": {"TP-1001-A": 7}}`:                                           http.StatusUnprocessableEntity,
		`{"misbehave": ["html", "nonsense"]}`:                                    http.StatusUnprocessableEntity,
		`{"away": "yes"}`:                                                        http.StatusUnprocessableEntity,
	} {
		if a := w.call(http.MethodPost, "/control/erp/impots", body, nil); a.status != status {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	misbehave := func(how string) { t.Helper(); w.control("/erp/impots", `{"misbehave": ["`+how+`"]}`) }
	for how, want := range map[string]string{"html": erp.InvalidHTML, "many_items": erp.InvalidTooMany, "duplicate_refs": "duplicate", "minimum_above_outstanding": "range", "text_amounts": "type", "oversized": "<nil>"} {
		misbehave(how)
		a := get("TP-1001")
		_, refused, err := erp.ParseDues([]byte(a.body))
		got := fmt.Sprint(err)
		if len(refused) > 0 {
			got = refused[0].Faults[0].Rule
		}
		if a.status != http.StatusOK || got != want || how == "oversized" && len(a.body) <= 5<<20 {
			t.Errorf("%s: %d, %d bytes, %s", how, a.status, len(a.body), got)
		}
	}
	misbehave("unknown_subject_404")
	if a, known := get("nobody"), get("TP-1003"); a.status != http.StatusNotFound || known.status != http.StatusOK {
		t.Errorf("unknown: %d, known %d", a.status, known.status)
	}
	misbehave("no_authentication")
	if a := w.call(http.MethodGet, "/erp/impots/dues?subject_ref=TP-1003", "", nil); a.status != http.StatusOK {
		t.Errorf("without credentials: %d", a.status)
	}
	w.control("/erp/impots", `{"away": true}`)
	if _, err := w.try(t.Context(), http.MethodGet, "/erp/impots/health", "", auth); err == nil {
		t.Error("an ERP that is away answers")
	}
	w.misconfirms(t)
}

// misconfirms shows the misbehaviours of confirmations.
func (w *world) misconfirms(t *testing.T) {
	t.Helper()
	outstanding := func() float64 {
		t.Helper()
		var whole struct {
			Dues map[string][]struct {
				Outstanding float64 `json:"outstanding_minor"`
			}
		}
		w.call(http.MethodGet, "/control/erp/impots", "", nil).decode(t, &whole)
		return whole.Dues["TP-1001"][1].Outstanding
	}
	w.control("/erp/impots", `{"misbehave": ["counts_twice"]}`)
	id := w.pay(t, "TP-1001-B", 20_000)
	again := confirmationBody(id)
	again["erp_due_ref"], again["amount_minor"] = "TP-1001-B", 20_000
	if a := w.confirm(id, again, nil); a.status != http.StatusCreated || outstanding() != 80_000 {
		t.Errorf("counts_twice: %d, %v are left", a.status, outstanding())
	}
	w.control("/erp/impots", `{"misbehave": ["repeat_refused"]}`)
	if a := w.confirm(id, again, nil); a.status != http.StatusUnprocessableEntity {
		t.Errorf("repeat_refused: %d", a.status)
	}
	w.control("/erp/impots", `{"misbehave": ["in_order_only", "balances_ignore"]}`)
	w.pay(t, "TP-1001-B", 10_000)
	early := uuid.NewString()
	body := confirmationBody(early)
	body["paid_at"] = "2026-09-30T08:14:59Z"
	if a := w.confirm(early, body, nil); a.status != http.StatusUnprocessableEntity || outstanding() != 80_000 {
		t.Errorf("in_order_only: %d, %v are left", a.status, outstanding())
	}
}
