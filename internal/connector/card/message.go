package card

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/money"
)

// transaction is the body of POST /v1/transactions.
type transaction struct {
	Merchant    string    `json:"merchant"`
	Reference   string    `json:"reference"`
	Amount      int64     `json:"amount"`
	Currency    string    `json:"currency"`
	Description string    `json:"description"`
	ReturnURL   string    `json:"return_url"`
	CallbackURL string    `json:"callback_url"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// maxDescription is the acquirer's limit in characters. A longer text would be refused, and
// the deprecated cash-in surface takes longer ones.
const maxDescription = 200

// toTransaction is the body that asks for a request's money, in any currency of the
// service: the acquirer knows which ones a merchant account takes.
func toTransaction(account Account, r connector.Request) ([]byte, error) {
	if _, ok := money.Lookup(r.Currency); !ok || r.Amount <= 0 {
		return nil, fmt.Errorf("amount %d %q cannot be asked for", r.Amount, r.Currency)
	}
	if r.ReturnURL == "" || r.CallbackURL == "" || r.ExpiresAt.IsZero() {
		return nil, errors.New("a card payment needs a return address, a callback address and a deadline")
	}
	description := []rune(r.Description)
	description = description[:min(len(description), maxDescription)]
	return json.Marshal(transaction{
		Merchant: account.Merchant, Reference: r.ID, Amount: r.Amount, Currency: r.Currency, Description: string(description),
		ReturnURL: r.ReturnURL, CallbackURL: r.CallbackURL, ExpiresAt: r.ExpiresAt.UTC(),
	})
}

// created is the answer to a transaction.
type created struct {
	TransactionID string `json:"transaction_id"`
	Reference     string `json:"reference"`
	Status        string `json:"status"`
	URL           string `json:"url"`
	ClientToken   string `json:"client_token"`
	Environment   string `json:"checkout_environment"`
}

// toPending reads the answer to a request as a pending collection. It has a redirect
// unless the answer says that the payment is decided.
func toPending(m created, id string) (connector.Outcome, error) {
	if m.Reference != id {
		return connector.Outcome{}, errAnotherPayment
	}
	status, _, err := toStatus(m.Status)
	if err != nil {
		return connector.Outcome{}, err
	}
	o := connector.Outcome{Status: checkout.OutcomePending}
	if status != checkout.OutcomePending {
		return o, nil
	}
	switch {
	case !isTransactionID(m.TransactionID):
		return connector.Outcome{}, errTransactionID
	case m.ClientToken == "" || len(m.ClientToken) > maxToken:
		return connector.Outcome{}, errors.New("the client token is missing or too long")
	case m.Environment != "test" && m.Environment != "live":
		return connector.Outcome{}, errors.New("the environment is neither test nor live")
	case !isPage(m.URL):
		return connector.Outcome{}, errors.New("the page has no absolute https address")
	}
	o.Redirect = &connector.Redirect{URL: m.URL, TransactionID: m.TransactionID, ClientToken: m.ClientToken, Environment: m.Environment}
	return o, nil
}

// state is the answer to an enquiry and the body of a report.
type state struct {
	TransactionID string `json:"transaction_id"`
	Reference     string `json:"reference"`
	Status        string `json:"status"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	Reason        string `json:"reason"`
	ApprovedAt    date   `json:"approved_at"`
}

// date is a time of RFC 3339. Any other value is zero: an approval decides without it.
type date struct{ time.Time }

// UnmarshalJSON reads a time.
func (d *date) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			d.Time = at.UTC()
		}
	}
	return nil
}

func toOutcome(m state) (connector.Outcome, error) {
	status, failure, err := toStatus(m.Status)
	if err != nil {
		return connector.Outcome{}, err
	}
	if !isTransactionID(m.TransactionID) {
		return connector.Outcome{}, errTransactionID
	}
	o := connector.Outcome{Status: status, FailureCode: failure, OperatorRef: m.TransactionID, Reason: code(m.Reason)}
	if o.Reason == "" {
		o.Reason = m.Status
	}
	if status == checkout.OutcomeApproved {
		o.Amount, o.Reason, o.ApprovedAt = m.Amount, "", m.ApprovedAt.Time
		if _, known := money.Lookup(m.Currency); known {
			o.Currency = m.Currency
		}
	}
	return o, nil
}

const (
	maxToken         = 4096
	maxURL           = 4096
	maxTransactionID = 64
)

var (
	errTransactionID  = errors.New("the transaction id is malformed")
	errAnotherPayment = errors.New("the answer is about another payment")
)

func isTransactionID(s string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"
	return s != "" && len(s) <= maxTransactionID && strings.Trim(s, allowed) == ""
}

// isPage reports whether the address is safe for a citizen: https, or http on this
// machine for developers. It refuses addresses with a user name, because they can
// deceive.
func isPage(address string) bool {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURL || u.Hostname() == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}
