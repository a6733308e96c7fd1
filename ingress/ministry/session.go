package ministry

import (
	"time"

	"quittance/checkout"
	"quittance/ingress/ministry/internal/api"
)

// toSession maps a session to the contract's, without its client_secret.
func toSession(s checkout.Session, checkoutURL string) api.Session {
	p := paymentOf(s)
	out := api.Session{
		ID: s.ID, OrderID: s.OrderID, Amount: s.Amount, Currency: s.Currency, Status: api.SessionStatus(s.Status), Paid: s.Paid(),
		PaymentRef: s.PaymentRef, CheckoutURL: checkoutURL + "/c/" + s.ID, Mode: api.SessionMode(s.Mode), ExpiresAt: timestamp(s.ExpiresAt),
		CompletedAt: p.completedAt, FailedAt: p.failedAt, ReversedAt: p.reversedAt, FailureCode: nullable(string(s.FailureCode)),
		NoticeID: nullable(s.NoticeID), TransactionID: p.transactionID, Channel: p.channel, OfferID: p.offerID, OperatorRef: p.operatorRef,
		FeeAmount: p.fee, TotalAmount: p.total, Metadata: metadata(s), ServiceCode: nullable(s.ServiceCode), ServiceLabel: nullable(s.ServiceLabel),
	}
	if s.Mode == checkout.ModeEmbedded {
		u := checkoutURL + "/embed/" + s.ID
		out.EmbedCheckoutURL = &u
	}
	return out
}

// toCompletion maps a session to the answer of verify-completion.
func toCompletion(s checkout.Session) api.Completion {
	p := paymentOf(s)
	out := api.Completion{
		SessionID: s.ID, OrderID: s.OrderID, Amount: s.Amount, Currency: s.Currency, Status: api.SessionStatus(s.Status), Paid: s.Paid(), NoticeID: s.NoticeID, TenantID: s.TenantID,
		CompletedAt: p.completedAt, FailedAt: p.failedAt, ReversedAt: p.reversedAt, FailureCode: nullable(string(s.FailureCode)),
		TransactionID: p.transactionID, Channel: p.channel, OfferID: p.offerID, OperatorRef: p.operatorRef, FeeAmount: p.fee, TotalAmount: p.total,
		Metadata: metadata(s), ServiceCode: nullable(s.ServiceCode), ServiceLabel: nullable(s.ServiceLabel),
	}
	if len(s.Items) > 1 {
		items := make([]api.SessionItem, len(s.Items))
		for i, item := range s.Items {
			items[i] = api.SessionItem{
				ErpDueRef: nullable(item.ERPDueRef), Amount: item.Amount, TransactionID: item.TransactionID, NoticeID: item.NoticeID, NoticeRef: item.NoticeRef,
			}
		}
		out.Items = &items
	}
	return out
}

// payment is what reads tell of a session's payment; nil is null.
type payment struct {
	completedAt, failedAt, reversedAt            *string
	transactionID, channel, offerID, operatorRef *string
	fee, total                                   *int64
}

// paymentOf returns what is known of the payment of a session. The references of money are
// told of a completed session only: before that nobody has paid by them.
func paymentOf(s checkout.Session) (p payment) {
	switch s.Status { //nolint:exhaustive // the others have no time of their own in reads
	case checkout.StatusCompleted:
		p.completedAt, p.transactionID = moment(s.EndedAt), nullable(s.TransactionID)
		if s.Collection != nil {
			p.operatorRef = nullable(s.Collection.OperatorRef)
		}
	case checkout.StatusFailed:
		p.failedAt = moment(s.EndedAt)
	}
	p.reversedAt = moment(s.ReversedAt)
	if c := s.Collection; c != nil {
		p.channel, p.offerID, p.fee, p.total = nullable(string(c.Channel)), nullable(c.OfferID), &c.Fee, &c.Amount
	}
	return p
}

// metadata returns the integrator's data as webhooks have them: an empty object if there are
// none, nil after they were erased.
func metadata(s checkout.Session) *map[string]string {
	out := s.Metadata
	switch {
	case out == nil && s.Archived:
		return nil
	case out == nil:
		out = map[string]string{}
	}
	return &out
}

// moment returns a time as the API writes it, nil for the zero time.
func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := timestamp(t)
	return &text
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
