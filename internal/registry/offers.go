package registry

import (
	"slices"

	"quittance/checkout"
	"quittance/money"
)

// Offering returns the offers that sessions of the application can have: a bank transfer only if they last long enough for
// it.
func (a Application) Offering() []string {
	return slices.DeleteFunc(slices.Clone(a.Offers), func(id string) bool {
		return id == checkout.OfferBankTransfer && a.SessionLifetime < checkout.TransferTime
	})
}

// PricedOffers returns the offers of the application that takes accepts, each with the fee of
// an amount in minor units. fee returns the schedule of a channel. An offer is left out when
// the amount is too large for its schedule. An amount of 0 or less has no fee.
func (a Application) PricedOffers(amount int64, takes func(offerID string) bool, fee func(checkout.Channel) (money.Schedule, bool)) (out []checkout.Offer) {
	for _, id := range a.Offering() {
		if !takes(id) {
			continue
		}
		channel, _ := checkout.OfferChannel(id)
		o := checkout.Offer{ID: id, Channel: channel}
		if schedule, ok := fee(channel); ok && amount > 0 {
			var err error
			if o.Fee, err = money.Fee(amount, schedule); err != nil {
				continue
			}
		}
		out = append(out, o)
	}
	return out
}
