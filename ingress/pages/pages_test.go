package pages_test

import (
	"compress/gzip"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/uuid"

	"quittance/checkout"
)

const (
	narrow    = "\u202f"
	reference = "4821\u00a00933\u00a07715\u00a00264"
	number    = "+242\u00a006\u00a0600\u00a000\u00a002"
	reject    = checkout.FailureInsufficientFunds
)

// A citizen without JavaScript goes from the address to the receipt.
func TestJourney(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server)

	b.get("/c/"+id).want(200, "Votre numéro mobile money", "Direction générale des impôts", "Contribution de la patente",
		"Patente 2026", "5"+narrow+"000"+narrow+"FCFA", "Mode test")
	b.forward("phone", "06 600 00 02").want(200, "Vérifiez avant de payer", "75"+narrow+"FCFA", "5"+narrow+"075"+narrow+"FCFA", number)
	if len(w.collected()) != 0 {
		t.Fatal("money was asked for before the citizen confirmed")
	}
	b.forward().want(200, "+242\u00a006\u00a0•••\u00a0••\u00a002", "*105#")
	if b.at.Path != "/c/"+id || len(b.root.all("form")) != 0 {
		t.Errorf("waiting is at %s with %d forms", b.at, len(b.root.all("form")))
	}

	requests := w.collected()
	if len(requests) != 1 {
		t.Fatalf("%d requests for money, want 1", len(requests))
	}
	c := requests[0].Session.Collection
	if payerOf(requests[0]) != "242066000002" || c.OfferID != checkout.OfferMomo || c.Amount != 5075 || c.Fee != 75 ||
		!c.WindowEndsAt.Equal(start.Add(5*time.Minute)) || !c.NotAfter.Equal(start.Add(2*time.Minute)) {
		t.Errorf("collection is %+v of %s", c, payerOf(requests[0]))
	}
	if parsed, err := uuid.Parse(c.ID); err != nil || parsed.Version() != 4 || parsed.Variant() != uuid.RFC4122 {
		t.Errorf("collection has the id %s, want a UUID of version 4", c.ID)
	}

	b.link("Vérifier").want(200, "Confirmez sur votre téléphone")
	w.Change(func() { w.Time = w.Time.Add(time.Minute) })
	w.outcome(id, checkout.OutcomeApproved, "")
	b.link("Vérifier").want(200, "Paiement réussi", "TEST", "AV20260000012345", "23503452", reference,
		"+242\u00a006\u00a0•••\u00a0••\u00a002", "21 novembre 2026 à 10")
	if strings.Contains(b.html, "internal note") {
		t.Error("the agency's note is shown")
	}
	for _, address := range b.visited {
		if u, _ := url.QueryUnescape(address); strings.Contains(u, "6000002") || strings.Contains(u, "600 00 02") {
			t.Errorf("the number is in the address %s", address)
		}
	}
	for _, cmd := range w.commands {
		if cmd.SessionID != id || cmd.ApplicationID != "" || !cmd.At.Equal(start) {
			t.Errorf("command is of %s, application %q at %s", cmd.SessionID, cmd.ApplicationID, cmd.At)
		}
	}
}

func TestJourneyInEnglish(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", both)
	b := browse(t, server)

	b.get("/c/"+id).want(200, "Comment voulez-vous payer")
	b.link("English").want(200, "How do you want to pay?", "MTN Mobile Money", "Airtel Money")
	if strings.Contains(b.html, `value="card"`) {
		t.Error("an offer without a connector is shown")
	}
	b.forward("offer", "momo_b").want(200, "Your mobile money number")
	if u := b.at.Query(); u.Get("step") != "phone" || u.Get("offer") != "momo_b" {
		t.Errorf("number is asked for at %s", b.at)
	}
	b.link("Français").want(200, "Votre numéro mobile money")
	b.link("English").want(200, "Your mobile money number")
	b.forward("phone", "+242 05 500 00 04").want(200, "Check before you pay", "FCFA\u00a05,100", "Airtel Money")
	b.forward().want(200, "Confirm on your phone")
	w.outcome(id, checkout.OutcomeRefused, reject)
	b.link("Check").want(200, "The payment did not go through", "There is not enough money")
	for _, a := range b.root.all("a") {
		if a.text() == "Start again on the agency’s site" && a.attr["href"] == "https://guichet.example/retour" {
			return
		}
	}
	t.Error("no way to start again")
}

// The browser prefers English, and the address names no language.
func TestLanguageOfTheBrowser(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server)
	b.header.Set("Accept-Language", "en-GB,en;q=0.9")
	b.get("/c/"+id).want(200, "Your mobile money number")
	b.get("/c/chs_nobody").want(404, "Page not found")
}

