package payload

import (
	"encoding/json"

	"quittance/checkout"
)

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

// Confirmation returns the body that confirms a payment to the ERP of the agency. The
// session of the event is completed. The event may be a later one: the body is the same,
// but for the payer's masked number, which leaves the session 30 days after its end.
func Confirmation(e checkout.Event) ([]byte, error) {
	s, c := e.Session, e.Session.Collection
	paidAt := s.EndedAt
	if s.Late {
		paidAt = c.DecidedAt // the case completed the session later
	}
	return json.Marshal(confirmation{
		ERPDueRef: s.Metadata[checkout.MetadataERPDueRef], TransactionID: s.TransactionID, NoticeRef: s.NoticeRef,
		PaymentRef: s.PaymentRef, AmountMinor: s.Amount, Currency: s.Currency, PaidAt: timestamp(paidAt),
		ServiceCode: nullable(s.ServiceCode),
		Payment: confirmationPayment{
			Channel: string(c.Channel), OfferID: c.OfferID, OperatorRef: c.OperatorRef, PayerMasked: nullable(c.PayerMasked),
		},
	})
}
