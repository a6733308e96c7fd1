package counter_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Cash that a clerk gives back comes from that clerk's till. The forms say so, and the report
// names the clerk who had taken it.
func TestTillOfARestitution(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	w.signedIn(c01).post("/look-up", "payment_ref", s.PaymentRef).post("/take").
		want(http.StatusOK, "Les espèces sortent de la caisse de cet agent et y sont comptées").
		get("/counter/"+s.PaymentRef+"?lang=en").want(http.StatusOK, "The cash comes from that clerk’s till and counts there")
	b := w.signedIn(c02)
	path, form := b.get("/counter/till").form("/till/open", "opening", "6000")
	b.request(http.MethodPost, path, form).want(http.StatusOK, "Caisse n° 1")
	b.get("/counter/"+s.PaymentRef+"?lang=en").want(http.StatusOK, "The cash comes from your till and counts there")
	b.get("/counter/"+s.PaymentRef+"?lang=fr").want(http.StatusOK, "Les espèces sortent de votre caisse et y sont comptées")
	b.post("/reverse", "reason", "erreur de dossier").want(http.StatusOK, "Paiement restitué")
	b.get("/counter/till").post("/count", "counted", "950").want(http.StatusOK, "Rapport de caisse", "Restitution (encaissé par c01)")
	b.get(strings.TrimSuffix(b.at, "?lang=fr")+"?lang=en").want(http.StatusOK, "Given back (received by c01)")
}

// A clerk opens a till, takes cash, closes it with a count that differs, corrects it, and a
// second clerk signs after a count of their own.
func TestTillOfADay(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(c01)
	early := w.create(nil)
	b.post("/look-up", "payment_ref", early.PaymentRef).post("/take").want(http.StatusOK, "Reçu de paiement")
	b.get("/counter/till").want(http.StatusOK, "Votre caisse n’est pas ouverte", "Pas encore compté par une caisse\u00a0: 5\u202f050\u202fFCFA (encaissements\u00a0: 1, restitutions\u00a0: 0)")
	for _, typed := range []string{"", "-1", "20.000", "20,5", "12345678901234567890", "9007199254740992", "vingt"} {
		b.post("/till/open", "opening", typed).want(http.StatusUnprocessableEntity, "en chiffres, sans virgule")
		if !strings.Contains(b.html, `href="#opening"`) {
			t.Errorf("the fault is not at its field:\n%s", b.html)
		}
	}
	path, form := b.form("/till/open", "opening", "20 000")
	b.request(http.MethodPost, path, form).want(http.StatusOK, "Caisse n° 1, ouverte le 21 novembre 2026 à 10:00 avec 20\u202f000\u202fFCFA")
	b.request(http.MethodPost, path, form).want(http.StatusOK, "Caisse n° 1,") // pressed twice

	s := w.create(nil)
	b.get("/counter").post("/look-up", "payment_ref", s.PaymentRef).post("/take", "receipt", "R-9").want(http.StatusOK, "Reçu de paiement")
	w.Change(func() { w.Time = w.Time.Add(10 * time.Minute) })
	b.get("/counter/till").post("/count", "counted", "30 000").want(http.StatusUnprocessableEntity, "n’est pas le montant attendu").lacks("100\u202fFCFA")
	if !strings.Contains(b.html, `value="30 000"`) {
		t.Errorf("the count is gone:\n%s", b.html)
	}
	b.post("/count", "counted", "30\u202f000", "note", "cent francs manquent").want(http.StatusOK, "Rapport de caisse", "TEST", "Guichet 1 – c01", "Hall", "21 novembre 2026 à 10:10",
		"Encaissé (2)", "10\u202f100\u202fFCFA", "30\u202f100\u202fFCFA", "30\u202f000\u202fFCFA", "trente mille francs CFA", "\u2212100\u202fFCFA", "cent francs manquent", "En attente d’un autre agent", "Reçu R-9", "Imprimer").
		lacks("/sign\"")
	report := b.at
	b.get("/counter/till").want(http.StatusOK, "Votre caisse n’est pas ouverte", "Mes caisses fermées", "En attente de contreseing").lacks("Pas encore compté")

	second := w.signedIn(c02).get("/counter/till").want(http.StatusOK, "Caisses à contresigner", "Caisse n° 1 de c01")
	second.get(report).want(http.StatusOK, "Rapport de caisse", "Contresigner").lacks("/count\"")
	second.post("/sign", "counted", "30100").want(http.StatusUnprocessableEntity, "n’est pas celui du rapport")
	b.get(report).post("/count", "counted", "30100", "note", "").want(http.StatusOK, "0\u202fFCFA", "30\u202f100\u202fFCFA")
	second.post("/sign", "counted", "30 100").want(http.StatusConflict, "a changé entre-temps\u00a0: relisez le rapport").lacks("cent francs manquent")
	second.post("/sign", "counted", "30 100").want(http.StatusOK, "Guichet 2 – c02, le 21 novembre 2026 à 10:10").lacks("/sign\"")
	b.get(report).want(http.StatusOK, "Guichet 2 – c02").lacks("/count\"")

	// Nobody signs their own till, and other agencies and modes see no till.
	own := w.signedIn(c02)
	path, form = own.get("/counter/till").form("/till/open", "opening", "0")
	own.request(http.MethodPost, path, form).post("/count", "counted", "0").want(http.StatusOK, "Rapport de caisse", "Aucun mouvement")
	id := strings.TrimSuffix(own.at, "?lang=fr")
	form.Set("counted", "0")
	own.request(http.MethodPost, id+"/sign", form).want(http.StatusConflict, "Un autre agent doit contresigner")
	for _, key := range []string{c01Live, d01} {
		w.signedIn(key).get(id).want(http.StatusNotFound, "Cette caisse n’existe pas")
	}
	own.get("/counter/till/nothing").want(http.StatusNotFound, "Page introuvable", "Page d’accueil")
	own.get(id+"/sign").want(http.StatusOK, "Rapport de caisse")
	w.signedIn(c01).get("/counter/till?lang=en").want(http.StatusOK, "Your till is not open", "Tills to sign", "Signed by c02")
}
