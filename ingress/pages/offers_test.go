package pages_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/test/await"
)

// every gives a session all offers.
func every(s *checkout.Session) {
	both(s)
	s.Offers = append(s.Offers,
		checkout.Offer{ID: checkout.OfferCard, Channel: checkout.ChannelCard, Fee: 200},
		checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
}

// The operator is asked for once. A number of another operator on offer was taken without
// a word, and the citizen paid by another operator than the chosen one. Now the page says so
// before it goes on.
func TestOperatorOfTheNumber(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server).get("/c/" + w.create("A-1", every))
	b.forward("offer", "momo").want(200, "Votre numéro mobile money", "MTN Mobile Money")
	if strings.Contains(b.html, `type="radio"`) {
		t.Error("the operator is asked for a second time beside the number")
	}
	const other = "Ce numéro appartient à Airtel Money. Vous avez choisi MTN Mobile Money."
	b.forward("phone", "05 500 00 02").want(422, other, "Votre numéro mobile money")
	// Another number, of the chosen operator, goes on with the chosen operator.
	b.forward("phone", "06 600 00 02").want(200, "Vérifiez avant de payer", "MTN Mobile Money", "75"+narrow+"FCFA")
	b.link("Changer le numéro").forward("phone", "05 500 00 02").want(422, other)
	b.forward().want(200, "Vérifiez avant de payer", "Airtel Money", "100"+narrow+"FCFA", "+242\u00a005\u00a0500\u00a000\u00a002")
	b.forward()
	if c := w.collected()[0]; c.Session.Collection.OfferID != checkout.OfferMomoB || payerOf(c) != "242055000002" || c.Session.Collection.Fee != 100 {
		t.Errorf("asked for %+v", c.Session.Collection)
	}

	// The number of an operator that is not on offer is a fault.
	b = browse(t, server).get("/c/" + w.create("A-2", nil))
	b.forward("phone", "05 500 00 02").want(422, "Ce numéro n’appartient pas à cet opérateur")
	b.forward("operator", "momo_b").want(422, "Ce numéro n’appartient pas à cet opérateur")
}

func redirectTo(w *world, id string) connector.Redirect {
	r := connector.Redirect{URL: "https://acquirer.example/pay?token=secret-of-the-page", TransactionID: "tx-1", ClientToken: "secret-of-the-page", Environment: "test"}
	s := w.Session(id)
	sealed, err := connector.SealRedirect(w.keys, id, s.Collection.ID, r)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Do(id, checkout.Redirected{CollectionID: s.Collection.ID, Sealed: sealed})
	return r
}

// redirectSoon calls redirectTo once the citizen has confirmed.
func redirectSoon(w *world, id string) <-chan connector.Redirect {
	found := make(chan connector.Redirect, 1)
	go func() {
		await.Within(await.Patience, func() bool { return w.Session(id).Collection != nil })
		found <- redirectTo(w, id)
	}()
	return found
}

