// Package problem holds the catalogue of errors and writes errors as RFC 9457 problem
// documents, in the shape of docs/design/decisions.md § 2. Every JSON API answers with them.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/internal/form"
)

// Problem is an error as the caller gets it. New makes one from the catalogue.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	Status int
	// Code is the contract's, such as generic.validation_failed.
	Code string
	// Title is the same for every problem of the code. Detail says what is wrong with
	// this request and how to mend it.
	Title, Detail string
	// Faults are the fields at fault.
	Faults []form.Fault
	// RetryAfter is sent in whole seconds, rounded up, when it is positive.
	RetryAfter time.Duration
	// SessionID is the session that has the order; empty in other problems.
	SessionID string
	// Quota is sent when the request was counted against one.
	Quota *Quota
	// Dues are those of a cart as they are now; nil in other problems. It is marshalled.
	Dues any
	// Replayed says that this is an earlier answer again.
	Replayed bool
}

// shortestRetry is the RetryAfter of a problem that will pass.
const shortestRetry = time.Second

// Saying replaces the catalogue's detail.
func (p *Problem) Saying(format string, args ...any) *Problem {
	p.Detail = fmt.Sprintf(format, args...)
	return p
}

// staleRetry is the RetryAfter of Stale. The instance is cut off for a quarter of an hour
// already, and another one may answer.
const staleRetry = 10 * time.Second

// Stale is the problem of a request with a key that this instance cannot judge, because it
// has not heard of revocations for too long.
func Stale() *Problem {
	p := New("generic.unavailable").Saying("The service cannot tell at present which keys are valid. Nothing was done: send the request again.")
	p.RetryAfter = staleRetry
	return p
}

// secrets are what people take for one another, by how they begin.
var secrets = []struct{ prefix, is string }{
	{"sk_", "the key of an application"},
	{"ck_", "the key of a clerk"},
	{"st_", "the key of a member of staff"},
	{"oat_", "a token of the deprecated cash-in API"},
	{"chs_secret_", "the client_secret of a session"},
	{"whsec_", "the secret of an endpoint"},
	{"cpt_", "a completion token"},
}

// UnknownKey says in a problem whose detail ends with what to send that a token is of another kind. It
// says what the beginning shows, and nothing of whether such a token exists.
func UnknownKey(p *Problem, token string) *Problem {
	_, send, _ := strings.Cut(p.Detail, ": ")
	for _, s := range secrets {
		if strings.HasPrefix(token, s.prefix) && !strings.Contains(send, " "+s.prefix) {
			return p.Saying("What begins with %s is %s: %s", s.prefix, s.is, send)
		}
	}
	return p
}

// Error makes a Problem an error that handlers may return.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// From returns the problem that an error of a handler is: a *Problem as it is, or the
// problem of what package form refused. Otherwise it returns nil.
func From(err error) *Problem {
	var p *Problem
	var malformed *form.MalformedError
	var faulty *form.FaultsError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &malformed):
		return Malformed(err)
	case errors.As(err, &faulty):
		return Invalid(faulty.Faults)
	}
	return nil
}

// Quota says how much of a limit is left (IETF draft-ietf-httpapi-ratelimit-headers).
type Quota struct {
	// Name tells quotas apart, such as creations and reads.
	Name string
	// Limit is the number of requests in a minute, Remaining how many of them are left.
	Limit, Remaining int
	// Reset is the time until the next minute begins. It is sent in whole seconds,
	// rounded up.
	Reset time.Duration
}

// Policy is the value of the header RateLimit-Policy.
func (q Quota) Policy() string { return `"` + q.Name + `";q=` + strconv.Itoa(q.Limit) + ";w=60" }

// State is the value of the header RateLimit.
func (q Quota) State() string {
	return `"` + q.Name + `";r=` + strconv.Itoa(q.Remaining) + ";t=" + strconv.Itoa(Seconds(q.Reset))
}

// Write sets both headers. A nil quota sets none.
func (q *Quota) Write(h http.Header) {
	if q != nil {
		h.Set("RateLimit-Policy", q.Policy())
		h.Set("RateLimit", q.State())
	}
}

// Seconds returns a time in whole seconds, rounded up, as headers have it (RFC 9110, Retry-After).
func Seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// Document is a problem as it is written (RFC 9457), with the extensions of
// docs/design/decisions.md § 2.
type Document struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	Message   string       `json:"message"`
	RequestID string       `json:"request_id"`
	Errors    []form.Fault `json:"errors"`
	SessionID string       `json:"session_id,omitempty"`
	Dues      any          `json:"dues,omitempty"`
}

// Document returns the document that answers the request of this id. pages is the address
// of the service, without a slash at its end, where the page of each code is.
func (p *Problem) Document(pages, requestID string) Document {
	return Document{
		Type: pages + TypePrefix + p.Code, Title: p.Title, Status: p.Status, Detail: p.Detail, Code: p.Code, Message: p.Detail,
		RequestID: requestID, Errors: append([]form.Fault{}, p.Faults...), // never null
		SessionID: p.SessionID, Dues: p.Dues,
	}
}

// TypePrefix and a code make the path of the code's page. The address of the page is a
// problem's type.
const TypePrefix = "/docs/errors/"

// Write answers the request with the problem.
func Write(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(Seconds(p.RetryAfter)))
	}
	p.Quota.Write(h)
	if p.Replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="quittance"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p.Document(pagesOf(r.Context()), RequestID(r.Context()))) // fails only when the caller is gone
}

type pagesKey struct{}

// WithPages is middleware that makes the type of problems an absolute address. address is that
// of the service, without a slash at its end.
func WithPages(address string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), pagesKey{}, address)))
		})
	}
}

// pagesOf returns the address of WithPages, or an empty text outside it.
func pagesOf(ctx context.Context) string {
	address, _ := ctx.Value(pagesKey{}).(string)
	return address
}

type requestIDKey struct{}

// RequestIDHeader is on every response.
const RequestIDHeader = "X-Request-Id"

// WithRequestID is middleware that gives every request a new id. The caller's own
// header is ignored, because the id is logged.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		w.Header().Set(RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

// RequestID returns the id of the request, or an empty text outside WithRequestID.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
