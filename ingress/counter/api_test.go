package counter_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/counter"
	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/test/await"
	"quittance/test/registries"
)

func TestCashIsTakenOnce(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	held := w.want(w.reserve(c01, s), http.StatusCreated, "")
	for field, want := range map[string]any{
		"payment_ref": s.PaymentRef, "service_label": "Contribution de la patente", "description": "Patente 2026", "amount": 5000.0, "fee": 50.0,
		"total": 5050.0, "currency": "XAF", "reserved_until": "2026-11-21T09:10:00.000Z", "expires_at": "2026-11-22T09:00:00.000Z",
	} {
		if held.body[field] != want {
			t.Errorf("%s is %v, want %v", field, held.body[field], want)
		}
	}
	id := held.text("collection_id")
	if again := w.want(w.reserve(c01, s), http.StatusOK, ""); again.text("collection_id") != id || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same look-up answers %s", again.raw)
	}
	w.want(w.reserve(c02, s), http.StatusConflict, "counter.reserved")
	if c, _ := w.stands(c02, s).body["cash"].(map[string]any); c["status"] != "reserved" || c["clerk"] != "c01" {
		t.Errorf("it stands as %v", c)
	}

	var all sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for range 5 {
		all.Go(func() {
			a := w.want(w.take(c01, s, id), http.StatusOK, "")
			mu.Lock()
			defer mu.Unlock()
			if a.text("status") != "completed" || a.text("clerk") != "c01" || a.text("taken_at") != "2026-11-21T09:00:00.000Z" {
				t.Errorf("taken as %s", a.raw)
			}
			if a.header.Get("Idempotent-Replayed") == "" {
				fresh++
			}
		})
	}
	all.Wait()
	if fresh != 1 {
		t.Errorf("%d of five calls say that they are the first", fresh)
	}
	w.want(w.take(c01, s, strings.ToUpper(id)), http.StatusOK, "")
	if c := w.Session(s.ID).Collection; c.ID != id || c.Amount != 5050 || c.Account != "Hall" {
		t.Errorf("on record is %+v", c)
	}
	w.want(w.reserve(c02, s), http.StatusConflict, "checkout.session_ended")
	w.want(w.release(c01, s, id), http.StatusConflict, "counter.taken")

	w.want(w.reverse(c01, s, id), http.StatusConflict, "counter.second_person_required")
	reversed := w.want(w.reverse(c02, s, id), http.StatusOK, "")
	if reversed.text("status") != "reversed" || reversed.text("reversed_by") != "c02" || reversed.text("clerk") != "c01" {
		t.Errorf("reversed as %s", reversed.raw)
	}
	if again := w.want(w.reverse(c02, s, id), http.StatusOK, ""); again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the second reversal is not said to be the same")
	}
	stands := w.stands(c01, s)
	if c, _ := stands.body["cash"].(map[string]any); c["status"] != "reversed" || stands.text("status") != "completed" || stands.text("channel") != "CASH" {
		t.Errorf("it stands as %s", stands.raw)
	}
}

func TestWhatBecomesOfCash(t *testing.T) {
	t.Parallel()
	w := serve(t)

	late := w.create(nil)
	id := w.held(c01, late)
	w.Do(late.ID, checkout.Cancel{By: checkout.ByIntegrator})
	if a := w.want(w.take(c01, late, id), http.StatusOK, ""); a.text("status") != "late" || a.text("clerk") != "c01" {
		t.Errorf("taken after a cancellation as %s", a.raw)
	}

	double := w.create(nil)
	id = w.held(c01, double)
	w.later(double.ID, 11*time.Minute)
	w.byPhone(double)
	w.want(w.reserve(c01, double), http.StatusConflict, "checkout.collection_in_flight")
	if a := w.want(w.take(c01, double, id), http.StatusOK, ""); a.text("status") != "case" || a.text("clerk") != "c01" || a.body["total"] != 5050.0 {
		t.Errorf("taken beside the phone as %s", a.raw)
	}
	w.phoneSays(double, checkout.OutcomeApproved)
	if a := w.want(w.take(c01, double, id), http.StatusOK, ""); a.text("status") != "case" || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same again is %s", a.raw)
	}
	w.want(w.reverse(c01, double, id), http.StatusConflict, "counter.second_person_required")
	if a := w.want(w.reverse(c02, double, id), http.StatusOK, ""); a.text("status") != "reversed" || a.text("reversed_by") != "c02" || a.body["total"] != 5050.0 {
		t.Errorf("given back as %s", a.raw)
	}
	if a := w.want(w.take(c01, double, id), http.StatusOK, ""); a.text("status") != "reversed" {
		t.Errorf("the same again is %s", a.raw)
	}
	if a := w.stands(c01, double); a.text("channel") != "MOBILE_MONEY" || a.body["cash"] != nil {
		t.Errorf("it stands as %s", a.raw)
	}

	released := w.create(nil)
	id = w.held(c01, released)
	w.want(w.release(c02, released, id), http.StatusConflict, "counter.reserved")
	w.want(w.release(c01, released, id), http.StatusOK, "")
	w.want(w.release(c01, released, id), http.StatusOK, "")
	w.held(c02, released)
}

