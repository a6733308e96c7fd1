package registry

import (
	"slices"

	"quittance/checkout"
	"quittance/money"
)

// Confirmable leaves out offers by a channel for which the ERP has no word: it would refuse the confirmation of the payment.
func (e ERPSettings) Confirmable(offers []checkout.Offer) []checkout.Offer {
	return slices.DeleteFunc(offers, func(o checkout.Offer) bool {
		_, ok := e.Channel(o.Channel)
		return !ok
	})
}

// PricedOffers returns the offers of the application that takes accepts, each with the fee of
// an amount in minor units. fee returns the schedule of a channel. An offer is left out when
// the amount is too large for its schedule. An amount of 0 or less has no fee.
func (a Application) PricedOffers(amount int64, takes func(offerID string) bool, fee func(checkout.Channel) (money.Schedule, bool)) (out []checkout.Offer) {
	for _, id := range a.Offers {
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
