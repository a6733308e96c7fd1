package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Head is middleware for the root router of the edge. It answers HEAD wherever GET is answered,
// with the same headers (RFC 9110, 9.3.2). net/http leaves out the body, because it keeps the request
// as it came.
func Head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := chi.RouteContext(r.Context()); at != nil && r.Method == http.MethodHead {
			as := *r
			as.Method, at.RouteMethod = http.MethodGet, http.MethodGet
			r = &as
		}
		next.ServeHTTP(w, r)
	})
}