func TestLookUpsAreRefused(t *testing.T) {
	t.Parallel()
	w := serve(t)
	free := w.create(nil)

	w.want(w.call("", http.MethodPost, "/reservations", object{"payment_ref": free.PaymentRef}), http.StatusUnauthorized, "generic.unauthorized")
	for _, key := range []string{"sk_test_0123456789012345678901234", "ck_test_0123456789012345678901234", c01[:20]} {
		w.want(w.reserve(key, free), http.StatusUnauthorized, "generic.unauthorized")
	}
	w.want(w.reserve(d01, free), http.StatusNotFound, "checkout.session_not_found")
	w.want(w.reserve(c01Live, free), http.StatusNotFound, "checkout.session_not_found")
	w.want(w.stands(d01, free), http.StatusNotFound, "checkout.session_not_found")
	live := w.create(func(s *checkout.Session) { s.Live = true })
	w.want(w.reserve(c01, live), http.StatusNotFound, "checkout.session_not_found")
	w.want(w.reserve(c01Live, live), http.StatusCreated, "")
	theirs := w.create(func(s *checkout.Session) { s.ApplicationID, s.TenantID = abroad, other })
	for _, a := range []answer{
		w.reserve(c01, theirs), w.stands(c01, theirs), w.take(c01, theirs, "018f0000-0000-7000-8000-000000000099"),
		w.release(c01, theirs, "018f0000-0000-7000-8000-000000000099"), w.reverse(c01, theirs, "018f0000-0000-7000-8000-000000000099"),
	} {
		w.want(a, http.StatusNotFound, "checkout.session_not_found")
	}

	mistyped := free
	mistyped.PaymentRef = free.PaymentRef[:15] + string('0'+(free.PaymentRef[15]-'0'+1)%10)
	w.want(w.reserve(c01, mistyped), http.StatusUnprocessableEntity, "counter.reference_mistyped")
	mistyped.PaymentRef = "4821"
	w.want(w.reserve(c01, mistyped), http.StatusUnprocessableEntity, "counter.reference_mistyped")

	noCash := w.create(func(s *checkout.Session) { s.Offers = s.Offers[:1] })
	w.want(w.reserve(c01, noCash), http.StatusConflict, "checkout.offer_unknown")
	if a := w.stands(c01, noCash); a.body["total"] != nil || a.body["fee"] != nil {
		t.Errorf("without cash it stands as %s", a.raw)
	}
	for status, end := range map[string]func(checkout.Session){
		"expired":   func(s checkout.Session) { w.later(s.ID, 25*time.Hour) },
		"cancelled": func(s checkout.Session) { w.Do(s.ID, checkout.Cancel{By: checkout.ByCitizen}) },
		"failed":    func(s checkout.Session) { w.byPhone(s); w.phoneSays(s, checkout.OutcomeRefused) },
		"paid":      func(s checkout.Session) { w.byPhone(s); w.phoneSays(s, checkout.OutcomeApproved) },
	} {
		s := w.create(nil)
		end(s)
		if a := w.want(w.reserve(c01, s), http.StatusConflict, "checkout.session_ended"); !strings.Contains(a.text("detail"), status) {
			t.Errorf("of a session that is %s is said %s", status, a.raw)
		}
	}

	first := w.create(nil)
	w.byPhone(first)
	w.Do(first.ID, checkout.Cancel{By: checkout.ByIntegrator})
	second := w.create(func(s *checkout.Session) { s.OrderID = first.OrderID })
	w.want(w.reserve(c01, second), http.StatusConflict, "checkout.previous_undecided")
	w.phoneSays(first, checkout.OutcomeApproved)
	w.want(w.reserve(c01, second), http.StatusConflict, "checkout.order_under_review")
}

