package citizen_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/ingress/citizen"
)

// list returns an array of objects of the answer.
func (a answer) list(field string) (out []map[string]any) {
	all, _ := a.body[field].([]any)
	for _, e := range all {
		out = append(out, e.(map[string]any))
	}
	return out
}

// dues returns the account's dues by reference.
func (b *browser) dues(query string) (answer, map[string]map[string]any) {
	b.w.t.Helper()
	a := b.want(b.call(http.MethodGet, "/dues"+query, nil), http.StatusOK, "")
	by := map[string]map[string]any{}
	for _, d := range a.list("items") {
		by[d["erp_due_ref"].(string)] = d
	}
	return a, by
}

func refsOf(list []map[string]any) (refs []string) {
	for _, d := range list {
		refs = append(refs, d["erp_due_ref"].(string))
	}
	return refs
}

func TestDues(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	// Nothing is asked before the proof, whatever the call.
	b.want(b.call(http.MethodGet, "/dues?subject_ref=TP-1001", nil), http.StatusNotFound, citizen.CodeLinkNotFound)
	b.want(b.call(http.MethodPost, "/links", object{"tenant_id": agency, "subject_ref": "TP-1001", "link_code": "0000000000"}), http.StatusUnprocessableEntity, citizen.CodeLinkRefused)
	b.checkout("k0", object{"items": []object{{"erp_due_ref": "TP-1001-A", "subject_ref": "TP-1001"}}}, http.StatusUnprocessableEntity, "generic.validation_failed")
	if a, _ := b.dues(""); len(a.list("items")) != 0 || len(a.list("sources")) != 0 || a.text("source_status") != "none" || a.body["as_of"] != nil {
		t.Errorf("without links the answer is %s", a.raw)
	}
	if n := w.calls(); n != 0 {
		t.Fatalf("the ERP was asked %d times before a proof", n)
	}

	b.link(agency, "TP-1001")
	b.link(agency, "TP-1004")
	b.link(other, "TP-1003")
	a, dues := b.dues("")
	if want := []string{"TP-1001-C", "TP-1001-A", "TP-1001-B", "TP-1004-A", "TP-1004-C"}; !slices.Equal(refsOf(a.list("items")), want) {
		t.Errorf("the order is %v, want %v: the earliest due date first, none last", refsOf(a.list("items")), want)
	}
	overdue, partial := dues["TP-1001-C"], dues["TP-1001-B"]
	if overdue["overdue"] != true || overdue["payment_state"] != "payable" || overdue["service_code"] != "patente" || overdue["service_id"] != "018f0000-0000-7000-8000-000000000101" {
		t.Errorf("the overdue one is %v", overdue)
	}
	if partial["minimum_amount_minor"] != 10_000.0 || partial["service_code"] != nil || partial["outstanding_minor"] != 120_000.0 {
		t.Errorf("the one with parts is %v", partial)
	}
	refused := a.list("refused")
	if len(refused) != 1 || refused[0]["erp_due_ref"] != "TP-1004-B" || refused[0]["label"] != "Taxe d’enseigne" {
		t.Errorf("refused are %v", refused)
	}
	if len(a.list("sources")) != 3 || a.text("as_of") == "" {
		t.Errorf("the sources are %v as of %s", a.list("sources"), a.text("as_of"))
	}
	if a, _ := b.dues("?tenant_id=" + other); len(a.list("sources")) != 1 || len(a.list("items")) != 0 || a.text("source_status") != "ok" {
		t.Errorf("who owes nothing gets %s", a.raw)
	}
	if a, _ := b.dues("?subject_ref=TP-1004&tenant_id=" + agency); len(a.list("items")) != 2 {
		t.Errorf("one reference has %s", a.raw)
	}
}

// What another site makes the browser ask for is not what the citizen was shown.
func TestOnlyAPersonSeesDues(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	amount := 50_000
	for n, c := range []struct {
		header http.Header
		seen   bool
	}{
		{http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}, "Sec-Fetch-Dest": {"image"}}, false},
		{http.Header{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"cors"}, "Sec-Fetch-Dest": {"empty"}}, false},
		{http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}}, false},
		{http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"iframe"}, "Sec-Fetch-User": {"?1"}}, false},
		{http.Header{}, false},
		{http.Header{"Sec-Fetch-Site": {"same-origin"}}, true},
		{http.Header{"Origin": {publicURL}}, true},
		{http.Header{"Sec-Fetch-Site": {"none"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}, "Sec-Fetch-User": {"?1"}}, true},
		{http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}, "Sec-Fetch-User": {"?1"}}, true},
	} {
		for _, path := range []string{"/portal", citizen.Prefix + "/dues"} {
			amount--
			w.control("impots", fmt.Sprintf(`{"change": {"TP-1001-A": {"outstanding_minor": %d}}}`, amount))
			key, status, code := fmt.Sprint(n, path), http.StatusConflict, citizen.CodeDueChanged
			if c.seen {
				status, code = http.StatusCreated, ""
			}
			visitor := *b
			visitor.header = c.header
			if a := visitor.page(http.MethodGet, path, nil); a.status != http.StatusOK {
				t.Fatalf("%s answers %d", path, a.status)
			}
			b.checkout(key, object{"items": []object{{"erp_due_ref": "TP-1001-A"}}, "replace": true}, status, code)
		}
		w.wait(time.Minute)
	}
}

