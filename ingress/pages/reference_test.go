package pages_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/test/await"
	"quittance/test/servers"
)

// refs are valid payment references.
var refs = func() (out []string) {
	r, err := checkout.NewReferences(make([]byte, 32))
	for n := int64(0); err == nil && len(out) < 50; n++ {
		if ref, ok := r.PaymentRef(n); ok {
			out = append(out, ref)
		}
	}
	return out
}()

// serveReferences starts the pages with the limits of look-ups in a database of its own.
func serveReferences(t *testing.T) (*world, *httptest.Server) {
	t.Helper()
	w, server := serve(t)
	_, pool := servers.Database(t)
	w.lookups.Postgres, w.lookups.Now, w.lookups.PerClient, w.lookups.Unknown = pool, w.Now, pages.LookupsPerClient, pages.UnknownLookups
	return w, server
}

// secretive is a session whose data nobody may learn from its reference.
func secretive(ref string) func(*checkout.Session) {
	return func(s *checkout.Session) {
		s.PaymentRef, s.OrderID, s.Description = ref, "ORDER-SECRET-"+ref, "Patente de Madame Secrète"
		s.NoticeRef = s.OrderID
		s.SuccessURL, s.CancelURL = "https://guichet.example/merci?order=ORDER-SECRET", "https://guichet.example/retour?order=ORDER-SECRET"
		s.Items = []checkout.Item{
			{ERPDueRef: "DUE-SECRET", SubjectRef: "TP-SECRET-1234", Label: "label secret", ServiceLabel: "Contribution de la patente", Amount: 3000, NoticeRef: s.OrderID, NoticeID: "n-1", TransactionID: "t-1"},
			{ERPDueRef: "DUE-SECRET-2", SubjectRef: "TP-9999", Label: "label secret", ServiceLabel: "Taxe foncière", Amount: 2000, NoticeRef: "AV20260000012346", NoticeID: "n-2", TransactionID: "t-2"},
		}
		s.ServiceLabel = ""
	}
}

// anonymous is a browser with cookies that knows a reference. After every page it checks that
// the page keeps the session's secrets.
func anonymous(t *testing.T, server *httptest.Server) *browser {
	t.Helper()
	b := browse(t, server)
	client := *server.Client()
	// The cookies are for https alone.
	client.Transport = secureCookies{client.Transport, map[string]string{}}
	b.client = &client
	return b
}

// secureCookies keeps the cookies of a server that believes to be behind https.
type secureCookies struct {
	http.RoundTripper
	kept map[string]string
}

func (c secureCookies) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range c.kept {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		for _, cookie := range resp.Cookies() {
			if !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.SameSite != http.SameSiteLaxMode || !strings.HasPrefix(cookie.Name, "__Host-") {
				return resp, fmt.Errorf("the cookie is %s", cookie)
			}
			c.kept[cookie.Name] = cookie.Value
		}
	}
	return resp, err
}

// discreet checks that the answer has nothing that only the session's address may show.
func (b *browser) discreet(w *world, id string) *browser {
	b.t.Helper()
	all := b.html + fmt.Sprint(b.answer) + strings.Join(b.visited, " ")
	for _, secret := range []string{id, id[4:], "SECRET", "Secrète", "label secret", "guichet.example", "/cancel", "Annuler", "annuler", "066000009", "06 600 00 09"} {
		if strings.Contains(all, secret) {
			b.t.Errorf("%s shows %q:\n%s\n%s", b.at, secret, all, b.html)
		}
	}
	return b
}

