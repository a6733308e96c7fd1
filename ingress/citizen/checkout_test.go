package citizen_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/ingress/citizen"
	"quittance/internal/registry"
)

// checkout sends a cart with an Idempotency-Key.
func (b *browser) checkout(key string, body any, status int, code string) answer {
	b.w.t.Helper()
	b.header.Set("Idempotency-Key", key)
	defer b.header.Del("Idempotency-Key")
	return b.want(b.call(http.MethodPost, "/checkout", body), status, code)
}

// taxpayer is signed in, is linked to TP-1001, and has listed its dues.
func taxpayer(t *testing.T) (*world, *browser) {
	t.Helper()
	w := serve(t)
	b := w.signedIn(1)
	b.link(agency, "TP-1001")
	b.dues("")
	return w, b
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	body := object{
		"items":       []object{{"erp_due_ref": "TP-1001-C", "outstanding_minor": 15_000}, {"erp_due_ref": "TP-1001-B", "amount_minor": 10_000, "outstanding_minor": 120_000}},
		"success_url": publicURL + "/portal/payments", "cancel_url": "https://agency.example/back",
	}
	before := w.Now()
	a := b.checkout("k1", body, http.StatusCreated, "")
	s := w.Session(a.text("id"))
	if s.Amount != 25_000 || s.Currency != "XAF" || s.Live || !s.ERP || s.TenantID != agency || s.ApplicationID != registry.PortalID(agency) || s.OrderID != s.NoticeRef ||
		s.NoticeRef != s.Items[0].NoticeRef || s.TransactionID != s.Items[0].TransactionID || s.CitizenID == "" || !s.PulledAt.Equal(before) ||
		s.ExpiresAt.Sub(s.CreatedAt) != 2*time.Hour || s.SuccessURL == "" || s.CancelURL == "" || len(s.CustomerSealed) == 0 || s.Customer != nil {
		t.Errorf("the session is %+v", s)
	}
	first, second := s.Items[0], s.Items[1]
	if first.ERPDueRef != "TP-1001-C" || first.SubjectRef != "TP-1001" || first.Amount != 15_000 || first.Outstanding != 15_000 || first.Partial() || first.ServiceCode != "patente" ||
		second.Amount != 10_000 || !second.Partial() || second.ServiceCode != "" || second.NoticeRef == first.NoticeRef || second.TransactionID == first.TransactionID || second.NoticeID == "" {
		t.Errorf("the items are %+v", s.Items)
	}
	if momo, ok := s.Offer(checkout.OfferMomo); !ok || momo.Fee != 250 || len(s.Offers) != 2 {
		t.Errorf("the offers are %+v", s.Offers)
	}
	if a.text("checkout_url") != publicURL+"/c/"+s.ID || a.text("status") != "open" || len(a.list("items")) != 2 {
		t.Errorf("the answer is %s", a.raw)
	}

	// The same key is the same session, also after the dues have changed and it has ended.
	w.control("impots", `{"change": {"TP-1001-C": null}}`)
	w.Do(s.ID, checkout.Cancel{By: checkout.ByCitizen})
	again := b.checkout("k1", body, http.StatusCreated, "")
	if again.text("id") != s.ID || again.text("status") != "open" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the replay is %s", again.raw)
	}
	b.checkout("k1", object{"items": []object{{"erp_due_ref": "TP-1001-B", "outstanding_minor": 120_000}}}, http.StatusConflict, "idempotency.key_reused")
	// Another person's key is another one.
	spouse := w.signedIn(2)
	spouse.link(agency, "TP-1001")
	spouse.dues("")
	if other := spouse.checkout("k1", object{"items": []object{{"erp_due_ref": "TP-1001-A"}}}, http.StatusCreated, ""); other.text("id") == s.ID {
		t.Error("two people share a session")
	}
}