func TestFaultsOfQueries(t *testing.T) {
	t.Parallel()
	b := serve(t).signedIn(1)
	for path, fields := range map[string][]string{
		"/dues?tenant_id=impots": {"tenant_id"}, "/dues?tenant=x&subject_ref=%07": {"subject_ref", "tenant"}, "/dues?subject_ref=a&subject_ref=b": {"subject_ref"},
		"/payments?page=0": {"page"}, "/payments?page_size=101": {"page_size"}, "/payments?page=01": {"page"}, "/payments?size=1": {"size"},
	} {
		a := b.want(b.call(http.MethodGet, path, nil), http.StatusBadRequest, "generic.invalid_query")
		if !slices.Equal(a.fields(), fields) {
			t.Errorf("%s has faults in %v, want %v", path, a.fields(), fields)
		}
	}
}

// An ERP that does not tell what is owed is never an empty list that reads as "nothing owed".
func TestAnERPThatDoesNotTell(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	b.link(agency, "TP-1001")
	b.link(other, "TP-1002")
	good, _ := b.dues("")
	items := object{"items": []object{{"tenant_id": agency, "erp_due_ref": "TP-1001-A", "outstanding_minor": 50_000}}}
	for i, how := range []string{
		`{"away": true}`, `{"misbehave": ["html"]}`, `{"misbehave": ["oversized"]}`, `{"misbehave": ["many_items"]}`, `{"status": 500}`, `{"status": 404}`,
	} {
		w.wait(time.Minute)
		w.control("impots", how)
		a, dues := b.dues("")
		if a.text("source_status") != "unavailable" || dues["TP-1001-A"] != nil || dues["TP-1002-A"] == nil || a.text("as_of") != good.text("as_of") {
			t.Errorf("%s: the list is %s", how, a.raw)
		}
		for _, s := range a.list("sources") {
			if want := map[string]string{agency: "unavailable", other: "ok"}[s["tenant_id"].(string)]; s["source_status"] != want {
				t.Errorf("%s: the source is %v", how, s)
			}
		}
		b.checkout(fmt.Sprint("k", i), items, http.StatusServiceUnavailable, citizen.CodeSourceUnavailable)
		w.control("impots", `{"reset": true}`)
	}
	w.wait(time.Minute)
	b.checkout("after", items, http.StatusCreated, "")
	if w.blind = errors.New("the read model is behind"); true {
		b.want(b.call(http.MethodGet, "/dues", nil), http.StatusServiceUnavailable, "generic.unavailable")
		b.want(b.call(http.MethodGet, "/payments", nil), http.StatusServiceUnavailable, "generic.unavailable")
	}
}

// pay completes a session with mobile money, as the operator says.
func (w *world) pay(id string, total int64) {
	w.t.Helper()
	if a := w.Do(id, checkout.Collect{CollectionID: "c-" + id, OfferID: checkout.OfferMomo, Total: total, ApprovalWindow: 5 * time.Minute, SendWithin: time.Minute}); a.Code != checkout.CodeOK {
		w.t.Fatalf("collecting: %s", a.Code)
	}
	w.Do(id, checkout.Outcome{CollectionID: "c-" + id, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: total, Currency: "XAF", OperatorRef: "OP-1"})
	if s := w.Session(id); s.Status != checkout.StatusCompleted {
		w.t.Fatalf("the session is %s", s.Status)
	}
}

// recorded says that the ERP has accepted the payments of a session.
func (w *world) recorded(id string) {
	w.t.Helper()
	for _, due := range w.Session(id).Dues() {
		if a := w.Do(id, checkout.Confirmed{TransactionID: due.TransactionID, Answer: checkout.AnswerAccepted, AnsweredAt: w.Now()}); a.Code != checkout.CodeOK {
			w.t.Fatalf("recording: %s", a.Code)
		}
	}
}

