package registry

import (
	"context"
	"encoding/json"

	"quittance/checkout"
	"quittance/internal/registry/internal/db"
)

func (p parser) connectors(o *object, agencyID string, live bool) []ConnectorAccount {
	var out []ConnectorAccount
	account := func(offer string, with func(*object, *ConnectorAccount)) {
		o.object(offer, func(o *object) {
			if live && p.developer {
				o.faults.add(o.path, "developer mode refuses live connectors")
			}
			c := ConnectorAccount{AgencyID: agencyID, Live: live, Offer: offer, BaseURL: p.backend(o, nil)}
			with(o, &c)
			out = append(out, c)
		})
	}
	account(checkout.OfferMomo, func(o *object, c *ConnectorAccount) {
		c.TargetEnvironment, c.SubscriptionKey = credential(o, "target_environment"), p.secret(o, "subscription_key")
		c.APIUser, c.APIKey = credential(o, "api_user"), p.secret(o, "api_key")
	})
	account(checkout.OfferMomoB, func(o *object, c *ConnectorAccount) {
		c.ClientID, c.ClientSecret = credential(o, "client_id"), p.secret(o, "client_secret")
	})
	account(checkout.OfferCard, func(o *object, c *ConnectorAccount) {
		c.Merchant, c.Secret = credential(o, "merchant"), p.secret(o, "secret")
		if xaf := o.boolean("xaf"); xaf != nil {
			c.XAF = *xaf
		}
	})
	return out
}

// accounts writes the merchant accounts that differ: sealing the same text again
// would look like a change.
func (s *seeder) accounts(ctx context.Context, a fileAgency) error {
	for _, c := range a.connectors {
		old, ok := s.known.connectors[connectorKey{a.id, c.Live, c.Offer}]
		if ok && !old.Locked && old.BaseURL == c.BaseURL && old.XAF == c.XAF && toCredentials(old) == toCredentials(c) {
			continue
		}
		text, err := json.Marshal(toCredentials(c)) //nolint:gosec // to be sealed, two lines on
		if err != nil {
			return err
		}
		sealed, err := s.opts.Keys.Seal(labelConnector, text, connectorAAD(a.id, c.Live, c.Offer))
		if err != nil {
			return err
		}
		if err := s.q.UpsertConnectorAccount(ctx, db.UpsertConnectorAccountParams{
			AgencyID: a.id, Live: c.Live, Offer: c.Offer, BaseUrl: c.BaseURL, Sealed: sealed, Xaf: c.XAF,
		}); err != nil {
			return err
		}
	}
	return nil
}