func TestEntriesAreRefused(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	id := w.held(c01, s)
	post := func(path string, body any) answer { return w.call(c01, http.MethodPost, path, body) }
	field := func(a answer) string {
		faults, _ := a.body["errors"].([]any)
		if len(faults) != 1 {
			t.Fatalf("%d faults: %s", len(faults), a.raw)
		}
		return faults[0].(map[string]any)["field"].(string)
	}
	for _, row := range []struct {
		path  string
		body  object
		field string
	}{
		{"/reservations", object{}, "payment_ref"},
		{"/reservations", object{"payment_ref": 4821093377150264}, "payment_ref"},
		{"/reservations", object{"payment_ref": s.PaymentRef, "more": 1}, "more"},
		{"/payments", object{"payment_ref": s.PaymentRef, "total": 5050}, "collection_id"},
		{"/payments", object{"payment_ref": s.PaymentRef, "total": 5050, "collection_id": "k1"}, "collection_id"},
		{"/payments", object{"payment_ref": s.PaymentRef, "collection_id": id}, "total"},
		{"/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": 5050.5}, "total"},
		{"/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": "5050"}, "total"},
		{"/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": -5050}, "total"},
		{"/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": 5050, "receipt": strings.Repeat("x", 65)}, "receipt"},
		{"/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": 5050, "receipt": "a\nb"}, "receipt"},
		{"/releases", object{"payment_ref": s.PaymentRef}, "collection_id"},
		{"/reversals", object{"payment_ref": s.PaymentRef, "collection_id": id}, "reason"},
		{"/reversals", object{"payment_ref": s.PaymentRef, "collection_id": id, "reason": strings.Repeat("x", 201)}, "reason"},
	} {
		if got := field(w.want(post(row.path, row.body), http.StatusUnprocessableEntity, "generic.validation_failed")); got != row.field {
			t.Errorf("%s %v: the fault is at %s", row.path, row.body, got)
		}
	}
	w.want(post("/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": 5000}), http.StatusConflict, "checkout.total_changed")
	w.want(post("/payments", "[]"), http.StatusBadRequest, "generic.malformed_json")
	twice := fmt.Sprintf(`{"payment_ref":%q,"collection_id":%q,"total":5000,"total":5050}`, s.PaymentRef, id)
	if a := w.want(post("/payments", twice), http.StatusBadRequest, "generic.malformed_json"); !strings.Contains(a.text("detail"), `"total" twice`) {
		t.Errorf("said is %s", a.raw)
	}
	w.want(post("/payments", `{"payment_ref":`), http.StatusBadRequest, "generic.malformed_json")
	w.want(post("/payments", `{"payment_ref": "`+strings.Repeat("x", 70<<10)+`"}`), http.StatusRequestEntityTooLarge, "generic.body_too_large")
	w.want(w.reverse(c02, s, id), http.StatusConflict, "counter.not_taken")
	if c := w.Session(s.ID).Collection; c.Status != checkout.CollectionPending {
		t.Errorf("refused, and yet on record is %+v", c)
	}
	w.want(w.call(c01, http.MethodGet, "/nothing", nil), http.StatusNotFound, "generic.not_found")
	if a := w.want(w.call(c01, http.MethodGet, "/payments", nil), http.StatusMethodNotAllowed, "generic.method_not_allowed"); a.header.Get("Allow") != http.MethodPost {
		t.Errorf("Allow is %q", a.header.Get("Allow"))
	}

	w.take(c01, s, id)
	w.Change(func() { w.Time = w.Time.Add(14 * time.Hour) }) // after midnight in Brazzaville
	w.want(w.reverse(c02, s, id), http.StatusConflict, "counter.reversal_too_late")

	// A clerk cannot take the citizen's own payment, even with its id.
	phone := w.create(nil)
	w.byPhone(phone)
	theirs := w.Session(phone.ID).Collection.ID
	w.want(w.take(c01, phone, theirs), http.StatusConflict, "counter.not_taken")
	w.want(post("/releases", object{"payment_ref": phone.PaymentRef, "collection_id": theirs}), http.StatusConflict, "counter.not_taken")
	if s := w.Session(phone.ID); s.Status != checkout.StatusOpen || s.Collection.Status != checkout.CollectionPending {
		t.Errorf("it is %s, %+v", s.Status, s.Collection)
	}
}

