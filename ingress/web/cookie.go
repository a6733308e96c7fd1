package web

import (
	"net/http"
	"strings"
)

// Cookie is a cookie for all pages of the service, which no script can read.
type Cookie struct {
	// Base is its name. Over https it gets the prefix __Host-, which only https may set.
	Base string
	// PublicURL is where browsers reach the service; with https the cookie is Secure.
	PublicURL string
	SameSite  http.SameSite
}

func (c Cookie) secure() bool { return strings.HasPrefix(c.PublicURL, "https://") }

// Name is the name by which browsers know the cookie.
func (c Cookie) Name() string {
	if c.secure() {
		return "__Host-" + c.Base
	}
	return c.Base
}

// Set gives the cookie to the browser for maxAge seconds: zero until the browser is closed,
// below zero to remove it.
func (c Cookie) Set(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the service is reached over https
		Name: c.Name(), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: c.secure(), SameSite: c.SameSite,
	})
}