func TestChangingOnesMind(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", both)
	b := browse(t, server)
	b.get("/c/"+id).forward("offer", "momo").forward("phone", "066000002").want(200, "Vérifiez")
	b.link("Changer le numéro").want(200, "Votre numéro mobile money").forward("phone", "066000008")
	b.link("Changer le moyen de paiement").want(200, "Comment voulez-vous payer").forward("offer", "momo_b")
	b.link("Changer le moyen de paiement").forward("offer", "momo")
	b.forward("phone", "06 600 00 09").want(200, "MTN", "+242\u00a006\u00a0600\u00a000\u00a009").forward()
	if r := w.collected(); len(r) != 1 || payerOf(r[0]) != "242066000009" || r[0].Session.Collection.OfferID != checkout.OfferMomo {
		t.Errorf("asked for %+v", r)
	}
}

func TestDoubleClick(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).toReview(id)
	action, sent := b.form(0, nil)

	const clicks = 8
	browsers := make([]*browser, clicks)
	each := make([]func(), clicks)
	for i := range browsers {
		browsers[i] = browse(t, server)
		each[i] = func() { browsers[i].request(http.MethodPost, action, sent) }
	}
	atOnce(w, each...)
	for _, b := range browsers {
		b.want(200, "Confirmez sur votre téléphone")
	}
	if n := len(w.collected()); n != 1 || len(w.commands) != clicks {
		t.Errorf("%d requests for money by %d commands, want 1 by %d", n, len(w.commands), clicks)
	}
	for _, cmd := range w.commands {
		if c := cmd.Do.(checkout.Collect); c.CollectionID != w.Session(id).Collection.ID {
			t.Errorf("a click asked for collection %s", c.CollectionID)
		}
	}
}

// Each tab has its own review. The tab that confirms second shows the payment of the first.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	one, two := browse(t, server).toReview(id), browse(t, server).toReview(id)
	_, first := one.form(0, nil)
	if _, second := two.form(0, nil); first.Get("attempt") == second.Get("attempt") {
		t.Error("two reviews are the same attempt")
	}
	one.forward().want(200, "Confirmez sur votre téléphone")
	two.forward().want(200, "Confirmez sur votre téléphone")
	if n := len(w.collected()); n != 1 {
		t.Errorf("%d requests for money, want 1", n)
	}
}

// Two tabs confirm at the same time. Each has read an open session.
func TestTwoTabsAtOnce(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	one, two := browse(t, server).toReview(id), browse(t, server).toReview(id)
	atOnce(w, func() { one.forward() }, func() { two.forward() })
	one.want(200, "Confirmez sur votre téléphone")
	two.want(200, "Confirmez sur votre téléphone")
	if n := len(w.collected()); n != 1 || len(w.commands) != 2 {
		t.Errorf("%d requests for money by %d commands, want 1 by 2", n, len(w.commands))
	}
}

// The integrator cancels at the same time as the citizen confirms.
func TestConfirmedAfterTheEnd(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).toReview(id)
	w.Change(func() { w.first = checkout.Cancel{By: checkout.ByIntegrator} })
	b.forward().want(200, "Paiement annulé")
	if n := len(w.collected()); n != 0 || len(w.commands) != 1 {
		t.Errorf("%d requests for money by %d commands, want none by 1", n, len(w.commands))
	}
}

// atOnce makes all requests read the session before any of them continues.
func atOnce(w *world, each ...func()) {
	w.Change(func() { w.apart, w.met = len(each), make(chan struct{}) })
	var group sync.WaitGroup
	for _, do := range each {
		group.Go(do)
	}
	group.Wait()
}

func TestReloadWhileWaiting(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).toReview(id).forward()
	for range 3 {
		b.get(b.at.String()).want(200, "Confirmez sur votre téléphone", "environ 5")
	}
	w.Change(func() { w.Time = w.Time.Add(6 * time.Minute) })
	b.get(b.at.String()).want(200, "Le délai est écoulé")
	if n := len(w.collected()); n != 1 {
		t.Errorf("%d requests for money, want 1", n)
	}
}

