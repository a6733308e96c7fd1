package quittance

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrSignature says that a webhook is not signed by the service. Answer 400 and do nothing.
var ErrSignature = errors.New("quittance: the webhook is not signed with this secret, or too long ago")

// tolerance is how far the time of a webhook may be from now.
const tolerance = 5 * time.Minute

// shortestSecret is the fewest bytes of a secret, as Standard Webhooks has it. Whoever guesses
// a short one can sign webhooks.
const shortestSecret = 24

// longestWebhook is the most bytes of a webhook.
const longestWebhook = 1 << 20

// Event is a webhook. It is delivered at least once, and events may arrive out of order: drop
// those whose EventID you have seen, and of two of a session the one with the lower Sequence.
type Event struct {
	EventFields
	// Type is checkout.completed, checkout.failed, …
	Type string
	// Data is the whole event: a *CompletedEvent, *FailedEvent, *CancelledEvent,
	// *ExpiredEvent, *LatePaymentEvent, *ReversedEvent or *PartiallyReversedEvent; or, of an endpoint that names events of
	// disbursement batches, a *DisbursementCompletedEvent, *DisbursementLineRefusedEvent, *DisbursementLineReturnedEvent or
	// *DisbursementHeldEvent, of which EventFields has only what both kinds of events have. It is nil for a type that
	// this version does not know; ignore such events.
	Data any
}

// Receiver verifies webhooks (Standard Webhooks 1.0). It is safe for concurrent use.
type Receiver struct {
	keys [][]byte
	now  func() time.Time
}

// NewReceiver returns a receiver with the secrets of the endpoint, whsec_…. While a secret
// is rotated it may have the old one and the new one.
func NewReceiver(secrets ...string) (*Receiver, error) {
	r := &Receiver{now: time.Now}
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || !strings.HasPrefix(secret, "whsec_") {
			return nil, fmt.Errorf("quittance: secret %d must be whsec_ and base64, as it was shown", i+1)
		}
		if len(key) < shortestSecret {
			return nil, fmt.Errorf("quittance: secret %d is too short: it must have at least %d bytes; copy all of it, as it was shown", i+1, shortestSecret)
		}
		r.keys = append(r.keys, key)
	}
	if len(r.keys) == 0 {
		return nil, errors.New("quittance: a receiver needs the endpoint's secret, whsec_…")
	}
	return r, nil
}

// Read reads a webhook from a request and verifies it.
func (r *Receiver) Read(request *http.Request) (Event, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, request.Body, longestWebhook))
	if err != nil {
		return Event{}, fmt.Errorf("quittance: reading the webhook: %w", err)
	}
	return r.Verify(request.Header, body)
}

// Verify verifies a webhook and decodes it. The body must be as it arrived, byte for byte.
// The error is ErrSignature if the service did not sign it.
func (r *Receiver) Verify(header http.Header, body []byte) (Event, error) {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || r.now().Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return Event{}, ErrSignature
	}
	if !r.signed(id+"."+timestamp+".", body, strings.Fields(strings.Join(header.Values("webhook-signature"), " "))) {
		return Event{}, ErrSignature
	}
	return decode(body)
}

// signed reports whether one of the signatures is of one of the keys.
func (r *Receiver) signed(prefix string, body []byte, signatures []string) (ok bool) {
	for _, key := range r.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(prefix))
		mac.Write(body)
		want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, s := range signatures {
			ok = hmac.Equal([]byte(s), want) || ok
		}
	}
	return ok
}

func decode(body []byte) (Event, error) {
	var e Event
	var of struct {
		Event string `json:"event"`
	}
	if err := errors.Join(json.Unmarshal(body, &e.EventFields), json.Unmarshal(body, &of)); err != nil {
		return Event{}, fmt.Errorf("quittance: decoding the webhook: %w", err)
	}
	e.Type = of.Event
	switch e.Type {
	case string(CompletedEventEventCheckoutCompleted):
		e.Data = &CompletedEvent{}
	case string(FailedEventEventCheckoutFailed):
		e.Data = &FailedEvent{}
	case string(CancelledEventEventCheckoutCancelled):
		e.Data = &CancelledEvent{}
	case string(ExpiredEventEventCheckoutExpired):
		e.Data = &ExpiredEvent{}
	case string(LatePaymentEventEventCheckoutLatePayment):
		e.Data = &LatePaymentEvent{}
	case string(ReversedEventEventCheckoutReversed):
		e.Data = &ReversedEvent{}
	case string(PartiallyReversedEventEventCheckoutPartiallyReversed):
		e.Data = &PartiallyReversedEvent{}
	case string(DisbursementCompletedEventEventDisbursementCompleted):
		e.Data = &DisbursementCompletedEvent{}
	case string(DisbursementLineRefusedEventEventDisbursementLineRefused):
		e.Data = &DisbursementLineRefusedEvent{}
	case string(DisbursementLineReturnedEventEventDisbursementLineReturned):
		e.Data = &DisbursementLineReturnedEvent{}
	case string(DisbursementLineReturnWithdrawnEventEventDisbursementLineReturnWithdrawn):
		e.Data = &DisbursementLineReturnWithdrawnEvent{}
	case string(DisbursementHeldEventEventDisbursementHeld):
		e.Data = &DisbursementHeldEvent{}
	default:
		return e, nil
	}
	if err := json.Unmarshal(body, e.Data); err != nil {
		return Event{}, fmt.Errorf("quittance: decoding the webhook: %w", err)
	}
	return e, nil
}
