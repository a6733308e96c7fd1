package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
)

// Sealer encrypts and authenticates; internal/secret.Keys does.
type Sealer interface {
	Seal(label string, plaintext, aad []byte) ([]byte, error)
	OpenCredential(label string, ciphertext, aad []byte) ([]byte, error)
}

// SignIn remembers in a cookie which session of a person the browser has. The cookie is
// sealed: it holds the id of the session and when it began, never a key, and only this
// service can read or make it. A cookie that somebody made up is refused without asking
// for a session. The session itself is on the server; whoever has it decides how long it
// lasts, and End of the cookie alone does not end it.
type SignIn struct {
	// Cookie is the cookie's name. Over https it gets the prefix __Host-, which only
	// https may set.
	Cookie string
	// Label separates the seals of several sites.
	Label string
	Keys  Sealer
	// PublicURL is where browsers reach the site; with https the cookie is Secure.
	PublicURL string
	// Whole is how long a session lasts at most. An older cookie is refused unread.
	Whole time.Duration
	// Keep says that the browser keeps the cookie for Whole. Otherwise it forgets the cookie
	// when it is closed.
	Keep bool
	// Now is the service's clock, UTC.
	Now func() time.Time
}

// signedIn is what the cookie says.
type signedIn struct {
	ID    string    `json:"session_id"`
	Since time.Time `json:"since"`
}

func (s *SignIn) cookie() Cookie {
	return Cookie{Base: s.Cookie, PublicURL: s.PublicURL, SameSite: http.SameSiteStrictMode}
}

// Begin gives the browser the session with the id.
func (s *SignIn) Begin(w http.ResponseWriter, id string) error {
	plain, err := json.Marshal(signedIn{ID: id, Since: s.Now()})
	if err != nil {
		return err
	}
	sealed, err := s.Keys.Seal(s.Label, plain, nil)
	if err != nil {
		return err
	}
	maxAge := 0
	if s.Keep {
		maxAge = int(s.Whole.Seconds())
	}
	s.cookie().Set(w, base64.RawURLEncoding.EncodeToString(sealed), maxAge)
	return nil
}

// End takes the cookie from the browser. The caller ends the session.
func (s *SignIn) End(w http.ResponseWriter) { s.cookie().Set(w, "", -1) }

// Session returns the id of the browser's session; the caller finds the session. present
// says that the browser has a cookie, valid or not.
func (s *SignIn) Session(r *http.Request) (id string, present, ok bool) {
	cookie, err := r.Cookie(s.cookie().Name())
	if err != nil {
		return "", false, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return "", true, false
	}
	plain, err := s.Keys.OpenCredential(s.Label, sealed, nil)
	var in signedIn
	if err != nil || json.Unmarshal(plain, &in) != nil || in.ID == "" || s.Now().Sub(in.Since) >= s.Whole {
		return "", true, false
	}
	return in.ID, true, true
}
