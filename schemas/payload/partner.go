package payload

import (
	"bytes"
	"encoding/json"

	"quittance/checkout"
)

// partner is the body of an unsigned webhook of the deprecated cash-in surface (contract,
// "Events", rule 6): exactly these fields.
type partner struct {
	PaymentID      int64                  `json:"paymentId"`
	ExternalNumber string                 `json:"externalNumber"`
	Amount         int64                  `json:"amount"`
	Status         checkout.PaymentStatus `json:"status"`
	PaidAt         *string                `json:"paidAt"`
	Note           *string                `json:"note"`
}

// Partner returns the body of the unsigned webhook about an event, which has a PartnerNotice.
func Partner(e checkout.Event) ([]byte, error) {
	s := e.Session
	status, _ := e.PartnerNotice()
	p := partner{PaymentID: s.Cashin.PaymentID, ExternalNumber: s.OrderID, Amount: s.Amount, Status: status, Note: nullable(s.Description)}
	if status == checkout.PaymentCompleted {
		p.PaidAt = nullable(timestamp(s.PaidAt()))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // as the programs that partners have written expect it
	if err := enc.Encode(p); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