// The back button leads to old forms. Their answer shows the present session.
func TestBackAfterTheEnd(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).get("/c/" + id)
	number, typed := b.form(0, url.Values{"phone": {"066000001"}})
	b.forward("phone", "066000001")
	pay, confirmed := b.form(0, nil)
	cancel, _ := b.form(1, nil)
	b.forward()
	w.outcome(id, checkout.OutcomeApproved, "")

	b.request(http.MethodPost, number, typed).want(200, "Paiement réussi")
	b.request(http.MethodPost, pay, confirmed).want(200, "Paiement réussi")
	confirmed.Set("attempt", uuid.NewString())
	b.request(http.MethodPost, pay, confirmed).want(200, "Paiement réussi")
	b.request(http.MethodPost, cancel, url.Values{}).want(200, "Paiement réussi")
	b.get("/c/"+id+"?step=phone&offer=momo").want(200, "Paiement réussi")
	b.get(pay).want(200, "Paiement réussi")
	b.get(strings.Replace(pay, "lang=fr", "lang=en", 1)).want(200, "Payment successful")
	if n := len(w.collected()); n != 1 {
		t.Errorf("%d requests for money, want 1", n)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).get("/c/" + id)
	action, sent := b.form(1, nil)
	if !strings.HasSuffix(action, "/cancel") {
		t.Fatalf("second form goes to %s", action)
	}
	question := b.at.ResolveReference(&url.URL{Path: action, RawQuery: sent.Encode()}).String()
	b.get(question).want(200, "Annuler ce paiement", "ne pourra plus servir à payer")
	b.doesNotSay("guichet")
	if s := w.Session(id); s.Status != checkout.StatusOpen || len(w.commands) != 0 {
		t.Errorf("one press cancels: session is %s", s.Status)
	}
	b.link("English").want(200, "Cancel this payment?").link("Français")
	b.link("Non, continuer le paiement").want(200, "Votre numéro mobile money")
	b.get(question).forward().want(200, "Paiement annulé")
	if s := w.Session(id); s.Status != checkout.StatusCancelled {
		t.Errorf("session is %s", s.Status)
	}
	b.request(http.MethodPost, action, sent).want(200, "Paiement annulé")
	b.get(question).want(200, "Paiement annulé")
	b.get("/c/"+id).want(200, "Paiement annulé")
}

// Who cancels with a printed reference in hand is told that it dies, wherever the citizen
// cancels. « No » leads back to the same step.
func TestCancelEndsTheReference(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", every)
	for query, back := range map[string]string{
		"":                              "Comment voulez-vous payer",
		"step=offers":                   "Comment voulez-vous payer",
		"step=phone&offer=momo_b":       "Airtel Money",
		"step=review&offer=card":        "Carte bancaire",
		"step=cash&offer=cash_agency":   "Payez au guichet",
		"step=phone&offer=nothing":      "Comment voulez-vous payer",
		"step=/elsewhere&offer=\x00<b>": "Comment voulez-vous payer",
	} {
		b := browse(t, server).get("/c/"+id+"?"+strings.ReplaceAll(query, "\x00", "%00")).want(200, back)
		if back == "Payez au guichet" {
			b.want(200, "cette référence ne sera plus acceptée au guichet")
		}
		action, sent := b.form(len(b.root.all("form"))-1, nil)
		b.get(action+"?"+sent.Encode()).want(200, "La référence "+reference+" ne sera plus acceptée au guichet")
		b.link("Non, continuer le paiement").want(200, back)
	}
	if s := w.Session(id); s.Status != checkout.StatusOpen || len(w.commands) != 0 {
		t.Errorf("session is %s after %d commands", s.Status, len(w.commands))
	}
}

// A failure without cancel_url was a dead end. It has the agency's contact, like every page,
// also in a frame, and each page has it once.
func TestContact(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	contact := []string{"Direction générale des impôts", "Avenue de l’Indépendance, Brazzaville", "+242\u00a022\u00a0000\u00a000\u00a000", "contact@impots.example", "du lundi au vendredi"}
	has := func(b *browser) {
		t.Helper()
		b.want(b.status, contact...).holds(`href="tel:&#43;242220000000"`, `href="mailto:contact@impots.example"`, `src="data:image/png;base64,YSBwaWN0dXJl"`)
		if n := strings.Count(b.html, "tel:"); n != 1 {
			t.Errorf("%s has the contact %d times", b.at, n)
		}
	}
	id := w.create("A-1", func(s *checkout.Session) { s.CancelURL = "" })
	b := browse(t, server).get("/c/" + id)
	has(b)
	has(b.forward("phone", ""))
	has(b.forward("phone", "06 600 00 02"))
	has(b.forward())
	w.outcome(id, checkout.OutcomeRefused, reject)
	has(b.get("/c/"+id).want(200, "Que faire maintenant", "Aucune somme n’a été débitée.", "Pour payer, demandez un nouveau lien de paiement à l’administration et indiquez-lui la référence de paiement.", reference))

	framed := w.create("A-2", inFrame)
	b.header.Set("Authorization", "Bearer "+secretOfFrame)
	has(b.get("/embed/" + framed + "?lang=fr"))
	has(b.forward("offer", "momo").forward("phone", "06 600 00 02").forward())
	w.outcome(framed, checkout.OutcomeRefused, reject)
	has(b.get("/embed/"+framed+"?lang=fr").want(200, "Que faire maintenant", "revenez sur la page du service"))

	// At the counter: which, where, when.
	b = browse(t, server).get("/c/" + w.create("A-3", every) + "?step=cash&offer=cash_agency")
	var rows []string
	for _, row := range b.root.all("dl")[0].all("div")[:3] {
		rows = append(rows, strings.TrimSpace(row.text()))
	}
	if got := strings.Join(rows, "; "); got != "GuichetAnnexe, Hall d’accueil; AdresseAvenue de l’Indépendance, Brazzaville; Horairesdu lundi au vendredi" {
		t.Errorf("the page of the counter begins with %q", got)
	}
	has(b)
}

