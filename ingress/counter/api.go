package counter

import (
	_ "embed" // openapi.yaml
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/identity"
)

// Prefix is the path of the API. Paths below it that do not exist are answered with
// problem documents.
const Prefix = "/api/v1/counter"

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the description of the API, OpenAPI 3.1 in YAML.
func OpenAPI() []byte { return openAPI }

const (
	maxRef    = 64 // more than a reference has, so that a wrong one is answered as mistyped
	maxReason = 200
)

// handler is one operation of the API; body is the body of a POST. The answer is
// written as JSON. The error is a *refusal, a *problem.Problem or an error of package
// form.
type handler func(d *desk, r *http.Request, body []byte) (status int, answer any, replayed bool, err error)

func (c *Counter) api() http.Handler {
	r := chi.NewRouter()
	problem.Unrouted(r, nil)
	r.Get(Prefix+"/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	r.Post(Prefix+"/reservations", c.answer(reservations))
	r.Post(Prefix+"/payments", c.answer(payments))
	r.Get(Prefix+"/payments/{payment_ref}", c.answer(payment))
	r.Post(Prefix+"/releases", c.answer(releases))
	r.Post(Prefix+"/reversals", c.answer(reversals))
	return r
}

// answer runs an operation for the clerk of the request's key.
func (c *Counter) answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		clerk, err := c.cfg.Identities.AuthenticateClerk(problem.Bearer(r))
		if errors.Is(err, identity.ErrStale) {
			problem.Write(w, r, problem.Stale())
			return
		}
		if err != nil {
			problem.Write(w, r, problem.UnknownKey(problem.New("generic.unauthorized").
				Saying("The clerk's key is missing, unknown or revoked: send Authorization: Bearer ck_test_… or ck_live_…."), problem.Bearer(r)))
			return
		}
		d := &desk{c: c, ClerkPrincipal: clerk}
		var body []byte
		if r.Method == http.MethodPost {
			if body, err = problem.ReadBody(w, r); err != nil {
				c.fail(w, r, err)
				return
			}
		}
		status, out, replayed, err := h(d, r, body)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		d.quota.Write(w.Header())
		if replayed {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out) // fails only when the caller is gone
	}
}

func (c *Counter) fail(w http.ResponseWriter, r *http.Request, err error) {
	response := problem.From(err)
	if response == nil {
		response = asRefusal(err).problem(c.now())
	}
	problem.Write(w, r, response)
}

// reservationJSON is the answer to a look-up.
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

func reservations(d *desk, r *http.Request, body []byte) (int, any, bool, error) {
	f, err := readForm(body)
	if err != nil {
		return 0, nil, false, err
	}
	ref := f.Text("payment_ref", true, 1, maxRef)
	if err := f.Err(); err != nil {
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

// takenJSON is the answer when cash was put on record or reversed.
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
	} else if c, ok := s.CashOrphan(collectionID); ok {
		out.Total, out.Clerk, out.TakenAt, out.Receipt = c.Amount, &c.By, moment(c.OpenedAt), text(c.OperatorRef)
		if c.Resolution == checkout.ResolutionCashReturned {
			out.ReversedBy, out.ReversedAt = text(c.ClosedBy), moment(c.ClosedAt)
		}
	}
	return out
}

func payments(d *desk, r *http.Request, body []byte) (int, any, bool, error) {
	t, err := readReport(body)
	if err != nil {
		return 0, nil, false, err
	}
	s, became, replayed, err := d.take(r.Context(), t)
	if err != nil {
		return 0, nil, false, err
	}
	return http.StatusOK, toTaken(s, became, t.collectionID, t.total), replayed, nil
}

// releasedJSON is the answer when a reservation was released.
type releasedJSON struct {
	CollectionID string `json:"collection_id"`
	PaymentRef   string `json:"payment_ref"`
	Status       string `json:"status"` // released
}

func releases(d *desk, r *http.Request, body []byte) (int, any, bool, error) {
	f, err := readForm(body)
	if err != nil {
		return 0, nil, false, err
	}
	ref, id := f.Text("payment_ref", true, 1, maxRef), f.UUID("collection_id", true)
	if err := f.Err(); err != nil {
		return 0, nil, false, err
	}
	if err := d.release(r.Context(), ref, id); err != nil {
		return 0, nil, false, err
	}
	return http.StatusOK, releasedJSON{CollectionID: id, PaymentRef: ref, Status: "released"}, false, nil
}

func reversals(d *desk, r *http.Request, body []byte) (int, any, bool, error) {
	f, err := readForm(body)
	if err != nil {
		return 0, nil, false, err
	}
	ref, id, reason := f.Text("payment_ref", true, 1, maxRef), f.UUID("collection_id", true), f.Line("reason", true, maxReason)
	if err := f.Err(); err != nil {
		return 0, nil, false, err
	}
	s, replayed, err := d.reverse(r.Context(), ref, id, reason)
	if err != nil {
		return 0, nil, false, err
	}
	return http.StatusOK, toTaken(s, "reversed", id, 0), replayed, nil
}

// paymentJSON is the state of a payment, without the citizen's data.
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
	Channel      *string   `json:"channel"` // by which it is paid or being paid
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

func payment(d *desk, r *http.Request, _ []byte) (int, any, bool, error) {
	s, err := d.look(r.Context(), chi.URLParam(r, "payment_ref"))
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
		if c.Origin() == checkout.OriginCounter {
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
