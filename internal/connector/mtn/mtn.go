// Package mtn is mobile money A: MTN MoMo Collections and Disbursements.
//
// The protocol in short: a token for the merchant account (60 minutes), then
// POST requesttopay with our id in X-Reference-Id, answered 202, which is not
// payment; then GET requesttopay/{id} until it is SUCCESSFUL or FAILED, or a call
// to X-Callback-Url with the same body. The same id again is answered 409. MTN allows
// about ten status calls a second per account.
//
// Payouts are MTN MoMo Disbursements, with a product, keys and tokens of their own: POST
// transfer with our id, then GET transfer/{id}, by the same rules.
//
// Public descriptions: https://momodeveloper.mtn.com (Collections, Disbursements) and its
// page of common errors.
package mtn

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/contact"
)

// Operator is the operator's short name.
const Operator = "mtn"

// collections is the path of requests to pay.
const collections = "/collection/v1_0/requesttopay"

// Registration is the registration of MTN.
var Registration = connector.Registration{
	Operator: Operator,
	Collector: &connector.Collector{
		Account: connector.AccountType{
			Name:      "momo",
			Read:      func(base connector.BaseURL, f connector.Fields) connector.Account { return readAccount(base, f) },
			Simulated: simulated,
		},
		USSD: "*105#",
		New:  func(cfg connector.Config) (connector.Connector, error) { return New(cfg) },
	},
	Disburser: &connector.Disburser{
		Account: connector.AccountType{
			Name: "mtn_payout",
			Read: func(base connector.BaseURL, f connector.Fields) connector.Account {
				return PayoutAccount(readAccount(base, f))
			},
			Simulated: simulated,
		},
		New: func(cfg connector.Config) (connector.PayoutConnector, error) { return NewPayouts(cfg) },
	},
}

// readAccount reads the fields that an account has for both purposes. MTN gives other keys
// for each.
func readAccount(base connector.BaseURL, f connector.Fields) Account {
	return Account{
		BaseURL: base, TargetEnvironment: f.Text("target_environment"), SubscriptionKey: f.Secret("subscription_key").Reveal(),
		APIUser: f.Text("api_user"), APIKey: f.Secret("api_key").Reveal(),
	}
}

func simulated(agencyID, _ string) map[string]string {
	return map[string]string{"target_environment": "sandbox", "subscription_key": "simulator", "api_user": agencyID, "api_key": "simulator"}
}

// Account is an agency's account with MTN.
type Account struct {
	connector.BaseURL
	TargetEnvironment string
	SubscriptionKey   string
	APIUser           string
	APIKey            string
}

// Fingerprint is of MTN's environment and the API user, which belongs to one merchant and
// is MTN's only name for it in the API. The subscription key and the API key may change.
func (a Account) Fingerprint() string {
	return connector.Fingerprint(Operator, a.TargetEnvironment, a.APIUser)
}

// EarlierFingerprint is of the address too.
func (a Account) EarlierFingerprint() string {
	return connector.EarlierFingerprint(a.BaseURL, a.TargetEnvironment, a.APIUser)
}

// Connector speaks MTN MoMo Collections. Safe for concurrent use.
type Connector struct{ *connector.Base[Account] }

var _ connector.PayerReader = (*Connector)(nil)

// New makes a Connector.
func New(cfg connector.Config) (*Connector, error) {
	base, err := connector.NewBase(Operator, cfg, tokenCall)
	return &Connector{base}, err
}

// Payer takes Congolese numbers of MTN, which start with 06.
func (c *Connector) Payer(input string) (string, error) { return contact.MobileOf(input, "06") }

// Collect is POST requesttopay. If MTN already knows the id, Collect enquires.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	own, err := c.Own(account)
	if err != nil {
		return connector.Outcome{}, err
	}
	body, err := toRequestToPay(r)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	a, err := c.authorized(ctx, own, connector.Call{
		Doing: doing, Method: http.MethodPost, Path: collections, Body: body,
		Header: map[string]string{"X-Reference-Id": r.ID, "X-Callback-Url": r.CallbackURL},
	})
	if err != nil {
		return connector.Outcome{}, err
	}
	ref := connector.Reference{ID: r.ID}
	switch a.Status {
	case http.StatusAccepted:
		return connector.Outcome{Status: checkout.OutcomePending}, nil
	case http.StatusConflict:
		return connector.OfKnown(c.Enquire(ctx, account, ref)), nil
	}
	var no refusal
	if a.Status < 400 || a.Status == http.StatusTooManyRequests || a.Status == http.StatusRequestTimeout ||
		a.Decode(&no) != nil || no.Code == "" || passing[string(no.Code)] || undecided[string(no.Code)] {
		return connector.Outcome{}, a.Fault(doing, true, string(no.Code))
	}
	known, err := c.Enquire(ctx, account, ref)
	return connector.OfRefused(connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: failure(string(no.Code)), Reason: string(no.Code)}, known, err)
}

// Enquire is GET requesttopay/{id}, at most EnquiriesPerSecond of an account.
func (c *Connector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	own, err := c.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return connector.Outcome{}, err
	}
	a, err := c.authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: collections + "/" + url.PathEscape(ref.ID)})
	if err != nil {
		return connector.Outcome{}, err
	}
	switch a.Status {
	case http.StatusOK:
		return connector.ReadOutcome(a, doing, toOutcome)
	case http.StatusNotFound:
		// A gateway without such a path answers 404 too. Only MTN's own code means that
		// there is no such payment.
		var no refusal
		if a.Decode(&no) == nil && no.Code == "RESOURCE_NOT_FOUND" {
			return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: string(no.Code)}, nil
		}
	}
	return connector.Outcome{}, a.Fault(doing, false, "")
}

// ParseReport reads the body of a callback, which has the form of a status answer.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	return connector.ReadReport("MTN", body, func(r result) (connector.Report, error) {
		o, err := toOutcome(r)
		return connector.Report{ID: r.ReferenceID, Outcome: o}, err
	})
}

// authorized makes a call with the account's token and its other headers.
func (c *Connector) authorized(ctx context.Context, account Account, q connector.Call) (connector.Answer, error) {
	q.Header = account.header(q.Header)
	return c.Authorized(ctx, account, q)
}

// header returns the headers of a call, with those of the account.
func (a Account) header(more map[string]string) map[string]string {
	header := map[string]string{"Ocp-Apim-Subscription-Key": a.SubscriptionKey, "X-Target-Environment": a.TargetEnvironment}
	maps.Copy(header, more)
	return header
}

func tokenCall(account Account) connector.Call { return account.tokenCall("/collection/token/") }

// tokenCall asks for a token of a product of MTN.
func (a Account) tokenCall(path string) connector.Call {
	credentials := base64.StdEncoding.EncodeToString([]byte(a.APIUser + ":" + a.APIKey))
	return connector.Call{Path: path, Header: map[string]string{
		"Authorization": "Basic " + credentials, "Ocp-Apim-Subscription-Key": a.SubscriptionKey,
	}}
}
