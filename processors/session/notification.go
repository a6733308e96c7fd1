package session

import (
	"encoding/json"
	"time"

	"quittance/checkout"
)

// apiVersion is the version that webhook payloads name.
const apiVersion = "v1"

// webhook is the payload of decisions § 5: flat, the same bytes at every attempt.
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

// webhookPayment is what a payment adds: checkout.completed and checkout.late_payment.
type webhookPayment struct {
	NoticeID      string `json:"notice_id"`
	TransactionID string `json:"transaction_id"`
	Channel       string `json:"channel"`
	OfferID       string `json:"offer_id"`
	OperatorRef   string `json:"operator_ref"`
	FeeAmount     int64  `json:"fee_amount"`
	TotalAmount   int64  `json:"total_amount"`
	CompletedAt   string `json:"completed_at"`
}

type webhookFailure struct {
	FailureCode    string `json:"failure_code"`
	FailureMessage string `json:"failure_message"`
}

func webhookBody(e checkout.Event) func() ([]byte, error) {
	return func() ([]byte, error) {
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
		switch e.Type {
		case checkout.EventCompleted, checkout.EventLatePayment:
			c := s.Collection
			w.webhookPayment = &webhookPayment{
				NoticeID: s.NoticeID, TransactionID: s.TransactionID, Channel: string(c.Channel), OfferID: c.OfferID,
				OperatorRef: c.OperatorRef, FeeAmount: c.Fee, TotalAmount: c.Amount, CompletedAt: timestamp(e.OccurredAt),
			}
		case checkout.EventFailed:
			w.webhookFailure = &webhookFailure{FailureCode: string(s.FailureCode), FailureMessage: s.FailureMessage}
		case checkout.EventCreated, checkout.EventCancelled, checkout.EventExpired, checkout.EventTokenIssued,
			checkout.EventTokenConsumed, checkout.EventCollectionRequested, checkout.EventCollectionRedirected,
			checkout.EventCollectionEnquired, checkout.EventCollectionRefused, checkout.EventCollectionReleased,
			checkout.EventCollectionReversed, checkout.EventCollectionMismatched, checkout.EventCollectionOrphaned:
		}
		return json.Marshal(w)
	}
}

// confirmation is the body of POST /payment-confirmations (decisions § 10).
type confirmation struct {
	ERPDueRef     string              `json:"erp_due_ref"`
	TransactionID string              `json:"transaction_id"`
	NoticeRef     string              `json:"notice_ref"`
	PaymentRef    string              `json:"payment_ref"`
	SubjectRef    *string             `json:"subject_ref"`
	AmountMinor   int64               `json:"amount_minor"`
	Currency      string              `json:"currency"`
	Partial       bool                `json:"partial"`
	PaidAt        string              `json:"paid_at"`
	ServiceCode   *string             `json:"service_code"`
	Payment       confirmationPayment `json:"payment"`
}

type confirmationPayment struct {
	Channel     string  `json:"channel"`
	OfferID     string  `json:"offer_id"`
	OperatorRef string  `json:"operator_ref"`
	PayerMasked *string `json:"payer_masked"`
}

func confirmationBody(e checkout.Event) func() ([]byte, error) {
	return func() ([]byte, error) {
		s, c := e.Session, e.Session.Collection
		return json.Marshal(confirmation{
			ERPDueRef: s.Metadata[checkout.MetadataERPDueRef], TransactionID: s.TransactionID, NoticeRef: s.NoticeRef,
			PaymentRef: s.PaymentRef, AmountMinor: s.Amount, Currency: s.Currency, PaidAt: timestamp(e.OccurredAt),
			ServiceCode: nullable(s.ServiceCode),
			Payment: confirmationPayment{
				Channel: string(c.Channel), OfferID: c.OfferID, OperatorRef: c.OperatorRef, PayerMasked: nullable(c.PayerMasked),
			},
		})
	}
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
