package counter_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"quittance/ingress/counter"
	"quittance/ingress/web"
)

// from makes the browser's later requests come from an address.
func (b *browser) from(addr string) *browser {
	b.header.Set("X-Forwarded-For", addr)
	return b
}

// Whoever tries keys is asked to wait, by the network: an address, its /24, a /64 and its /48. A clerk behind the
// same address signs in, and so does one on a known device.
func TestRefusedKeysAreLimited(t *testing.T) {
	t.Parallel()
	w := serve(t)
	const wrong = "ck_test_wrong"
	sends := func(addr, path string, fields ...string) *browser {
		form := url.Values{}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return w.browse().from(addr).request(http.MethodPost, "/counter"+path, form)
	}
	guess := func(addr string) *browser { return sends(addr, "/sign-in", "key", wrong) }
	for range counter.MaxWrong {
		guess("203.0.113.1").want(http.StatusUnauthorized, "Clé inconnue ou révoquée")
	}
	b := guess("203.0.113.1").want(http.StatusTooManyRequests, "Trop de clés refusées", "Clé du guichet")
	if b.answer.Get("Retry-After") != "60" {
		t.Errorf("Retry-After is %q", b.answer.Get("Retry-After"))
	}
	sends("203.0.113.1", "/sign-in/pin", "code", "c01", "pin", "000000").want(http.StatusTooManyRequests, "Trop de clés refusées")
	guess("198.51.100.1").want(http.StatusUnauthorized, "Clé inconnue")

	// A subscriber of IPv6 has a /64, and a customer of a provider a /48.
	refused := 0
	for n := range 2 * counter.MaxWrong {
		if guess(fmt.Sprintf("2001:db8:1:1::%x", n)).status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < counter.MaxWrong-1 {
		t.Errorf("%d keys of one /64 are refused as too many, want %d", refused, counter.MaxWrong)
	}
	refused = 0
	for n := range 6 * counter.MaxWrong {
		if guess(fmt.Sprintf("2001:db8:2:%x::1", n)).status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < counter.MaxWrong {
		t.Errorf("%d keys of one /48 are refused as too many", refused)
	}

	own := w.browse().from("203.0.113.1").get("/counter").post("/sign-in", "key", c01).want(http.StatusOK, "Rechercher un paiement")
	own.get("/counter/pin").post("/pin", "key", c01, "pin", "270419", "again", "270419").want(http.StatusOK, "Le code PIN est enregistré")
	own.get("/counter").post("/sign-out").post("/sign-in/pin", "code", "c01", "pin", "270418").want(http.StatusUnauthorized, "incorrect")
	own.post("/sign-in/pin", "code", "c01", "pin", "270419").want(http.StatusOK, "Rechercher un paiement")
}

// A flood of calls takes nothing from clerks who are signed in or use a known device behind the same address.
func TestCallsOfTheCounterAreLimited(t *testing.T) {
	t.Parallel()
	w := serve(t, func(cfg *counter.Config) { cfg.Limits = web.Multiples(1) }) // ten calls at once
	signedIn := w.browse().from("203.0.113.1").get("/counter").post("/sign-in", "key", c01).want(http.StatusOK, "Rechercher un paiement")
	known := w.browse().from("198.51.100.1").get("/counter").post("/sign-in", "key", c02)
	known.get("/counter/pin").post("/pin", "key", c02, "pin", "270419", "again", "270419").want(http.StatusOK, "Le code PIN est enregistré")
	known.get("/counter").post("/sign-out").from("203.0.113.1")

	flood := func(path string) (limited int) {
		for range 20 {
			b := w.browse().from("203.0.113.1").get(path)
			if b.status != http.StatusTooManyRequests {
				continue
			}
			limited++
			b.want(http.StatusTooManyRequests, "Trop de demandes viennent de votre connexion")
			if b.answer.Get("Retry-After") != "1" {
				t.Fatalf("Retry-After is %q", b.answer.Get("Retry-After"))
			}
		}
		return limited
	}
	if n := flood("/counter"); n < 5 {
		t.Errorf("%d of 20 calls are refused", n)
	}
	w.browse().from("203.0.113.1").request(http.MethodPost, "/counter/sign-in", url.Values{"key": {c01}}).want(http.StatusTooManyRequests, "Trop de demandes")
	w.browse().from("203.0.113.1").get("/counter?lang=en").want(http.StatusTooManyRequests, "Too many requests")
	signedIn.get("/counter").want(http.StatusOK, "Rechercher un paiement")
	known.post("/sign-in/pin", "code", "c02", "pin", "270419").want(http.StatusOK, "Rechercher un paiement")
	w.browse().from("192.0.2.1").get("/counter").want(http.StatusOK, "Clé du guichet")
}
