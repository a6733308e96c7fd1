package pages_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/quota"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// serveReceipts is serve with the limits of receipts that are asked for, in a database.
func serveReceipts(t *testing.T) (*world, *httptest.Server) {
	t.Helper()
	w, server := serve(t)
	_, pool := servers.Database(t)
	w.asked = quota.Receipts{Postgres: pool, Now: w.Now, Hash: secret.GenerateReferenceKey().MAC("receipts")}
	return w, server
}

// sent returns the messages so far.
func (w *world) sent() []notify.Message {
	w.Lock()
	defer w.Unlock()
	return w.messages
}

// Somebody who had paid could not ask for the receipt: it went to the addresses that the integrator knew, or to
// nobody. The page of the payment sends it to an address, and in one tap to the number that paid, which the page
// does not have.
func TestReceiptIsSent(t *testing.T) {
	t.Parallel()
	w, server := serveReceipts(t)
	b := browse(t, server)
	id := paidSession(t, w, b, "A-1", func(s *checkout.Session) { s.CustomerSealed = nil })
	b.get("/c/"+id).want(200, "Recevoir le reçu par SMS ou par courriel", "L’envoyer par SMS au +242\u00a006\u00a0•••\u00a0••\u00a002")
	if strings.Contains(b.html, "66000002") || strings.Contains(b.html, "600\u00a000") {
		t.Errorf("the page has the number:\n%s", b.html)
	}
	b.forward().want(200, "Paiement réussi", "Le reçu part par SMS")
	for _, address := range b.visited {
		if strings.Contains(address, "66000002") {
			t.Errorf("an address has the number: %s", address)
		}
	}
	messages := w.sent()
	if len(messages) != 1 {
		t.Fatalf("%d messages, want 1", len(messages))
	}
	m := messages[0]
	if m.Kind.Name != notify.Receipt.Name || m.Channel != provider.ChannelSMS || m.To != "+242066000002" || m.SessionID != id || m.AgencyID != tenant || m.Live || m.Locale != "fr" || !m.At.Equal(w.Now()) {
		t.Errorf("the message is %+v", m)
	}
	if m.Variables[notify.VariableObject] != "Patente 2026" || m.Variables[notify.VariableAmount] != "5\u202f075\u202fFCFA" || m.Variables[notify.VariableSession] != id {
		t.Errorf("the message says %q", m.Variables)
	}

	// To a typed address, in English. The e-mail says the dossier and how to reach the agency.
	b.get("/c/"+id+"?lang=en").want(200, "Get the receipt by text message or e-mail")
	action, form := b.form(1, url.Values{"address": {" Payer@Example.org "}})
	b.request(http.MethodPost, action, form).want(200, "Payment successful", "The receipt is on its way by e-mail")
	b.request(http.MethodPost, action, form).want(200) // a reload: the same message
	messages = w.sent()
	if len(messages) != 3 || messages[1].ID != messages[2].ID || messages[1].ID == m.ID {
		t.Fatalf("the messages are %+v", messages)
	}
	m = messages[1]
	if m.Channel != provider.ChannelEmail || m.To != "payer@example.org" || m.Locale != "en" ||
		!strings.Contains(m.Variables[notify.VariableDetails], "Case number: A-1") || !strings.Contains(m.Variables[notify.VariableContact], "+242220000000") {
		t.Errorf("the message is %+v", m)
	}

	// What is no address is told, with what was typed, and sends nothing.
	for _, typed := range []string{"", "12", "nobody@", "+33 6 12 34 56 78", strings.Repeat("9", 300)} {
		b.get("/c/" + id)
		action, form := b.form(1, url.Values{"address": {typed}})
		b.request(http.MethodPost, action, form).want(422, "Paiement réussi", "Entrez un numéro de mobile du Congo").holds(`aria-invalid="true"`, `href="#address"`)
		if len(typed) < 100 {
			b.holds(`value="` + strings.ReplaceAll(typed, "+", "&#43;") + `"`)
		}
	}
	// A third address, and no fourth; the first one is a message that was counted.
	for typed, want := range map[string]int{"066000009": 200} {
		action, form := b.get("/c/"+id).form(1, url.Values{"address": {typed}})
		b.request(http.MethodPost, action, form).want(want)
	}
	action, form = b.get("/c/"+id).form(1, url.Values{"address": {"other@example.org"}})
	b.request(http.MethodPost, action, form).want(429, "Trop de reçus ont été demandés", "Paiement réussi")
	b.get("/c/"+id).forward().want(200, "Le reçu part par SMS")
	if n := len(w.sent()); n != 5 {
		t.Errorf("%d messages, want 5", n)
	}

	// What is away is told, and nothing of the address is logged.
	w.Change(func() { w.unsent = errors.New("Kafka is away") })
	b.get("/c/"+id).forward().want(503, "Votre demande n’a pas pu être traitée", "Paiement réussi")
	w.Change(func() { w.unsent, w.unsealed = nil, errors.New("the vault is away") })
	b.get("/c/"+id).forward().want(503, "Votre demande n’a pas pu être traitée")
	w.Change(func() { w.unsealed = nil })
	if logged := w.logs.String(); !strings.Contains(logged, "a receipt that was asked for is not sent") || strings.Contains(logged, "66000002") || strings.Contains(logged, "example.org") || strings.Contains(logged, id) {
		t.Errorf("the log is %s", logged)
	}

	// An erased number is asked for. After seven days the page has the receipt and sends none.
	w.Change(func() { w.payers = nil })
	b.get("/c/"+id).forward().want(422, "Entrez un numéro de mobile du Congo")
	action, form = b.form(0, nil)
	w.Change(func() { w.Time = w.Time.Add(7*24*time.Hour + time.Minute) })
	b.get("/c/"+id).want(200, "Reçu à imprimer").doesNotSay("Recevoir le reçu")
	b.request(http.MethodPost, action, form).want(200).doesNotSay("part par")
	if n := len(w.sent()); n != 5 {
		t.Errorf("%d messages, want 5", n)
	}
}

