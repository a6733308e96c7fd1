package registryfile

import (
	"errors"
	"fmt"
	"net/netip"

	"quittance/internal/connector"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// account is a merchant account with its type.
type account struct {
	connector.AccountType
	registry.StoredAccount
}

// accounts reads an agency's merchant accounts of a mode.
func (o object) accounts(agencyID string, live bool) (out []account) {
	for _, t := range o.operators.Accounts(connector.PurposeCollect) {
		o.object(t.Name, func(in object) {
			if live && o.developer {
				o.fault(t.Name, "developer", "is a live connector, which developer mode refuses")
			}
			a := in.account(t, agencyID, live)
			a.CallbackNetworks = in.callbackNetworks()
			out = append(out, a)
		})
	}
	for _, t := range o.operators.Accounts(connector.PurposePayout) {
		o.Misplaced(t.Name, "is an account from which people are paid: set it in payouts of the agency")
	}
	return out
}

// account reads what an account has for every purpose.
func (o object) account(t connector.AccountType, agencyID string, live bool) account {
	return account{t, registry.StoredAccount{
		AccountKey: registry.AccountKey{AgencyID: agencyID, Live: live, Name: t.Name},
		BaseURL:    o.backend(nil), Fields: t.Store(accountFields{o}),
	}}
}

// The widest networks that can be an operator's own.
const (
	widestIPv4 = 8
	widestIPv6 = 16
)

// callbackNetworks reads the networks from which an operator reports.
func (o object) callbackNetworks() []netip.Prefix {
	networks := []netip.Prefix{}
	o.Texts("callback_networks", func(s string) error {
		network, err := parseNetwork(s)
		if err != nil {
			return err
		}
		if network.Addr().Is4() && network.Bits() < widestIPv4 || network.Addr().Is6() && network.Bits() < widestIPv6 {
			return fmt.Errorf("must be the operator's own network: not wider than /%d, or /%d of IPv6", widestIPv4, widestIPv6)
		}
		if network.Addr().IsLoopback() && !o.developer {
			return errors.New("must not be a loopback network")
		}
		networks = append(networks, network)
		return nil
	})
	return networks
}

// accountFields are the fields of an account in a registry file.
type accountFields struct{ o object }

// Text reads a field that is not secret.
func (f accountFields) Text(name string) string { return f.o.credential(name, true) }

// Secret reads a secret field.
func (f accountFields) Secret(name string) secret.Text { return f.o.secret(name) }

// ReportSecret reads a secret field that may be missing.
func (f accountFields) ReportSecret(name string) secret.Text {
	return f.o.plain(name, f.o.credential(name, false))
}

// Flag reads a flag. A missing flag is off.
func (f accountFields) Flag(name string) bool {
	on := f.o.Bool(name)
	return on != nil && *on
}
