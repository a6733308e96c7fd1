// Package airtel is mobile money B: Airtel Money merchant payments and disbursements, Congo.
//
// The protocol in short: a token for the merchant's application (OAuth2 client
// credentials, three minutes), then POST /merchant/v1/payments/ with our id as
// transaction.id, which makes the payer's phone ask for the PIN; then GET
// /standard/v1/payments/{id} until it is TS (success), TF (failed) or TE
// (expired). TIP (in progress) and TA (ambiguous) decide nothing. The answer to the
// request also decides nothing, whatever its status: it only confirms that the phone was
// asked.
//
// What differs from other operators:
//
//   - Ids are letters and digits: our UUID without its dashes.
//   - The payer's number is national, with its 0 and without the country code.
//   - Neither answers nor callbacks name an amount. An id has the amount of its first
//     request, and an approval is of that amount.
//   - A callback names no reason and comes once. It causes an enquiry
//     (connector.Report.Ask). In Airtel's public protocol a merchant has one callback
//     address, set in its portal, which cannot name the session. The connector sends
//     our address in X-Callback-Url for gateways that use it. Without callbacks the
//     service finds every outcome by enquiries.
//
// Payouts are Airtel Money Disbursements: POST /standard/v1/disbursements/ with our id and
// the PIN of the account, encrypted for Airtel's key, then GET
// /standard/v1/disbursements/{id}. Version 1 is spoken, without signatures of messages
// (x-signature), which Airtel can switch on for an application.
//
// Public descriptions: https://developers.airtel.cg (Collection and Disbursement APIs).
package airtel

import (
	"context"
	"encoding/json"
	"net/http"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/contact"
)

// Operator is the operator's short name.
const Operator = "airtel"

const (
	country  = "CG"
	currency = "XAF"

	tokenPath    = "/auth/oauth2/token" //nolint:gosec // an address
	paymentsPath = "/merchant/v1/payments/"
	enquiryPath  = "/standard/v1/payments/"
)

// Registration is the registration of Airtel.
var Registration = connector.Registration{
	Operator: Operator,
	Collector: &connector.Collector{
		Account: connector.AccountType{
			Name: "momo_b",
			Read: func(base connector.BaseURL, f connector.Fields) connector.Account {
				return Account{BaseURL: base, ClientID: f.Text("client_id"), ClientSecret: f.Secret("client_secret").Reveal()}
			},
			Simulated: func(agencyID, _ string) map[string]string {
				return map[string]string{"client_id": agencyID, "client_secret": "simulator"}
			},
		},
		New: func(cfg connector.Config) (connector.Connector, error) { return New(cfg) },
	},
	Disburser: &connector.Disburser{
		Account: connector.AccountType{
			Name: "airtel_payout",
			Read: func(base connector.BaseURL, f connector.Fields) connector.Account {
				return PayoutAccount{
					BaseURL: base, ClientID: f.Text("client_id"), ClientSecret: f.Secret("client_secret").Reveal(),
					PIN: f.Secret("pin").Reveal(), PublicKey: f.Text("public_key"), OAEP: f.Flag("oaep"),
				}
			},
			Simulated: func(agencyID, _ string) map[string]string {
				return map[string]string{"client_id": agencyID, "client_secret": "simulator", "pin": "0000", "public_key": simulatedKey}
			},
		},
		New: func(cfg connector.Config) (connector.PayoutConnector, error) { return NewPayouts(cfg) },
	},
}

// Account is an agency's application with Airtel.
type Account struct {
	connector.BaseURL
	ClientID     string
	ClientSecret string
}

// Fingerprint is of the client id, which names the merchant's application. Airtel's
// environments have client ids of their own, and an account names no environment.
func (a Account) Fingerprint() string { return connector.Fingerprint(Operator, "", a.ClientID) }

// EarlierFingerprint is of the address too.
func (a Account) EarlierFingerprint() string {
	return connector.EarlierFingerprint(a.BaseURL, "", "", a.ClientID)
}

// Connector speaks Airtel Money. Safe for concurrent use.
type Connector struct{ *connector.Base[Account] }

