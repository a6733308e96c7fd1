package contract_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quittance/test/harness"
)

// partnerDays causes each fault that can meet a payment of the deprecated cash-in surface, on
// the whole program. The tests of the packages cover the others:
//
//	two inits at two instances        TestCrash; checkout TestInitCheckoutUpdatesACreatedPayment
//	init racing the confirmation      here; checkout TestRandomPayments
//	5,000 reviewed, 6,000 confirmed   here; checkout TestInitCheckoutUpdatesACreatedPayment
//	magic 02, 03, 10, 11              here
//	operator's port closed            here; collect TestWords, TestNeverSent
//	SIGTERM in the wait               TestCrash; cashin TestOperatorsWord
//	cancelled by the citizen          here; checkout TestPaymentStatus
//	address changed between attempts  sinks/cashin TestUnsignedWebhooks
//	quota, two tokens, two instances  cashin TestQuotas, TestQuotaAtOnce
//	revoked at another instance       cashin TestEndsAtAnotherInstanceAtOnce; internal/cashin TestTokens
//	application deactivated           cashin TestDeactivatedApplication, TestEndsAtAnotherInstanceAtOnce
//	crooked origins                   cashin TestReturnOrigins, FuzzInitCheckout
//	private webhook addresses         cashin TestWebhookAddresses, FuzzInitCheckout; address
//	externalNumber equal to order_id  here; checkout TestSurfacesDoNotBlockEachOther
//	foreign and unknown numbers       here; cashin TestCheckStatus; checkout TestLookUp
type partnerDays struct {
	*cashin
	keyed  int          // the next partner
	closed <-chan asked // the answer to askAtClosedPort
}

func (d *partnerDays) run(t *testing.T) {
	for _, day := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"5,000 reviewed, 6,000 confirmed", d.updatedOnReview},
		{"init racing the confirmation", d.racingConfirmation},
		{"cancelled by the citizen", d.cancelledByCitizen},
		{"externalNumber equal to order_id", d.equalNumbers},
		{"operator answers 500", d.operatorFails},
		{"a foreign and an unknown number", d.foreignNumber},
		// These move the clock.
		{"operator's port opened later", d.portOpenedLater},
		{"approved late, never answered, after the window", d.silentPayers},
	} {
		t.Run(day.name, day.run)
	}
}

// partner returns a keyed partner that no other day has used, and its key.
func (d *partnerDays) partner(t *testing.T) (s shop, key string) {
	t.Helper()
	if d.keyed >= fuzzedPartners {
		t.Fatal("the registry has too few keyed partners")
	}
	s = d.open(t, d.keyed)
	d.keyed++
	return s, partnerKey(s.n)
}

// payments waits until the ministry API lists so many payments of an externalNumber, each
// with the status, and returns them, the newest first.
func (d *partnerDays) payments(t *testing.T, key, external string, count int, status string) []harness.Session {
	t.Helper()
	var page struct{ Items []harness.Session }
	harness.Eventually(t, fmt.Sprintf("%d payments are %s", count, status), func() error {
		d.Call(t, http.MethodGet, d.Sessions("?order_id="+external), "", "Authorization", "Bearer "+key).Into(t, &page)
		if len(page.Items) != count || slices.ContainsFunc(page.Items, func(s harness.Session) bool { return s.Status != status }) {
			return fmt.Errorf("they are %+v", page.Items)
		}
		return nil
	})
	return page.Items
}

func (d *partnerDays) initBody(external string, amount int) string {
	return fmt.Sprintf(`{"externalNumber":%q,"amount":%d,"items":[%s]}`, external, amount, oneItem)
}

// The citizen confirms a total that the partner's program has changed. Nothing is debited,
// and the page shows the new total.
func (d *partnerDays) updatedOnReview(t *testing.T) {
	s, key := d.partner(t)
	external := d.order()
	first := s.init(t, d.initBody(external, 5000))
	session := first["token"].(string)
	review := d.Citizen(session).Review(t, "06 600 00 01")
	equal(t, "the second answer", s.init(t, d.initBody(external, 6000)), first)
	a := d.Citizen(session).Submit(t, review)
	if a.Status != http.StatusConflict {
		t.Errorf("confirming the old total: %d %s", a.Status, a.Header.Get("Location"))
	}
	matches(t, "the page", string(a.Body), `6,115`)
	payment := d.payments(t, key, external, 1, "open")[0]
	if n := len(d.Collections(t, payment)); n != 0 {
		t.Errorf("the operator has %d collections, want none", n)
	}
	d.Citizen(session).Confirm(t, harness.ReadForm(string(a.Body)))
	_, told := s.told(t, first["paymentId"])
	equal(t, "the webhook", []any{told["status"], told["amount"]}, []any{"completed", 6000})
	if c := d.Collections(t, payment); len(c) != 1 || c[0].Amount != "6115" {
		t.Errorf("the operator has %+v, want one collection of 6115", c)
	}
}