// Without JavaScript the waiting page said that it shows the result, and never changed.
func TestReloadsWithoutScript(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", every)
	refresh := regexp.MustCompile(`<noscript><meta http-equiv="refresh" content="(\d+);url=([^"]+)"></noscript>`)
	follow := func(b *browser, title string) {
		t.Helper()
		var after []string
		for range 9 {
			m := refresh.FindStringSubmatch(b.html)
			if m == nil {
				t.Fatalf("%s does not load itself again:\n%s", b.at, b.html)
			}
			after = append(after, m[1])
			u, err := url.Parse(html.UnescapeString(m[2]))
			if err != nil || u.Fragment != "status" || u.Path != "/c/"+id || u.Query().Get("lang") != "fr" {
				t.Errorf("it loads %s: %v", m[2], err)
			}
			b.get(u.RequestURI()).want(200, title).holds(`id="status"`)
		}
		if got := strings.Join(after, " "); got != "5 5 5 10 10 20 30 30 30" {
			t.Errorf("%s is loaded again after %s s", b.at, got)
		}
	}
	b := browse(t, server).get("/c/" + id)
	if b.forward("offer", "cash_agency"); len(b.root.all("form")) != 1 || b.root.all("form")[0].attr["method"] != "get" {
		t.Error("a reload would stop a form that posts")
	}
	follow(b, "Payez au guichet")
	b.get("/c/" + id + "?step=cash&offer=cash_agency&reloads=-7").holds(`content="5;url=`)
	b.get("/c/" + id + "?step=cash&offer=cash_agency&reloads=99999999999999999999").holds(`content="30;url=`)
	b.get("/c/"+id).forward("offer", "momo").forward("phone", "06 600 00 02")
	if refresh.MatchString(b.html) {
		t.Error("the review loads itself again")
	}
	follow(b.forward(), "Confirmez sur votre téléphone")
	w.outcome(id, checkout.OutcomeApproved, "")
	if b.get(b.at.RequestURI()).want(200, "Paiement réussi"); refresh.MatchString(b.html) {
		t.Error("the receipt loads itself again")
	}

	framed := w.create("A-2", inFrame)
	b.header.Set("Authorization", "Bearer "+secretOfFrame)
	b.get("/embed/"+framed+"?step=cash&offer=cash_agency&lang=fr").want(200, "Payez au guichet")
	if refresh.MatchString(b.html) {
		t.Error("a page in a frame loads itself again")
	}
}

// While a collection is in flight, the page offers no cancel, and the cancel of an older
// page is refused.
func TestCancelInFlight(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).toReview(id)
	action, sent := b.form(1, nil)
	b.forward()
	if strings.Contains(b.html, "/cancel") {
		t.Error("cancel is offered while the payment is in flight")
	}
	b.request(http.MethodPost, action, sent).want(200, "Confirmez sur votre téléphone")
	b.get(action+"?"+sent.Encode()).want(200, "Confirmez sur votre téléphone")
	if s := w.Session(id); s.Status != checkout.StatusOpen {
		t.Errorf("session is %s", s.Status)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server)

	cancelled := w.create("A-1", nil)
	w.Do(cancelled, checkout.Cancel{By: checkout.ByIntegrator})
	none := "Aucune somme n’a été débitée."
	b.get("/c/"+cancelled).want(200, "Paiement annulé", none, "Recommencer sur le site de l’administration", reference)

	expired := w.create("A-2", nil)
	w.Change(func() { w.Time = w.Time.Add(24 * time.Hour) })
	b.get("/c/"+expired).want(200, "a expiré", none, reference) // before its tick
	w.Do(expired, checkout.Tick{})
	b.get("/c/"+expired).want(200, "a expiré", none, "Recommencer sur le site de l’administration", reference)

	late := w.create("A-3", nil)
	b.toReview(late).forward()
	w.outOfTime(late)
	w.outcome(late, checkout.OutcomeRefused, checkout.FailureApprovalTimeout)
	b.get("/c/"+late).want(200, "n’a pas été confirmé à temps", "Si votre compte a tout de même été débité", "Recommencer sur le site de l’administration", reference)
}

