package roles

import (
	"cmp"
	"slices"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/internal/registry"
)

// configuration is the registry with further methods that ingress and sinks need.
type configuration struct {
	*registry.Registry
	base *Base
}

func (b *Base) configuration() configuration { return configuration{b.Registry, b} }

// Payee returns what citizens see of an agency.
func (c configuration) Payee(tenantID string) (pages.Payee, bool) {
	a, ok := c.Agency(tenantID)
	return pages.Payee{Name: a.Name, Logo: a.Logo, Contact: page.Contact{
		Address: a.Address, Phone: a.Contact.Phone, Email: a.Contact.Email, Hours: a.Contact.Hours,
	}}, ok
}

// Counters returns the names of the agency's counters that take cash in that mode.
func (c configuration) Counters(tenantID string, live bool) []string {
	return c.base.Identities.Counters(tenantID, live)
}

// HonoursLate reports whether the agency's policy honours late payments.
func (c configuration) HonoursLate(tenantID string) bool {
	a, _ := c.Agency(tenantID)
	return a.LatePayments == registry.LatePaymentsHonour
}

// Configured reports whether the agency has a usable account for the offer that takes
// the currency; for cash, whether it has a counter. With simulators every agency has a
// counter in test mode.
func (c configuration) Configured(tenantID string, live bool, offerID, currency string) bool {
	if !c.Takes(tenantID, live, offerID, currency) {
		return false
	}
	if offerID == checkout.OfferCashAgency {
		return c.base.Identities.TakesCash(tenantID, live) || c.base.Simulators && !live
	}
	_, ok := c.Account(tenantID, live, offerID)
	return ok
}

// AccountOf returns the fingerprint of the agency's account for the offer, or an empty
// text.
func (c configuration) AccountOf(tenantID string, live bool, offerID string) string {
	if a, ok := c.Account(tenantID, live, offerID); ok {
		return a.Fingerprint()
	}
	return ""
}

// EmbedOrigins returns the origins that may frame the sessions of an application, or of
// platform keys (decisions § 9).
func (c configuration) EmbedOrigins(applicationID string, platform bool) []string {
	app, _ := c.Application(applicationID)
	origins := app.EmbedOrigins
	if platform {
		origins = c.Platform().EmbedOrigins
	}
	if len(c.base.Origins) == 0 {
		return origins
	}
	origins = slices.Clone(origins)
	for i, origin := range origins {
		origins[i] = cmp.Or(c.base.Origins[origin], origin)
	}
	return origins
}

// Embeds reports whether any list of embed origins has the origin.
func (c configuration) Embeds(origin string) bool {
	return slices.Contains(c.EmbedOrigins("", true), origin) || slices.ContainsFunc(c.Applications(), func(a registry.Application) bool {
		return slices.Contains(c.EmbedOrigins(a.ID, false), origin)
	})
}

// Account returns the agency's merchant account for an offer, if it can be used.
func (c configuration) Account(tenantID string, live bool, offerID string) (connector.Account, bool) {
	a, ok := c.MerchantAccount(tenantID, live, offerID)
	return a.Account, ok && !a.Locked
}

// AccountOfCollection returns the merchant account that a collection names by its
// fingerprint. replaced means that the agency has another one now.
func (c configuration) AccountOfCollection(tenantID string, live bool, offerID, fingerprint string) (account connector.Account, replaced, ok bool) {
	a, ok := c.Registry.AccountOfCollection(tenantID, live, offerID, fingerprint)
	return a.Account, a.Replaced, ok
}
