package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Sealer encrypts and authenticates; internal/secret.Keys does.
type Sealer interface {
	Seal(label string, plaintext, aad []byte) ([]byte, error)
	OpenCredential(label string, ciphertext, aad []byte) ([]byte, error)
}

// SignIn remembers in a cookie who is signed in to a Site. The cookie is sealed: it
// holds an id and two times, never a key, and only this service can read or make it.
type SignIn struct {
	// Cookie is the cookie's name. Over https it gets the prefix __Host-, which only
	// https may set.
	Cookie string
	// Label separates the seals of several sites.
	Label string
	Keys  Sealer
	// PublicURL is where browsers reach the site; with https the cookie is Secure.
	PublicURL string
	// Whole is how long a sign-in lasts, Idle how long it lasts without a request.
	Whole, Idle time.Duration
	// Now is the service's clock, UTC.
	Now func() time.Time
}

// SignedIn is what the cookie says.
type SignedIn struct {
	// ID is what the person signed in with, such as the id of a key.
	ID    string    `json:"key_id"`
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

func (s *SignIn) secure() bool { return strings.HasPrefix(s.PublicURL, "https://") }

func (s *SignIn) name() string {
	if s.secure() {
		return "__Host-" + s.Cookie
	}
	return s.Cookie
}

func (s *SignIn) set(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the site is served over https
		Name: s.name(), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteStrictMode,
	})
}

// Begin signs a person in. The browser forgets the cookie when it is closed.
func (s *SignIn) Begin(w http.ResponseWriter, id string) error {
	now := s.Now()
	return s.Keep(w, SignedIn{ID: id, Since: now, Last: now})
}

// Keep renews the cookie.
func (s *SignIn) Keep(w http.ResponseWriter, in SignedIn) error {
	plain, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sealed, err := s.Keys.Seal(s.Label, plain, nil)
	if err != nil {
		return err
	}
	s.set(w, base64.RawURLEncoding.EncodeToString(sealed), 0)
	return nil
}

// End signs the browser out.
func (s *SignIn) End(w http.ResponseWriter) { s.set(w, "", -1) }

// Who returns who is signed in, with Last at this request; the caller checks that the
// person still may be, and calls Keep. present says that the browser has a cookie,
// valid or not.
func (s *SignIn) Who(r *http.Request) (in SignedIn, present, ok bool) {
	cookie, err := r.Cookie(s.name())
	if err != nil {
		return in, false, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return in, true, false
	}
	plain, err := s.Keys.OpenCredential(s.Label, sealed, nil)
	if err != nil || json.Unmarshal(plain, &in) != nil {
		return in, true, false
	}
	now := s.Now()
	if now.Sub(in.Since) >= s.Whole || now.Sub(in.Last) >= s.Idle {
		return in, true, false
	}
	in.Last = now
	return in, true, true
}
