package roles

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/pages"
	"quittance/internal/connector"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/sinks/disburse"
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

// TransferAccount returns the agency's bank account to which citizens transfer money in the currency.
func (c configuration) TransferAccount(tenantID string, live bool, currency string) (page.Transfer, bool) {
	a, ok := c.StatementAccountOf(tenantID, live, checkout.OfferBankTransfer, currency, "")
	return page.Transfer{Holder: a.Holder, Bank: a.Bank, IBAN: a.IBAN, Number: a.Number}, ok
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
	return c.Takes(tenantID, live, offerID, currency) && c.channel(tenantID, live, offerID, false)
}

// HasChannel is Configured, but counts an account whose secrets do not open at present:
// that passes, and a refused creation is remembered.
func (c configuration) HasChannel(tenantID string, live bool, offerID, currency string) bool {
	return c.Takes(tenantID, live, offerID, currency) && c.channel(tenantID, live, offerID, true)
}

// channel reports whether the agency has an account for the offer, or for cash a counter, for transfers a bank account.
func (c configuration) channel(tenantID string, live bool, offerID string, locked bool) bool {
	if offerID == checkout.OfferCashAgency {
		return c.base.Identities.TakesCash(tenantID, live) || c.base.Simulators && !live
	}
	if offerID == checkout.OfferBankTransfer {
		return slices.ContainsFunc(c.StatementAccounts(tenantID, live), func(a registry.StatementAccount) bool { return a.Offer == offerID })
	}
	a, ok := c.MerchantAccount(tenantID, live, offerID)
	return ok && (locked || !a.Locked)
}

// WithoutChannel names the applications that have a key in force, with the mode of the key,
// and the citizen portals whose citizens could pay by none of their offers: "Guichet fiscal
// (impots) live". Their creations are refused with checkout.no_channel. It needs an open registry.
func (b *Base) WithoutChannel(ctx context.Context) (found []string, err error) {
	keys, err := identity.ListKeys(ctx, b.Pool)
	if err != nil {
		return nil, err
	}
	type creator struct {
		application string
		live        bool
	}
	creators := map[creator]bool{}
	for _, k := range keys {
		if !k.InForce(b.Now()) {
			continue
		}
		if !k.Platform() {
			creators[creator{k.ApplicationID, k.Live}] = true
			continue
		}
		for _, agency := range k.AgencyIDs {
			app, _ := b.Registry.IntegratorOf(agency)
			creators[creator{app.ID, k.Live}] = true
		}
	}
	c := b.configuration()
	for _, agency := range c.Agencies() {
		if portal, ok := c.PortalOf(agency.ID); ok {
			creators[creator{portal.ID, !b.Developer()}] = true // the mode of a portal is that of its installation
		}
	}
	for by := range creators {
		app, ok := c.Application(by.application)
		if !ok || !app.Active || slices.ContainsFunc(app.Offering(), func(offer string) bool { return c.channel(app.AgencyID, by.live, offer, true) }) {
			continue
		}
		agency, _ := c.Agency(app.AgencyID)
		found = append(found, fmt.Sprintf("%s (%s) %s", app.Name, agency.Slug, registry.Mode(by.live)))
	}
	slices.Sort(found)
	return found, nil
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
// platform keys (docs/design/decisions.md § 9).
func (c configuration) EmbedOrigins(applicationID string, platform bool) []string {
	app, _ := c.Application(applicationID)
	origins := app.EmbedOrigins
	if platform {
		origins = c.Platform().EmbedOrigins
	}
	return c.moved(origins)
}

// moved returns origins with those that Settings.Origins replaces.
func (c configuration) moved(origins []string) []string {
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

// PayoutAccount returns the account with a code from which an attempt is paid that names it by its fingerprint.
func (c configuration) PayoutAccount(tenantID string, live bool, code, fingerprint string) (disburse.Account, bool) {
	a, ok := c.Registry.PayoutAccount(tenantID, live, code, fingerprint)
	return disburse.Account{Account: a.Account, Operator: a.Operator, Replaced: a.Replaced}, ok
}
