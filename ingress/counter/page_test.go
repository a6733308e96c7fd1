package counter_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/ingress/counter"
	"quittance/internal/identity"
	"quittance/internal/papers"
	"quittance/internal/personal"
	"quittance/money"
	"quittance/test/registries"
)

// awayable counts the requests for sessions and can refuse them, as when Postgres does not
// answer.
type awayable struct {
	counter.Identities
	away  atomic.Bool
	asked atomic.Int32
}

func (a *awayable) err() error {
	a.asked.Add(1)
	if a.away.Load() {
		return errors.New("no Postgres")
	}
	return nil
}

func (a *awayable) BeginClerkSession(ctx context.Context, keyID string) (string, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	return a.Identities.BeginClerkSession(ctx, keyID)
}

func (a *awayable) ClerkSession(ctx context.Context, id string) (identity.ClerkPrincipal, error) {
	if err := a.err(); err != nil {
		return identity.ClerkPrincipal{}, err
	}
	return a.Identities.ClerkSession(ctx, id)
}

func (a *awayable) EndClerkSession(ctx context.Context, id string) error {
	if err := a.err(); err != nil {
		return err
	}
	return a.Identities.EndClerkSession(ctx, id)
}

func spaced(ref string) string {
	return ref[:4] + " " + ref[4:8] + "\u00a0" + ref[8:12] + " " + ref[12:] + " "
}

func TestClerkTakesCash(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	b := w.browse().get("/counter").want(http.StatusOK, "Ouvrir le guichet", "Clé du guichet")
	b.post("/sign-in", "key", " "+c01+" ").want(http.StatusOK, "Rechercher un paiement", "Guichet 1 – Hall", "Mode test", "Direction générale des impôts")
	if !strings.HasPrefix(b.at, "/counter?lang=fr") {
		t.Errorf("the desk is at %s", b.at)
	}
	b.post("/look-up", "payment_ref", spaced(s.PaymentRef)).want(http.StatusOK,
		"Recevoir les espèces", "Contribution de la patente", "Patente 2026", "5\u202f000\u202fFCFA", "50\u202fFCFA", "5\u202f050\u202fFCFA", "Réservé pour vous jusqu’à 10:10")
	if b.at != "/counter/"+s.PaymentRef+"?lang=fr" {
		t.Errorf("the review is at %s", b.at)
	}
	path, form := b.form("/take", "receipt", "R-12")
	b.request(http.MethodPost, path, form).want(http.StatusOK, "Reçu de paiement en espèces", "21 novembre 2026 à 10:00", "c01", "R-12", "TEST", "Seul un autre agent peut, le jour même, enregistrer la restitution").
		lacks("/take", "/reverse")
	b.request(http.MethodPost, path, form).want(http.StatusOK, "Reçu de paiement en espèces") // pressed twice
	if n, c := w.Session(s.ID).Sequence, w.Session(s.ID).Collection; n != 3 || c.Clerk != "c01" || c.OperatorRef != "R-12" || c.Amount != 5050 {
		t.Errorf("%d events, on record is %+v", n, c)
	}
	b.get("/counter").post("/look-up", "payment_ref", s.PaymentRef).want(http.StatusOK, "Reçu de paiement en espèces")

	second := w.signedIn(c02).get("/counter/" + s.PaymentRef + "?lang=en")
	second.want(http.StatusOK, "Receipt for cash", "Give the cash back", "FCFA\u00a05,050", "21 November 2026, 10:00")
	second.post("/reverse").want(http.StatusUnprocessableEntity, "Give the reason")
	second.post("/reverse", "reason", "wrong case").want(http.StatusOK, "Payment reversed", "given back by c02 on 21 November 2026, 10:00").lacks("/reverse\"")
	b.get("/counter/"+s.PaymentRef).want(http.StatusOK, "Paiement restitué", "rendues par c02")
}

