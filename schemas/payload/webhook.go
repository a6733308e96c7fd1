// Package payload writes the bodies of deliveries: webhooks to integrators and payment
// confirmations to the ERP of an agency. A body is written once, in the transaction of the
// event. Every delivery attempt sends the same bytes.
package payload

import (
	"encoding/json"
	"errors"
	"time"

	"quittance/checkout"
)

// apiVersion is the API version of the body.
const apiVersion = "v1"

// webhook is the flat body (docs/design/decisions.md § 5).
type webhook struct {
	EventID       string            `json:"event_id"`
	Event         string            `json:"event"`
	APIVersion    string            `json:"api_version"`
	CreatedAt     string            `json:"created_at"`
	Livemode      bool              `json:"livemode"`
	Sequence      int64             `json:"sequence"`
	ApplicationID string            `json:"application_id"`
	TenantID      string            `json:"tenant_id"`
	SessionID     string            `json:"session_id"`
	OrderID       string            `json:"order_id"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Status        string            `json:"status"`
	Paid          bool              `json:"paid"`
	PaymentRef    string            `json:"payment_ref"`
	Metadata      map[string]string `json:"metadata"`
	ServiceCode   *string           `json:"service_code"`
	ServiceLabel  *string           `json:"service_label"`

	*webhookPayment
	*webhookFailure
}

// webhookPayment holds the additional fields of checkout.completed and
// checkout.late_payment.
type webhookPayment struct {
	NoticeID      string `json:"notice_id"`
	TransactionID string `json:"transaction_id"`
	Channel       string `json:"channel"`
	OfferID       string `json:"offer_id"`
	OperatorRef   string `json:"operator_ref"`
	FeeAmount     int64  `json:"fee_amount"`
	TotalAmount   int64  `json:"total_amount"`
	// CompletedAt is absent from a late payment, which completes nothing.
	CompletedAt string `json:"completed_at,omitempty"`
	// Late is set when an operator case completed the session after its end.
	Late bool `json:"late,omitempty"`
	// Items are the dues of a session that pays several.
	Items []webhookItem `json:"items,omitempty"`
}

// webhookFailure holds the additional fields of checkout.failed.
type webhookFailure struct {
	FailureCode    string `json:"failure_code"`
	FailureMessage string `json:"failure_message"`
}

// webhookReversed is the body of checkout.reversed (docs/design/decisions.md § 14).
type webhookReversed struct {
	webhook

	TransactionID  string        `json:"transaction_id"`
	Items          []webhookItem `json:"items"`
	ReversedAt     string        `json:"reversed_at"`
	ReversalReason string        `json:"reversal_reason"`
	ReversalRef    *string       `json:"reversal_ref"`
	WasCompleted   bool          `json:"was_completed"`
	OrderPaid      bool          `json:"order_paid"`
}

// webhookPartiallyReversed is the body of checkout.partially_reversed (docs/design/decisions.md § 14).
type webhookPartiallyReversed struct {
	webhook

	// Items are the dues whose money was given back now, and ReversedAmount is that money with its
	// part of the fee.
	Items          []webhookItem `json:"items"`
	ReversedAmount int64         `json:"reversed_amount"`
	ReversedAt     string        `json:"reversed_at"`
	ReversalReason string        `json:"reversal_reason"`
	ReversalRef    *string       `json:"reversal_ref"`
}

// webhookItem is a due that was paid, or whose money was returned. Amount is in minor units,
// without fees.
type webhookItem struct {
	ERPDueRef     *string `json:"erp_due_ref"`
	Amount        int64   `json:"amount"`
	TransactionID string  `json:"transaction_id"`
	NoticeID      string  `json:"notice_id"`
	NoticeRef     string  `json:"notice_ref"`
}

func items(dues []checkout.Item) (out []webhookItem) {
	for _, due := range dues {
		out = append(out, webhookItem{
			ERPDueRef: nullable(due.ERPDueRef), Amount: due.Amount, TransactionID: due.TransactionID, NoticeID: due.NoticeID, NoticeRef: due.NoticeRef,
		})
	}
	return out
}

// Webhook returns the body of the webhook about an event.
func Webhook(e checkout.Event) ([]byte, error) {
	s := e.Session
	w := webhook{
		EventID: e.ID, Event: string(e.Type), APIVersion: apiVersion, CreatedAt: timestamp(e.OccurredAt), Livemode: s.Live,
		Sequence: e.Sequence, ApplicationID: s.ApplicationID, TenantID: s.TenantID, SessionID: s.ID, OrderID: s.OrderID,
		Amount: s.Amount, Currency: s.Currency, Status: string(s.Status), Paid: s.Paid(), PaymentRef: s.PaymentRef,
		Metadata: s.Metadata, ServiceCode: nullable(s.ServiceCode), ServiceLabel: nullable(s.ServiceLabel),
	}
	if w.Metadata == nil {
		w.Metadata = map[string]string{}
	}
	if e.Type == checkout.EventCompleted || e.Type == checkout.EventLatePayment {
		c := s.Collection
		if c == nil {
			return nil, errors.New("the event of a payment names no collection")
		}
		w.webhookPayment = &webhookPayment{
			NoticeID: s.NoticeID, TransactionID: s.TransactionID, Channel: string(c.Channel), OfferID: c.OfferID,
			OperatorRef: c.OperatorRef, FeeAmount: c.Fee, TotalAmount: c.Amount, Late: s.Late,
		}
		if e.Type == checkout.EventCompleted {
			w.CompletedAt = timestamp(e.OccurredAt)
		}
		if len(s.Items) > 1 {
			w.Items = items(s.Dues())
		}
	}
	if e.Type == checkout.EventReversed {
		return json.Marshal(webhookReversed{
			webhook: w, TransactionID: s.TransactionID, ReversedAt: timestamp(s.ReversedAt), ReversalReason: string(s.ReversalReason), ReversalRef: nullable(s.ReversalRef),
			WasCompleted: e.Detail[checkout.DetailWasCompleted] == "true", OrderPaid: e.Detail[checkout.DetailOrderPaid] == "true",
			Items: items(e.Returned()),
		})
	}
	if e.Type == checkout.EventPartiallyReversed {
		dues := e.Returned()
		return json.Marshal(webhookPartiallyReversed{
			webhook: w, Items: items(dues), ReversedAmount: checkout.Total(dues), ReversedAt: timestamp(e.OccurredAt),
			ReversalReason: e.Detail[checkout.DetailReason], ReversalRef: nullable(e.Detail[checkout.DetailReference]),
		})
	}
	if e.Type == checkout.EventFailed {
		w.webhookFailure = &webhookFailure{FailureCode: string(s.FailureCode), FailureMessage: s.FailureMessage}
	}
	return json.Marshal(w)
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
