package counter

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"quittance/internal/identity"
)

// How long a clerk stays signed in: since signing in, and since the last request.
const (
	signedInFor   = 12 * time.Hour
	signedInQuiet = 30 * time.Minute
)

// labelCookie is what the page's cookie is sealed for.
const labelCookie = "counter sessions"

// signedIn is what the cookie says. It holds no key.
type signedIn struct {
	KeyID string    `json:"key_id"`
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// cookieName has the prefix that only https may set, where there is https.
func (c *Counter) cookieName() string {
	if c.secure {
		return "__Host-quittance_counter"
	}
	return "quittance_counter"
}

func (c *Counter) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever the page is served over https
		Name: c.cookieName(), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteStrictMode,
	}
}

// signIn gives the browser a cookie that ends with it.
func (c *Counter) signIn(w http.ResponseWriter, in signedIn) error {
	plain, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sealed, err := c.cfg.Keys.Seal(labelCookie, plain, nil)
	if err != nil {
		return err
	}
	http.SetCookie(w, c.cookie(base64.RawURLEncoding.EncodeToString(sealed), 0))
	return nil
}

func (c *Counter) signOut(w http.ResponseWriter) { http.SetCookie(w, c.cookie("", -1)) }

// who is the clerk whom the request's cookie names, if he is still signed in: the
// registry is asked every time, so that a revoked key ends it at once. in is what
// the cookie is to say from now on.
func (c *Counter) who(r *http.Request) (clerk identity.ClerkPrincipal, in signedIn, ok bool) {
	cookie, err := r.Cookie(c.cookieName())
	if err != nil {
		return clerk, in, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return clerk, in, false
	}
	plain, err := c.cfg.Keys.Open(labelCookie, sealed, nil)
	if err != nil || json.Unmarshal(plain, &in) != nil {
		return clerk, in, false
	}
	now := c.now()
	if now.Sub(in.Since) >= signedInFor || now.Sub(in.Last) >= signedInQuiet {
		return clerk, in, false
	}
	in.Last = now
	clerk, err = c.cfg.Identities.ClerkByKey(in.KeyID)
	return clerk, in, err == nil
}
