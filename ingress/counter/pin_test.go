package counter_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A clerk uses the key once, chooses a PIN, and from then on signs in with code and PIN on
// this device.
func TestSignInWithPIN(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.create(nil)
	b := w.browse().get("/counter").lacks("/sign-in/pin")
	b.post("/sign-in", "key", c01).want(http.StatusOK, "Choisir un code PIN pour cet appareil")
	b.get("/counter/pin").want(http.StatusOK, "votre code de guichet, c01").lacks("/pin/forget")
	b.post("/pin", "key", c01, "pin", "1234", "again", "1234").want(http.StatusUnprocessableEntity, "de 6 à 12 chiffres")
	b.post("/pin", "key", c01, "pin", "123456", "again", "123456").want(http.StatusUnprocessableEntity, "trop facile à deviner")
	b.post("/pin", "key", c01, "pin", "270419", "again", "270418").want(http.StatusUnprocessableEntity, "ne sont pas les mêmes")
	// Whoever finds the desk open has a session, and perhaps a key of another clerk.
	for _, key := range []string{"", "ck_test_made_up", c02} {
		b.post("/pin", "key", key, "pin", "270419", "again", "270419").want(http.StatusUnprocessableEntity, "n’est pas celle de votre guichet")
	}
	b.post("/pin", "key", c01, "pin", "270419", "again", "270419").want(http.StatusOK, "Le code PIN est enregistré", "Changer de code PIN")
	device := b.sent[0]
	if device.Name != "quittance_counter_device" || !device.HttpOnly || device.SameSite != http.SameSiteStrictMode || device.MaxAge != 90*24*3600 || strings.Contains(device.Value, "270419") {
		t.Errorf("the cookie of the device is %+v", device)
	}

	b.get("/counter").post("/sign-out").want(http.StatusOK, "Code de guichet", "Avec la clé du guichet")
	b.post("/sign-in/pin", "code", "c01", "pin", "270418").want(http.StatusUnauthorized, "Code de guichet ou code PIN incorrect")
	if !strings.Contains(b.html, `value="c01"`) || strings.Contains(b.html, "270418") {
		t.Errorf("the code is gone, or the PIN is shown:\n%s", b.html)
	}
	b.get("/counter/"+s.PaymentRef).post("/sign-in/pin", "code", " C01 ", "pin", "270419").want(http.StatusOK, "Ce paiement n’est pas réglé", "Guichet 1 – Hall")
	if b.at != "/counter/"+s.PaymentRef+"?lang=fr" {
		t.Errorf("signing in leads to %s", b.at)
	}

	// A session that has ended leads to the PIN, not to the key.
	w.Change(func() { w.Time = w.Time.Add(31 * time.Minute) })
	if b.get("/counter").want(http.StatusOK, "Connectez-vous de nouveau"); !strings.Contains(b.html, `href="#code"`) {
		t.Errorf("the fault is not at the code:\n%s", b.html)
	}
	b.post("/sign-in/pin", "code", "c01", "pin", "270419").want(http.StatusOK, "Rechercher un paiement")

	// Another browser has no use for the PIN, nor has a made-up cookie of a device.
	stranger := w.browse()
	stranger.header.Set("Cookie", "quittance_counter_device="+strings.Repeat("A", 90))
	stranger.get("/counter").want(http.StatusOK, "Ouvrir le guichet").lacks("/sign-in/pin")

	// Five wrong PINs, and the key is needed.
	b.get("/counter").post("/sign-out")
	for range 4 {
		b.post("/sign-in/pin", "code", "c01", "pin", "270418").want(http.StatusUnauthorized, "incorrect")
	}
	b.post("/sign-in/pin", "code", "c01", "pin", "270418").want(http.StatusUnauthorized, "Trop d’essais")
	b.post("/sign-in/pin", "code", "c01", "pin", "270419").want(http.StatusUnauthorized, "Trop d’essais")
	b.post("/sign-in", "key", c01).want(http.StatusOK, "Rechercher un paiement")
	b.get("/counter/pin").post("/pin", "key", c01, "pin", "918273", "again", "918273").want(http.StatusOK, "Le code PIN est enregistré")
	b.get("/counter").post("/sign-out").post("/sign-in/pin", "code", "c01", "pin", "918273").want(http.StatusOK, "Rechercher un paiement")

	b.get("/counter/pin").post("/pin/forget").want(http.StatusOK, "Cet appareil est oublié", "Clé du guichet")
	b.post("/sign-in/pin", "code", "c01", "pin", "918273").want(http.StatusUnauthorized, "incorrect")

	// The browser keeps the device for 90 days.
	b.post("/sign-in", "key", c01).get("/counter/pin").post("/pin", "key", c01, "pin", "918273", "again", "918273")
	w.Change(func() { w.Time = w.Time.Add(91 * 24 * time.Hour) })
	b.get("/counter").want(http.StatusOK, "Vous avez été déconnecté").lacks("/sign-in/pin")
}
