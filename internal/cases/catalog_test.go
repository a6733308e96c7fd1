package cases_test

import (
	"fmt"
	"strings"
	"testing"

	"quittance/internal/cases"
)

// The kinds and resolutions of all domains, in the order of lists and help: what people can
// propose for each kind; with + where a reference is needed, and with 2 where it always takes
// two people.
func TestCatalog(t *testing.T) {
	t.Parallel()
	c := cases.Catalog()
	var b strings.Builder
	for _, k := range c.Kinds {
		fmt.Fprintf(&b, "%s:", k)
		for _, r := range c.Allowed(k) {
			fmt.Fprintf(&b, " %s", r)
			e, _ := c.Exit(k, r)
			if e.NeedsReference {
				b.WriteString("+")
			}
			if e.NeedsTwo {
				b.WriteString("2")
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintln(&b, c.Resolutions())
	const want = `late_payment: honour refund+ write_off+
mismatch: honour refund+ ask_again write_off+
orphan: honour refund+ write_off+
undecided: approved+ refused+ ask_again
refund_request: refund+ acknowledge
reversal: acknowledge+
confirmation: refund+ retry recorded_by_hand+2
poison: acknowledge
break: write_off+ explain+ match_by_hand2
match_proposal: write_off+ explain+ match
close: close2
[honour refund approved refused ask_again write_off acknowledge retry recorded_by_hand explain match match_by_hand close]
`
	if b.String() != want {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
}