// The cash is on record, but the answer is lost. The same call again returns the record
// and takes nothing twice.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	id := w.held(c01, s)
	w.Change(func() { w.lost = 2 })
	for range 2 {
		if a := w.want(w.take(c01, s, id), http.StatusServiceUnavailable, "generic.unavailable"); !strings.Contains(a.text("detail"), "repeat the same call") {
			t.Errorf("said is %s", a.raw)
		}
	}
	w.want(w.take(c01, s, id), http.StatusOK, "")
	if n := w.Session(s.ID).Sequence; n != 3 {
		t.Errorf("the session has %d events, want created, requested, completed", n)
	}
	w.Change(func() { w.blind = sessions.ErrBehind })
	w.want(w.take(c01, s, id), http.StatusServiceUnavailable, "generic.unavailable")
	w.want(w.reserve(c01, s), http.StatusServiceUnavailable, "generic.unavailable")
}

// Two sessions with one reference: the clerk takes no cash. Cash that was reserved before
// is recorded for its own session.
func TestAmbiguousReference(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	w := serve(t, func(cfg *counter.Config) { cfg.Metrics = metrics })
	s := w.create(nil)
	id := w.held(c01, s)
	twin := w.create(func(twin *checkout.Session) { twin.PaymentRef = s.PaymentRef })
	for range 2 {
		a := w.want(w.reserve(c01, s), http.StatusConflict, "counter.reference_ambiguous")
		if !strings.Contains(a.text("detail"), "take no cash") {
			t.Errorf("the clerk reads %s", a.raw)
		}
		w.want(w.stands(c01, s), http.StatusConflict, "counter.reference_ambiguous")
		w.want(w.take(c01, s, uuid.NewString()), http.StatusConflict, "counter.reference_ambiguous")
		w.want(w.take(c01, s, id), http.StatusOK, "")
	}
	w.signedIn(c01).post("look-up", "payment_ref", s.PaymentRef).want(http.StatusConflict, "Plusieurs paiements portent cette référence")
	w.Change(func() {
		if !w.Sessions[s.ID].Paid() || w.Sessions[twin.ID].Collection != nil {
			t.Errorf("reserved: %s, twin: %+v", w.Sessions[s.ID].Status, w.Sessions[twin.ID].Collection)
		}
	})
	w.want(w.reverse(c02, s, id), http.StatusOK, "")
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := f.GetMetric()[0].GetCounter().GetValue(); f.GetName() == "quittance_counter_ambiguous_references_total" && n != 10 {
			t.Errorf("%v ambiguous look-ups are counted, want 10", n)
		}
	}
}

func TestLookUpsAreLimited(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	id := w.held(c01, s)
	for range 59 {
		w.want(w.reserve(c01, s), http.StatusOK, "")
	}
	limited := w.want(w.reserve(c01, s), http.StatusTooManyRequests, "generic.rate_limited")
	if limited.header.Get("RateLimit-Policy") != `"look-ups";q=60;w=60` {
		t.Errorf("the policy is %s", limited.header.Get("RateLimit-Policy"))
	}
	w.want(w.stands(c01, s), http.StatusTooManyRequests, "generic.rate_limited")
	w.want(w.reserve(c02, s), http.StatusConflict, "counter.reserved") // each key has its own quota
	for range 60 {                                                     // entries are counted apart from look-ups
		w.want(w.take(c01, s, id), http.StatusOK, "")
	}
	w.want(w.take(c01, s, id), http.StatusTooManyRequests, "generic.rate_limited")
	w.Change(func() { w.Time = w.Time.Add(time.Minute) })
	w.want(w.take(c01, s, id), http.StatusOK, "")
}