// Somebody who knows the reference alone pays, and has the receipt; nobody else has it. No page
// shows or leads to what is not on a slip.
func TestPayingByReference(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	id := w.create("A-1", secretive(refs[0]))
	w.Change(func() {
		s := w.Sessions[id]
		customer(id, &s, "+242 06 600 00 09")
		w.Sessions[id] = s
	})
	page := "/p/" + refs[0]
	b, other := anonymous(t, server), anonymous(t, server)
	b.get("/p").want(200, "Payer avec une référence")
	b.get("/p?ref="+url.QueryEscape(strings.Join([]string{refs[0][:4], refs[0][4:8], refs[0][8:]}, " "))).
		want(200, "Votre numéro mobile money", "Direction générale des impôts", "Contribution de la patente, Taxe foncière", "se termine par 1234", "5"+narrow+"000"+narrow+"FCFA").discreet(w, id)
	b.doesNotSay("9999") // a number this short would be shown as a whole
	if b.at.Path != page {
		t.Errorf("the page is at %s", b.at)
	}
	b.forward("phone", "").want(422).discreet(w, id)
	b.forward("phone", "06 600 00 02").want(200, "Vérifiez avant de payer").discreet(w, id)
	action, confirmation := b.form(0, nil)
	b.forward().want(200, "*105#", masked).discreet(w, id)
	if requests := w.collected(); len(requests) != 1 || !requests[0].ByReference {
		t.Errorf("requests for money: %+v", requests)
	}
	b.request(http.MethodPost, action, confirmation).want(200, "*105#").discreet(w, id) // a double click

	other.get(page).want(200, "Un paiement est en cours").discreet(w, id).nothingToPress("Annuler")
	other.doesNotSay("•••", "02", "*105#")
	if !strings.Contains(other.html, `data-live="`+page+`/live"`) {
		t.Error("the page that waits for somebody else's payment has no live status")
	}
	w.outcome(id, checkout.OutcomeApproved, "")
	b.get(page).want(200, "Paiement réussi", "23503452", masked, refs[0][12:]).discreet(w, id)
	b.link("English").want(200, "Payment successful").discreet(w, id)
	other.get(page).want(200, "Cette référence est payée", "Ne payez pas de nouveau").discreet(w, id)
	other.doesNotSay("23503452", "•••", "novembre")
	other.request(http.MethodPost, action, url.Values{}).want(200, "Cette référence est payée").discreet(w, id)

	// A browser whose first answer was lost with its cookies confirms again.
	lost := anonymous(t, server)
	lost.request(http.MethodPost, action, confirmation).want(200, "Paiement réussi").discreet(w, id)

	// Somebody else's cookie is worthless for another reference, and after a day.
	w.Change(func() { w.Time = w.Time.Add(24 * time.Hour) })
	b.get(page).want(200, "Cette référence est payée").discreet(w, id)
	b.doesNotSay("23503452")
	for _, way := range []string{http.MethodGet, http.MethodPost} {
		if b.request(way, page+"/cancel", nil); b.status != http.StatusNotFound && b.status != http.StatusMethodNotAllowed {
			t.Errorf("%s of the cancel answers %d", way, b.status)
		}
	}
}

// Whoever knows a reference may confirm with a number whose owner refuses. Then the session's
// payer can still pay.
func TestRefusedPaymentByReference(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	id := w.create("A-1", secretive(refs[0]))
	page := "/p/" + refs[0]
	stranger, payer := anonymous(t, server), browse(t, server)
	confirm := func() (action string, form url.Values) {
		stranger.get(page).forward("phone", "06 600 00 02").want(200, "Vérifiez avant de payer")
		action, form = stranger.form(0, nil)
		stranger.forward()
		return action, form
	}
	action, confirmation := confirm()
	stranger.want(200, "*105#")
	payer.get("/c/"+id).want(200, "Un paiement est en cours")
	payer.doesNotSay("•••", "02", "*105#")
	w.outcome(id, checkout.OutcomeRefused, reject)
	stranger.get(page).want(200, "Votre paiement n’a pas abouti", "Vous pouvez payer de nouveau", "Votre numéro mobile money").discreet(w, id)
	stranger.request(http.MethodPost, action, confirmation).want(200, "Votre paiement n’a pas abouti") // going back and once more
	anonymous(t, server).get(page).want(200, "Votre numéro mobile money").doesNotSay("n’a pas abouti")
	for range 2 {
		confirm()
		w.outcome(id, checkout.OutcomeRefused, reject)
	}
	confirm()
	stranger.want(409, "Trop de paiements par cette référence", "Réessayez dans 5")
	if requests := w.collected(); len(requests) != 3 {
		t.Errorf("%d requests for money, want 3", len(requests))
	}
	payer.toReview(id).forward().want(200, "*105#")
	w.outcome(id, checkout.OutcomeApproved, "")
	payer.get("/c/"+id).want(200, "Paiement réussi")
	stranger.get(page).want(200, "Cette référence est payée").doesNotSay("23503452")
}

// The ends of a session as somebody sees them who knows the reference and did not pay.
func TestReferenceOfASessionThatEnded(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	b := anonymous(t, server)
	ends := map[string]struct {
		says string
		end  func(id string)
	}{
		"cancelled": {"ne peut plus servir", func(id string) { w.Do(id, checkout.Cancel{By: checkout.ByIntegrator}) }},
		"refused": {"ne peut plus servir", func(id string) {
			browse(t, server).toReview(id).forward()
			w.outcome(id, checkout.OutcomeRefused, reject)
		}},
		"undecided": {"Ne payez pas cette référence", func(id string) {
			browse(t, server).toReview(id).forward()
			w.outOfTime(id)
			w.outcome(id, checkout.OutcomeApproved, "")
		}},
		"expired": {"a expiré", func(string) { w.Change(func() { w.Time = w.Time.Add(25 * time.Hour) }) }},
	}
	n := 0
	for _, name := range []string{"cancelled", "refused", "undecided", "expired"} {
		c := ends[name]
		n++
		id := w.create(name, secretive(refs[n]))
		c.end(id)
		b.visited = nil
		b.get("/p/"+refs[n]).want(200, c.says).discreet(w, id)
		b.doesNotSay("solde", "23503452", "•••")
		if len(b.root.all("form")) != 0 {
			t.Errorf("%s: the page has a form", name)
		}
	}
}