// Without JavaScript a card payment continues by a link on our own page.
func TestCardWithoutScript(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", every)
	b := browse(t, server).get("/c/" + id)
	b.forward("offer", "card").want(200, "Vérifiez avant de payer", "Carte bancaire", "200"+narrow+"FCFA", "page sécurisée de la banque")
	if strings.Contains(b.html, `type="tel"`) || strings.Contains(b.html, "code secret") {
		t.Error("a card page asks for a number or speaks of a phone")
	}
	found := redirectSoon(w, id)
	b.forward().want(200, "Payez sur la page de la banque", "Continuer sur la page de la banque")
	r := <-found
	if b.at.Path != "/c/"+id || b.link("Vérifier") == nil {
		t.Errorf("waiting is at %s", b.at)
	}
	link := ""
	for _, a := range b.root.all("a") {
		if strings.Contains(a.text(), "Continuer sur la page") {
			link = a.attr["href"]
		}
	}
	if link != r.URL {
		t.Errorf("the way on is %q, want the acquirer's page", link)
	}
	c := w.collected()[0]
	if payerOf(c) != "" || c.Session.Collection.PayerMasked != "" || !c.Session.Collection.WindowEndsAt.Equal(start.Add(15*time.Minute)) {
		t.Errorf("asked for %+v of %q", c.Session.Collection, payerOf(c))
	}
	// Back from the bank nothing asks to go there once more, also after a reload.
	b.get("/c/"+id+"?returned&lang=fr").want(200, "Nous attendons la réponse de la banque", "Revenir à la page de la banque").doesNotSay("Continuer sur la page de la banque")
	b.link("Vérifier").want(200, "Nous attendons la réponse de la banque")
	w.outcome(id, checkout.OutcomeRefused, checkout.FailureCardAuthentication)
	b.link("Vérifier").want(200, "La banque n’a pas pu vérifier votre identité")
	if strings.Contains(b.html, "acquirer") {
		t.Error("a page that is over leads to the bank")
	}
}

// A card can pay XAF while the agency's acquirer takes XAF. The configuration may change
// during the life of a session.
func TestCardInXAF(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	choice := `value="` + checkout.OfferCard + `"`

	paid := w.create("A-1", every)
	b := browse(t, server).get("/c/" + paid).holds(choice)
	b.forward("offer", "card").want(200, "Vérifiez avant de payer", "Carte bancaire", "5"+narrow+"000"+narrow+"FCFA", "200"+narrow+"FCFA", "5"+narrow+"200"+narrow+"FCFA")
	redirectSoon(w, paid)
	b.forward().want(200, "Payez sur la page de la banque")
	c := w.collected()[0]
	if got := c.Session.Collection; got.OfferID != checkout.OfferCard || got.Amount != 5200 || got.Fee != 200 || got.Currency != "XAF" {
		t.Errorf("asked for %+v", got)
	}

	id, only := w.create("A-2", every), w.create("A-3", func(s *checkout.Session) {
		s.Offers = []checkout.Offer{{ID: checkout.OfferCard, Channel: checkout.ChannelCard}}
	})
	review := browse(t, server).get("/c/"+id+"?step=review&offer=card").want(200, "Carte bancaire")
	w.Change(func() { w.takes[checkout.OfferCard] = []string{"EUR"} })
	if b := browse(t, server).get("/c/"+id).want(200, "Comment voulez-vous payer"); strings.Contains(b.html, choice) {
		t.Error("a card is offered for XAF that the acquirer does not take")
	}
	review.forward().want(422, "Comment voulez-vous payer")
	browse(t, server).get("/c/"+only).want(200, "Aucun moyen de paiement n’est configuré")
	euros := w.create("A-4", func(s *checkout.Session) {
		s.Currency, s.Offers = "EUR", []checkout.Offer{{ID: checkout.OfferCard, Channel: checkout.ChannelCard}}
	})
	browse(t, server).get("/c/"+euros).want(200, "Vérifiez avant de payer", "50,00"+narrow+"€")
	if n := len(w.collected()); n != 1 {
		t.Errorf("%d collections, want the first alone", n)
	}
}