// The clerk gives the citizen the receipt as a file. Another clerk of the agency has the same, a
// clerk of another agency nothing, and it says what became of the payment.
func TestClerkHasReceipt(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(func(s *checkout.Session) {
		s.Customer = &checkout.Customer{Name: "Élise Mbemba"}
		s.TransactionID, s.NoticeRef = "019ab1c2-0000-7abc-8def-0123456789ab", "AV20260000012345"
	})
	path := "/counter/" + s.PaymentRef + "/receipt.pdf"
	b := w.signedIn(c01)
	b.post("/look-up", "payment_ref", s.PaymentRef).want(http.StatusOK, "Recevoir les espèces").lacks("receipt.pdf")
	b.get(path).want(http.StatusOK, "Recevoir les espèces")                                                 // not paid: the payment's page
	b.post("/take").want(http.StatusOK, "Imprimer le reçu à remettre au citoyen (PDF)").lacks(`id="print"`) // the page has no code to check it
	link := regexp.MustCompile(`href="(/counter/[0-9]+/receipt\.pdf[^"]*)"`).FindStringSubmatch(b.html)
	if link == nil {
		t.Fatalf("no link to the receipt:\n%s", b.html)
	}
	file := func(b *browser, at string) string {
		t.Helper()
		b.get(at)
		if b.status != http.StatusOK || b.answer.Get("Content-Type") != "application/pdf" || b.answer.Get("Cache-Control") != "no-store" || !strings.HasPrefix(b.answer.Get("Content-Disposition"), "attachment; filename=\"recu-") || !strings.HasPrefix(b.html, "%PDF-") {
			t.Fatalf("%s: %d %v", at, b.status, b.answer)
		}
		return b.html
	}
	first := file(b, html.UnescapeString(link[1]))
	second := w.signedIn(c02)
	if file(second, path) != first {
		t.Error("another clerk has another receipt")
	}
	w.signedIn(d01).get(path).lacks("%PDF-")
	w.browse().get(path).want(http.StatusOK, "Clé du guichet") // nobody is signed in
	b.get(path+"?due=018f0000-0000-7000-8000-000000000009").want(http.StatusOK, "Reçu de paiement en espèces")

	second.get("/counter/"+s.PaymentRef).post("/reverse", "reason", "wrong case").want(http.StatusOK, "Paiement restitué", "Imprimer le reçu")
	if file(second, path) == first {
		t.Error("the receipt does not say that the cash was given back")
	}
}

// After an erasure on request the receipt of cash says that it is a duplicate, although nothing in
// the session tells that there was contact data.
func TestReceiptAfterErasure(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(func(s *checkout.Session) {
		s.TransactionID, s.NoticeRef = "019ab1c2-0000-7abc-8def-0123456789ab", "AV20260000012345"
	})
	b := w.signedIn(c01)
	b.post("/look-up", "payment_ref", s.PaymentRef).post("/take").want(http.StatusOK, "Imprimer le reçu")
	duplicate := func() bool {
		t.Helper()
		r, err := w.papers.Receipt(t.Context(), papers.Request{Session: w.Session(s.ID), Language: money.French})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(r.Notes, "\n"), "Duplicata")
	}
	if duplicate() {
		t.Error("a receipt is a duplicate before an erasure")
	}
	if result, err := w.contacts.Erase(t.Context(), w, s.ID, personal.Request{Actor: registries.Actor, At: w.Now(), By: "session", Reason: "D-1"}); err != nil || result != personal.ResultErased {
		t.Fatalf("%s, %v", result, err)
	}
	if !duplicate() {
		t.Error("after the erasure the receipt is no duplicate")
	}
}

func TestClerkGivesUp(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	b := w.signedIn(c01).post("/look-up", "payment_ref", s.PaymentRef)
	w.signedIn(c02).post("/look-up", "payment_ref", s.PaymentRef).want(http.StatusConflict, "Le guichet c01 a réservé ce paiement jusqu’à 10:10").
		get("/counter/"+s.PaymentRef).want(http.StatusOK, "Le guichet c01 a réservé").lacks("/take", "/look-up")
	b.get("/counter/"+s.PaymentRef).post("/release").want(http.StatusOK, "La réservation est abandonnée")
	b.get("/counter/"+s.PaymentRef).want(http.StatusOK, "Ce paiement n’est pas réglé").post("/look-up").want(http.StatusOK, "Recevoir les espèces")
	w.later(s.ID, 11*time.Minute)
	b.get("/counter/"+s.PaymentRef).want(http.StatusOK, "Ce paiement n’est pas réglé").lacks("/take")
}