// ended are the ways in which a session ends while its collection is undecided. The domain
// does not let it expire then, but the page must handle it.
var ended = map[string]func(w *world, id string){
	"cancelled": func(w *world, id string) { w.Do(id, checkout.Cancel{By: checkout.ByIntegrator}) },
	"failed":    func(w *world, id string) { w.outOfTime(id) },
	"expired": func(w *world, id string) {
		w.outOfTime(id)
		w.Change(func() {
			s := w.Sessions[id]
			s.Status, s.FailureCode, s.FailureMessage = checkout.StatusExpired, "", ""
			w.Sessions[id] = s
		})
	},
}

// The page of a session that ended with an undecided collection never says that nothing
// more can happen, and never invites to pay again, until the operator has decided.
func TestEndedWhileThePayerIsAsked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		outcome func(w *world, id string)
		fr, en  []string
		check   bool // whether the page may still change
	}{
		{
			"undecided", func(*world, string) {},
			[]string{"Ne payez pas encore", "peut-être encore sur votre téléphone", "ne l’approuvez pas", "Ne payez pas de nouveau", "Conservez la référence", reference, "5" + narrow + "075" + narrow + "FCFA"},
			[]string{"Do not pay yet", "may still be on your phone", "do not approve it", "Do not pay again", "Keep the payment reference", reference},
			true,
		},
		{
			"late", func(w *world, id string) { w.outcome(id, checkout.OutcomeApproved, "") },
			[]string{"Paiement reçu hors délai", "après la clôture", "L’administration en est informée", "Ne payez pas de nouveau", reference, "23503452", "5" + narrow + "075" + narrow + "FCFA"},
			[]string{"Payment received after the time limit", "after this payment request had ended", "The agency has been told", "Do not pay again", reference, "23503452"},
			false,
		},
		{
			"mismatched", func(w *world, id string) { w.misfit(id) },
			[]string{"Paiement à vérifier", "ne correspond pas", "L’administration l’examine", "Ne payez pas de nouveau", reference},
			[]string{"Payment to be checked", "does not match", "The agency is looking at it", "Do not pay again", reference},
			false,
		},
		{
			"approved, then refused", func(w *world, id string) {
				w.outcome(id, checkout.OutcomeApproved, "")
				w.outcome(id, checkout.OutcomeRefused, reject)
			},
			[]string{"Paiement à vérifier", reference, "23503452"},
			[]string{"Payment to be checked", reference, "23503452"},
			false,
		},
		{
			"mismatched, then refused", func(w *world, id string) {
				w.misfit(id)
				w.outcome(id, checkout.OutcomeRefused, reject)
			},
			[]string{"Paiement à vérifier"},
			[]string{"Payment to be checked"},
			false,
		},
	} {
		for how, end := range ended {
			t.Run(test.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				w, server := serve(t)
				id := w.create("A-1", nil)
				b := browse(t, server).toReview(id).forward()
				end(w, id)
				test.outcome(w, id)
				for _, lang := range []struct {
					tag, check string
					say        []string
				}{{"fr", "Vérifier", test.fr}, {"en", "Check", test.en}} {
					b.get("/c/"+id+"?lang="+lang.tag).want(200, lang.say...)
					b.doesNotSay("Recommencer", "Start again", "Paiement annulé", "Payment cancelled", "n’a pas abouti",
						"did not go through", "a expiré", "has expired", "Pour payer", "To pay,", "plus servir", "Nothing more")
					if strings.Contains(b.html, "guichet.example") || len(b.root.all("form")) != 0 {
						t.Errorf("the page leads to paying again:\n%s", b.html)
					}
					if test.check {
						b.link(lang.check).want(200, lang.say...)
					}
				}
			})
		}
	}
}

// A mismatch before the session's end shows the same page. A completed session stays
// completed after any later report.
func TestMismatchBeforeTheEnd(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).toReview(id).forward()
	w.misfit(id)
	w.outOfTime(id)
	b.get("/c/"+id).want(200, "Paiement à vérifier", reference)
	b.doesNotSay("Réessayez", "Recommencer")

	done := w.create("A-2", nil)
	b.toReview(done).forward()
	w.outcome(done, checkout.OutcomeApproved, "")
	w.outcome(done, checkout.OutcomeRefused, reject)
	b.get("/c/"+done).want(200, "Paiement réussi")
}

// Once the operator has refused, the page shows how the session ended.
func TestRefusedAfterTheEnd(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{"cancelled": "Paiement annulé", "failed": "Recommencer", "expired": "a expiré"} {
		w, server := serve(t)
		id := w.create("A-1", nil)
		b := browse(t, server).toReview(id).forward()
		ended[how](w, id)
		w.outcome(id, checkout.OutcomeRefused, reject)
		b.link("Vérifier").want(200, want)
	}
}

