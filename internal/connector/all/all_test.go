package all_test

import (
	"testing"

	"quittance/checkout"
	"quittance/internal/connector/all"
)

// Every offer except cash at a counter has one operator. Names of operators are unique.
func TestEveryOfferHasAnOperator(t *testing.T) {
	t.Parallel()
	operators := all.Operators()
	names, offers := map[string]bool{}, map[string]bool{}
	for _, r := range operators {
		if names[r.Operator] || offers[r.Offer] {
			t.Errorf("%s: its name or its offer %q is another operator's", r.Operator, r.Offer)
		}
		names[r.Operator], offers[r.Offer] = true, true
	}
	for _, o := range checkout.Offers {
		if offers[o.ID] != (o.Channel != checkout.ChannelCash) {
			t.Errorf("offer %s of channel %s, operator: %v", o.ID, o.Channel, offers[o.ID])
		}
		delete(offers, o.ID)
	}
	if len(offers) > 0 {
		t.Errorf("operators of no offer: %v", offers)
	}
}
