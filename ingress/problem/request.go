package problem

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/internal/form"
)

// MaxBody is the size of the largest body that is read, in bytes (docs/design/decisions.md § 2).
const MaxBody = 64 << 10

// ReadBody reads the whole JSON body of a request. The error is a *Problem. ReadBody
// does not look at the JSON: package form does, see Malformed.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, New("generic.unsupported_media_type")
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), MaxBody)) + bytes.MinRead) // one allocation when the length is known
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, New("generic.body_too_large")
	case err != nil:
		return nil, New("generic.malformed_json").Saying("The body could not be read to its end: send it again.")
	}
	return body.Bytes(), nil
}

// Malformed returns the problem of a body that form.Decode could not read.
func Malformed(err error) *Problem {
	p := New("generic.malformed_json")
	var malformed *form.MalformedError
	if errors.As(err, &malformed) {
		p.Detail = malformed.Detail
	}
	return p
}

// Invalid returns the problem of fields at fault. There must be at least one.
func Invalid(faults []form.Fault) *Problem {
	return New(checkout.CodeValidationFailed).Naming(faults)
}

// Naming sets the fields at fault, at least one, and the detail that they make.
func (p *Problem) Naming(faults []form.Fault) *Problem {
	p.Faults, p.Detail = faults, faults[0].Message
	if len(faults) > 1 {
		p.Detail = fmt.Sprintf("%d fields are at fault; errors names each of them.", len(faults))
	}
	return p
}

// Bearer returns the token of the request's Authorization header. It is empty when
// there is none, or more than one header.
func Bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Unrouted makes a router answer with problems where it has no route. The Allow
// header of a 405 names the methods among GET, POST and DELETE that lead to an operation, and HEAD
// next to GET, as web.Head has it: operation says so of a method and a pattern; nil takes every
// route for one.
func Unrouted(r *chi.Mux, operation func(method, pattern string) bool) http.HandlerFunc {
	r.NotFound(func(w http.ResponseWriter, req *http.Request) { Write(w, req, New("generic.not_found")) })
	methodNotAllowed := func(w http.ResponseWriter, req *http.Request) {
		allowed := slices.DeleteFunc([]string{http.MethodGet, http.MethodPost, http.MethodDelete}, func(method string) bool {
			pattern := r.Find(chi.NewRouteContext(), method, req.URL.Path)
			return pattern == "" || operation != nil && !operation(method, pattern)
		})
		if len(allowed) > 0 && allowed[0] == http.MethodGet {
			allowed = slices.Insert(allowed, 1, http.MethodHead)
		}
		w.Header()["Allow"] = allowed
		Write(w, req, New("generic.method_not_allowed"))
	}
	r.MethodNotAllowed(methodNotAllowed)
	return methodNotAllowed
}
