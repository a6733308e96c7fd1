package web

import (
	"io"
	"net/http"
)

// Protect sets the security headers of a page. The policy is the page's
// Content-Security-Policy, referrer its Referrer-Policy.
func Protect(h http.Header, policy, referrer string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", referrer)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// StrictTransport is middleware that tells browsers to come by https for a year (RFC 6797).
func StrictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

// WriteAsset answers with a file whose address changes with its content.
func WriteAsset(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body)
}

// SameSite returns middleware that answers 403 to posts from other sites. It sets the
// headers of the answer with headers.
//
// For pages that act on cookies, origin is the origin under which browsers see them.
// For pages without cookies it is empty. Then a request passes with "Origin: null" and
// without Sec-Fetch-Site: the Referrer-Policy no-referrer makes a browser older than
// 2023 send that with our own forms, and refusing it would keep its user from paying.
func SameSite(origin string, headers func(http.Header)) (func(http.Handler) http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	if origin != "" {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			old := origin == "" && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null"
			if !old && protection.Check(r) != nil {
				headers(w.Header())
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, french.Foreign+"\n"+english.Foreign+"\n")
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}