// The first answer of a key is repeated after its due was paid, and while the ERP is away. A
// refusal because of the ERP leaves the key unused.
func TestTheFirstAnswerOfAKeyIsRepeated(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	body := object{"items": []object{{"erp_due_ref": "TP-1001-A"}}}
	another := object{"items": []object{{"erp_due_ref": "TP-1001-B"}}}
	id := b.checkout("k1", body, http.StatusCreated, "").text("id")
	repeated := func(when string) {
		t.Helper()
		a := b.checkout("k1", body, http.StatusCreated, "")
		if a.text("id") != id || a.text("status") != "open" || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: the replay is %s", when, a.raw)
		}
		b.checkout("k1", another, http.StatusConflict, "idempotency.key_reused")
		if n := len(w.Sessions); n != 1 {
			t.Errorf("%s: there are %d sessions", when, n)
		}
	}
	w.pay(id, 50_500)
	w.control("impots", `{"change": {"TP-1001-A": {"outstanding_minor": 0}}}`)
	b.dues("") // the citizen has seen that nothing is left
	repeated("the due is paid")
	b.checkout("paid", body, http.StatusUnprocessableEntity, "generic.validation_failed")
	w.control("impots", `{"away": true}`)
	repeated("the ERP is away")
	a := b.checkout("k2", another, http.StatusServiceUnavailable, citizen.CodeSourceUnavailable)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.control("impots", `{"away": false}`)
	if a := b.checkout("k2", another, http.StatusCreated, ""); a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the answer to a key that was not used is %s", a.raw)
	}
}

