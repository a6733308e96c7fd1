package cashin

import (
	"net/http"
	"slices"

	"quittance/checkout"
	"quittance/internal/registry"
	"quittance/money"
)

// currency of the whole surface.
const currency = money.Default

// provider is one of the four that the contract names.
type provider struct {
	name  string
	id    int
	offer string
	phone bool // the payer's number is required
	// description is for people.
	description string
}

// all are the providers by id.
var all = []provider{
	{"mobile_money_a", 1, checkout.OfferMomo, true, "Mobile money"},
	{"mobile_money_b", 2, checkout.OfferMomoB, true, "Mobile money"},
	{"card_network_a", 3, checkout.OfferCard, false, "Card"},
	{"card_network_b", 4, checkout.OfferCard, false, "Card"},
}

var providers = func() map[string]provider {
	out := map[string]provider{}
	for _, p := range all {
		out[p.name] = p
	}
	return out
}()

// offers returns the offers that can pay the amount now: the application has them, and its
// agency an account that takes francs. Bank transfers are not of this surface.
func (a *API) offers(app registry.Application, live bool, amount int64) []checkout.Offer {
	return app.PricedOffers(amount,
		func(id string) bool {
			channel, _ := checkout.OfferChannel(id) // partners know no other
			return channel.OfContract() && a.cfg.Configuration.Configured(app.AgencyID, live, id, currency)
		},
		func(channel checkout.Channel) (money.Schedule, bool) {
			return a.cfg.Configuration.Fee(app.AgencyID, channel, currency)
		})
}

// enabled reports whether the application takes payments of a provider now.
func (a *API) enabled(app registry.Application, live bool, g provider) bool {
	return slices.Contains(app.Cashin.Providers, g.name) && slices.Contains(app.Offers, g.offer) &&
		a.cfg.Configuration.Configured(app.AgencyID, live, g.offer, currency)
}

// gateway is an entry of payment-gateways.
type gateway struct {
	ID                   int     `json:"id"`
	Name                 string  `json:"name"`
	PhoneRequired        bool    `json:"phoneRequired"`
	CommissionPercentage float64 `json:"commissionPercentage"`
	CommissionValue      int64   `json:"commissionValue"`
	Logo                 *string `json:"logo"`
}

// gateways answers GET /partners/payment-gateways.
func (a *API) gateways(c call) error {
	p, app, err := a.authenticate(c)
	if err != nil {
		return err
	}
	if err := a.count(c, p.PairID); err != nil {
		return err
	}
	out := []gateway{}
	for _, g := range all {
		if !a.enabled(app, p.Live, g) {
			continue
		}
		entry := gateway{ID: g.id, Name: g.name, PhoneRequired: g.phone}
		channel, _ := checkout.OfferChannel(g.offer)
		if schedule, ok := a.cfg.Configuration.Fee(app.AgencyID, channel, currency); ok {
			entry.CommissionPercentage, entry.CommissionValue = float64(schedule.RatioPPM)/money.PartsPerMillion, schedule.Fixed
		}
		out = append(out, entry)
	}
	write(c.w, http.StatusOK, out)
	return nil
}