// While an earlier payment of the same order is undecided, no other payment begins.
func TestPreviousUndecided(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server)
	first := w.create("A-1", nil)
	b.toReview(first).forward()
	w.outOfTime(first)

	second := w.create("A-1", nil)
	b.toReview(second).forward().want(409, "Nous vérifions encore auprès de l’opérateur", "Vérifiez avant de payer")
	b.link("English").want(200).forward("phone", "066000002").forward().want(409, "still checking with the operator")
	if n := len(w.collected()); n != 1 {
		t.Fatalf("%d requests for money, want 1", n)
	}
	w.outcome(first, checkout.OutcomeRefused, checkout.FailureApprovalTimeout)
	b.forward().want(200, "Confirm on your phone")

	// The money of a third order arrived late. It must not be collected again.
	third := w.create("A-3", nil)
	b.toReview(third).forward()
	w.outOfTime(third)
	again := w.create("A-3", nil)
	w.outcome(third, checkout.OutcomeApproved, "")
	b.toReview(again).forward().want(409, "Ne payez pas de nouveau", "a déjà été reçu", reference)
	b.nothingToPress("Payer", "Changer le numéro")
	b.link("English").want(200).forward("phone", "066000002").forward().want(409, "Do not pay again", "already been received", reference)
	b.nothingToPress("Pay ", "Change the number")
	if s := w.Session(again); s.Status != checkout.StatusOpen || s.Collection != nil {
		t.Errorf("session is %s with collection %v", s.Status, s.Collection)
	}
}

func TestTotalChanged(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).toReview(id)
	b.forward("total", "5000").want(409, "n’était plus à jour", "5"+narrow+"075"+narrow+"FCFA")
	if n := len(w.collected()); n != 0 {
		t.Fatalf("%d requests for money, want none", n)
	}
	b.forward().want(200, "Confirmez sur votre téléphone")
}

func TestFaultyForms(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	two := w.create("A-2", both)
	b := browse(t, server)

	b.get("/c/"+id).forward("phone", "").want(422, "Entrez votre numéro")
	b.forward("phone", "06 12").want(422, "n’est pas valide")
	if _, sent := b.form(0, nil); sent.Get("phone") != "06 12" {
		t.Errorf("what was typed became %q", sent.Get("phone"))
	}
	b.forward("phone", "05 500 00 01").want(422, "n’appartient pas à cet opérateur")
	b.forward("phone", strings.Repeat("9", 3000)).want(422, "n’est pas valide")
	b.forward("offer", "card", "phone", "066000001").want(422, "n’est pas disponible", "Votre numéro")
	b.forward("offer", "", "phone", "066000001").want(422, "Choisissez un moyen de paiement")
	b.get("/c/"+two).forward("offer", "").want(422, "Choisissez un moyen de paiement", "Comment voulez-vous payer")
	b.forward("offer", "cash_agency").want(422, "n’est pas disponible")

	review := b.toReview(id)
	review.forward("attempt", "../../etc").want(422, "n’était plus à jour", "Vérifiez avant de payer")
	review.forward("total", "5 075").want(422, "n’était plus à jour")
	review.forward("phone", "1").want(422, "n’est pas valide", "Votre numéro")

	b.request(http.MethodPost, "/c/"+id+"/phone", url.Values{"phone": {strings.Repeat("0", 17<<10)}}).want(413, "n’a pas pu être traitée")
	b.request(http.MethodPost, "/c/"+id+"/phone?phone=066000001&offer=momo", url.Values{}).want(422)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/c/"+id+"/pay", strings.NewReader("phone=%zz"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 422 {
		t.Errorf("a torn form answers %d", resp.StatusCode)
	}
	if n := len(w.collected()); n != 0 {
		t.Errorf("%d requests for money, want none", n)
	}
}

// A forged form cannot use the collection of another session. Otherwise the operator would
// answer for that payment, and this session would look paid.
func TestAttemptOfAnotherSession(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	one, two := w.create("A-1", nil), w.create("A-2", nil)
	b := browse(t, server).toReview(one)
	_, sent := b.form(0, nil)
	b.forward()
	paid := w.Session(one).Collection.ID
	for _, attempt := range []string{sent.Get("attempt"), paid} {
		b.toReview(two).forward("attempt", attempt, "total", "1")
		for _, cmd := range w.commands {
			if c := cmd.Do.(checkout.Collect); cmd.SessionID == two && c.CollectionID == paid {
				t.Errorf("attempt %s names the collection of another session", attempt)
			}
		}
	}
}

