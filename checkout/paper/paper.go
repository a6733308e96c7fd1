// Package paper says what a session has for its papers: the facts of the notice and of the
// receipts that package document makes.
//
// Everything in this package is pure and safe for concurrent use.
package paper

import (
	"cmp"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/document"
	"quittance/money"
)

// Payment returns p with what the session says of the payment of one due. It leaves the agency,
// the payer and the address of the check, which a session does not have. An empty transaction id
// means the first due. PaidAt is zero unless the session completed and has the due.
func Payment(lang money.Language, s checkout.Session, transactionID string, p document.Payment) document.Payment {
	due, known := s.Due(transactionID)
	if !known || s.Status != checkout.StatusCompleted || s.Collection == nil {
		return p
	}
	p.Test, p.PaidAt, p.ReversedAt = !s.Live, s.PaidAt(), s.Returned(due)
	p.Amount, p.Fee, p.Currency = due.Amount, due.Fee, s.Currency
	p.Means = page.OfferName(lang, s.Collection.OfferID)
	p.TransactionID, p.NoticeRef, p.PaymentRef, p.OperatorRef = due.TransactionID, due.NoticeRef, s.PaymentRef, s.Collection.OperatorRef
	p.Service, p.Label, p.Order = due.ServiceLabel, cmp.Or(due.Label, s.Description), s.AgencyOrderID()
	p.SubjectRef, p.Partial = due.SubjectRef, due.Partial()
	status := due.Confirmation.Status
	p.Unrecorded = status == checkout.ConfirmationAwaited || status == checkout.ConfirmationRefused
	if s.Collection.Origin() == checkout.OriginCounter {
		p.Counter, p.Clerk = s.Collection.Account, s.Collection.Clerk
	}
	return p
}

// Slip returns slip with what the session says of its notice. It leaves the agency, the taxpayer
// and the address of the pages, which a session does not have, and what an ERP says of the dues,
// which are in the order of [checkout.Session.Dues] and may be missing.
func Slip(lang money.Language, s checkout.Session, slip document.Slip) document.Slip {
	slip.Test, slip.Ended, slip.Framed = !s.Live, s.Ended(), s.Mode == checkout.ModeEmbedded
	slip.IssuedAt, slip.ValidUntil = s.CreatedAt, s.ExpiresAt
	slip.Amount, slip.Currency, slip.PaymentRef, slip.Order = s.Amount, s.Currency, s.PaymentRef, s.AgencyOrderID()
	known := slip.Dues
	slip.Dues = make([]document.Due, len(s.Dues()))
	copy(slip.Dues, known)
	for i, due := range s.Dues() {
		d := &slip.Dues[i]
		d.NoticeRef, d.Service, d.SubjectRef = due.NoticeRef, due.ServiceLabel, due.SubjectRef
		d.Label = cmp.Or(due.Label, s.Description, due.ServiceLabel, s.OrderID)
		d.Amount, d.Outstanding = due.Amount, due.Outstanding
	}
	for _, o := range s.Offers {
		slip.Ways = append(slip.Ways, document.WayToPay{Name: page.OfferName(lang, o.ID), Means: document.Means(o.Channel), Fee: o.Fee})
	}
	return slip
}
