// Package problem writes errors as RFC 9457 problem documents, in the shape of
// decisions § 2: the same in every answer of every JSON surface.
package problem

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"quittance/internal/form"
)

// Problem is an error as a caller is told it.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	Status int
	// Code is the contract's, such as generic.validation_failed.
	Code string
	// Title is the same for every problem of the code; Detail says what was wrong
	// this time and how to mend it.
	Title  string
	Detail string
	// Faults are the fields at fault.
	Faults []form.Fault
	// RetryAfter is told in whole seconds, rounded up, when positive.
	RetryAfter time.Duration
	// Quota is told when the request was counted against one.
	Quota *Quota
	// Replayed says that this is an earlier answer again.
	Replayed bool
}

// Quota is how much of a limit is left (IETF draft-ietf-httpapi-ratelimit-headers).
type Quota struct {
	// Name tells quotas apart: creations, reads.
	Name string
	// Limit is how many requests a minute takes; Remaining how many are left of them.
	Limit, Remaining int
	// Reset is when the next minute begins, told in whole seconds, rounded up.
	Reset time.Duration
}

// Policy is the value of RateLimit-Policy.
func (q Quota) Policy() string { return `"` + q.Name + `";q=` + strconv.Itoa(q.Limit) + ";w=60" }

// State is the value of RateLimit.
func (q Quota) State() string {
	return `"` + q.Name + `";r=` + strconv.Itoa(q.Remaining) + ";t=" + strconv.Itoa(seconds(q.Reset))
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// Error makes a Problem an error that handlers may return.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Document is a problem as it is written (RFC 9457), with the extensions of
// decisions § 2.
type Document struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	Message   string       `json:"message"`
	RequestID string       `json:"request_id"`
	Errors    []form.Fault `json:"errors"`
}

// Document is the problem as the request of this id is told it.
func (p *Problem) Document(requestID string) Document {
	faults := p.Faults
	if faults == nil {
		faults = []form.Fault{}
	}
	return Document{
		Type: TypePrefix + p.Code, Title: p.Title, Status: p.Status, Detail: p.Detail, Code: p.Code, Message: p.Detail,
		RequestID: requestID, Errors: faults,
	}
}

// TypePrefix is where a problem's type is explained; the code follows.
const TypePrefix = "/docs/errors/"

// Write answers the request with the problem.
func Write(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds(p.RetryAfter)))
	}
	if p.Quota != nil {
		h.Set("RateLimit-Policy", p.Quota.Policy())
		h.Set("RateLimit", p.Quota.State())
	}
	if p.Replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="quittance"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p.Document(RequestID(r.Context()))) // the caller is gone when it fails
}

type requestIDKey struct{}

// RequestIDHeader is on every response.
const RequestIDHeader = "X-Request-Id"

// WithRequestID gives every request an id of ours: what a caller sends is not
// taken over, as it would end in logs.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		w.Header().Set(RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

// RequestID is the id of the request, empty outside WithRequestID.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
