package ministry

import (
	"time"

	"quittance/checkout"
)

// session is the contract's session resource: the answer of create, get and
// cancel, and the items of the list.
type session struct {
	ID               string  `json:"id"`
	OrderID          string  `json:"order_id"`
	Amount           int64   `json:"amount"`
	Currency         string  `json:"currency"`
	Status           string  `json:"status"`
	Paid             bool    `json:"paid"`
	PaymentRef       string  `json:"payment_ref"`
	CheckoutURL      string  `json:"checkout_url"`
	EmbedCheckoutURL *string `json:"embed_checkout_url"`
	Mode             string  `json:"mode"`
	ClientSecret     *string `json:"client_secret"`
	ExpiresAt        string  `json:"expires_at"`
}

type page struct {
	Items    []session `json:"items"`
	Page     int       `json:"page"`
	PageSize int       `json:"page_size"`
	Total    int64     `json:"total"`
}

// toSession is a session as the contract shows it, without its client_secret.
func toSession(s checkout.Session, checkoutURL string) session {
	out := session{
		ID: s.ID, OrderID: s.OrderID, Amount: s.Amount, Currency: s.Currency, Status: string(s.Status), Paid: s.Paid(),
		PaymentRef: s.PaymentRef, CheckoutURL: checkoutURL + "/c/" + s.ID, Mode: string(s.Mode),
		ExpiresAt: s.ExpiresAt.UTC().Format(time.RFC3339),
	}
	if s.Mode == checkout.ModeEmbedded {
		u := checkoutURL + "/embed/" + s.ID
		out.EmbedCheckoutURL = &u
	}
	return out
}