// A key could try sixty references a minute, and as many again with entries, for ever.
func TestReferencesCannotBeTried(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	var first sync.Once
	w := serve(t, func(c *counter.Config) { first.Do(func() { c.Metrics = registry }) })
	held, free := w.create(nil), w.create(nil)
	id := w.held(c01, held)
	foreign := w.create(func(s *checkout.Session) { s.ApplicationID, s.TenantID = abroad, other })
	// A desk's mistakes: a reference with a wrong digit is no reference.
	for range 10 {
		w.want(w.call(c01, http.MethodPost, "/reservations", object{"payment_ref": "1234567890123456"}), http.StatusUnprocessableEntity, "counter.reference_mistyped")
	}
	for n := range counter.MaxUnknown / 4 { // all ways to try one count together
		w.want(w.reserve(c01, foreign), http.StatusNotFound, "checkout.session_not_found")
		w.want(w.stands(c01, foreign), http.StatusNotFound, "checkout.session_not_found")
		w.want(w.take(c01, foreign, id), http.StatusNotFound, "checkout.session_not_found")
		w.want(w.reverse(c01, foreign, id), http.StatusNotFound, "checkout.session_not_found")
		if n == 0 {
			w.want(w.reserve(c01, free), http.StatusCreated, "")
			w.want(w.release(c01, free, w.stands(c01, free).body["cash"].(map[string]any)["collection_id"].(string)), http.StatusOK, "")
		}
	}
	other := w.browse()
	other.base = w.instance() // the other instance has the same count
	refusals := 0
	for _, s := range []checkout.Session{free, foreign, held} { // known or not: the answer is the same
		a := w.want(w.reserve(c01, s), http.StatusTooManyRequests, "counter.too_many_unknown_references")
		if got := a.header.Get("Retry-After"); got != "3600" {
			t.Errorf("Retry-After is %s", got)
		}
		w.want(w.stands(c01, s), http.StatusTooManyRequests, "counter.too_many_unknown_references")
		refusals += 2
	}
	other.get("/counter").post("/sign-in", "key", c01).post("/look-up", "payment_ref", free.PaymentRef).
		want(http.StatusTooManyRequests, "Trop de références inconnues")
	w.want(w.take(c01, foreign, id), http.StatusTooManyRequests, "counter.too_many_unknown_references")
	refusals++
	w.want(w.take(c01, held, id), http.StatusOK, "") // the cash of a reservation is always put on record
	w.want(w.take(c01, held, id), http.StatusOK, "")
	w.want(w.reserve(c02, free), http.StatusCreated, "") // another key
	w.Change(func() { w.Time = w.Time.Add(time.Hour) })
	w.want(w.stands(c01, held), http.StatusOK, "")

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			want := map[string]int{"unknown": counter.MaxUnknown, "refused": refusals}
			if f.GetName() == "quittance_counter_unknown_references_total" && int(m.GetCounter().GetValue()) != want[m.GetLabel()[0].GetValue()] {
				t.Errorf("counted %v, want %v", m, want)
			}
		}
	}
}

// The limits of a clerk hold at the API and at the page, over all instances and retries, and
// a change of them counts within a second.
func TestLimitsOfAClerk(t *testing.T) {
	t.Parallel()
	var clerks counter.Identities
	w := serve(t, func(c *counter.Config) { clerks = c.Identities })
	limits := func(payment, day int64) {
		t.Helper()
		if _, err := identity.LimitClerk(t.Context(), w.pool, w.masters, registries.Actor, "impots/c01", &payment, &day, w.Now()); err != nil {
			t.Fatal(err)
		}
		registries.Within(t, 10*time.Second, "the limits are read", func() bool {
			c, err := clerks.AuthenticateClerk(c01)
			return err == nil && c.PaymentLimit == payment && c.DayLimit == day
		})
	}
	one, two, three := w.create(nil), w.create(nil), w.create(nil)
	limits(5049, 0)
	a := w.want(w.reserve(c01, one), http.StatusConflict, "counter.payment_limit")
	if !strings.Contains(a.text("detail"), "5049 XAF for one payment") || !strings.Contains(a.text("detail"), "take no cash") {
		t.Errorf("the clerk reads %s", a.raw)
	}
	w.want(w.take(c01, one, "11111111-1111-4111-8111-111111111111"), http.StatusConflict, "counter.payment_limit")
	if s := w.Session(one.ID); s.Sequence != 1 {
		t.Errorf("on record is %+v", s.Collection)
	}

	limits(0, 2*5050)
	id := w.held(c01, one)
	for range 3 { // the desk repeats the call
		w.want(w.take(c01, one, id), http.StatusOK, "")
	}
	second := w.held(c01, two)
	w.Change(func() { w.lost = 1 })
	w.want(w.take(c01, two, second), http.StatusServiceUnavailable, "generic.unavailable")
	w.want(w.take(c01, two, second), http.StatusOK, "")
	a = w.want(w.reserve(c01, three), http.StatusConflict, "counter.day_limit")
	if !strings.Contains(a.text("detail"), "10100 XAF a day") {
		t.Errorf("%s", a.raw)
	}
	b := w.signedIn(c01).post("/look-up", "payment_ref", three.PaymentRef).want(http.StatusConflict, "peut recevoir aujourd’hui", "Rien n’a été enregistré")
	b.get("/counter?lang=en").post("/look-up", "payment_ref", three.PaymentRef).want(http.StatusConflict, "may take today")
	w.want(w.reserve(c02, three), http.StatusCreated, "") // another clerk
	w.want(w.reverse(c02, one, id), http.StatusOK, "")    // cash that was given back still counts
	w.want(w.reserve(c01, w.create(nil)), http.StatusConflict, "counter.day_limit")
	w.Change(func() { w.Time = w.Time.Add(24 * time.Hour) })
	w.want(w.reserve(c01, w.create(nil)), http.StatusCreated, "")
}

