package cash

import (
	_ "embed" // openapi.yaml
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/problem"
)

// Prefix is the path below which the API answers, with problem documents also for
// paths that do not exist.
const Prefix = "/api/v1/counter"

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the description of the API, OpenAPI 3.1 in YAML.
func OpenAPI() []byte { return openAPI }

const (
	maxBody    = 64 << 10
	maxReceipt = 64
	maxReason  = 200
)

// handler is one operation of the API. The answer is written as JSON; the error is
// a *refusal or a *problem.Problem.
type handler func(d *desk, r *http.Request) (status int, answer any, replayed bool, err error)

func (c *Counter) api() http.Handler {
	r := chi.NewRouter()
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, &problem.Problem{Status: http.StatusNotFound, Code: "generic.not_found", Title: "Not found", Detail: "There is nothing at this path."})
	})
	methods := map[string]string{}
	route := func(method, path string, h http.HandlerFunc) {
		r.Method(method, Prefix+path, h)
		methods[Prefix+path] = method
	}
	route(http.MethodGet, "/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	route(http.MethodPost, "/reservations", c.answer(reservations))
	route(http.MethodPost, "/payments", c.answer(payments))
	route(http.MethodGet, "/payments/{payment_ref}", c.answer(payment))
	route(http.MethodPost, "/releases", c.answer(releases))
	route(http.MethodPost, "/reversals", c.answer(reversals))
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) {
		for _, method := range slices.Sorted(maps.Values(methods)) {
			if path := r.Find(chi.NewRouteContext(), method, req.URL.Path); path != "" && methods[path] == method {
				w.Header().Set("Allow", method) // each path has one
			}
		}
		problem.Write(w, req, &problem.Problem{
			Status: http.StatusMethodNotAllowed, Code: "generic.method_not_allowed", Title: "Method not allowed",
			Detail: "This path does not take this method; the Allow header names the one it takes.",
		})
	})
	return r
}

// answer is a handler for a clerk whom the key tells.
func (c *Counter) answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		clerk, err := c.cfg.Registry.AuthenticateClerk(bearer(r))
		if err != nil {
			c.fail(w, r, &refusal{status: http.StatusUnauthorized, code: codeUnauthorized})
			return
		}
		d := &desk{c: c, ClerkPrincipal: clerk}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status, body, replayed, err := h(d, r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		if d.quota != nil {
			w.Header().Set("RateLimit-Policy", d.quota.Policy())
			w.Header().Set("RateLimit", d.quota.State())
		}
		if replayed {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // the caller is gone when it fails
	}
}

func (c *Counter) fail(w http.ResponseWriter, r *http.Request, err error) {
	var told *problem.Problem
	var refused *refusal
	switch {
	case errors.As(err, &told):
	case errors.As(err, &refused):
		told = refused.problem(c.now())
	default:
		told = (&refusal{status: http.StatusServiceUnavailable, code: codeUnavailable}).problem(c.now())
	}
	problem.Write(w, r, told)
}

