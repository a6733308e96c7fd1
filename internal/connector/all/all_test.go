package all_test

import (
	"testing"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/connector/all"
	"quittance/test/connectors"
)

// Every offer for which an operator is asked has one operator, and no other has. Names of operators are unique.
func TestEveryOfferHasAnOperator(t *testing.T) {
	t.Parallel()
	operators := all.Operators()
	connectors.Check(t, operators)
	for _, o := range checkout.Offers {
		if _, ok := operators.Collecting(o.ID); ok != (o.Channel.Origin() == checkout.OriginAsked) {
			t.Errorf("offer %s of channel %s, operator: %v", o.ID, o.Channel, ok)
		}
	}
}

// Registry files and sealed values in Postgres have the names of accounts: they never change.
func TestNamesOfAccounts(t *testing.T) {
	t.Parallel()
	want := map[string]string{"mtn": "momo", "airtel": "momo_b", "card": "card", "switch": "switch"}
	for _, r := range all.Operators().Operators {
		if name, ok := want[r.Operator]; ok && name != r.Collector.Account.Name {
			t.Errorf("the account of %s is called %s", r.Operator, r.Collector.Account.Name)
		}
		delete(want, r.Operator)
	}
	if len(want) > 0 {
		t.Errorf("operators without a registration: %v", want)
	}
	for operator, name := range map[string]string{"mtn": "mtn_payout", "airtel": "airtel_payout", "switch": "switch_payout"} {
		if a, ok := all.Operators().AccountOf(operator, connector.PurposePayout); !ok || a.Name != name {
			t.Errorf("the payout account of %s is called %q", operator, a.Name)
		}
	}
}
