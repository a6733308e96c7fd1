package registry

import (
	"context"
	"encoding/json"

	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// accounts reads the merchant accounts of an agency in one mode, by offer.
func (p parser) accounts(o *object, agencyID string, live bool) []storedAccount {
	var out []storedAccount
	for _, operator := range p.operators {
		o.object(operator.Offer, func(o *object) {
			if live && p.developer {
				o.faults.add(o.path, "developer mode refuses live connectors")
			}
			out = append(out, storedAccount{
				accountKey: accountKey{agencyID, live, operator.Offer}, baseURL: p.backend(o, nil), fields: operator.Store(fileFields{o, p}),
			})
		})
	}
	return out
}

// fileFields are the fields of an account in a registry file.
type fileFields struct {
	o *object
	p parser
}

// Text is a field that is no secret.
func (f fileFields) Text(name string) string { return credential(f.o, name) }

// Secret is a field that is one.
func (f fileFields) Secret(name string) secret.Text { return f.p.secret(f.o, name) }

// Flag is a flag; absent it is off.
func (f fileFields) Flag(name string) bool {
	on := f.o.boolean(name)
	return on != nil && *on
}

// accounts writes the merchant accounts that differ: sealing the same text again
// would look like a change.
func (s *seeder) accounts(ctx context.Context, a fileAgency) error {
	for _, account := range a.accounts {
		old, ok := s.known.accounts[account.accountKey]
		if ok && !old.locked && old.baseURL == account.baseURL && old.fields.Equal(account.fields) {
			continue
		}
		text, err := json.Marshal(account.fields.Reveal())
		if err != nil {
			return err
		}
		sealed, err := s.opts.Keys.Seal(labelConnector, text, account.aad())
		if err != nil {
			return err
		}
		if err := s.q.UpsertConnectorAccount(ctx, db.UpsertConnectorAccountParams{
			AgencyID: account.agencyID, Live: account.live, Offer: account.offer, BaseUrl: account.baseURL, Sealed: sealed, Flags: account.fields.Flags(),
		}); err != nil {
			return err
		}
	}
	return nil
}
