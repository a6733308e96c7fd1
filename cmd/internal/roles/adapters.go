package roles

import (
	"slices"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/identity"
	"quittance/internal/registry"
)

// configuration is the registry with the methods that the parts of roles declare.
type configuration struct {
	*registry.Registry
	identities *identity.Identities
	// simulators replace what a test account does not have.
	simulators bool
	// shop is the origin of the demo shop, empty when none runs.
	shop string
}

func (b *Base) configuration() configuration {
	return configuration{b.Registry, b.Identities, b.Simulators, b.ShopURL}
}

// DemoShop is the origin of the demo shop in a registry file. Settings.ShopURL
// replaces it, as Settings.SimulatorURL replaces port 8081.
const DemoShop = "https://127.0.0.1:8088"

// AgencyName is what citizens call the agency.
func (c configuration) AgencyName(tenantID string) (string, bool) {
	a, ok := c.Agency(tenantID)
	return a.Name, ok
}

// Configured says whether the agency has a usable account for the offer that takes
// the currency, or for cash a counter. Where there are simulators, a test counter is
// always configured, as test accounts are.
func (c configuration) Configured(tenantID string, live bool, offerID, currency string) bool {
	if !c.Takes(tenantID, live, offerID, currency) {
		return false
	}
	if offerID == checkout.OfferCashAgency {
		return c.identities.TakesCash(tenantID, live) || c.simulators && !live
	}
	_, ok := c.Account(tenantID, live, offerID)
	return ok
}

// AccountOf is the fingerprint of the agency's account for the offer.
func (c configuration) AccountOf(tenantID string, live bool, offerID string) string {
	a, ok := c.Account(tenantID, live, offerID)
	if !ok {
		return ""
	}
	return a.Fingerprint()
}

// EmbedOrigins are those that may frame the sessions of an application, or of
// platform keys (decisions § 9).
func (c configuration) EmbedOrigins(applicationID string, platform bool) []string {
	app, _ := c.Application(applicationID)
	origins := app.EmbedOrigins
	if platform {
		origins = c.Platform().EmbedOrigins
	}
	if i := slices.Index(origins, DemoShop); i >= 0 && c.shop != "" {
		origins = slices.Clone(origins)
		origins[i] = c.shop
	}
	return origins
}

// Embeds says whether the origin may frame anybody's sessions.
func (c configuration) Embeds(origin string) bool {
	return slices.Contains(c.EmbedOrigins("", true), origin) || slices.ContainsFunc(c.Applications(), func(a registry.Application) bool {
		return slices.Contains(c.EmbedOrigins(a.ID, false), origin)
	})
}

// Account is an agency's merchant account for an offer, if it can be used.
func (c configuration) Account(tenantID string, live bool, offerID string) (connector.Account, bool) {
	a, ok := c.MerchantAccount(tenantID, live, offerID)
	return a.Account, ok && !a.Locked
}
