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
	return []byte(agencyID + "/" + mode(live) + "/" + offer)
}

type connectorKey struct {
	agencyID string
	live     bool
	offer    string
}

func (s *snapshot) loadAccounts(ctx context.Context, q *db.Queries, keys *secret.Keys) error {
	accounts, err := q.ConnectorAccounts(ctx)
	if err != nil {
		return fmt.Errorf("reading connector accounts: %w", err)
	}
	for _, r := range accounts {
		var c credentials
		sealed, ok := s.open(keys, labelConnector, r.Sealed, connectorAAD(r.AgencyID, r.Live, r.Offer))
		if ok && json.Unmarshal(sealed, &c) != nil {
			return fmt.Errorf("reading the %s account of agency %s: its sealed value is no JSON", r.Offer, r.AgencyID)
		}
		s.connectors[connectorKey{r.AgencyID, r.Live, r.Offer}] = ConnectorAccount{
			AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, BaseURL: r.BaseUrl, XAF: r.Xaf, Locked: !ok,
			TargetEnvironment: c.TargetEnvironment, SubscriptionKey: secret.NewText(c.SubscriptionKey), APIUser: c.APIUser, APIKey: secret.NewText(c.APIKey),
			ClientID: c.ClientID, ClientSecret: secret.NewText(c.ClientSecret), Merchant: c.Merchant, Secret: secret.NewText(c.Secret),
		}
	}
	return nil
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
	if c, ok := s.connectors[connectorKey{agencyID, live, offer}]; ok {
		c.BaseURL = fromStored(c.BaseURL, r.cfg.Simulators)
		return c, true
	}
	agency, known := s.agencies[agencyID]
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
