package citizen_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/descope/virtualwebauthn"

	"quittance/ingress/citizen"
	"quittance/internal/citizens"
)

// A citizen adds a passkey after the first sign-in, signs in with it later, and removes it.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	party := virtualwebauthn.RelyingParty{Name: "pay.example", ID: "pay.example", Origin: publicURL}
	device, key := virtualwebauthn.NewAuthenticator(), virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	for len(key.Key.AttestationData()) != 77 { // the library leaves leading zeros of a coordinate out
		key = virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	}

	begun := b.want(b.call(http.MethodPost, "/passkeys/begin", nil), http.StatusOK, "")
	options, err := virtualwebauthn.ParseAttestationOptions(begun.raw)
	if err != nil {
		t.Fatal(err)
	}
	response := virtualwebauthn.CreateAttestationResponse(party, device, key, *options)
	added := b.want(b.call(http.MethodPost, "/passkeys/finish", response), http.StatusCreated, "")
	b.want(b.call(http.MethodPost, "/passkeys/finish", response), http.StatusUnprocessableEntity, citizen.CodePasskeyInvalid)
	list := b.want(b.call(http.MethodGet, "/passkeys", nil), http.StatusOK, "")
	if keys, _ := list.body["passkeys"].([]any); len(keys) != 1 || keys[0].(map[string]any)["id"] != added.text("id") || list.body["available"] != true {
		t.Errorf("the passkeys are %s", list.raw)
	}
	user := begun.body["publicKey"].(map[string]any)["user"].(map[string]any)
	if device.Options.UserHandle, err = base64.RawURLEncoding.DecodeString(user["id"].(string)); err != nil {
		t.Fatal(err)
	}

	prove := func(b *browser) string {
		t.Helper()
		a := b.want(b.call(http.MethodPost, "/sign-in/passkey/begin", nil), http.StatusOK, "")
		options, err := virtualwebauthn.ParseAssertionOptions(a.raw)
		if err != nil {
			t.Fatal(err)
		}
		key.Counter++
		return virtualwebauthn.CreateAssertionResponse(party, device, key, *options)
	}
	later := w.browse()
	answer := prove(later)
	stranger := w.browse()
	stranger.want(stranger.call(http.MethodPost, "/sign-in/passkey/finish", answer), http.StatusUnauthorized, citizen.CodePasskeyRefused)
	later.want(later.call(http.MethodPost, "/sign-in/passkey/finish", answer), http.StatusNoContent, "")
	mine, theirs := b.call(http.MethodGet, "/me", nil), later.call(http.MethodGet, "/me", nil)
	if mine.raw != theirs.raw || theirs.status != http.StatusOK {
		t.Errorf("signed in as %s, want %s", theirs.raw, mine.raw)
	}
	later.want(later.call(http.MethodPost, "/sign-in/passkey/finish", answer), http.StatusUnauthorized, citizen.CodePasskeyRefused)
	later.want(later.call(http.MethodPost, "/sign-in/passkey/finish", "{"), http.StatusUnauthorized, citizen.CodePasskeyRefused)

	// A session ends with the sign-in that replaces it.
	before := later.cookies["__Host-quittance_citizen"]
	later.want(later.call(http.MethodPost, "/sign-in/passkey/finish", prove(later)), http.StatusNoContent, "")
	if later.cookies["__Host-quittance_citizen"] == before {
		t.Error("the cookie is the old one")
	}
	old := w.browse()
	old.cookies["__Host-quittance_citizen"] = before
	old.want(old.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)

	other := w.signedIn(2)
	other.want(other.call(http.MethodDelete, "/passkeys/"+added.text("id"), nil), http.StatusNotFound, citizen.CodePasskeyNotFound)
	stranger.want(stranger.call(http.MethodPost, "/passkeys/begin", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
	b.want(b.call(http.MethodDelete, "/passkeys/"+added.text("id"), nil), http.StatusNoContent, "")
	last := w.browse()
	last.want(last.call(http.MethodPost, "/sign-in/passkey/finish", prove(last)), http.StatusUnauthorized, citizen.CodePasskeyRefused)

	w.wait(citizens.RecentSignIn)
	b.want(b.call(http.MethodPost, "/passkeys/begin", nil), http.StatusForbidden, citizen.CodeSignInAgain)
}

// Browsers have no passkeys for an address that is a number.
func TestWithoutPasskeys(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.url = w.start(withAddress)
	b := w.signedIn(1)
	if a := b.want(b.call(http.MethodGet, "/passkeys", nil), http.StatusOK, ""); a.body["available"] != false {
		t.Errorf("answers %s", a.raw)
	}
	b.want(b.call(http.MethodPost, "/passkeys/begin", nil), http.StatusNotFound, citizen.CodePasskeysUnavailable)
	b.want(b.call(http.MethodPost, "/sign-in/passkey/begin", nil), http.StatusNotFound, citizen.CodePasskeysUnavailable)
}

// withAddress is an instance without a name.
func withAddress(c *citizen.Config) { c.PublicURL = "https://192.0.2.1" }