// The partner's program changes the amount while the citizen confirms. Whichever comes first,
// the citizen pays the total that the page has shown, or nothing.
func (d *partnerDays) racingConfirmation(t *testing.T) {
	confirmed := 0
	for range 5 {
		s, key := d.partner(t)
		external := d.order()
		first := s.init(t, d.initBody(external, 5000))
		session := first["token"].(string)
		review := d.Citizen(session).Review(t, "06 600 00 01")
		answered := make(chan harness.Answer, 1)
		go func() { answered <- s.post(t, "/init-checkout", d.initBody(external, 6000)) }()
		page := d.Citizen(session).Submit(t, review)
		var second map[string]any
		(<-answered).Into(t, &second)
		payment := d.paymentOf(t, key, external, first)
		switch page.Status {
		case http.StatusSeeOther: // the confirmation came first: the change is a new payment
			confirmed++
			_, told := s.told(t, first["paymentId"])
			equal(t, "the webhook", []any{told["status"], told["amount"]}, []any{"completed", 5000})
			if c := d.Collections(t, payment); len(c) != 1 || c[0].Amount != "5100" || second["paymentId"] == first["paymentId"] {
				t.Errorf("the operator has %+v, want one collection of 5100; init-checkout answered %v, then %v", c, first, second)
			}
		case http.StatusConflict:
			if c := d.Collections(t, payment); len(c) != 0 || second["paymentId"] != first["paymentId"] || payment.Amount != 6000 {
				t.Errorf("the operator has %+v, want none; init-checkout answered %v, then %v; the payment is %+v", c, first, second, payment)
			}
		default:
			t.Errorf("the confirmation was answered %d %s", page.Status, page.Body)
		}
	}
	t.Logf("the confirmation came first in %d of 5 races", confirmed)
}

// paymentOf returns the session of a payment that init-checkout made.
func (d *partnerDays) paymentOf(t *testing.T, key, external string, made map[string]any) harness.Session {
	t.Helper()
	var page struct{ Items []harness.Session }
	d.Call(t, http.MethodGet, d.Sessions("?order_id="+external), "", "Authorization", "Bearer "+key).Into(t, &page)
	for _, s := range page.Items {
		if s.ID == made["token"] {
			return s
		}
	}
	t.Fatalf("no session of %v in %+v", made, page.Items)
	return harness.Session{}
}

// asked is what a partner was told.
type asked struct {
	by     shop
	answer harness.Answer
	took   time.Duration
	err    error
}