func TestClerkIsTold(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(c01)
	lookUp := func(ref string) *browser { return b.get("/counter").post("/look-up", "payment_ref", ref) }

	s := w.create(nil)
	lookUp(s.PaymentRef[1:]).want(http.StatusUnprocessableEntity, "relisez les 16 chiffres")
	if !strings.Contains(b.html, `value="`+s.PaymentRef[1:]+`"`) || !strings.Contains(b.html, `aria-invalid="true"`) || !strings.Contains(b.html, `href="#payment_ref"`) {
		t.Errorf("what was typed is gone, or the fault is not at its field:\n%s", b.html)
	}
	theirs := w.create(func(s *checkout.Session) { s.ApplicationID, s.TenantID = abroad, other })
	lookUp(theirs.PaymentRef).want(http.StatusNotFound, "n’a aucun paiement avec cette référence")
	b.get("/counter/"+theirs.PaymentRef).want(http.StatusNotFound, "n’a aucun paiement avec cette référence")

	w.byPhone(s)
	lookUp(s.PaymentRef).want(http.StatusConflict, "en train de payer par un autre moyen")
	b.get("/counter/"+s.PaymentRef).want(http.StatusOK, "en train de payer par un autre moyen").lacks("/take", "/look-up")
	w.phoneSays(s, checkout.OutcomeApproved)
	lookUp(s.PaymentRef).want(http.StatusConflict, "déjà réglé par un autre moyen")

	noCash := w.create(func(s *checkout.Session) { s.Offers = s.Offers[:1] })
	lookUp(noCash.PaymentRef).want(http.StatusConflict, "ne peut pas être réglé en espèces")
	b.get("/counter/"+noCash.PaymentRef).want(http.StatusOK, "ne peut pas être réglé en espèces").lacks("/look-up")

	// The integrator cancels while the clerk counts notes.
	cancelled := w.create(nil)
	lookUp(cancelled.PaymentRef).want(http.StatusOK, "Recevoir les espèces")
	w.Do(cancelled.ID, checkout.Cancel{By: checkout.ByIntegrator})
	lookUp(cancelled.PaymentRef).want(http.StatusOK, "vient d’être annulé").post("/take").want(http.StatusOK, "Espèces enregistrées après la fin du paiement", "c01")
	gone := w.create(nil)
	lookUp(gone.PaymentRef)
	w.Do(gone.ID, checkout.Cancel{By: checkout.ByIntegrator})
	b.post("/release").want(http.StatusOK, "abandonnée")
	b.get("/counter/"+gone.PaymentRef).want(http.StatusOK, "Ce paiement a été annulé")

	// The form was open while the citizen paid by phone.
	double := w.create(nil)
	lookUp(double.PaymentRef)
	path, form := b.form("/take")
	w.later(double.ID, 11*time.Minute)
	w.byPhone(double)
	b.request(http.MethodPost, path, form).want(http.StatusOK, "déjà payé autrement", "gardez-les séparées")
	b.request(http.MethodPost, path, form).want(http.StatusOK, "déjà payé autrement")

	// The cash is on record, but the answer is lost: send the same form again.
	lost := w.create(nil)
	lookUp(lost.PaymentRef)
	w.Change(func() { w.lost = 1 })
	b.post("/take").want(http.StatusServiceUnavailable, "Les espèces sont peut-être enregistrées").post("/take").want(http.StatusOK, "Reçu de paiement en espèces")
	if n := w.Session(lost.ID).Sequence; n != 3 {
		t.Errorf("%d events, want 3", n)
	}

	// The page shows the typed text again, with its fault at the field.
	typed := w.create(nil)
	lookUp(typed.PaymentRef)
	long := strings.Repeat("7", 65)
	if b.post("/take", "receipt", long).want(http.StatusUnprocessableEntity, "64 caractères"); !strings.Contains(b.html, `value="`+long+`"`) || !strings.Contains(b.html, `href="#receipt"`) {
		t.Errorf("the receipt's number is gone, or its fault is not at its field:\n%s", b.html)
	}
	b.post("/take", "receipt", "R-7").want(http.StatusOK, "R-7")
	second := w.signedIn(c02).get("/counter/" + typed.PaymentRef)
	if second.post("/reverse", "reason", long+long+long+long).want(http.StatusUnprocessableEntity, "200 caractères"); !strings.Contains(second.html, `value="`+long) {
		t.Errorf("the reason is gone:\n%s", second.html)
	}

	wrong := w.create(nil)
	lookUp(wrong.PaymentRef)
	b.post("/take", "total", "1").want(http.StatusConflict, "rien n’a été enregistré")

	w.later(lost.ID, 20*time.Hour)
	w.signedIn(c02).get("/counter/"+lost.PaymentRef).want(http.StatusOK, "Reçu de paiement en espèces").lacks("/reverse", "Restituer")
}

