package citizen_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"quittance/internal/citizens"
)

// passkey is a device with a passkey.
type passkey struct {
	party  virtualwebauthn.RelyingParty
	device virtualwebauthn.Authenticator
	key    virtualwebauthn.Credential
}

// addPasskey adds a passkey of a new device to the browser's account.
func (b *browser) addPasskey() *passkey {
	t := b.w.t
	t.Helper()
	p := &passkey{
		virtualwebauthn.RelyingParty{Name: "pay.example", ID: "pay.example", Origin: publicURL}, virtualwebauthn.NewAuthenticator(), virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2),
	}
	for len(p.key.Key.AttestationData()) != 77 { // the library leaves leading zeros of a coordinate out
		p.key = virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	}
	begun := b.want(b.call(http.MethodPost, "/passkeys/begin", nil), http.StatusOK, "")
	options, err := virtualwebauthn.ParseAttestationOptions(begun.raw)
	if err != nil {
		t.Fatal(err)
	}
	b.want(b.call(http.MethodPost, "/passkeys/finish", virtualwebauthn.CreateAttestationResponse(p.party, p.device, p.key, *options)), http.StatusCreated, "")
	user := begun.body["publicKey"].(map[string]any)["user"].(map[string]any)
	if p.device.Options.UserHandle, err = base64.RawURLEncoding.DecodeString(user["id"].(string)); err != nil {
		t.Fatal(err)
	}
	return p
}

// signInWith signs in with a passkey, as the page's script does.
func (b *browser) signInWith(p *passkey) {
	t := b.w.t
	t.Helper()
	options, err := virtualwebauthn.ParseAssertionOptions(b.want(b.call(http.MethodPost, "/sign-in/passkey/begin", nil), http.StatusOK, "").raw)
	if err != nil {
		t.Fatal(err)
	}
	p.key.Counter++
	b.want(b.call(http.MethodPost, "/sign-in/passkey/finish", virtualwebauthn.CreateAssertionResponse(p.party, p.device, p.key, *options)), http.StatusNoContent, "")
}

// without fails if the page says one of the texts.
func (s shown) without(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(s.text, text) {
			t.Errorf("the page says %q:\n%s", text, s.text)
		}
	}
}

const cookieOfPasskeys = "__Host-quittance_passkey"

// A passkey is offered after the sign-in by a code, and not again for a while in a browser that
// has put it off. Only pages with the script may run one and call the service.
func TestPasskeyOffer(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.browse()
	b.enter(t, 1)
	for _, path := range []string{"/portal", "/portal/references"} {
		offer := b.page(http.MethodGet, path, nil).want(t, 200, "Se connecter sans code la prochaine fois", `id="passkey-offer"`, `data-host="pay.example"`, "<script src=\"/portal/assets/portal-")
		if !strings.HasSuffix(offer.policy, "; script-src 'self'; connect-src 'self'") {
			t.Errorf("%s has the policy %s", path, offer.policy)
		}
	}
	for _, path := range []string{"/portal/payments", "/portal/security?lang=en"} {
		b.page(http.MethodGet, path, nil).want(t, 200).without(t, "passkey-offer")
	}
	if policy := b.page(http.MethodGet, "/portal/payments", nil).policy; strings.Contains(policy, "script-src") || strings.Contains(policy, "connect-src") {
		t.Errorf("a page without a script has the policy %s", policy)
	}
	b.page(http.MethodPost, "/portal/security/later", url.Values{}).want(t, 303)
	b.page(http.MethodGet, "/portal", nil).want(t, 200).without(t, "passkey", "<script")
	delete(b.cookies, cookieOfPasskeys) // the browser keeps it for 90 days
	w.wait(citizens.RecentSignIn)
	b.page(http.MethodGet, "/portal", nil).want(t, 200).without(t, "passkey")
}