func TestNoChannel(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server)
	live := w.create("A-1", func(s *checkout.Session) { s.Live = true })
	w.Change(func() { w.takes = nil })
	b.get("/c/"+live).want(200, "Aucun moyen de paiement n’est configuré")
	if strings.Contains(b.root.text(), "Mode test") {
		t.Error("a live session is shown as a test")
	}
	b.request(http.MethodPost, "/c/"+live+"/phone", url.Values{"offer": {"momo"}, "phone": {"066000001"}}).want(200, "Aucun moyen de paiement")
	b.request(http.MethodPost, "/c/"+live+"/pay", url.Values{"offer": {"momo"}, "phone": {"066000001"}}).want(200, "Aucun moyen de paiement")
	card := w.create("A-2", func(s *checkout.Session) { s.Offers = s.Offers[1:] })
	b.get("/c/"+card).want(200, "Aucun moyen de paiement n’est configuré")
	if len(w.commands) != 0 {
		t.Errorf("%d commands, want none", len(w.commands))
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server)
	unknown := checkout.NewSessionID(start, 3, [16]byte{9, 9})
	for _, path := range []string{
		"/c/" + unknown, "/c/" + unknown + "/pay", "/c/chs_x", "/c/" + strings.ToUpper(id), "/c/" + id + "x", "/c/" + id + "/nothing",
		"/c/" + id + "/a/b", "/c/%00", "/c/..%2f..%2fetc", "/c/", "/c", "/c/assets/nothing.js", "/", "/nothing",
	} {
		b.get(path).want(404, "Page introuvable")
		if b.answer.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached", path)
		}
	}
	for _, step := range []string{"offer", "phone", "pay", "cancel"} {
		b.request(http.MethodPost, "/c/"+unknown+"/"+step, url.Values{"phone": {"066000001"}, "offer": {"momo"}}).want(404)
		b.request(http.MethodPost, "/c/chs_1/"+step, url.Values{}).want(404)
	}
	if b.request(http.MethodPost, "/c/"+id, url.Values{}).status != http.StatusMethodNotAllowed {
		t.Errorf("a POST without a step answers %d", b.status)
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server).toReview(id)
	action, sent := b.form(0, nil)

	w.Change(func() { w.deaf = errors.New("no answer in time") })
	b.request(http.MethodPost, action, sent).want(503, "Service momentanément indisponible", "ne le refaites pas")
	if b.answer.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.Change(func() { w.blind = errors.New("the read model is behind") })
	b.link("Réessayer").want(503)
	b.link("English").want(503, "Try again")
	w.Change(func() { w.blind = nil })
	b.link("Try again").want(200, "Your mobile money number")

	cancel, _ := b.form(1, nil)
	b.request(http.MethodPost, cancel, url.Values{}).want(503)
	// The same form again, now that answers arrive.
	w.Change(func() { w.deaf = nil })
	b.request(http.MethodPost, action, sent).want(200, "Confirmez sur votre téléphone")

	nameless := w.create("A-2", func(s *checkout.Session) { s.TenantID = app })
	b.get("/c/" + nameless).want(503)
}

func TestCrossSite(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	for _, test := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"another site", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}, 403},
		{"a sandboxed frame of another site", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"null"}}, 403},
		{"a sibling", http.Header{"Sec-Fetch-Site": {"same-site"}, "Origin": {"https://other.quittance.example"}}, 403},
		{"another site, old browser", http.Header{"Origin": {"https://evil.example"}}, 403},
		{"our page", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"null"}}, 422},
		{"our page, old browser", http.Header{"Origin": {"null"}}, 422},
		{"our page, old browser that tells", http.Header{"Origin": {server.URL}}, 422},
		{"a text browser", http.Header{}, 422},
	} {
		b := browse(t, server)
		b.header = test.header
		if b.request(http.MethodPost, "/c/"+id+"/phone", url.Values{"offer": {"momo"}}); b.status != test.status {
			t.Errorf("%s: %d, want %d", test.name, b.status, test.status)
		}
		if test.status == 403 {
			b.request(http.MethodPost, "/c/"+id+"/cancel", url.Values{})
			if b.status != 403 || b.answer.Get("Content-Security-Policy") == "" {
				t.Errorf("%s: cancel answers %d", test.name, b.status)
			}
		}
	}
	if s := w.Session(id); s.Status != checkout.StatusOpen {
		t.Errorf("session is %s", s.Status)
	}
}