// A session that is not paid sends no receipt, whoever forges the form, nor does one whose money was given back,
// another site, a frame or the page of a reference: a message has the address of the session.
func TestReceiptIsNotSent(t *testing.T) {
	t.Parallel()
	w, server := serveReceipts(t)
	b := browse(t, server)
	form := url.Values{"address": {"payer@example.org"}, "lang": {"fr"}}
	open, refused := w.create("A-1", nil), w.create("A-2", nil)
	b.toReview(refused).forward()
	w.outcome(refused, checkout.OutcomeRefused, reject)
	for _, id := range []string{open, refused} {
		b.request(http.MethodPost, "/c/"+id+"/send", form).want(200).doesNotSay("Recevoir le reçu", "part par")
	}
	paid := paidSession(t, w, b, "A-3", nil)
	b.request(http.MethodPost, "/embed/"+paid+"/send", form)
	b.request(http.MethodPost, "/p/4821093377150264/send", form)
	b.header.Set("Sec-Fetch-Site", "cross-site")
	b.request(http.MethodPost, "/c/"+paid+"/send", form).want(403)
	b.header.Del("Sec-Fetch-Site")
	if n := len(w.sent()); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
	b.get("/c/"+paid+"/send").want(200, "Paiement réussi")
	b.get("/c/" + paid + "?asked=nonsense").want(200).doesNotSay("part par")
}

// Somebody who pays by reference does not get the session's address by a message: the page of the session does not
// offer their number, and that of the reference has no form.
func TestReceiptOfAPaymentByReference(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	_, pool := servers.Database(t)
	w.asked = quota.Receipts{Postgres: pool, Now: w.Now, Hash: secret.GenerateReferenceKey().MAC("receipts")}
	id := w.create("A-1", secretive(refs[0]))
	b := anonymous(t, server)
	b.get("/p/"+refs[0]).forward("phone", "06 600 00 02").forward()
	w.outcome(id, checkout.OutcomeApproved, "")
	b.get("/p/"+refs[0]).want(200, "Paiement réussi").doesNotSay("Recevoir le reçu")
	holder := browse(t, server)
	holder.get("/c/"+id).want(200, "Recevoir le reçu").doesNotSay("L’envoyer par SMS au")
	holder.request(http.MethodPost, "/c/"+id+"/send", url.Values{"to": {"payer"}}).want(422, "Entrez un numéro")
	if n := len(w.sent()); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
}
