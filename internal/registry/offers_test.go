package registry_test

import (
	"slices"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/registry"
	"quittance/money"
)

// A bank transfer takes days: shorter sessions do not offer it. An agency's fee is that of the channel.
func TestTransfersNeedTime(t *testing.T) {
	t.Parallel()
	fees := func(c checkout.Channel) (money.Schedule, bool) {
		return money.Schedule{Fixed: 250}, c == checkout.ChannelBankTransfer
	}
	for lifetime, want := range map[time.Duration]bool{24 * time.Hour: false, checkout.TransferTime - time.Millisecond: false, checkout.TransferTime: true} {
		app := registry.Application{Offers: []string{checkout.OfferMomo, checkout.OfferBankTransfer}, SessionLifetime: lifetime}
		offers := app.PricedOffers(5000, func(string) bool { return true }, fees)
		i := slices.IndexFunc(offers, func(o checkout.Offer) bool { return o.ID == checkout.OfferBankTransfer })
		if i >= 0 != want || want && (offers[i].Fee != 250 || offers[i].Channel != checkout.ChannelBankTransfer) {
			t.Errorf("%s: %+v", lifetime, offers)
		}
		if len(app.Offers) != 2 {
			t.Errorf("%s: the application has lost an offer", lifetime)
		}
	}
}

// An ERP takes the channels of the contract, and others when its settings have them.
func TestChannelsThatAnERPKnows(t *testing.T) {
	t.Parallel()
	plain := registry.ERPSettings{}
	wide := registry.ERPSettings{Channels: map[checkout.Channel]string{checkout.ChannelBankTransfer: "VIREMENT", checkout.ChannelSwitch: "SWITCH"}}
	for _, c := range checkout.Channels() {
		if plain.Knows(c) != c.OfContract() || !wide.Knows(c) {
			t.Errorf("%s: %v, with settings %v", c, plain.Knows(c), wide.Knows(c))
		}
	}
}
