package cashin

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"quittance/ingress/problem"
	"quittance/internal/commands"
)

// Codes of errors (contract, "Deprecated cash-in errors"), and those that its framework had.
const (
	codeUnauthorized     = "E_UNAUTHORIZED_ACCESS"
	codeRowNotFound      = "E_ROW_NOT_FOUND"
	codeProviderUnknown  = "PROVIDER_NOT_FOUND"
	codeProviderOff      = "PROVIDER_NOT_CONFIGURED"
	codePhone            = "INVALID_PHONE_NUMBER"
	codeGateway          = "GATEWAY_REQUEST_FAILED"
	codeTooMany          = "E_TOO_MANY_REQUESTS"
	codeInternal         = "E_INTERNAL_ERROR"
	codeBadRequest       = "E_BAD_REQUEST"
	codeMethodNotAllowed = "E_METHOD_NOT_ALLOWED"
	codeRouteNotFound    = "E_ROUTE_NOT_FOUND"
	codeTooLarge         = "E_REQUEST_ENTITY_TOO_LARGE"
	codeMediaType        = "E_UNSUPPORTED_MEDIA_TYPE"
)

// refusal is an error with exactly the three fields of the contract.
type refusal struct {
	Message string `json:"message"`
	Status  int    `json:"status"`
	Code    string `json:"code"`

	retryAfter time.Duration
}

func (e *refusal) Error() string { return e.Code }

func refuse(status int, code, message string) *refusal {
	return &refusal{Message: message, Status: status, Code: code}
}

func unauthorized() *refusal {
	return refuse(http.StatusUnauthorized, codeUnauthorized, "Unauthorized access.")
}

func tooMany(after time.Duration) *refusal {
	e := refuse(http.StatusTooManyRequests, codeTooMany, "Too many requests. Retry-After says when to send it again.")
	e.retryAfter = max(after, time.Second)
	return e
}

// internalRetry is the Retry-After of an error that passes.
const internalRetry = 5 * time.Second

func internal() *refusal {
	e := refuse(http.StatusInternalServerError, codeInternal, "Internal error. Send the request again later.")
	e.retryAfter = internalRetry
	return e
}

// faulty is the error of a form: exactly message and errors.
type faulty struct {
	Message string  `json:"message"`
	Errors  []fault `json:"errors"`
}

func (e *faulty) Error() string { return "validation failed" }

// fail answers with the error and returns the status.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) (status int) {
	var e *refusal
	var f *faulty
	switch {
	case errors.As(err, &f):
		write(w, http.StatusUnprocessableEntity, f)
		return http.StatusUnprocessableEntity
	case errors.As(err, &e):
	default:
		a.failed(r, err)
		e = internal()
	}
	write(w, e.Status, e)
	return e.Status
}

// failed logs why a request is answered with 500.
func (a *API) failed(r *http.Request, err error) {
	level := slog.LevelError
	if errors.Is(err, commands.ErrUnavailable) {
		level = slog.LevelWarn // Kafka is late
	}
	a.cfg.Log.LogAttrs(r.Context(), level, "a request of the cash-in surface failed",
		slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
}

// write answers with a JSON body.
func write(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if e, ok := body.(*refusal); ok && e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(problem.Seconds(e.retryAfter)))
	}
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // fails only when the caller is gone
}

// isoMillis is how dates are written: as JSON.stringify writes them.
const isoMillis = "2006-01-02T15:04:05.000Z"

func iso(t time.Time) string { return t.UTC().Format(isoMillis) }

// orNull makes an empty text null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