// The states of a due, from a cart until the ERP shows the payment.
func TestStatesOfADue(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	b.link(agency, "TP-1001")
	spouse := w.signedIn(2)
	spouse.link(agency, "TP-1001")
	is := func(who *browser, want string, replaceable bool, own bool) {
		t.Helper()
		_, dues := who.dues("")
		if d := dues["TP-1001-B"]; d["payment_state"] != want || d["replaceable"] != replaceable || (d["checkout_url"] != nil) != own {
			t.Errorf("the due is %v", d)
		}
	}
	is(b, "payable", false, false)
	cart := b.checkout("k1", object{"items": []object{{"erp_due_ref": "TP-1001-B", "amount_minor": 20_000}}}, http.StatusCreated, "")
	id := cart.text("id")
	is(b, "in_payment", true, true)
	is(spouse, "in_payment", true, false)
	if s := w.Do(id, checkout.Collect{CollectionID: "c-" + id, OfferID: checkout.OfferMomo, Total: 20_200, ApprovalWindow: 5 * time.Minute, SendWithin: time.Minute}); s.Code != checkout.CodeOK {
		t.Fatal(s.Code)
	}
	is(b, "in_payment", false, true)
	w.pay2(id, 20_200)
	is(b, "recording", false, false)
	w.wait(time.Second)
	w.recorded(id)
	is(b, "recording", false, false) // the ERP's answer is older than the acceptance
	w.wait(time.Minute)
	is(spouse, "recording", false, false) // the ERP still lists the whole amount
	w.control("impots", `{"change": {"TP-1001-B": {"outstanding_minor": 100000, "amount_minor": 100000}}}`)
	w.wait(time.Minute)
	is(b, "payable", false, false)

	// The rest is paid, and the first payment is given back: the ERP lists it again.
	is(spouse, "payable", false, false)
	rest := spouse.checkout("k1", object{"items": []object{{"erp_due_ref": "TP-1001-B"}}}, http.StatusCreated, "").text("id")
	w.pay(rest, 101_000)
	w.wait(time.Second)
	w.recorded(rest)
	w.control("impots", `{"change": {"TP-1001-B": {"outstanding_minor": 0, "amount_minor": 0, "allow_partial": false}}}`)
	w.wait(time.Minute)
	is(b, "paid", false, false)
	w.giveBack(id)
	w.control("impots", `{"change": {"TP-1001-B": {"outstanding_minor": 20000, "amount_minor": 20000}}}`)
	w.wait(time.Minute)
	is(b, "payable", false, false)
	b.checkout("k2", object{"items": []object{{"erp_due_ref": "TP-1001-B"}}}, http.StatusCreated, "")
	b.call(http.MethodGet, "/dues", nil)
	w.control("impots", `{"change": {"TP-1001-B": {"outstanding_minor": 0, "amount_minor": 0, "allow_partial": false}}}`)
	w.wait(time.Minute)
	is(b, "paid", false, false)
}

// giveBack refunds a payment, and has the ERP told of it by a person.
func (w *world) giveBack(id string) {
	w.t.Helper()
	w.Do(id, checkout.OpenRefundRequest{By: "one", Reason: "r"})
	for range 2 {
		for _, c := range w.Session(id).Cases {
			switch {
			case !c.Open():
			case c.Kind == checkout.CaseRefundRequest:
				w.Do(id, checkout.Resolve{CaseID: c.ID, Resolution: checkout.ResolutionRefund, Reference: "ref", By: "one", ApprovedBy: "two"})
			case c.Kind == checkout.CaseReversal:
				w.Do(id, checkout.Resolve{CaseID: c.ID, Resolution: casework.ResolutionAcknowledge, By: "one", ApprovedBy: "two"})
			}
		}
	}
	if s := w.Session(id); s.ReversedAt.IsZero() {
		w.t.Fatalf("the session is %+v", s)
	}
}

func (w *world) pay2(id string, total int64) {
	w.t.Helper()
	w.Do(id, checkout.Outcome{CollectionID: "c-" + id, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: total, Currency: "XAF", OperatorRef: "OP-1"})
}

// What a due is called, and who owes it, is in no log and no error.
func TestALinkOfAClosedPortal(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	closed := "018f0000-0000-7000-8000-00000000ffff"
	b.link(closed, "TP-1001")
	a, _ := b.dues("")
	if a.text("source_status") != "unavailable" || a.body["as_of"] != nil || w.calls() != 0 {
		t.Errorf("an agency without a portal has %s", a.raw)
	}
	b.checkout("k", object{"items": []object{{"erp_due_ref": "TP-1001-A"}}}, http.StatusServiceUnavailable, citizen.CodeSourceUnavailable)
	thief := w.browse()
	thief.cookies = maps.Clone(b.cookies)
	b.want(b.call(http.MethodPost, "/sign-out", nil), http.StatusNoContent, "")
	for _, path := range []string{"/dues", "/payments", "/me"} {
		thief.want(thief.call(http.MethodGet, path, nil), http.StatusUnauthorized, citizen.CodeSignedOut)
	}
	if !strings.Contains(a.raw, closed) {
		t.Error("the link is not shown")
	}
}