// The sum of a clerk's day is the processor's, by its own state and its own clock. Whoever writes tills, their movements
// or the read model passes no limit.
func TestForgedTillPassesNoLimit(t *testing.T) {
	t.Parallel()
	var clerks counter.Identities
	w := serve(t, func(c *counter.Config) { clerks = c.Identities })
	none, day := int64(0), int64(5050)
	if _, err := identity.LimitClerk(t.Context(), w.pool, w.masters, registries.Actor, "impots/c01", &none, &day, w.Now()); err != nil {
		t.Fatal(err)
	}
	registries.Within(t, 10*time.Second, "the limit is read", func() bool {
		c, err := clerks.AuthenticateClerk(c01)
		return err == nil && c.DayLimit == day
	})
	one, two := w.create(nil), w.create(nil)
	w.want(w.take(c01, one, w.held(c01, one)), http.StatusOK, "")
	for _, forgery := range []string{
		`DELETE FROM till_movements`, `DELETE FROM tills`, `DELETE FROM cash_movements`,
		`INSERT INTO tills (id, agency_id, livemode, clerk_code, number, counter, opened_at, opening, closed_at, taken_count, taken, returned_count, returned, counted, note, signed_by, signed_at)
			SELECT gen_random_uuid(), id, live, 'c01', 7, 'x', now() - interval '1 hour', 0, now(), 0, 0, 1, 5050, 0, '', 'c02', now() FROM agencies, (VALUES (false), (true)) AS m (live) WHERE slug = 'impots'`,
	} {
		if _, err := w.pool.Exec(t.Context(), forgery); err != nil {
			t.Fatal(err)
		}
	}
	w.want(w.reserve(c01, two), http.StatusConflict, "counter.day_limit")
	w.want(w.take(c01, two, "11111111-1111-4111-8111-111111111111"), http.StatusConflict, "counter.day_limit")
	if s := w.Session(two.ID); s.Paid() {
		t.Errorf("on record is %+v", s.Collection)
	}
	w.want(w.reserve(c02, two), http.StatusCreated, "")
}

func TestRevokedKeyEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	page := w.signedIn(c01)
	id := w.held(c01, s)
	if _, _, err := identity.RevokeClerkKeys(t.Context(), w.pool, w.masters, registries.Actor, "impots/c01", w.Now()); err != nil {
		t.Fatal(err)
	}
	if !await.Within(10*time.Second, func() bool { return w.stands(c01, s).status == http.StatusUnauthorized }) {
		t.Fatal("a revoked key still opens")
	}
	w.want(w.take(c01, s, id), http.StatusUnauthorized, "generic.unauthorized")
	page.get("/counter").want(http.StatusOK, "Vous avez été déconnecté").lacks("/look-up")
}

func TestDescriptionIsServed(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.browse().get("/api/v1/counter/openapi.yaml")
	if b.status != http.StatusOK || !strings.HasPrefix(b.html, "openapi: 3.1.0") {
		t.Errorf("%d %.60s", b.status, b.html)
	}
}

// A late repetition of a confirmation must not say that the agency still has the money.
func TestTakeAfterReversal(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	id := w.held(c01, s)
	w.want(w.take(c01, s, id), http.StatusOK, "")
	w.want(w.reverse(c02, s, id), http.StatusOK, "")
	if a := w.want(w.take(c01, s, id), http.StatusOK, ""); a.text("status") != "reversed" {
		t.Errorf("cash that was given back is answered %s", a.raw)
	}
}