// What people type leads to the reference's one address, or to a form that says what is wrong.
func TestTypedReferences(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	id := w.create("A-1", secretive(refs[1]))
	embedded := w.create("A-2", func(s *checkout.Session) { s.PaymentRef, s.Mode = refs[2], checkout.ModeEmbedded })
	b := anonymous(t, server)
	dashed := refs[1][:4] + "-" + refs[1][4:8] + "–" + refs[1][8:12] + ".\u00a0" + refs[1][12:]
	letters := strings.NewReplacer("0", "O", "1", "l", "5", "s", "8", "B", "2", "z").Replace(refs[1])
	for _, typed := range []string{refs[1], " " + dashed + " ", letters, "\u202a" + refs[1][:4] + "\u2060\ufe0f" + refs[1][4:] + "\u202c", "https://pay.example/P/" + refs[1] + "?lang=en", "pay.example/p/" + refs[1] + "/"} {
		b.get("/p?"+url.Values{"ref": {typed}}.Encode()).want(200, "Votre numéro mobile money")
		if b.at.Path != "/p/"+refs[1] {
			t.Errorf("%q leads to %s", typed, b.at)
		}
	}
	for _, path := range []string{"/P/" + refs[1], "/p/" + url.PathEscape(dashed), "/p/" + letters} {
		b.get(path).want(200, "Votre numéro mobile money").discreet(w, id)
		if b.at.Path != "/p/"+refs[1] {
			t.Errorf("%q leads to %s", path, b.at)
		}
	}
	wrong := refs[1][:15] + string('0'+(refs[1][15]-'0'+1)%10)
	for _, typed := range []string{wrong, refs[1][:15], refs[1] + "1", "chs_1", "//evil.example/", `"><script>`, strings.Repeat("9", 500)} {
		b.get("/p?"+url.Values{"ref": {typed}}.Encode()).want(422, "Cette référence n’est pas correcte")
	}
	b.get("/p?ref=+").want(422, "Entrez la référence de paiement")
	b.get("/p/"+wrong).want(404, "Cette référence n’est pas correcte")
	for _, ref := range []string{refs[3], refs[2]} { // nobody's, and one of a frame
		b.get("/p/"+ref).want(404, "Aucun paiement en ligne n’a cette référence")
		b.get("/p/"+ref+"?lang=en").want(404, "No online payment has this reference")
		if strings.Contains(b.html, embedded) {
			t.Error("the page shows the session's id")
		}
	}
	w.Change(func() { w.blind = errAway })
	anonymous(t, server).get("/p/"+refs[1]).want(503, "Service momentanément indisponible")
}

// masked is the number of the payer.
const masked = "+242\u00a006\u00a0•••\u00a0••\u00a002"

var errAway = fmt.Errorf("postgres is away")

// The limits of looking references up hold for pages and live status, count a journey once, and
// say so in words.
func TestReferencesAreNotFoundByTrying(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	w.create("A-1", secretive(refs[0]))
	friend := anonymous(t, server)
	friend.get("/p/" + refs[0]).want(200)
	for n := range 12 {
		friend.get("/p/" + refs[0]).want(200)
		friend.get("/p/" + refs[1+n]).want(404)
	}
	b := anonymous(t, server)
	for n := range pages.LookupsPerClient - 13 {
		b.get("/p/" + refs[13+n]).want(404)
	}
	for _, ref := range []string{refs[45], refs[0]} {
		b.get("/p/"+ref).want(429, "Trop de références")
		if b.answer.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if b.get("/p/" + ref + "/live"); b.status != 429 {
			t.Errorf("the live status of a reference answers %d", b.status)
		}
	}
	friend.get("/p/" + refs[0]).want(200) // goes on with the payment
	w.Change(func() { w.Time = w.Time.Add(time.Minute) })
	b.get("/p/" + refs[0]).want(200)
	forged := anonymous(t, server)
	forged.header.Set("Cookie", "__Host-quittance_references=AAAA; __Host-quittance_payments=AAAA")
	forged.get("/p/" + refs[0]).want(200)
}

// A card payment by reference asks for the way back to the reference's page.
func TestReferenceByCard(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	id := w.create("A-1", func(s *checkout.Session) {
		secretive(refs[0])(s)
		s.Offers = []checkout.Offer{{ID: checkout.OfferCard, Channel: checkout.ChannelCard}}
	})
	b, other := anonymous(t, server), anonymous(t, server)
	b.get("/p/"+refs[0]).want(200, "Vérifiez avant de payer").discreet(w, id)
	go func() {
		await.Within(await.Patience, func() bool { return len(w.collected()) > 0 })
		c := w.collected()[0].Session.Collection
		sealed, err := connector.SealRedirect(w.keys, id, c.ID, connector.Redirect{URL: "https://acquirer.example/pay/1"})
		if err != nil {
			t.Error(err)
		}
		w.Do(id, checkout.Redirected{CollectionID: c.ID, Sealed: sealed})
	}()
	b.forward().want(200, "Payez sur la page de la banque").holds("https://acquirer.example/pay/1").discreet(w, id)
	other.get("/p/"+refs[0]).want(200, "Un paiement est en cours").discreet(w, id)
	if strings.Contains(other.html, "acquirer.example") {
		t.Error("somebody else sees the acquirer's page")
	}
}
