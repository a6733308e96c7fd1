// Package mtn is mobile money A: MTN MoMo Collections.
//
// The protocol in short: a token for the merchant account (60 minutes), then
// POST requesttopay with our id in X-Reference-Id, answered 202, which is not
// payment; then GET requesttopay/{id} until it is SUCCESSFUL or FAILED, or a call
// to X-Callback-Url with the same body. The same id again is answered 409. MTN allows
// about ten status calls a second per account.
//
// Public descriptions: https://momodeveloper.mtn.com (Collections) and its page
// of common errors.
package mtn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"quittance/checkout"
	"quittance/internal/connector"
)

// Operator is the operator's short name.
const Operator = "mtn"

// collections is the path of collections.
const collections = "/collection/v1_0/requesttopay"

// Registration is MTN as the service knows it.
var Registration = connector.Registration{
	Operator: Operator,
	Offer:    checkout.OfferMomo,
	USSD:     "*105#",
	Account: func(base connector.BaseURL, f connector.Fields) connector.Account {
		return Account{
			BaseURL: base, TargetEnvironment: f.Text("target_environment"), SubscriptionKey: f.Secret("subscription_key").Reveal(),
			APIUser: f.Text("api_user"), APIKey: f.Secret("api_key").Reveal(),
		}
	},
	Simulated: func(agencyID, _ string) map[string]string {
		return map[string]string{"target_environment": "sandbox", "subscription_key": "simulator", "api_user": agencyID, "api_key": "simulator"}
	},
	New: func(cfg connector.Config) (connector.Connector, error) { return New(cfg) },
}

// Account is an agency's account with MTN.
type Account struct {
	connector.BaseURL
	TargetEnvironment string
	SubscriptionKey   string
	APIUser           string
	APIKey            string
}

// Fingerprint is of the environment and the API user.
func (a Account) Fingerprint() string {
	return connector.Fingerprint(a.BaseURL, a.TargetEnvironment, a.APIUser)
}

type merchant = connector.Merchant[Account]

// Connector speaks MTN MoMo Collections. Safe for concurrent use.
type Connector struct {
	cfg       connector.Config
	client    *connector.Client
	merchants *connector.Merchants[Account]
}

var _ connector.PayerReader = (*Connector)(nil)

// New makes a Connector.
func New(cfg connector.Config) (*Connector, error) {
	if err := cfg.Check(Operator); err != nil {
		return nil, err
	}
	c := &Connector{cfg: cfg, client: connector.NewClient(cfg.Timeout)}
	c.merchants = connector.NewMerchants(cfg, c.issue)
	return c, nil
}

// Operator is "mtn".
func (c *Connector) Operator() string { return Operator }

// Payer takes Congolese numbers of MTN, which start with 06.
func (c *Connector) Payer(input string) (string, error) { return connector.CongoPayer(input, "06") }

// Collect is POST requesttopay. About an id that MTN knows already it asks.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	m, err := c.merchants.Of(account)
	if err != nil {
		return connector.Outcome{}, err
	}
	message, err := toRequestToPay(r)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	body, err := json.Marshal(message)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	a, err := c.authorized(ctx, m, connector.Call{
		Doing: doing, Method: http.MethodPost, URL: collections, Body: body,
		Header: map[string]string{"X-Reference-Id": r.ID, "X-Callback-Url": r.CallbackURL, "Content-Type": "application/json"},
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
	m, err := c.merchants.Of(account)
	if err != nil {
		return connector.Outcome{}, err
	}
	if err := m.AwaitEnquiry(ctx, doing); err != nil {
		return connector.Outcome{}, err
	}
	a, err := c.authorized(ctx, m, connector.Call{Doing: doing, Method: http.MethodGet, URL: collections + "/" + url.PathEscape(ref.ID)})
	if err != nil {
		return connector.Outcome{}, err
	}
	switch a.Status {
	case http.StatusOK:
		var r result
		var o connector.Outcome
		if err = a.Decode(&r); err == nil {
			o, err = toOutcome(r)
		}
		if err != nil {
			return connector.Outcome{}, connector.Malformed(doing, err)
		}
		return o, nil
	case http.StatusNotFound:
		// A gateway that knows no such path answers 404 as well: only MTN's own code
		// means that there is no such payment.
		var no refusal
		if a.Decode(&no) == nil && no.Code == "RESOURCE_NOT_FOUND" {
			return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: string(no.Code)}, nil
		}
	}
	return connector.Outcome{}, a.Fault(doing, false, "")
}

// ParseReport reads the body of a callback, which is that of a status answer.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	var r result
	var o connector.Outcome
	err := connector.DecodeReport(body, &r)
	if err == nil {
		o, err = toOutcome(r)
	}
	if err != nil {
		return connector.Report{}, fmt.Errorf("reading MTN's report: %w: %w", connector.ErrReport, err)
	}
	return connector.Report{ID: r.ReferenceID, Outcome: o}, nil
}

// authorized makes a call below the account's address with its token.
func (c *Connector) authorized(ctx context.Context, m *merchant, q connector.Call) (connector.Answer, error) {
	return m.Tokens.Authorized(ctx, q.Doing, func(token string) (connector.Answer, error) {
		with := q
		with.Header = map[string]string{"Authorization": "Bearer " + token, "X-Target-Environment": m.Account.TargetEnvironment}
		maps.Copy(with.Header, q.Header)
		return c.do(ctx, m.Account, with)
	})
}

// issue asks for a token. It collects nothing, so its errors are not Sent.
func (c *Connector) issue(ctx context.Context, account Account) (connector.Token, error) {
	const doing = "getting a token"
	credentials := base64.StdEncoding.EncodeToString([]byte(account.APIUser + ":" + account.APIKey))
	a, err := c.do(ctx, account, connector.Call{
		Doing: doing, Method: http.MethodPost, URL: "/collection/token/", Header: map[string]string{"Authorization": "Basic " + credentials},
	})
	if err != nil {
		return connector.Token{}, connector.WithSent(err, false)
	}
	if a.Status != http.StatusOK {
		return connector.Token{}, a.Fault(doing, false, "")
	}
	var t struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := a.Decode(&t); err != nil || t.AccessToken == "" || t.ExpiresIn <= 0 {
		return connector.Token{}, connector.Malformed(doing, connector.ErrNotObject)
	}
	return connector.NewToken(t.AccessToken, c.cfg.Now(), t.ExpiresIn), nil
}

// do makes one HTTP call below the account's address.
func (c *Connector) do(ctx context.Context, account Account, q connector.Call) (connector.Answer, error) {
	q.URL = account.At(q.URL)
	q.Header["Ocp-Apim-Subscription-Key"] = account.SubscriptionKey
	return c.client.Do(ctx, q)
}