// bearer is the request's token, empty when it has none or several.
func bearer(r *http.Request) string {
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

// reservationJSON is a look-up's answer.
type reservationJSON struct {
	CollectionID  string `json:"collection_id"`
	PaymentRef    string `json:"payment_ref"`
	ServiceLabel  string `json:"service_label"`
	Description   string `json:"description"`
	Amount        int64  `json:"amount"`
	Fee           int64  `json:"fee"`
	Total         int64  `json:"total"`
	Currency      string `json:"currency"`
	ReservedUntil string `json:"reserved_until"`
	ExpiresAt     string `json:"expires_at"`
}

func reservations(d *desk, r *http.Request) (int, any, bool, error) {
	b, err := readBody(r)
	if err != nil {
		return 0, nil, false, err
	}
	ref := b.text("payment_ref", true, nil)
	if err := b.done(); err != nil {
		return 0, nil, false, err
	}
	s, fresh, err := d.reserve(r.Context(), ref)
	if err != nil {
		return 0, nil, false, err
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	c := s.Collection
	return status, reservationJSON{
		CollectionID: c.ID, PaymentRef: s.PaymentRef, ServiceLabel: s.ServiceLabel, Description: s.Description,
		Amount: s.Amount, Fee: c.Fee, Total: c.Amount, Currency: s.Currency,
		ReservedUntil: timestamp(c.WindowEndsAt), ExpiresAt: timestamp(s.ExpiresAt),
	}, !fresh, nil
}

// takenJSON is the answer to cash that was put on record, or reversed.
type takenJSON struct {
	Status       string  `json:"status"` // completed, late, case, reversed
	CollectionID string  `json:"collection_id"`
	PaymentRef   string  `json:"payment_ref"`
	Total        int64   `json:"total"`
	Currency     string  `json:"currency"`
	Clerk        *string `json:"clerk"`
	TakenAt      *string `json:"taken_at"`
	Receipt      *string `json:"receipt"`
	ReversedBy   *string `json:"reversed_by"`
	ReversedAt   *string `json:"reversed_at"`
}

func toTaken(s checkout.Session, became, collectionID string, total int64) takenJSON {
	out := takenJSON{Status: became, CollectionID: collectionID, PaymentRef: s.PaymentRef, Total: total, Currency: s.Currency}
	if isTaken(s, collectionID) {
		c := s.Collection
		out.Total, out.Clerk, out.TakenAt, out.Receipt = c.Amount, &c.Clerk, moment(c.DecidedAt), text(c.OperatorRef)
		out.ReversedBy, out.ReversedAt = text(c.ReversedBy), moment(c.ReversedAt)
	}
	return out
}

func payments(d *desk, r *http.Request) (int, any, bool, error) {
	b, err := readBody(r)
	if err != nil {
		return 0, nil, false, err
	}
	t := taking{
		ref: b.text("payment_ref", true, nil), collectionID: b.id("collection_id"), total: b.integer("total"),
		receipt: b.text("receipt", false, printable(maxReceipt)),
	}
	if err := b.done(); err != nil {
		return 0, nil, false, err
	}
	s, became, replayed, err := d.take(r.Context(), t)
	if err != nil {
		return 0, nil, false, err
	}
	return http.StatusOK, toTaken(s, became, t.collectionID, t.total), replayed, nil
}

// releasedJSON is the answer to a reservation that was given up.
type releasedJSON struct {
	CollectionID string `json:"collection_id"`
	PaymentRef   string `json:"payment_ref"`
	Status       string `json:"status"` // released
}

func releases(d *desk, r *http.Request) (int, any, bool, error) {
	b, err := readBody(r)
	if err != nil {
		return 0, nil, false, err
	}
	ref, id := b.text("payment_ref", true, nil), b.id("collection_id")
	if err := b.done(); err != nil {
		return 0, nil, false, err
	}
	if err := d.release(r.Context(), ref, id); err != nil {
		return 0, nil, false, err
	}
	return http.StatusOK, releasedJSON{CollectionID: id, PaymentRef: ref, Status: "released"}, false, nil
}

func reversals(d *desk, r *http.Request) (int, any, bool, error) {
	b, err := readBody(r)
	if err != nil {
		return 0, nil, false, err
	}
	ref, id, reason := b.text("payment_ref", true, nil), b.id("collection_id"), b.text("reason", true, printable(maxReason))
	if err := b.done(); err != nil {
		return 0, nil, false, err
	}
	s, replayed, err := d.reverse(r.Context(), ref, id, reason)
	if err != nil {
		return 0, nil, false, err
	}
	return http.StatusOK, toTaken(s, "reversed", id, 0), replayed, nil
}

// paymentJSON is where a payment stands. It names no citizen.
type paymentJSON struct {
	PaymentRef   string    `json:"payment_ref"`
	Status       string    `json:"status"` // of the session
	ServiceLabel string    `json:"service_label"`
	Description  string    `json:"description"`
	Amount       int64     `json:"amount"`
	Fee          *int64    `json:"fee"` // null where cash is not offered
	Total        *int64    `json:"total"`
	Currency     string    `json:"currency"`
	ExpiresAt    string    `json:"expires_at"`
	EndedAt      *string   `json:"ended_at"`
	Channel      *string   `json:"channel"` // by which it is, or is being, paid
	Cash         *cashJSON `json:"cash"`
}

type cashJSON struct {
	Status        string  `json:"status"` // reserved, taken, reversed
	CollectionID  string  `json:"collection_id"`
	Clerk         string  `json:"clerk"`
	ReservedUntil *string `json:"reserved_until"`
	TakenAt       *string `json:"taken_at"`
	Receipt       *string `json:"receipt"`
	ReversedBy    *string `json:"reversed_by"`
	ReversedAt    *string `json:"reversed_at"`
}

func payment(d *desk, r *http.Request) (int, any, bool, error) {
	if err := d.lookUps(r.Context()); err != nil {
		return 0, nil, false, err
	}
	s, err := d.find(r.Context(), chi.URLParam(r, "payment_ref"))
	if err != nil {
		return 0, nil, false, err
	}
	out := paymentJSON{
		PaymentRef: s.PaymentRef, Status: string(s.Status), ServiceLabel: s.ServiceLabel, Description: s.Description,
		Amount: s.Amount, Currency: s.Currency, ExpiresAt: timestamp(s.ExpiresAt), EndedAt: moment(s.EndedAt),
	}
	if offer, ok := s.Offer(checkout.OfferCashAgency); ok {
		total := s.Amount + offer.Fee
		out.Fee, out.Total = &offer.Fee, &total
	}
	if c := s.Collection; c != nil {
		out.Channel = text(string(c.Channel))
		if c.Channel == checkout.ChannelCash {
			out.Cash = toCash(c)
		}
	}
	return http.StatusOK, out, false, nil
}

func toCash(c *checkout.Collection) *cashJSON {
	out := &cashJSON{Status: "reserved", CollectionID: c.ID, Clerk: c.Clerk}
	if c.Status != checkout.CollectionApproved {
		out.ReservedUntil = moment(c.WindowEndsAt)
		return out
	}
	out.Status, out.TakenAt, out.Receipt = "taken", moment(c.DecidedAt), text(c.OperatorRef)
	if c.ReversedBy != "" {
		out.Status, out.ReversedBy, out.ReversedAt = "reversed", &c.ReversedBy, moment(c.ReversedAt)
	}
	return out
}

func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return text(timestamp(t))
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// body is a request's JSON object, read field by field. done tells all faults.
type body struct {
	fields map[string]json.RawMessage
	known  []string
	faults []problem.Fault
}

func readBody(r *http.Request) (*body, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, &problem.Problem{Status: http.StatusUnsupportedMediaType, Code: "generic.unsupported_media_type", Title: "Unsupported media type", Detail: "Send the body as application/json."}
	}
	raw, err := io.ReadAll(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &problem.Problem{Status: http.StatusRequestEntityTooLarge, Code: "generic.body_too_large", Title: "Body too large", Detail: "The body has more than 64 KiB."}
	}
	b := &body{}
	if err != nil || json.Unmarshal(raw, &b.fields) != nil || b.fields == nil {
		return nil, &problem.Problem{Status: http.StatusBadRequest, Code: "generic.malformed_json", Title: "Malformed JSON", Detail: "The body is not one JSON object."}
	}
	return b, nil
}

func (b *body) fault(field, rule, message string) {
	b.faults = append(b.faults, problem.Fault{Field: field, Rule: rule, Message: field + " " + message})
}

// get is a field's value; absent and null are alike.
func (b *body) get(name string, required bool) (json.RawMessage, bool) {
	b.known = append(b.known, name)
	raw, ok := b.fields[name]
	if ok && string(raw) != "null" {
		return raw, true
	}
	if required {
		b.fault(name, "required", "is required.")
	}
	return nil, false
}

// text is a field's text. check says what is wrong with it; required text is not
// empty.
func (b *body) text(name string, required bool, check func(string) string) (s string) {
	raw, ok := b.get(name, required)
	switch {
	case !ok:
	case json.Unmarshal(raw, &s) != nil:
		b.fault(name, "type", "must be text.")
	case s == "" && required:
		b.fault(name, "required", "must not be empty.")
	case s != "" && check != nil:
		if wrong := check(s); wrong != "" {
			b.fault(name, "format", wrong)
		}
	}
	return s
}

func (b *body) integer(name string) (n int64) {
	if raw, ok := b.get(name, true); ok && json.Unmarshal(raw, &n) != nil {
		b.fault(name, "type", "must be a whole number of minor units.")
	}
	return n
}

// id is a field's UUID, in lower case.
func (b *body) id(name string) string {
	s := b.text(name, true, func(s string) string {
		if _, ok := canonicalID(s); !ok {
			return "must be the collection_id of a reservation, a UUID."
		}
		return ""
	})
	s, _ = canonicalID(s)
	return s
}

// canonicalID is a UUID in lower case. Only the form with hyphens is one.
func canonicalID(s string) (string, bool) {
	u, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return "", false
	}
	return u.String(), true
}

// printable checks text of at most so many characters.
func printable(atMost int) func(string) string {
	return func(s string) string {
		if !isPrintable(s, atMost) {
			return fmt.Sprintf("must be 1 to %d printable characters.", atMost)
		}
		return ""
	}
}

func isPrintable(s string, atMost int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= atMost && strings.TrimSpace(s) != "" &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// done tells what is wrong with the body, fields that nobody asked for included.
func (b *body) done() error {
	for _, name := range slices.Sorted(maps.Keys(b.fields)) {
		if !slices.Contains(b.known, name) {
			b.fault(name, "unknown", "is not a field of this request.")
		}
	}
	if len(b.faults) == 0 {
		return nil
	}
	return &refusal{status: http.StatusUnprocessableEntity, code: string(checkout.CodeValidationFailed), faults: b.faults}
}
