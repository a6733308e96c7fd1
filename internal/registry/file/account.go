package file

import (
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// accounts reads an agency's merchant accounts of a mode.
func (o object) accounts(agencyID string, live bool) (out []registry.StoredAccount) {
	for _, operator := range o.operators {
		o.object(operator.Offer, func(in object) {
			if live && o.developer {
				o.fault(operator.Offer, "developer", "is a live connector, which developer mode refuses")
			}
			out = append(out, registry.StoredAccount{
				AccountKey: registry.AccountKey{AgencyID: agencyID, Live: live, Offer: operator.Offer},
				BaseURL:    in.backend(nil), Fields: operator.Store(accountFields{in}),
			})
		})
	}
	return out
}

// accountFields are the fields of an account in a registry file.
type accountFields struct{ o object }

// Text reads a field that is not secret.
func (f accountFields) Text(name string) string { return f.o.credential(name, true) }

// Secret reads a secret field.
func (f accountFields) Secret(name string) secret.Text { return f.o.secret(name) }

// Flag reads a flag. A missing flag is off.
func (f accountFields) Flag(name string) bool {
	on := f.o.Bool(name)
	return on != nil && *on
}
