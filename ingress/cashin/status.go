package cashin

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/personal"
)

// sentCustomer is the customer as it was sent.
type sentCustomer struct {
	FullName *string `json:"full_name"`
	Address  *string `json:"address"`
	Phone    *string `json:"phone"`
}

// usedGateway is the gateway of a payment.
type usedGateway struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Logo        *string `json:"logo"`
}

// status is the answer of check-status: exactly 17 keys.
type status struct {
	ID                     int64                  `json:"id"`
	Number                 string                 `json:"number"`
	ExternalNumber         string                 `json:"externalNumber"`
	Status                 checkout.PaymentStatus `json:"status"`
	PaidAmount             int64                  `json:"paidAmount"`
	TotalAmount            int64                  `json:"totalAmount"`
	PaidAt                 *string                `json:"paidAt"`
	Description            *string                `json:"description"`
	Type                   *string                `json:"type"`
	Customer               *sentCustomer          `json:"customer"`
	TransactionItems       json.RawMessage        `json:"transactionItems"`
	PaymentGateway         *usedGateway           `json:"paymentGateway"`
	FinancialTransactionID *string                `json:"financialTransactionId"`
	// The contract keeps these null.
	PaymentIntentID     *string `json:"paymentIntentId"`
	ExtraInfo           *string `json:"extraInfo"`
	PaymentInfo         *string `json:"paymentInfo"`
	PaymentFailedReason *string `json:"paymentFailedReason"`
}

var numberPattern = regexp.MustCompile(`^T[0-9]{10}$`)

// checkStatus answers GET /transactions/{number}/check-status. A number that is malformed,
// unknown or of another application is looked up and answered alike.
func (a *API) checkStatus(c call) error {
	p, app, err := a.authenticate(c)
	if err != nil {
		return err
	}
	if err := a.count(c, p.PairID); err != nil {
		return err
	}
	number := chi.URLParam(c.r, "number")
	if !numberPattern.MatchString(number) {
		number = "" // no payment has it, and it may hold what a record cannot
	}
	answer, err := a.decided(a.cfg.Commands.AskWithin(c.r.Context(), checkout.Command{
		At: a.now(), TenantID: app.AgencyID, ApplicationID: app.ID, Live: p.Live, Do: checkout.LookUp{Number: number},
	}, commands.DefaultTimeout))
	if err != nil {
		return err
	}
	s := *answer.Session
	out := status{
		ID: s.Cashin.PaymentID, Number: s.Cashin.Number, ExternalNumber: s.OrderID, Status: s.PaymentStatus(), PaidAmount: s.Amount, TotalAmount: s.Amount,
		Description: orNull(s.Description), Type: orNull(s.Cashin.Type), TransactionItems: s.Cashin.Items, PaymentGateway: gatewayOf(s),
	}
	if len(out.TransactionItems) == 0 {
		out.TransactionItems = json.RawMessage("[]")
	}
	if s.Collection != nil {
		out.TotalAmount, out.FinancialTransactionID = s.Collection.Amount, orNull(s.Collection.OperatorRef)
	}
	if out.Status == checkout.PaymentCompleted {
		out.PaidAt = orNull(iso(s.PaidAt()))
	}
	if len(s.CustomerSealed) > 0 {
		customer, err := a.cfg.Personal.Customer(c.r.Context(), s.ContactID(), s.CustomerSealed)
		switch {
		case errors.Is(err, personal.ErrErased):
		case err != nil:
			return err
		default:
			out.Customer = &sentCustomer{orNull(customer.Name), orNull(customer.Address), orNull(customer.Phone)}
		}
	}
	write(c.w, http.StatusOK, out)
	return nil
}

// gatewayOf returns the gateway by which a payment was engaged. A citizen who chose the card
// on the hosted page has named no network, and cash has no gateway.
func gatewayOf(s checkout.Session) *usedGateway {
	if s.Collection == nil {
		return nil
	}
	for _, g := range all {
		if g.offer == s.Collection.OfferID && (g.phone || g.name == s.Cashin.Provider) {
			return &usedGateway{ID: g.id, Name: g.name, Description: g.description}
		}
	}
	return nil
}