// The page of passkeys lists and removes them without a script. A removal needs a recent
// sign-in, and leads to it and back.
func TestSecurityPage(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.browse()
	b.page(http.MethodGet, "/portal/security", nil).want(t, 200, "Voir et payer ce que vous devez", `name="keep" value="back=security"`).without(t, "Ce que vous avez saisi")
	b.enter(t, 1)
	b.page(http.MethodGet, "/portal/security", nil).want(t, 200, "Vous n’avez pas de clé d’accès", "il faut JavaScript et un navigateur récent", "Se déconnecter partout")
	key := b.addPasskey()
	if b.cookies[cookieOfPasskeys] != "used" {
		t.Errorf("the browser's cookie is %q", b.cookies[cookieOfPasskeys])
	}
	list := b.page(http.MethodGet, "/portal/security?done=passkey-added", nil).want(t, 200, "Ajoutée le 23 novembre 2026", "Dernière utilisation le 23 novembre 2026", "La clé d’accès est ajoutée")
	_, id, _ := strings.Cut(list.text, `/portal/security/passkeys/`)
	remove := "/portal/security/passkeys/" + id[:36] + "/remove"

	// The sign-in begins with the passkey in this browser, and only here.
	b.page(http.MethodPost, "/portal/sign-out", url.Values{}).want(t, 303)
	first := b.page(http.MethodGet, "/portal", nil).want(t, 200, `autocomplete="username webauthn"`, "Se connecter avec une clé d’accès")
	if strings.Index(first.text, `id="passkey"`) > strings.Index(first.text, `action="/portal/sign-in"`) {
		t.Errorf("the passkey comes after the code:\n%s", first.text)
	}
	other := w.browse()
	elsewhere := other.page(http.MethodGet, "/portal", nil).want(t, 200, `autocomplete="username"`)
	if strings.Index(elsewhere.text, `id="passkey"`) < strings.Index(elsewhere.text, `action="/portal/sign-in"`) {
		t.Errorf("the passkey comes before the code:\n%s", elsewhere.text)
	}
	b.signInWith(key)
	b.page(http.MethodPost, "/portal/resume", url.Values{"keep": {"due=x"}}).want(t, 303) // what somebody else typed is not shown
	person := b.page(http.MethodGet, "/portal/references", nil).form(t, "/portal/references").Get("person")
	b.page(http.MethodPost, "/portal/resume", url.Values{"keep": {"due=x&person=" + person}}).want(t, 422, "Vous n’avez rien choisi")
	if to := b.page(http.MethodPost, "/portal/resume", url.Values{}).want(t, 303).location; to != "/portal?lang=fr" {
		t.Errorf("a sign-in leads to %s", to)
	}

	other.signInWith(key)
	w.wait(citizens.RecentForRemoval)
	again := b.page(http.MethodPost, remove, url.Values{}).want(t, 403, "connectez-vous à nouveau pour changer vos clés d’accès", `name="keep" value="back=security"`)
	again.without(t, "Ce que vous avez saisi")
	b.page(http.MethodGet, "/portal/security/again", nil).want(t, 200, "connectez-vous à nouveau")
	b.signInWith(key)
	if to := b.page(http.MethodPost, "/portal/resume", again.form(t, "/portal/resume")).want(t, 303).location; to != "/portal/security?lang=fr" {
		t.Errorf("a sign-in leads to %s", to)
	}
	stranger := w.signedIn(2)
	stranger.page(http.MethodPost, remove, url.Values{}).want(t, 303)
	b.page(http.MethodGet, "/portal/security", nil).want(t, 200, "Ajoutée le")
	if to := b.page(http.MethodPost, remove, url.Values{}).want(t, 303).location; to != "/portal/security?done=passkey-removed&lang=fr" {
		t.Errorf("a removal leads to %s", to)
	}
	b.page(http.MethodGet, "/portal/security?done=passkey-removed", nil).want(t, 200, "La clé d’accès est retirée", "Vous n’avez pas de clé d’accès")
	other.page(http.MethodGet, "/portal/security", nil).want(t, 401, "Votre session est terminée")
	if b.cookies[cookieOfPasskeys] != "later" {
		t.Error("the browser still asks for the passkey first, or is offered one at once")
	}

	// Signing out everywhere ends this session and all others of the account.
	twin := w.browse()
	for name, value := range b.cookies {
		twin.cookies[name] = value
	}
	w.wait(time.Minute)
	b.page(http.MethodPost, "/portal/security/sign-out", url.Values{}).want(t, 303)
	b.page(http.MethodGet, "/portal?done=signed-out-everywhere", nil).want(t, 200, "Vous êtes déconnecté partout", "Voir et payer")
	twin.page(http.MethodGet, "/portal/security", nil).want(t, 401)
	stranger.page(http.MethodGet, "/portal/security", nil).want(t, 200)
}

// At an address without passkeys the page says so, and nothing runs.
func TestSecurityPageWithoutPasskeys(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.url = w.start(withAddress)
	b := w.browse()
	b.page(http.MethodGet, "/portal", nil).want(t, 200).without(t, "passkey", "<script")
	b.enter(t, 1)
	b.page(http.MethodGet, "/portal", nil).want(t, 200).without(t, "passkey", "<script")
	b.page(http.MethodGet, "/portal/security", nil).want(t, 200, "Ce service n’a pas de clés d’accès à cette adresse", "Se déconnecter partout").without(t, "<script")
}

// An address that was not proven for 90 days gets no messages. Its owner reads so, and proves it
// again with a code, without a new account.
func TestProvingAnAddressAgain(t *testing.T) {
	t.Parallel()
	const stopped = "Aucun message n’est plus envoyé à"
	w := serve(t)
	b := w.signedIn(1)
	p := b.addPasskey()
	b.page(http.MethodGet, "/portal", nil).without(t, stopped)
	w.wait(91 * 24 * time.Hour)
	b.signInWith(p)
	for _, path := range []string{"/portal", "/portal/security"} {
		b.page(http.MethodGet, path, nil).want(t, http.StatusOK, stopped, "/portal/security/prove")
	}
	typed, to := numbered(t, 1)
	b.page(http.MethodGet, "/portal/security/prove", nil).want(t, http.StatusOK, "Un code lui est envoyé")
	form := url.Values{"address": {typed}, "keep": {"back=security"}}
	b.page(http.MethodPost, "/portal/sign-in", form).want(t, http.StatusOK)
	form.Set("code", w.code(to))
	b.page(http.MethodPost, "/portal/verify", form).want(t, http.StatusSeeOther)
	after := b.page(http.MethodGet, "/portal/security", nil).want(t, http.StatusOK, "Ajoutée le") // the passkey: it is the same account
	after.without(t, stopped)
}