// A due is what was shown if its currency is.
func TestAChangedCurrency(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	dues := b.page(http.MethodGet, "/portal", nil).want(t, 200)
	cart := b.page(http.MethodPost, "/portal/cart", url.Values{"due": dues.choices()[:1]}).want(t, 200)
	w.control("impots", `{"change": {"TP-1001-A": {"currency": "JPY"}, "TP-1001-B": {"currency": "JPY"}, "TP-1001-C": {"currency": "JPY"}}}`)
	a := b.checkout("k1", object{"items": []object{{"erp_due_ref": "TP-1001-A", "outstanding_minor": 50_000, "currency": "XAF"}}}, http.StatusConflict, citizen.CodeDueChanged)
	if dues := a.list("dues"); len(dues) != 1 || dues[0]["currency"] != "JPY" {
		t.Errorf("the answer is %s", a.raw)
	}
	b.page(http.MethodPost, "/portal/checkout", cart.form(t, "/portal/checkout")).want(t, 409, "aucun moyen de paiement n’accepte cette monnaie (JPY)")
	if n := len(w.Sessions); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// A cart is compared with what the citizen was shown, by an answer of the ERP that is made
// for it.
func TestAChangedDue(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	calls := w.calls()
	b.checkout("k0", object{"items": []object{{"erp_due_ref": "TP-1001-C"}}}, http.StatusCreated, "")
	if w.calls() != calls+1 {
		t.Error("the cart was made from a shared answer")
	}
	w.control("impots", `{"change": {"TP-1001-A": {"outstanding_minor": 40000}, "TP-1001-B": {"outstanding_minor": 5000, "allow_partial": false}}}`)
	for key, item := range map[string]object{
		"seen":  {"erp_due_ref": "TP-1001-A"},
		"shown": {"erp_due_ref": "TP-1001-A", "outstanding_minor": 50_000},
		"lower": {"erp_due_ref": "TP-1001-A", "amount_minor": 30_000, "outstanding_minor": 30_000},
	} {
		a := b.checkout(key, object{"items": []object{item}}, http.StatusConflict, citizen.CodeDueChanged)
		if dues := a.list("dues"); len(dues) != 1 || dues[0]["outstanding_minor"] != 40_000.0 || !slices.Equal(a.fields(), []string{"items.0.erp_due_ref"}) {
			t.Errorf("%s: the answer is %s", key, a.raw)
		}
		// A refusal is remembered with its key.
		b.checkout(key, object{"items": []object{item}}, http.StatusConflict, citizen.CodeDueChanged)
	}
	// One due of a cart has gone; the present values of the others are told.
	w.control("impots", `{"change": {"TP-1001-A": null}}`)
	a := b.checkout("gone", object{"items": []object{{"erp_due_ref": "TP-1001-B", "outstanding_minor": 120_000}, {"erp_due_ref": "TP-1001-A", "outstanding_minor": 40_000}}}, http.StatusConflict, citizen.CodeDueChanged)
	if dues := a.list("dues"); !slices.Equal(refsOf(dues), []string{"TP-1001-B"}) || dues[0]["outstanding_minor"] != 5_000.0 || len(a.fields()) != 2 {
		t.Errorf("the answer is %s", a.raw)
	}
	// Only a list counts as seen; so does the new value in the request.
	b.checkout("unseen", object{"items": []object{{"erp_due_ref": "TP-1001-B"}}}, http.StatusConflict, citizen.CodeDueChanged)
	b.checkout("new", object{"items": []object{{"erp_due_ref": "TP-1001-B", "outstanding_minor": 5_000}}}, http.StatusCreated, "")
	if n := len(w.Sessions); n != 2 {
		t.Errorf("there are %d sessions", n)
	}
}

func TestFaultsOfCarts(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	b.link(agency, "TP-1005")
	b.link(other, "TP-1002")
	one := func(fields object) object {
		it := object{"tenant_id": agency, "subject_ref": "TP-1001", "erp_due_ref": "TP-1001-A"}
		for name, value := range fields {
			it[name] = value
		}
		return it
	}
	b.dues("")
	many := make([]object, 21)
	for i := range many {
		many[i] = one(object{"erp_due_ref": fmt.Sprint("X-", i)})
	}
	part := func(amount any) object { return one(object{"erp_due_ref": "TP-1001-B", "amount_minor": amount}) }
	for name, c := range map[string]struct {
		body   object
		fields []string
	}{
		"no items":                    {object{}, []string{"items"}},
		"an empty cart":               {object{"items": []object{}}, []string{"items"}},
		"21 dues":                     {object{"items": many}, []string{"items"}},
		"no reference":                {object{"items": []object{{"tenant_id": agency, "subject_ref": "TP-1001"}}}, []string{"items.0.erp_due_ref"}},
		"an unknown field":            {object{"items": []object{one(object{"amount": 5})}}, []string{"items.0.amount"}},
		"not mine":                    {object{"items": []object{one(object{"subject_ref": "TP-1003"})}}, []string{"items.0.subject_ref"}},
		"which agency":                {object{"items": []object{{"erp_due_ref": "TP-1001-A"}}}, []string{"items.0.tenant_id"}},
		"which reference":             {object{"items": []object{{"tenant_id": agency, "erp_due_ref": "TP-1001-A"}}}, []string{"items.0.subject_ref"}},
		"two agencies":                {object{"items": []object{one(nil), {"tenant_id": other, "erp_due_ref": "TP-1002-A"}}}, []string{"items.1.tenant_id"}},
		"two currencies":              {object{"items": []object{one(nil), one(object{"subject_ref": "TP-1005", "erp_due_ref": "TP-1005-A"})}}, []string{"items.1.erp_due_ref"}},
		"twice":                       {object{"items": []object{one(nil), one(nil)}}, []string{"items.1.erp_due_ref"}},
		"a part of one that has none": {object{"items": []object{one(object{"amount_minor": 49_999})}}, []string{"items.0.amount_minor"}},
		"below the minimum":           {object{"items": []object{part(9_999)}}, []string{"items.0.amount_minor"}},
		"above the outstanding":       {object{"items": []object{part(120_001)}}, []string{"items.0.amount_minor"}},
		"nothing":                     {object{"items": []object{part(0)}}, []string{"items.0.amount_minor"}},
		"2^53":                        {object{"items": []object{part(int64(1) << 53)}}, []string{"items.0.amount_minor"}},
		"decimals":                    {object{"items": []object{part(10_000.5)}}, []string{"items.0.amount_minor"}},
		"text":                        {object{"items": []object{part("10000")}}, []string{"items.0.amount_minor"}},
		"another origin":              {object{"items": []object{one(nil)}, "success_url": "https://evil.example/"}, []string{"success_url"}},
		"an origin with a tail":       {object{"items": []object{one(nil)}, "cancel_url": "https://agency.example.evil.example/"}, []string{"cancel_url"}},
		"a script":                    {object{"items": []object{one(nil)}, "cancel_url": "javascript:alert(1)"}, []string{"cancel_url"}},
		"credentials":                 {object{"items": []object{one(nil)}, "success_url": "https://a:b@agency.example/"}, []string{"success_url"}},
		"http":                        {object{"items": []object{one(nil)}, "success_url": "http://agency.example/"}, []string{"success_url"}},
	} {
		a := b.checkout(name, c.body, http.StatusUnprocessableEntity, "generic.validation_failed")
		if !slices.Equal(a.fields(), c.fields) {
			t.Errorf("%s: faults in %v, want %v: %s", name, a.fields(), c.fields, a.raw)
		}
		w.wait(time.Minute) // an account makes only so many carts in a minute
		b.dues("")
	}
	b.want(b.call(http.MethodPost, "/checkout", object{"items": []object{one(nil)}}), http.StatusBadRequest, "idempotency.key_required")
	b.checkout("é", object{"items": []object{one(nil)}}, http.StatusBadRequest, "idempotency.key_invalid")
	if len(w.Sessions) != 0 {
		t.Errorf("%d sessions were made", len(w.Sessions))
	}
	if a := b.checkout("eur", object{"items": []object{one(object{"subject_ref": "TP-1005", "erp_due_ref": "TP-1005-A"})}}, http.StatusUnprocessableEntity, "checkout.no_channel"); a.raw == "" {
		t.Error("no answer")
	}
}

// Amounts up to 2^53-1 are exact, and a sum above it is refused.
func TestTheLargestAmounts(t *testing.T) {
	t.Parallel()
	w := serve(t)
	const most = int64(1)<<53 - 1
	due := func(ref string, amount int64) string {
		return fmt.Sprintf(`{"erp_due_ref": %q, "label": "Amende", "amount_minor": %d, "outstanding_minor": %d, "original_minor": %d, "currency": "XAF", "allow_partial": false}`, ref, amount, amount, amount)
	}
	w.control("impots", `{"dues": {"TP-9": [`+due("most", most)+`,`+due("one", 1)+`,`+due("beyond", most+1)+`]}}`)
	b := w.signedIn(1)
	b.link(agency, "TP-9")
	a, _ := b.dues("")
	if !strings.Contains(a.raw, `"outstanding_minor":9007199254740991`) || len(a.list("refused")) != 1 {
		t.Errorf("the list is %s", a.raw)
	}
	if a := b.checkout("k1", object{"items": []object{{"erp_due_ref": "most"}, {"erp_due_ref": "one"}}}, http.StatusUnprocessableEntity, "generic.validation_failed"); !slices.Equal(a.fields(), []string{"items"}) {
		t.Errorf("the answer is %s", a.raw)
	}
	cart := b.checkout("k2", object{"items": []object{{"erp_due_ref": "most"}}}, http.StatusCreated, "")
	if s := w.Session(cart.text("id")); s.Amount != most || !strings.Contains(cart.raw, `"amount":9007199254740991`) {
		t.Errorf("the session has %d", s.Amount)
	}
}

// A due is in one cart at a time. Replace takes it from carts that nobody is paying.
func TestADueInPayment(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	spouse := w.signedIn(2)
	spouse.link(agency, "TP-1001")
	spouse.dues("")
	cart := func(more object) object {
		body := object{"items": []object{{"erp_due_ref": "TP-1001-A"}, {"erp_due_ref": "TP-1001-C"}}}
		for name, value := range more {
			body[name] = value
		}
		return body
	}
	first := b.checkout("k1", object{"items": []object{{"erp_due_ref": "TP-1001-C"}}}, http.StatusCreated, "").text("id")
	a := spouse.checkout("k1", cart(nil), http.StatusConflict, citizen.CodeDueInPayment)
	if errs := a.list("errors"); !slices.Equal(a.fields(), []string{"items.1.erp_due_ref"}) || errs[0]["rule"] != "in_payment" {
		t.Errorf("the answer is %s", a.raw)
	}
	second := spouse.checkout("k2", cart(object{"replace": true}), http.StatusCreated, "").text("id")
	if s := w.Session(first); s.Status != checkout.StatusCancelled {
		t.Errorf("the replaced session is %s", s.Status)
	}
	w.pay(second, 65_650)
	a = b.checkout("k3", cart(object{"replace": true}), http.StatusConflict, citizen.CodeDueInPayment)
	if errs := a.list("errors"); len(errs) != 2 || errs[0]["rule"] != "recording" {
		t.Errorf("the answer is %s", a.raw)
	}
}

func TestACitizenMakesOnlySoManyCarts(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	_, stranger := w, w.signedIn(2)
	stranger.link(agency, "TP-1001")
	refused := 0
	second := w.start()
	for i := range 30 {
		b.base = []string{w.url, second}[i%2]
		b.header.Set("Idempotency-Key", fmt.Sprint(i))
		a := b.call(http.MethodPost, "/checkout", object{"items": []object{{"erp_due_ref": "TP-1001-A", "outstanding_minor": 1}}})
		if a.status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("%d of 30 carts in a minute were refused", refused)
	}
	stranger.checkout("k", object{"items": []object{{"erp_due_ref": "TP-1001-A", "outstanding_minor": 50_000}}}, http.StatusCreated, "")
}

func TestPayments(t *testing.T) {
	t.Parallel()
	w, b := taxpayer(t)
	id := b.checkout("k1", object{"items": []object{{"erp_due_ref": "TP-1001-A"}, {"erp_due_ref": "TP-1001-B", "amount_minor": 10_000}}}, http.StatusCreated, "").text("id")
	paid := func(query string) (answer, []map[string]any) {
		t.Helper()
		a := b.want(b.call(http.MethodGet, "/payments"+query, nil), http.StatusOK, "")
		return a, a.list("items")
	}
	if _, list := paid(""); len(list) != 0 {
		t.Errorf("an open session is a payment: %v", list)
	}
	w.pay(id, 60_600)
	a, list := paid("?page=1&page_size=5")
	if len(list) != 1 || list[0]["total"] != 60_600.0 || list[0]["fee"] != 600.0 || list[0]["receipt_url"] != publicURL+"/c/"+id || list[0]["operator_ref"] != "OP-1" || a.body["total"] != 1.0 {
		t.Fatalf("the payments are %s", a.raw)
	}
	for i, due := range list[0]["items"].([]any) {
		d := due.(map[string]any)
		if d["recording"] != "recording" || d["recorded_at"] != nil || d["partial"] != (i == 1) || d["fee_minor"].(float64) <= 0 {
			t.Errorf("the due is %v", d)
		}
	}
	w.recorded(id)
	if _, list = paid(""); list[0]["items"].([]any)[1].(map[string]any)["recording"] != "recorded" {
		t.Errorf("the payment is %v", list)
	}
	spouse := w.signedIn(2)
	spouse.link(agency, "TP-1001")
	if a := spouse.want(spouse.call(http.MethodGet, "/payments", nil), http.StatusOK, ""); len(a.list("items")) != 0 {
		t.Errorf("somebody else sees %s", a.raw)
	}
}
