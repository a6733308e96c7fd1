package citizen

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/secret"
	"quittance/money"
)

// The names of the cookies. Over https they begin with __Host-, which only https may set.
const (
	cookieSession = "quittance_citizen"
	cookieBrowser = "quittance_browser"
	cookieKnown   = "quittance_known"
	// cookiePasskey says what this browser has done with passkeys: passkeyUsed or passkeyLater.
	cookiePasskey = "quittance_passkey" //nolint:gosec // a name
)

// The values of cookiePasskey, and how long the browser keeps them. It names no account.
const (
	passkeyUsed  = "used"  // it has a passkey, which is asked for first
	passkeyLater = "later" // its user does not want one now

	passkeyUsedFor  = 400 * 24 * time.Hour // the longest that browsers keep a cookie
	passkeyLaterFor = 90 * 24 * time.Hour
)

// browserLifetime is how long a browser is remembered after it asked for a code. It covers
// the wait for the next code.
const browserLifetime = time.Hour

func (s *Service) cookieOf(name string) web.Cookie {
	return web.Cookie{Base: name, PublicURL: s.cfg.PublicURL, SameSite: http.SameSiteLaxMode}
}

// cookie returns the value of a cookie that the browser has sent once. Two cookies of a name
// are none: one of them was set by somebody else.
func (s *Service) cookie(r *http.Request, name string) string {
	found := r.CookiesNamed(s.cookieOf(name).Name())
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// BeginSession gives the browser a session. The code that opened it needs no browser any more.
func (s *Service) BeginSession(w http.ResponseWriter, session secret.Text) {
	s.cookieOf(cookieSession).Set(w, session.Reveal(), 0)
	s.cookieOf(cookieBrowser).Set(w, "", -1)
}

// KnownOf returns what the browser's cookie says of sign-ins before; empty without one.
func (s *Service) KnownOf(r *http.Request) secret.Text {
	return secret.NewText(s.cookie(r, cookieKnown))
}

// RememberSignIn makes the browser known for an address that has signed in with a code. From
// then on nobody else can use up its codes and tries for that address. It stays so after the
// sign-out. A browser that cannot be remembered has signed in all the same.
func (s *Service) RememberSignIn(w http.ResponseWriter, r *http.Request, who citizens.Citizen, a contact.Address) {
	value, err := s.cfg.Citizens.Remember(r.Context(), who.ID, a, s.KnownOf(r))
	if err != nil {
		s.cfg.Log.LogAttrs(r.Context(), slog.LevelWarn, "a browser is not remembered after a sign-in", slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
		return
	}
	s.cookieOf(cookieKnown).Set(w, value.Reveal(), int(citizens.KnownFor.Seconds()))
}

// EndSession takes the session from the browser. The caller ends it with SignOut.
func (s *Service) EndSession(w http.ResponseWriter) { s.cookieOf(cookieSession).Set(w, "", -1) }

// SessionOf returns the secret of the browser's session; empty if it has none.
func (s *Service) SessionOf(r *http.Request) secret.Text {
	return secret.NewText(s.cookie(r, cookieSession))
}

// PasskeyUsed remembers that the browser has a passkey.
func (s *Service) PasskeyUsed(w http.ResponseWriter) {
	s.cookieOf(cookiePasskey).Set(w, passkeyUsed, int(passkeyUsedFor.Seconds()))
}

// putOffPasskeys remembers that the browser is offered no passkey for a while.
func (s *Service) putOffPasskeys(w http.ResponseWriter) {
	s.cookieOf(cookiePasskey).Set(w, passkeyLater, int(passkeyLaterFor.Seconds()))
}

// Browser is the browser that asks for a code.
type Browser struct {
	Secret secret.Text
	// Locale is the language in which it asked.
	Locale money.Language
}

// BrowserOf returns what the browser's cookie says; without a cookie Secret is empty and
// nothing verifies.
func (s *Service) BrowserOf(r *http.Request) Browser {
	locale, text, _ := strings.Cut(s.cookie(r, cookieBrowser), ".")
	b := Browser{Secret: secret.NewText(text), Locale: money.Language(locale)}
	if b.Locale != money.French && b.Locale != money.English {
		return Browser{}
	}
	return b
}

// RememberBrowser gives the browser a secret of its own, unless it has one, and remembers the
// language in which it asks for a code.
func (s *Service) RememberBrowser(w http.ResponseWriter, r *http.Request, locale money.Language) Browser {
	b := s.BrowserOf(r)
	if b.Secret.Empty() {
		b.Secret = secret.NewText(rand.Text())
	}
	b.Locale = locale
	s.cookieOf(cookieBrowser).Set(w, string(locale)+"."+b.Secret.Reveal(), int(browserLifetime.Seconds()))
	return b
}

// OwnOrigin reports whether a request that changes something comes from a page of our own. A
// browser says so in Sec-Fetch-Site, an older one in Origin. A request with neither is not of
// a browser, and nothing else has a citizen's cookie.
func (s *Service) OwnOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return sameOrigin(r.Header.Get("Origin"), s.cfg.PublicURL)
}

// ShownToPerson reports whether a person sees the answer to a request: a page of our own asks, or
// a person opens the address. Another site may make a browser ask too, and reads nothing.
func (s *Service) ShownToPerson(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return r.Header.Get("Sec-Fetch-User") == "?1" || r.Header.Get("Sec-Fetch-Site") == "same-origin"
	}
	return s.OwnOrigin(r)
}

// sameOrigin reports whether two URLs have the same scheme, host and port.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host != "" && x.Scheme == y.Scheme && strings.EqualFold(authority(x), authority(y))
}

func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Hostname() + ":" + port
}
