package counter_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
)

// A clerk sees what the clerk took and gave back today, with exact sums, and finds a
// payment again.
func TestListOfTheDay(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(c01)
	b.get("/counter/day").want(http.StatusOK, "Encaissements du jour", "Situation au 21 novembre 2026 à 10:00", "Encaissé (0)", "Aucun encaissement aujourd’hui").lacks("Recherche\u00a0:")

	first, second := w.create(nil), w.create(nil)
	for i, s := range []checkout.Session{first, second} {
		b.get("/counter").post("/look-up", "payment_ref", s.PaymentRef).post("/take", "receipt", fmt.Sprint("R-", i)).want(http.StatusOK, "Reçu de paiement")
		w.Change(func() { w.Time = w.Time.Add(time.Minute) })
	}
	grouped := strings.Join([]string{first.PaymentRef[:4], first.PaymentRef[4:8], first.PaymentRef[8:12], first.PaymentRef[12:]}, "\u00a0")
	b.get("/counter/day").want(http.StatusOK, "Encaissé (2)", "10\u202f100\u202fFCFA", "Restitué (0)", grouped, "Reçu R-0", "Reçu R-1", "Contribution de la patente", "Imprimer")
	if older, newer := strings.Index(b.html, "R-0"), strings.Index(b.html, "R-1"); older < newer {
		t.Error("the newest movement is not the first")
	}
	b.get("/counter/day?q="+first.PaymentRef[:4]+"+"+first.PaymentRef[4:]).want(http.StatusOK, "Mouvements trouvés\u00a0: 1", "Reçu R-0", "Encaissé (2)").lacks("Reçu R-1")
	b.get("/counter/day?q=nothing").want(http.StatusOK, "Mouvements trouvés\u00a0: 0", "Aucun mouvement ne correspond")

	// Another clerk gives cash back: it is in the list and the sums of that clerk.
	other := w.signedIn(c02)
	other.get("/counter/"+first.PaymentRef).post("/reverse", "reason", "wrong case").want(http.StatusOK, "Paiement restitué")
	other.get("/counter/day?lang=en").want(http.StatusOK, "Received (0)", "Given back (1)", "\u2212FCFA\u00a05,050")
	b.get("/counter/day").want(http.StatusOK, "Encaissé (2)", "Restitué (0)")

	// Tomorrow's list is empty.
	w.Change(func() { w.Time = w.Time.Add(14 * time.Hour) })
	w.signedIn(c01).get("/counter/day").want(http.StatusOK, "Encaissé (0)")

	w.Change(func() { w.blind = errors.New("behind") })
	w.signedIn(c01).get("/counter/day").want(http.StatusServiceUnavailable, "Le service ne répond pas")
	w.browse().get("/counter/day").want(http.StatusOK, "Ouvrir le guichet")
}

// A long day has pages.
func TestLongDay(t *testing.T) {
	t.Parallel()
	w := serve(t)
	for range 51 {
		s := w.create(nil)
		id := "7c9e6679-7425-40de-944b-" + s.PaymentRef[:12]
		if a := w.Do(s.ID, checkout.Take{CollectionID: id, By: "c01", Total: 5050, Desk: "Hall"}); a.Code != checkout.CodeOK {
			t.Fatalf("taking cash: %s", a.Code)
		}
	}
	b := w.signedIn(c01).get("/counter/day").want(http.StatusOK, "Encaissé (51)", "257\u202f550\u202fFCFA", "Plus anciens").lacks("Plus récents")
	if n := strings.Count(b.html, "<li>"); n != 50 {
		t.Errorf("%d rows", n)
	}
	if b.get("/counter/day?page=2").want(http.StatusOK, "Encaissé (51)", "Plus récents").lacks("Plus anciens"); strings.Count(b.html, "<li>") != 1 {
		t.Errorf("the last page has %d rows", strings.Count(b.html, "<li>"))
	}
}

// The receipt names the notice, the counter with its place, and the amount in words; a long
// time later, too, when the session has no offers any more.
func TestReceiptSaysEverything(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(func(s *checkout.Session) { s.NoticeRef = "AV20260123456789" })
	b := w.signedIn(c01).post("/look-up", "payment_ref", "]C1"+s.PaymentRef).post("/take")
	whole := func(b *browser) {
		t.Helper()
		b.want(http.StatusOK, "Reçu de paiement en espèces", "AV20260123456789", "Guichet 1 – c01", "Lieu", "Hall", "En toutes lettres", "cinq mille cinquante francs CFA", "5\u202f050\u202fFCFA", "Imprimer")
	}
	whole(b)
	if len(scriptPattern.FindString(b.html)) == 0 {
		t.Errorf("nothing prints:\n%s", b.html)
	}
	b.get("/counter/"+s.PaymentRef+"?lang=en").want(http.StatusOK, "Notice number", "five thousand and fifty CFA francs", "In words", "Print")
	w.later(s.ID, 31*24*time.Hour)
	if !w.Session(s.ID).Archived {
		t.Fatal("the session is not archived")
	}
	whole(w.signedIn(c01).get("/counter/" + s.PaymentRef))
}
