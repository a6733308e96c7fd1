package file

import (
	"quittance/checkout"
	"quittance/internal/registry"
)

// accounts are an agency's merchant accounts of a mode.
func (o object) accounts(agencyID string, live bool) []registry.ConnectorAccount {
	var out []registry.ConnectorAccount
	account := func(offer string, with func(object, *registry.ConnectorAccount)) {
		o.object(offer, func(in object) {
			if live && o.developer {
				o.fault(offer, "developer", "is a live connector, which developer mode refuses")
			}
			c := registry.ConnectorAccount{AgencyID: agencyID, Live: live, Offer: offer, BaseURL: in.backend(nil)}
			with(in, &c)
			out = append(out, c)
		})
	}
	account(checkout.OfferMomo, func(o object, c *registry.ConnectorAccount) {
		c.TargetEnvironment, c.SubscriptionKey = o.credential("target_environment", true), o.secret("subscription_key")
		c.APIUser, c.APIKey = o.credential("api_user", true), o.secret("api_key")
	})
	account(checkout.OfferMomoB, func(o object, c *registry.ConnectorAccount) {
		c.ClientID, c.ClientSecret = o.credential("client_id", true), o.secret("client_secret")
	})
	account(checkout.OfferCard, func(o object, c *registry.ConnectorAccount) {
		c.Merchant, c.Secret = o.credential("merchant", true), o.secret("secret")
		if xaf := o.Bool("xaf"); xaf != nil {
			c.XAF = *xaf
		}
	})
	return out
}
