package payload

import (
	"encoding/json"

	"quittance/checkout"
)

// confirmation is the body of POST /payment-confirmations (docs/design/decisions.md § 10).
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

// WithChannel returns a confirmation with its channel as the ERP calls it. A body that is none stays as it is: the ERP says so.
func WithChannel(body []byte, word func(checkout.Channel) (string, bool)) []byte {
	var c confirmation
	if json.Unmarshal(body, &c) != nil {
		return body
	}
	called, ok := word(checkout.Channel(c.Payment.Channel))
	if !ok || called == c.Payment.Channel {
		return body
	}
	c.Payment.Channel = called
	out, err := json.Marshal(c)
	if err != nil {
		return body
	}
	return out
}

// Confirmation returns the body that confirms the payment of a due of the event's session to
// the ERP of the agency. The session is completed. The event may be a later one: the body is the same,
// but for the payer's masked number, which leaves the session 30 days after its end.
func Confirmation(e checkout.Event, due checkout.Item) ([]byte, error) {
	s, c := e.Session, e.Session.Collection
	return json.Marshal(confirmation{
		ERPDueRef: due.ERPDueRef, TransactionID: due.TransactionID, NoticeRef: due.NoticeRef,
		PaymentRef: s.PaymentRef, SubjectRef: nullable(due.SubjectRef), AmountMinor: due.Amount, Currency: s.Currency, Partial: due.Partial(), PaidAt: timestamp(s.PaidAt()),
		ServiceCode: nullable(due.ServiceCode),
		Payment: confirmationPayment{
			Channel: string(c.Channel), OfferID: c.OfferID, OperatorRef: c.OperatorRef, PayerMasked: nullable(c.PayerMasked),
		},
	})
}
