package period

import (
	"testing"

	"quittance/reconciliation/chain"
)

// `chain --verify` wanted an agency that `chain` had just shown. It is that of the money, unless there are several.
func TestOwnerOfChains(t *testing.T) {
	t.Parallel()
	of := func(tenant string, live bool) chain.Chain {
		return chain.Chain{Money: &chain.Money{TenantID: tenant, Live: live}}
	}
	if got, err := ownerOf([]chain.Chain{of("a", true), {Line: &chain.Line{}}, of("a", true), of("", true)}); err != nil || got != (owner{"a", true}) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, list := range map[string][]chain.Chain{"two agencies": {of("a", true), of("b", true)}, "both modes": {of("a", true), of("a", false)}, "a line only": {{Line: &chain.Line{}}}} {
		if got, err := ownerOf(list); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