func TestSigningIn(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	b := w.browse()
	b.get("/counter").post("/sign-in", "key", "ck_test_0123456789012345678901234").want(http.StatusUnauthorized, "Clé inconnue ou révoquée")
	if len(b.sent) != 0 {
		t.Errorf("a refused key gets %v", b.sent)
	}
	b.get("/counter/"+s.PaymentRef).want(http.StatusOK, "Ouvrir le guichet").post("/sign-in", "key", c01)
	if b.at != "/counter/"+s.PaymentRef+"?lang=fr" {
		t.Errorf("signing in leads to %s", b.at)
	}
	cookie := b.sent[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure || cookie.MaxAge != 0 || strings.Contains(cookie.Value, "ck_") || len(cookie.Value) < 60 {
		t.Errorf("the cookie is %+v", cookie)
	}

	// Requests within half an hour keep the sign-in; half an hour without one ends it.
	for range 4 {
		w.Change(func() { w.Time = w.Time.Add(29 * time.Minute) })
		b.get("/counter").want(http.StatusOK, "Rechercher un paiement")
	}
	w.Change(func() { w.Time = w.Time.Add(30 * time.Minute) })
	b.get("/counter").want(http.StatusOK, "Vous avez été déconnecté", "Ouvrir le guichet")
	b.get("/counter").want(http.StatusOK, "Ouvrir le guichet").lacks("déconnecté")

	// The sign-in ends while the clerk counts notes: nothing is recorded, and after signing
	// in again the clerk continues with the same reference.
	b.post("/sign-in", "key", c01).post("/look-up", "payment_ref", s.PaymentRef).want(http.StatusOK, "Recevoir les espèces")
	path, form := b.form("/take")
	w.Change(func() { w.Time = w.Time.Add(31 * time.Minute) })
	b.request(http.MethodPost, path, form).want(http.StatusUnauthorized, "rien n’a été enregistré")
	if w.Session(s.ID).Paid() {
		t.Error("nobody is signed in, and cash is taken")
	}
	b.post("/sign-in", "key", c01).want(http.StatusOK, "Ce paiement n’est pas réglé")

	// A sign-in ends after twelve hours, even with constant use.
	for range 12*60/20 + 1 {
		w.Change(func() { w.Time = w.Time.Add(20 * time.Minute) })
		b.get("/counter")
	}
	b.want(http.StatusOK, "Ouvrir le guichet")

	b.post("/sign-in", "key", c01).want(http.StatusOK, "Rechercher").post("/sign-out").want(http.StatusOK, "Ouvrir le guichet").lacks("déconnecté")
	for _, bad := range []string{"x", cookie.Value[:len(cookie.Value)-2], cookie.Value + "AA", strings.Repeat("A", 90)} {
		other := w.browse()
		other.header.Set("Cookie", cookie.Name+"="+bad)
		other.get("/counter").want(http.StatusOK, "Ouvrir le guichet").lacks("/look-up")
	}
}

// A copy of the cookie opened the counter for half an hour after its clerk had signed out.
func TestSignOutEndsTheSession(t *testing.T) {
	t.Parallel()
	w := serve(t)
	elsewhere := w.instance() // another instance over the same Postgres
	s := w.create(nil)
	b := w.browse().get("/counter").post("/sign-in", "key", c01).want(http.StatusOK, "Rechercher un paiement")
	cookie := b.sent[0]
	thief := w.browse()
	thief.header.Set("Cookie", cookie.Name+"="+cookie.Value)
	for _, url := range []string{w.url, elsewhere} {
		thief.base = url
		thief.get("/counter").want(http.StatusOK, "Rechercher un paiement")
	}
	thief.base = ""
	path, form := thief.post("/look-up", "payment_ref", s.PaymentRef).form("/take")
	b.get("/counter").post("/sign-out").want(http.StatusOK, "Ouvrir le guichet").lacks("déconnecté")
	for _, url := range []string{w.url, elsewhere} {
		thief.base = url
		thief.get("/counter").want(http.StatusOK, "Vous avez été déconnecté").lacks("/look-up")
		thief.request(http.MethodPost, path, form).want(http.StatusUnauthorized, "rien n’a été enregistré")
	}
	if w.Session(s.ID).Paid() {
		t.Error("a stolen cookie takes cash")
	}
	// Signing out again, or without a session, leads to the sign-in.
	thief.request(http.MethodPost, "/counter/sign-out", url.Values{}).want(http.StatusOK, "Ouvrir le guichet")
	w.browse().request(http.MethodPost, "/counter/sign-out", url.Values{}).want(http.StatusOK, "Ouvrir le guichet")
}

// While Postgres is away nobody is told that they are signed out, and the browser keeps
// the cookie to sign out later.
func TestSessionsAreAway(t *testing.T) {
	t.Parallel()
	away := &awayable{}
	w := serve(t, func(c *counter.Config) { away.Identities = c.Identities; c.Identities = away })
	b := w.signedIn(c01)
	path, form := b.form("/sign-out")
	away.away.Store(true)
	b.get("/counter").want(http.StatusServiceUnavailable, "Le service ne répond pas", "Retour au guichet").lacks("déconnecté", "Clé du guichet")
	b.request(http.MethodPost, path, form).want(http.StatusServiceUnavailable, "vous êtes encore connecté")
	if len(b.sent) != 0 {
		t.Errorf("the browser gets %v", b.sent)
	}
	w.browse().request(http.MethodPost, "/counter/sign-in", url.Values{"key": {c01}}).want(http.StatusServiceUnavailable, "Rien n’a été enregistré")
	away.away.Store(false)
	b.get("/counter").want(http.StatusOK, "Rechercher un paiement").post("/sign-out").want(http.StatusOK, "Ouvrir le guichet")
}

// Cookies that this service did not make cost no query.
func TestMadeUpCookiesAskNobody(t *testing.T) {
	t.Parallel()
	away := &awayable{}
	w := serve(t, func(c *counter.Config) { away.Identities = c.Identities; c.Identities = away })
	b := w.browse()
	b.get("/counter").post("/sign-in", "key", c01)
	cookie := b.sent[0]
	before := away.asked.Load()
	w.browse().get("/counter").want(http.StatusOK, "Ouvrir le guichet")
	for _, bad := range []string{"x", cookie.Value[:len(cookie.Value)-2], cookie.Value + "AA", strings.Repeat("A", 90)} {
		other := w.browse()
		other.header.Set("Cookie", cookie.Name+"="+bad)
		other.get("/counter").want(http.StatusOK, "Vous avez été déconnecté").lacks("/look-up")
	}
	if n := away.asked.Load() - before; n != 0 {
		t.Errorf("%d sessions were looked up", n)
	}
}

func TestCookieIsSecureOverHTTPS(t *testing.T) {
	t.Parallel()
	w := serve(t, func(c *counter.Config) { c.PublicURL = "https://pay.example/" })
	b := w.browse().get("/counter").post("/sign-in", "key", c01)
	if c := b.sent[0]; !c.Secure || c.Name != "__Host-quittance_counter" || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %+v", c)
	}
}

