package ministry

import (
	"time"

	"quittance/checkout"
	"quittance/ingress/ministry/internal/api"
)

// toSession maps a session to the contract's, without its client_secret.
func toSession(s checkout.Session, checkoutURL string) api.Session {
	out := api.Session{
		ID: s.ID, OrderID: s.OrderID, Amount: s.Amount, Currency: s.Currency, Status: api.SessionStatus(s.Status), Paid: s.Paid(),
		PaymentRef: s.PaymentRef, CheckoutURL: checkoutURL + "/c/" + s.ID, Mode: api.SessionMode(s.Mode), ExpiresAt: timestamp(s.ExpiresAt),
	}
	if !s.ReversedAt.IsZero() {
		at := timestamp(s.ReversedAt)
		out.ReversedAt = &at
	}
	if s.Mode == checkout.ModeEmbedded {
		u := checkoutURL + "/embed/" + s.ID
		out.EmbedCheckoutURL = &u
	}
	return out
}

// toCompletion maps a session to the answer of verify-completion.
func toCompletion(s checkout.Session) api.Completion {
	out := api.Completion{
		SessionID: s.ID, OrderID: s.OrderID, Amount: s.Amount, Currency: s.Currency, Status: api.SessionStatus(s.Status), Paid: s.Paid(), NoticeID: s.NoticeID, TenantID: s.TenantID,
		ServiceCode: nullable(s.ServiceCode), ServiceLabel: nullable(s.ServiceLabel),
	}
	if len(s.Metadata) > 0 {
		out.Metadata = &s.Metadata
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

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