func TestHostileText(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	const script = `"><script>alert(1)</script>`
	id := w.create("A-1", func(s *checkout.Session) {
		s.Description, s.ServiceLabel = script, script
		s.SuccessURL, s.CancelURL = "javascript:alert(1)", "javascript:alert(1)"
	})
	b := browse(t, server)
	clean := func() {
		t.Helper()
		if n := strings.Count(b.html, "<script"); n != 1 || strings.Contains(b.html, `"javascript:`) {
			t.Errorf("hostile text is on the page of %s:\n%s", b.at, b.html)
		}
	}
	b.get("/c/"+id+"?lang="+url.QueryEscape(script)+"&step="+url.QueryEscape(script)+"&offer="+url.QueryEscape(script)).want(200, script)
	clean()
	b.forward("phone", script, "lang", script).want(422)
	clean()
	b.forward("phone", "066000001").want(200, script)
	clean()
	b.forward("attempt", script, "total", script).want(422)
	clean()
	b.forward()
	w.outcome(id, checkout.OutcomeApproved, "")
	b.get("/c/"+id).want(200, script)
	clean()
}

func TestHeadersAndAssets(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server)
	b.get("/c/" + id).want(200)
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
	} {
		if got := b.answer.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(b.answer.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Error("the page may be framed")
	}
	script := b.root.all("script")[0].attr["src"]
	if b.get(script); b.status != 200 || !strings.Contains(b.answer.Get("Cache-Control"), "immutable") {
		t.Errorf("%s answers %d, %s", script, b.status, b.answer.Get("Cache-Control"))
	}
	for encoding, decode := range map[string]func(io.Reader) io.Reader{
		"br": func(r io.Reader) io.Reader { return brotli.NewReader(r) },
		"gzip": func(r io.Reader) io.Reader {
			z, err := gzip.NewReader(r)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	} {
		for _, path := range []string{"/c/" + id, "/c/chs_1", script} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
			req.Header.Set("Accept-Encoding", encoding)
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(decode(resp.Body))
			_ = resp.Body.Close()
			if err != nil || len(text) < 500 || resp.Header.Get("Content-Encoding") != encoding {
				t.Errorf("%s by %s: %d bytes, encoding %q, %v", path, encoding, len(text), resp.Header.Get("Content-Encoding"), err)
			}
		}
	}
	if b.request(http.MethodHead, "/c/"+id, nil); b.status != 200 || b.html != "" {
		t.Errorf("HEAD answers %d and %d bytes", b.status, len(b.html))
	}
	// The address of a step's form, opened again, leads to the session's page.
	if b.get("/c/"+id+"/pay").want(200, "Votre numéro"); b.at.Path != "/c/"+id {
		t.Errorf("a step's address leads to %s", b.at)
	}
}

// The id of a session opens its page. Warnings held it.
func TestWarningsHoldNoSessionID(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	b := browse(t, server)
	w.Change(func() { w.blind = errors.New("postgres is away") })
	if b.get("/c/" + id); b.status != 503 {
		t.Fatalf("answers %d", b.status)
	}
	if text := w.logs.String(); !strings.Contains(text, "checkout page is unavailable") || strings.Contains(text, id) {
		t.Errorf("the log holds %s", text)
	}
}

// A visitor who asks too often is told so, as a page or as the problem of an API, without a
// look at the session.
func TestVisitorsAreLimited(t *testing.T) {
	t.Parallel()
	w, server := serveWithin(t, 0.001) // one call in a quarter of an hour
	id := w.create("A-1", nil)
	b := browse(t, server)
	b.get("/c/"+id).want(200, "Votre numéro")
	script := b.root.all("script")[0].attr["src"]
	w.Change(func() { w.blind, w.deaf = errors.New("the session is read"), errors.New("a command is sent") })
	b.get("/c/"+id).want(429, "Service momentanément indisponible")
	if b.answer.Get("Retry-After") != "1000" {
		t.Errorf("Retry-After is %q", b.answer.Get("Retry-After"))
	}
	b.request(http.MethodPost, "/c/"+id+"/pay", url.Values{}).want(429)
	b.get("/c/" + id + "/live").want(429).holds(`"generic.rate_limited"`)
	b.get(address(id, secretOfFrame, guichet)).want(429).holds(`data-parent="`+guichet+`"`, `data-state="unavailable"`)
	b.header.Set("Accept", "application/json")
	b.request(http.MethodPost, "/c/"+id+"/pay", url.Values{}).want(429).holds(`"generic.rate_limited"`)
	b.get(script).want(200)
}

// A made-up id cost a query, and a form with it a command.
func TestMadeUpIDs(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", nil)
	w.Change(func() { w.blind, w.deaf = errors.New("the session is read"), errors.New("a command is sent") })
	forged := id[:len(id)-10] + "0123456789"
	b := browse(t, server)
	b.get("/c/"+forged).want(404, "Page introuvable")
	b.get("/c/" + forged + "/live").want(404)
	b.get(address(forged, secretOfFrame, guichet)).want(404)
	b.request(http.MethodPost, "/c/"+forged+"/cancel", url.Values{}).want(404)
	b.get("/c/" + id[:len(id)-10]).want(503) // one of an earlier release is looked up
}
