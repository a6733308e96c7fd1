package registryfile

import (
	"errors"
	"maps"
	"regexp"
	"slices"

	"quittance/internal/connector"
	"quittance/internal/registry"
)

// payout is an account from which an agency pays people.
type payout struct {
	path string
	account
	modes []string // payment modes of the lines that it pays
}

// maxModes is how many payment modes an account may have.
const maxModes = 10

var modePattern = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// payouts reads the accounts from which an agency pays people in a mode.
func (o object) payouts(agencyID string, live bool) (out []payout) {
	for _, t := range o.operators.Accounts(connector.PurposePayout) {
		o.object(t.Name, func(in object) {
			if live && o.developer {
				o.fault(t.Name, "developer", "is a live payout account, which developer mode refuses")
			}
			out = append(out, payout{in.Path(), in.account(t, agencyID, live), in.paymentModes()})
		})
	}
	for _, t := range o.operators.Accounts(connector.PurposeCollect) {
		o.Misplaced(t.Name, "is an account on which the money of payers arrives: set it in connectors of the agency")
	}
	return out
}

// paymentModes reads the payment modes of the lines that an account pays.
func (o object) paymentModes() []string {
	malformed := false
	modes := o.Texts("modes", func(s string) error {
		if !modePattern.MatchString(s) {
			malformed = true
			return errors.New("must be 1 to 32 lower-case letters, digits, _ or -, such as mobile_money")
		}
		return nil
	})
	switch {
	case modes == nil && !o.Faulty("modes"):
		o.fault("modes", "required", "is required: the payment modes of the lines that the account pays, such as [mobile_money]")
	case modes != nil && !malformed && (len(modes) == 0 || len(modes) > maxModes):
		o.fault("modes", "length", "must name 1 to %d payment modes", maxModes)
	}
	return modes
}

// payouts checks that a payment mode is that of one account.
func (c *checker) payouts(a agency) {
	if a.ID == "" {
		return // a fault already: there is nothing to compare with
	}
	for _, live := range []bool{false, true} {
		inFile := map[string]bool{} // accounts
		for _, p := range a.payouts {
			inFile[p.Name] = inFile[p.Name] || p.Live == live
		}
		taken := c.payoutModes(a.ID, live) // account by mode
		maps.DeleteFunc(taken, func(_, account string) bool { return inFile[account] })
		for _, p := range a.payouts {
			if p.Live != live {
				continue
			}
			for _, mode := range slices.Sorted(slices.Values(p.modes)) {
				if other, ok := taken[mode]; ok {
					c.fault(p.path+".modes", "taken", "has the payment mode %s, which %s of the agency pays in %s: a mode is that of one account", mode, other, registry.Mode(live))
					continue
				}
				taken[mode] = p.Name
			}
		}
	}
}