var _ connector.PayerReader = (*Connector)(nil)

// New makes a Connector.
func New(cfg connector.Config) (*Connector, error) {
	base, err := connector.NewBase(Operator, cfg, tokenCall)
	return &Connector{base}, err
}

// Payer accepts Congolese numbers of Airtel. They start with 05, or with 04 if they
// belonged to Warid, whose network is now Airtel's.
func (c *Connector) Payer(input string) (string, error) {
	return contact.MobileOf(input, "05", "04")
}

// Collect is POST /merchant/v1/payments/, in XAF only. It never returns an approval from
// the answer to the request, which does not prove a payment. If Airtel already knows the
// id, Collect enquires.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	own, err := c.Own(account)
	if err != nil {
		return connector.Outcome{}, err
	}
	body, err := toPayment(r)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	a, err := c.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodPost, Path: paymentsPath, Body: body, Header: header(r.CallbackURL)})
	if err != nil {
		return connector.Outcome{}, err
	}
	var e envelope
	readable := a.Decode(&e) == nil
	ref := connector.Reference{ID: r.ID, Amount: r.Amount, Currency: r.Currency}
	code := e.code()
	switch {
	case readable && e.any(duplicate):
		return connector.OfKnown(c.Enquire(ctx, account, ref)), nil
	case a.Status >= 500, a.Status == http.StatusTooManyRequests, a.Status == http.StatusRequestTimeout, !readable:
		return connector.Outcome{}, a.Fault(doing, true, code)
	case a.Status < 300 && e.Status.Success, e.any(submitted):
		return connector.Outcome{Status: checkout.OutcomePending}, nil
	}
	o, definite := refusalOfRequest(a.Status, e)
	if !definite {
		return connector.Outcome{}, a.Fault(doing, true, code)
	}
	known, err := c.Enquire(ctx, account, ref)
	return connector.OfRefused(o, known, err)
}

// Enquire is GET /standard/v1/payments/{id}, at most EnquiriesPerSecond of an
// account. An approval has the amount of the reference, see the package.
func (c *Connector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	id, err := connector.ShortID(ref.ID)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	own, err := c.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return connector.Outcome{}, err
	}
	a, err := c.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: enquiryPath + id, Header: header("")})
	if err != nil {
		return connector.Outcome{}, err
	}
	var e envelope
	readable := a.Decode(&e) == nil
	switch {
	case readable && a.Status < 500 && e.missing():
		// Only Airtel's own code means that there is no such payment. A gateway without such
		// a path answers 404 too.
		return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: e.code()}, nil
	case a.Status != http.StatusOK:
		return connector.Outcome{}, a.Fault(doing, false, e.code())
	}
	return connector.ReadOutcome(a, doing, func(e envelope) (connector.Outcome, error) { return toOutcome(e, id, ref) })
}

// ParseReport reads the id and the status of a payment in the body of a callback. The body
// names neither amount nor reason, so Ask is set. ParseReport does not check the hash that
// merchants can switch on, because the report only causes an enquiry.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	return connector.ReadReport("Airtel", body, func(r report) (connector.Report, error) {
		id, err := connector.LongID(string(r.Transaction.ID))
		if err != nil {
			return connector.Report{}, err
		}
		o, err := toStatus(r.Transaction.StatusCode, "")
		o.OperatorRef = string(r.Transaction.AirtelMoneyID)
		return connector.Report{ID: id, Outcome: o, Ask: true}, err
	})
}

// header returns the header of a call about a payment.
func header(callbackURL string) map[string]string {
	return map[string]string{"X-Country": country, "X-Currency": currency, "X-Callback-Url": callbackURL, "Accept": "*/*"}
}

func tokenCall(account Account) connector.Call {
	body, _ := json.Marshal(map[string]string{ // never fails: the values are strings
		"client_id": account.ClientID, "client_secret": account.ClientSecret, "grant_type": "client_credentials",
	})
	return connector.Call{Path: tokenPath, Body: body, Header: map[string]string{"Accept": "*/*"}}
}
