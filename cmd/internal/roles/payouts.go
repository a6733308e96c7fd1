package roles

import (
	"errors"
	"fmt"

	"quittance/internal/connector"
	"quittance/internal/contact"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/money"
)

// callingCode is that of the numbers of the operators' payees.
const callingCode = "242"

// enquiriesPerSecond is how many enquiries about payouts an account makes: what connectors allow unless they are told
// otherwise.
const enquiriesPerSecond = 10

// ImportAccounts returns the payout accounts of an agency in a mode, as an import of lines needs them, and the revision of
// the registry that has them. Locked accounts are left out: nobody could be paid from them. It needs the registry.
func (b *Base) ImportAccounts(tenantID string, live bool) ([]disbursements.Account, int64, error) {
	connectors, err := b.payoutConnectors()
	if err != nil {
		return nil, 0, err
	}
	revision := b.Registry.Revision()
	var out []disbursements.Account
	for _, a := range b.Registry.PayoutAccounts(tenantID, live) {
		if a.Locked || len(a.Modes) == 0 {
			continue
		}
		out = append(out, disbursements.Account{
			Account:     lines.Account{Code: a.Code, Currency: money.Default, Modes: a.Modes, Phone: phoneOf(connectors[a.Operator]), Country: callingCode},
			Fingerprint: a.Account.Fingerprint(), PerSecond: enquiriesPerSecond,
		})
	}
	return out, revision, nil
}

// phoneOf reads the numbers of the payees of an operator.
func phoneOf(c connector.PayoutConnector) func(string) (string, error) {
	return func(text string) (string, error) {
		number, err := c.Payee(text)
		if errors.Is(err, contact.ErrOtherOperator) {
			return "", fmt.Errorf("%w: %w", lines.ErrOtherOperator, err)
		}
		return number, err
	}
}