// The JSON answer to a confirmation (contract, "Card payment").
func TestNextAction(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	confirm := func(id, offer string) (int, map[string]any) {
		b := browse(t, server).get("/c/" + id + "?step=review&offer=" + offer)
		if offer == "momo" {
			b = browse(t, server).get("/c/"+id).forward("offer", "momo").forward("phone", "06 600 00 02")
		}
		form := url.Values{}
		for _, input := range b.root.all("form")[0].all("input") {
			form.Set(input.attr["name"], input.attr["value"])
		}
		b.header.Set("Accept", "application/json")
		b.request(http.MethodPost, b.root.all("form")[0].attr["action"], form)
		var out map[string]any
		if err := json.Unmarshal([]byte(b.html), &out); err != nil {
			t.Fatalf("%d %s: %v", b.status, b.html, err)
		}
		return b.status, out
	}
	id := w.create("A-1", every)
	redirectSoon(w, id)
	status, out := confirm(id, "card")
	next, _ := out["next_action"].(map[string]any)
	redirect, _ := next["redirect"].(map[string]any)
	want := map[string]any{"url": "https://acquirer.example/pay?token=secret-of-the-page", "transaction_id": "tx-1", "client_token": "secret-of-the-page", "checkout_environment": "test"}
	if status != 200 || len(redirect) != len(want) {
		t.Errorf("%d %v", status, out)
	}
	for k, v := range want {
		if redirect[k] != v {
			t.Errorf("%s is %v, want %v", k, redirect[k], v)
		}
	}
	if status, out = confirm(w.create("A-2", every), "momo"); status != 200 || out["next_action"] != nil {
		t.Errorf("mobile money answers %d %v", status, out)
	}
}

// The choice of cash begins no collection: a clerk does. Until then the citizen can choose
// another offer.
func TestCash(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", every)
	b := browse(t, server).get("/c/" + id)
	b.forward("offer", "cash_agency").want(200, "Payez au guichet", "4821\u00a00933\u00a07715\u00a00264", "5"+narrow+"050"+narrow+"FCFA", "22 novembre 2026 à 10:00")
	if len(w.commands) != 0 {
		t.Error("choosing cash is a command")
	}
	b.link("Vérifier").want(200, "Payez au guichet")
	b.link("Changer le moyen de paiement").want(200, "Comment voulez-vous payer")

	collection := "11111111-1111-4111-8111-111111111111"
	w.Do(id, checkout.Reserve{CollectionID: collection, By: "c01", Window: 10 * time.Minute})
	b.get("/c/"+id).want(200, "Le guichet traite votre paiement", "Remettez-lui la somme")
	if n := len(b.root.all("form")); n != 0 {
		t.Errorf("%d forms while a clerk has the session", n)
	}
	w.Change(func() { w.Time = w.Time.Add(11 * time.Minute) })
	w.Do(id, checkout.Tick{})
	b.get("/c/"+id).want(200, "Comment voulez-vous payer")
	w.Do(id, checkout.Take{CollectionID: collection, By: "c01", Total: 5050})
	b.get("/c/"+id).want(200, "Paiement réussi", "Espèces au guichet")
	if len(w.collected()) != 0 {
		t.Error("an operator was asked")
	}
}

// A form of an older page cannot confirm a payment in cash.
func TestCashIsNotConfirmedByThePage(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", every)
	b := browse(t, server).get("/c/" + id + "?step=review&offer=card")
	form := url.Values{}
	for _, input := range b.root.all("form")[0].all("input") {
		form.Set(input.attr["name"], input.attr["value"])
	}
	form.Set("offer", "cash_agency")
	form.Set("total", "5050")
	b.request(http.MethodPost, "/c/"+id+"/pay", form)
	if s := w.Session(id); s.Collection != nil {
		t.Errorf("the page began %+v", s.Collection)
	}
}

// The confirmed offer is the one that the review showed.
func TestConfirmationChoosesNoOtherOperator(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", every)
	b := browse(t, server).get("/c/"+id).forward("offer", "momo").forward("phone", "06 600 00 02")
	form := url.Values{}
	for _, input := range b.root.all("form")[0].all("input") {
		form.Set(input.attr["name"], input.attr["value"])
	}
	form.Set("phone", "05 500 00 02")
	b.request(http.MethodPost, "/c/"+id+"/pay", form).want(422, "Ce numéro appartient à Airtel Money")
	form.Set("operator", "momo_b")
	b.request(http.MethodPost, "/c/"+id+"/pay", form).want(422, "Vérifiez avant de payer", "Airtel Money")
	if n := len(w.collected()); n != 0 {
		t.Errorf("%d collections", n)
	}
}
