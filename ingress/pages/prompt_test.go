package pages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"quittance/checkout"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// One request to pay after another could be sent to any phone, by anybody who knew its number. A
// phone has one open request, and gets three in ten minutes. The same confirmation again is no
// other request, and nothing is sent for a refused one.
func TestRequestsToOnePhone(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	_, pool := servers.Database(t)
	w.prompts.Postgres, w.prompts.Now, w.prompts.Hash = pool, w.Now, secret.GenerateReferenceKey().MAC("prompts")
	b := browse(t, server)
	live := func(s *checkout.Session) { s.Live = true }
	first, second := w.create("A-1", live), w.create("A-2", live)
	action, confirmation := b.toReview(first).form(0, nil)
	b.forward().want(200, "*105#")
	b.request(http.MethodPost, action, confirmation).want(200, "*105#") // a double click
	b.toReview(second).forward().want(429, "Une demande de paiement est déjà ouverte sur ce téléphone", "Aucune somme n’a été débitée par cette nouvelle confirmation", "Vérifiez avant de payer")
	w.outcome(first, checkout.OutcomeRefused, reject)
	b.forward().want(200, "*105#")
	w.outcome(second, checkout.OutcomeRefused, reject)
	b.get("/c/"+second).want(200, "n’a pas abouti")
	third, fourth := w.create("A-3", live), w.create("A-4", live)
	action, confirmation = b.toReview(third).form(0, nil)
	confirmation.Set("total", "1")
	for range 5 { // the processor refuses the old total, and no phone rings
		b.request(http.MethodPost, action, confirmation).want(409, "n’était plus à jour")
	}
	b.toReview(third).forward().want(200, "*105#")
	w.outcome(third, checkout.OutcomeRefused, reject)
	b.toReview(fourth).forward().want(429, "Trop de demandes de paiement ont été envoyées à ce numéro", "Réessayez dans 10")
	test := w.create("A-5", nil)
	b.toReview(test).forward().want(200, "*105#")
	if n := len(w.collected()); n != 4 {
		t.Errorf("%d requests for money, want 4", n)
	}
	var rows string
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(p::text, ' ') FROM payment_prompts p`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{rows, w.logs.String()} {
		if strings.Contains(text, "6600000") || strings.Contains(text, "600 00 0") {
			t.Errorf("a number is kept: %s", text)
		}
	}
}

// Strangers who know a number, from one network or from many, keep its owner from nothing: the owner's own session,
// for which the integrator gave the number or a citizen of the portal has proved it, has a share of the limits.
// Somebody who types the number of another session's contact, or pays by a reference, has not.
func TestOwnerPaysBesideStrangers(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	_, pool := servers.Database(t)
	w.prompts.Postgres, w.prompts.Now, w.prompts.Hash = pool, w.Now, secret.GenerateReferenceKey().MAC("prompts")
	const number = "066000002" // what toReview types
	live := func(change func(*checkout.Session)) func(*checkout.Session) {
		return func(s *checkout.Session) {
			s.Live = true
			change(s)
		}
	}
	contact := func(phone string) func(*checkout.Session) {
		return func(s *checkout.Session) { s.CustomerSealed = []byte(s.ID + "/" + phone) }
	}
	from := func(addr string) *browser {
		b := browse(t, server)
		b.header.Set("X-Forwarded-For", addr)
		return b
	}
	nobody := func(*checkout.Session) {}
	for n := range 3 { // one network; the last prompt stays open
		id := w.create(fmt.Sprint("S-", n), live(nobody))
		from("203.0.113.1").toReview(id).forward().want(200, "*105#")
		if n < 2 {
			w.outcome(id, checkout.OutcomeRefused, reject)
		}
	}
	other := w.create("M-1", live(contact("066000001")))
	for n := range 300 { // 300 networks
		from(fmt.Sprintf("2001:%x::1", 0xdb8+n)).toReview(other).forward().want(429, "Une demande de paiement est déjà ouverte")
	}
	given := w.create("O-1", live(contact("+242 "+number)))
	from("203.0.113.1").toReview(given).forward().want(200, "*105#")
	from("203.0.113.1").toReview(w.create("O-2", live(contact(number)))).forward().want(429, "déjà ouverte") // the owner's own other session
	cart := w.erp.Cart(w.Now(), "TP-1001-A")
	proven := w.create("O-3", live(func(s *checkout.Session) {
		cart(s)
		contact(number)(s)
	}))
	from("203.0.113.1").toReview(proven).forward().want(200, "*105#")
	if n := len(w.collected()); n != 5 {
		t.Errorf("the phone rings %d times, want 5", n)
	}
}