// askAtClosedPort asks for a payment whose operator's port is closed. The answer takes 20 s, in
// which other days happen.
func (d *partnerDays) askAtClosedPort(t *testing.T) {
	s := d.open(t, partners)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL(harness.AtService, d.prefix+"/partners/payments"), strings.NewReader(d.charge("mobile_money_a", "066000001")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.token)
	answered := make(chan asked, 1)
	d.closed = answered
	go func() {
		got := asked{by: s}
		begun := time.Now()
		var resp *http.Response
		if resp, got.err = d.Client.Do(req); got.err == nil {
			got.answer.Status, got.answer.Header = resp.StatusCode, resp.Header
			got.answer.Body, got.err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		got.took = time.Since(begun)
		answered <- got
	}()
}

// The operator's port is closed: 502 within 25 s. When it opens, nobody is asked for the money any more,
// within the window and after it.
func (d *partnerDays) portOpenedLater(t *testing.T) {
	got := <-d.closed
	if got.err != nil {
		t.Fatal(got.err)
	}
	deprecated(t, got.answer)
	got.by.wrong(t, got.answer, http.StatusBadGateway, "GATEWAY_REQUEST_FAILED")
	if got.took > 25*time.Second {
		t.Errorf("a 502 after %s", got.took)
	}
	var lc net.ListenConfig
	port, err := lc.Listen(t.Context(), "tcp", closedAddress)
	if err != nil {
		t.Fatal(err)
	}
	var debits atomic.Int64
	operator := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "requesttopay") {
			debits.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"t","token_type":"Bearer","expires_in":3600}`)
	})}
	go func() { _ = operator.Serve(port) }()
	t.Cleanup(func() { _ = operator.Close() })
	for range 3 {
		d.Advance(t, 3*time.Minute)
		time.Sleep(time.Second) // every role has read the new time
	}
	if n := debits.Load(); n != 0 {
		t.Errorf("the operator was asked %d times for the money of a payment that was answered with 502", n)
	}
}

// The citizen cancels on the hosted page: cancelled in check-status, failed in the webhook. A
// new init-checkout is a new payment.
func (d *partnerDays) cancelledByCitizen(t *testing.T) {
	s, key := d.partner(t)
	external := d.order()
	first := s.init(t, d.initBody(external, 5000))
	if a := d.Citizen(first["token"].(string)).Submit(t, harness.PageForm{Action: "/c/" + first["token"].(string) + "/cancel"}); a.Status != http.StatusSeeOther {
		t.Fatalf("cancelling: %d %s", a.Status, a.Body)
	}
	_, told := s.told(t, first["paymentId"])
	equal(t, "the webhook", []any{told["status"], told["paidAt"], told["externalNumber"], told["amount"]}, []any{"failed", nil, external, 5000})
	d.payments(t, key, external, 1, "cancelled")
	second := s.init(t, d.initBody(external, 5000))
	if second["paymentId"] == first["paymentId"] || second["redirectUrl"] == first["redirectUrl"] {
		t.Errorf("after the cancellation init-checkout answers %v again", second)
	}
	third, _ := s.pay(t, d.charge("mobile_money_a", "066000003"))["number"].(string) // numbers have no gap
	matches(t, "the third number", third, `^T\d{4}000003$`)
	for number, want := range map[string]string{"000001": "cancelled", "000002": "created"} {
		st := s.status(t, third[:5]+number)
		equal(t, number, []any{st["status"], st["paidAt"]}, []any{want, nil})
	}
}

// An externalNumber and the order_id of a session are equal. Neither blocks the other.
func (d *partnerDays) equalNumbers(t *testing.T) {
	s, key := d.partner(t)
	external := d.order()
	hosted := s.init(t, d.initBody(external, 5000))
	session := d.CreateFrom(t, key, fmt.Sprintf(`{"order_id":%q,"amount":7000}`, external))
	refused(t, d.Post(t, key, fmt.Sprintf(`{"order_id":%q,"amount":7000}`, external)), http.StatusConflict, "checkout.order_open")
	paid := s.pay(t, fmt.Sprintf(`{"externalNumber":%q,"amount":3000,"provider":"mobile_money_a","customer":{"phone":"066000001"},"items":[%s]}`, external, oneItem))
	d.Citizen(session.ID).Pay(t, "06 600 00 01")
	d.Citizen(hosted["token"].(string)).Pay(t, "06 600 00 01")
	var amounts []int64
	for _, p := range d.payments(t, key, external, 3, "completed") {
		amounts = append(amounts, p.Amount)
	}
	slices.Sort(amounts)
	equal(t, "the amounts", amounts, []int64{3000, 5000, 7000})
	for _, p := range []map[string]any{hosted, paid} {
		_, told := s.told(t, p["paymentId"])
		equal(t, "the externalNumber", told["externalNumber"], external) // without a suffix
	}
	refused(t, d.Post(t, key, fmt.Sprintf(`{"order_id":%q,"amount":7000}`, external)), http.StatusConflict, "checkout.order_paid")
	if next := s.init(t, d.initBody(external, 5000)); next["paymentId"] == hosted["paymentId"] {
		t.Error("a completed payment is updated")
	}
}

// The operator answers the request with 500, then works: one debit. The payment is approved
// five seconds later with another number.
func (d *partnerDays) operatorFails(t *testing.T) {
	s, key := d.partner(t)
	for _, phone := range []string{"066000011", "066000002"} {
		got := s.pay(t, d.charge("mobile_money_a", phone))
		external := got["externalNumber"].(string)
		if p := d.payments(t, key, external, 1, "completed")[0]; len(d.Collections(t, p)) != 1 {
			t.Errorf("%s: the operator has %+v, want one collection", phone, d.Collections(t, p))
		}
		_, told := s.told(t, got["paymentId"])
		equal(t, "the webhook", told["status"], "completed")
		equal(t, "the payment", s.status(t, got["number"])["status"], "completed")
	}
}

// One payer never answers, and one approves after the window. Both payments fail, once. Money
// that comes late is a case: the partner is not told of it, and the status stays.
func (d *partnerDays) silentPayers(t *testing.T) {
	s, key := d.partner(t)
	silent, late := s.pay(t, d.charge("mobile_money_a", "066000003")), s.pay(t, d.charge("mobile_money_a", "066000010"))
	equal(t, "in the window", []any{s.status(t, silent["number"])["status"], s.status(t, late["number"])["status"]}, []any{"pending", "pending"})
	session := d.payments(t, key, late["externalNumber"].(string), 1, "open")[0]
	d.Collected(t, session)
	d.Advance(t, 5*time.Minute+2*time.Second)
	for _, p := range []map[string]any{silent, late} {
		d.payments(t, key, p["externalNumber"].(string), 1, "failed")
		_, told := s.told(t, p["paymentId"])
		equal(t, "the webhook", []any{told["status"], told["paidAt"]}, []any{"failed", nil})
	}
	d.Advance(t, 20*time.Minute)
	if n := d.Journalled(t, session.ID, "checkout.late_payment"); n != 1 {
		t.Errorf("the journal has %d late payments, want 1", n)
	}
	for _, p := range []map[string]any{silent, late} {
		st := s.status(t, p["number"])
		equal(t, "after the window", []any{st["status"], st["paidAt"]}, []any{"failed", nil})
		if n := s.calls(t, p["paymentId"]); n != 1 {
			t.Errorf("the partner got %d calls about payment %v, want 1", n, p["paymentId"])
		}
	}
}

// calls returns the number of unsigned webhooks about a payment.
func (s shop) calls(t *testing.T, paymentID any) (n int) {
	t.Helper()
	var all []harness.Message
	s.c.Call(t, http.MethodGet, s.c.URL(harness.AtSimulators, "/inbox/partner"), "").Into(t, &all)
	for _, m := range all {
		var body map[string]any
		if err := json.Unmarshal([]byte(m.Body), &body); err != nil {
			t.Fatal(err)
		}
		if body["paymentId"] == paymentID {
			n++
		}
	}
	return n
}

// A number of another application and one that nobody has are answered with the same bytes in
// the same time. The two are asked for in turn, in random order, so that a busy machine delays
// both alike. The test of Mann and Whitney compares all times: a probability below one in ten
// thousand, together with a tenth of difference between the medians, is a finding.
func (d *partnerDays) foreignNumber(t *testing.T) {
	const askers, pairs = 12, 14 // 28 of 30 calls a minute
	owner, _ := d.partner(t)
	number := owner.pay(t, d.charge("mobile_money_a", "066000003"))["number"].(string)
	paths := [2]string{"/transactions/" + number + "/check-status", "/transactions/" + number[:5] + "999999/check-status"}
	var times [2][]time.Duration
	var answers [2]harness.Answer
	for range askers {
		s, _ := d.partner(t)
		s.get(t, "/transactions/T2601000001/check-status") // opens the connection
		for range pairs {
			first := rand.IntN(2)
			for _, i := range []int{first, 1 - first} {
				begun := time.Now()
				answers[i] = s.get(t, paths[i])
				times[i] = append(times[i], time.Since(begun))
				s.wrong(t, answers[i], http.StatusNotFound, "E_ROW_NOT_FOUND")
			}
		}
	}
	equal(t, "the answer to a foreign number", string(answers[0].Body), string(answers[1].Body))
	for _, a := range answers {
		for _, name := range []string{"Date", "X-Request-Id"} {
			a.Header.Del(name)
		}
	}
	equal(t, "its headers", answers[0].Header, answers[1].Header)
	z, foreign, unknown := mannWhitney(times[0], times[1])
	t.Logf("foreign: %d answers, median %v; unknown: %d, median %v; z = %.2f", len(times[0]), foreign, len(times[1]), unknown, z)
	if difference := (foreign - unknown).Abs(); math.Abs(z) > 3.9 && difference > min(foreign, unknown)/10 {
		t.Errorf("the times differ: foreign %v, unknown %v, z = %.2f", foreign, unknown, z)
	}
}

// mannWhitney compares two samples by their ranks. Without a difference z is distributed
// normally around 0 with a deviation of 1.
func mannWhitney(a, b []time.Duration) (z float64, medianA, medianB time.Duration) {
	slices.Sort(a)
	slices.Sort(b)
	u := 0.0 // pairs in which a is greater
	for _, x := range a {
		at, equal := slices.BinarySearch(b, x)
		u += float64(at)
		for ; equal && at < len(b) && b[at] == x; at++ {
			u += 0.5
		}
	}
	n, m := float64(len(a)), float64(len(b))
	return (u - n*m/2) / math.Sqrt(n*m*(n+m+1)/12), a[len(a)/2], b[len(b)/2]
}

// A difference of a tenth is found, and none is found in equal samples.
func TestMannWhitney(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	sample := func(base float64) (out []time.Duration) {
		for range 168 {
			out = append(out, time.Duration(base*(1+random.ExpFloat64()/2)*float64(time.Millisecond)))
		}
		return out
	}
	if z, _, _ := mannWhitney(sample(10), sample(10)); math.Abs(z) > 3.9 {
		t.Errorf("equal samples: z = %.2f", z)
	}
	if z, _, _ := mannWhitney(sample(12), sample(10)); z < 3.9 {
		t.Errorf("different samples: z = %.2f", z)
	}
	if z, _, _ := mannWhitney([]time.Duration{1, 2, 2}, []time.Duration{1, 2, 2}); z != 0 {
		t.Errorf("equal samples with ties: z = %.2f", z)
	}
}