func TestOtherSitesPostNothing(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	b := w.signedIn(c01).post("/look-up", "payment_ref", s.PaymentRef)
	path, form := b.form("/take")
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		b.header.Set(name, value)
		if b.request(http.MethodPost, path, form); b.status != http.StatusForbidden {
			t.Errorf("with %s %s: %d", name, value, b.status)
		}
		b.header.Del(name)
	}
	b.header.Set("Origin", "null")
	if b.request(http.MethodPost, path, form); b.status != http.StatusForbidden {
		t.Errorf("from nowhere: %d", b.status)
	}
	b.header.Set("Origin", w.url)
	b.request(http.MethodPost, path, form).want(http.StatusOK, "Reçu")
}

// scriptPattern is the script of the pages.
var scriptPattern = regexp.MustCompile(`<script src="/counter/assets/counter-[0-9a-f]+\.js" defer></script>`)

func TestPagesAreClosedAndAccessible(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	b := w.browse()
	check := func() {
		t.Helper()
		csp := b.answer.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %q lacks %s", b.at, csp, part)
			}
		}
		if strings.Contains(csp, "; script-src 'self'") != scriptPattern.MatchString(b.html) || strings.Contains(csp, "connect-src") {
			t.Errorf("%s: policy %q", b.at, csp)
		}
		if b.answer.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept: %s", b.at, b.answer.Get("Cache-Control"))
		}
		if scripts := scriptPattern.ReplaceAllString(b.html, ""); strings.Contains(scripts, "<script") {
			t.Errorf("%s has a script of its own:\n%s", b.at, b.html)
		}
		b.lacks("style=\"", " onclick", "http://", "https://")
		if n := strings.Count(b.html, "<h1>"); n != 1 || !regexp.MustCompile(`<html lang="(fr|en)">`).MatchString(b.html) {
			t.Errorf("%s has %d h1", b.at, n)
		}
		for _, in := range regexp.MustCompile(`<input id="([^"]+)"`).FindAllStringSubmatch(b.html, -1) {
			if !strings.Contains(b.html, `<label for="`+in[1]+`">`) {
				t.Errorf("%s: %s has no label", b.at, in[1])
			}
		}
	}
	for _, lang := range []string{"fr", "en"} {
		b.get("/counter?lang=" + lang)
		check()
		b.post("/sign-in", "key", "x")
		check()
		b.post("/sign-in", "key", c01)
		check()
		b.post("/look-up", "payment_ref", "1")
		check()
		b.post("/look-up", "payment_ref", s.PaymentRef)
		check()
		if lang == "en" {
			b.want(http.StatusOK, "Take the cash", "Cash received: FCFA\u00a05,050").post("/take")
			check()
		}
		b.get("/counter").post("/sign-out")
	}
	b.get("/counter/assets/nothing.css").want(http.StatusNotFound, "Page introuvable", "Page d’accueil")
	m := regexp.MustCompile(`href="(/counter/assets/[^"]+)"`).FindStringSubmatch(b.html)
	if m == nil {
		t.Fatal("no style")
	}
	if b.get(m[1]); b.status != http.StatusOK || !strings.HasPrefix(b.answer.Get("Content-Type"), "text/css") || !strings.Contains(b.answer.Get("Cache-Control"), "immutable") {
		t.Errorf("the style: %d %v", b.status, b.answer)
	}
	b.get("/counter").post("/sign-in", "key", c01).get("/counter/day").want(http.StatusOK)
	script := regexp.MustCompile(`src="([^"]+)"`).FindStringSubmatch(scriptPattern.FindString(b.html))
	if script == nil {
		t.Fatalf("no script:\n%s", b.html)
	}
	if b.get(script[1]); b.status != http.StatusOK || !strings.HasPrefix(b.answer.Get("Content-Type"), "text/javascript") || len(b.html) > 600 {
		t.Errorf("the script: %d %v, %d bytes", b.status, b.answer, len(b.html))
	}
	big := url.Values{"key": {strings.Repeat("x", 20<<10)}}
	if b.request(http.MethodPost, "/counter/sign-in", big); b.status != http.StatusUnauthorized {
		t.Errorf("a form that is too big: %d", b.status)
	}
}
