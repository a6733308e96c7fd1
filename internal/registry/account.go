package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// labelConnector is the label of sealed accounts (internal/secret).
const labelConnector = "connector accounts"

// ConnectorAccount is an agency's merchant account with an operator. Which
// fields are set depends on the offer.
type ConnectorAccount struct {
	AgencyID string
	Live     bool
	Offer    string
	BaseURL  string // without a slash at its end
	// Simulated: developer mode's stand-in for a missing test account.
	Simulated bool

	// Of momo.
	TargetEnvironment string
	SubscriptionKey   secret.Text
	APIUser           string
	APIKey            secret.Text

	// Of momo_b.
	ClientID     string
	ClientSecret secret.Text

	// Of card.
	Merchant string
	Secret   secret.Text
	// XAF: the acquirer takes it beside the contract's list (decisions § 7).
	XAF bool

	// Locked says that the credentials do not open with this process's master
	// keys: requests wait.
	Locked bool
}

// credentials is what of a ConnectorAccount is sealed, as JSON.
type credentials struct {
	TargetEnvironment string `json:"target_environment,omitempty"`
	SubscriptionKey   string `json:"subscription_key,omitempty"`
	APIUser           string `json:"api_user,omitempty"`
	APIKey            string `json:"api_key,omitempty"`
	ClientID          string `json:"client_id,omitempty"`
	ClientSecret      string `json:"client_secret,omitempty"`
	Merchant          string `json:"merchant,omitempty"`
	Secret            string `json:"secret,omitempty"`
}

func toCredentials(a ConnectorAccount) credentials {
	return credentials{
		TargetEnvironment: a.TargetEnvironment, SubscriptionKey: a.SubscriptionKey.Reveal(), APIUser: a.APIUser, APIKey: a.APIKey.Reveal(),
		ClientID: a.ClientID, ClientSecret: a.ClientSecret.Reveal(), Merchant: a.Merchant, Secret: a.Secret.Reveal(),
	}
}

func connectorAAD(agencyID string, live bool, offer string) []byte {
	return []byte(agencyID + "/" + Mode(live) + "/" + offer)
}

// AccountKey names an account.
type AccountKey struct {
	AgencyID string
	Live     bool
	Offer    string
}

func (l *loader) accounts(q *db.Queries) {
	read(l, "connector accounts", q.ConnectorAccounts, func(r db.ConnectorAccount) {
		var c credentials
		sealed, ok := l.open(labelConnector, r.Sealed, connectorAAD(r.AgencyID, r.Live, r.Offer))
		if len(sealed) > 0 && json.Unmarshal(sealed, &c) != nil {
			l.err = fmt.Errorf("reading the %s account of agency %s: its sealed value is no JSON", r.Offer, r.AgencyID)
		}
		l.s.Accounts[AccountKey{r.AgencyID, r.Live, r.Offer}] = ConnectorAccount{
			AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, BaseURL: fromStored(r.BaseUrl, l.simulators), XAF: r.Xaf, Locked: !ok,
			TargetEnvironment: c.TargetEnvironment, SubscriptionKey: secret.NewText(c.SubscriptionKey), APIUser: c.APIUser, APIKey: secret.NewText(c.APIKey),
			ClientID: c.ClientID, ClientSecret: secret.NewText(c.ClientSecret), Merchant: c.Merchant, Secret: secret.NewText(c.Secret),
		}
	})
}

// PutAccount sets a merchant account, unless it is set so already: the same text
// sealed again would look like a change.
func (t *Tx) PutAccount(ctx context.Context, c ConnectorAccount) error {
	old, ok := t.Before.Accounts[AccountKey{c.AgencyID, c.Live, c.Offer}]
	if ok && !old.Locked && old.BaseURL == c.BaseURL && old.XAF == c.XAF && toCredentials(old) == toCredentials(c) {
		return nil
	}
	text, err := json.Marshal(toCredentials(c)) //nolint:gosec // sealed two lines below
	if err != nil {
		return err
	}
	sealed, err := t.keys.Seal(labelConnector, text, connectorAAD(c.AgencyID, c.Live, c.Offer))
	if err != nil {
		return err
	}
	return t.q.UpsertConnectorAccount(ctx, db.UpsertConnectorAccountParams{
		AgencyID: c.AgencyID, Live: c.Live, Offer: c.Offer, BaseUrl: ToStored(c.BaseURL), Sealed: sealed, Xaf: c.XAF,
	})
}

// simulatorPaths are where the simulators speak each operator's protocol.
var simulatorPaths = map[string]string{
	checkout.OfferMomo:  "/mtn",
	checkout.OfferMomoB: "/airtel",
	checkout.OfferCard:  "/card",
}

// Connector is an agency's merchant account for an offer; false when it has
// none. In developer mode a missing test account of a known agency means the
// simulators; nothing ever stands in for a live one.
func (r *Registry) Connector(agencyID string, live bool, offer string) (ConnectorAccount, bool) {
	s := r.current.Load()
	if c, ok := s.Accounts[AccountKey{agencyID, live, offer}]; ok {
		return c, true
	}
	agency, known := s.Agencies[agencyID]
	path, simulated := simulatorPaths[offer]
	if live || r.cfg.Simulators == "" || !known || !simulated {
		return ConnectorAccount{}, false
	}
	c := ConnectorAccount{AgencyID: agencyID, Offer: offer, BaseURL: fromStored(simulatorScheme+path, r.cfg.Simulators), Simulated: true}
	switch offer {
	case checkout.OfferMomo:
		c.TargetEnvironment, c.SubscriptionKey = "sandbox", secret.NewText("simulator")
		c.APIUser, c.APIKey = agency.ID, secret.NewText("simulator")
	case checkout.OfferMomoB:
		c.ClientID, c.ClientSecret = agency.ID, secret.NewText("simulator")
	case checkout.OfferCard:
		c.Merchant, c.Secret = agency.Slug, secret.NewText("simulator")
	}
	return c, true
}

// Takes tells whether an offer of an agency takes a currency: mobile money and
// counters XAF, cards the contract's list and, where the agency's account of that
// mode is configured for it, XAF (decisions § 7). For the list an account need not
// be there.
func (r *Registry) Takes(agencyID string, live bool, offer, currency string) bool {
	c, known := money.Lookup(currency)
	channel, offered := checkout.OfferChannel(offer)
	switch {
	case !known || !offered:
		return false
	case channel != checkout.ChannelCard:
		return currency == money.Default
	case currency != money.Default:
		return c.Card()
	}
	account, _ := r.Connector(agencyID, live, offer)
	return account.XAF
}
