package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/internal/connector"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// labelConnector is the label of sealed accounts (internal/secret).
const labelConnector = "connector accounts"

// MerchantAccount is an agency's merchant account with the operator of an offer.
type MerchantAccount struct {
	// Account is of the type of the operator's connector. Of a locked account it
	// holds the address and the flags alone.
	Account connector.Account
	// Simulated says that it stands for the missing test account of an agency, in
	// developer mode.
	Simulated bool
	// Locked says that the sealed fields do not open with this process's master
	// keys: requests wait.
	Locked bool
}

// storedAccount is an account as Postgres and a registry file have it.
type storedAccount struct {
	accountKey
	baseURL string
	fields  connector.StoredFields
	locked  bool
}

type accountKey struct {
	agencyID string
	live     bool
	offer    string
}

// aad is what the sealed fields are bound to: the key of their row.
func (k accountKey) aad() []byte { return []byte(k.agencyID + "/" + mode(k.live) + "/" + k.offer) }

func (s *snapshot) loadAccounts(ctx context.Context, q *db.Queries, keys *secret.Keys) error {
	rows, err := q.ConnectorAccounts(ctx)
	if err != nil {
		return fmt.Errorf("reading merchant accounts: %w", err)
	}
	for _, r := range rows {
		a := storedAccount{
			accountKey: accountKey{r.AgencyID, r.Live, r.Offer}, baseURL: r.BaseUrl, fields: connector.NewStoredFields(nil, r.Flags), locked: true,
		}
		if sealed, ok := s.open(keys, labelConnector, r.Sealed, a.aad()); ok {
			var fields map[string]string
			if json.Unmarshal(sealed, &fields) != nil {
				return fmt.Errorf("reading the %s account of agency %s: its sealed value is no JSON object of strings", r.Offer, r.AgencyID)
			}
			a.fields, a.locked = connector.NewStoredFields(fields, r.Flags), false
		}
		s.accounts[a.accountKey] = a
	}
	return nil
}

// MerchantAccount is an agency's merchant account for an offer; false when it has
// none, or no operator takes money for the offer. In developer mode the simulators
// stand for a missing test account of a known agency, never for a live one.
func (r *Registry) MerchantAccount(agencyID string, live bool, offer string) (MerchantAccount, bool) {
	operator, ok := r.cfg.Operators.Offer(offer)
	if !ok {
		return MerchantAccount{}, false
	}
	s := r.current.Load()
	if a, ok := s.accounts[accountKey{agencyID, live, offer}]; ok {
		base := connector.BaseURL(fromStored(a.baseURL, r.cfg.Simulators))
		return MerchantAccount{Account: operator.Account(base, a.fields), Locked: a.locked}, true
	}
	agency, known := s.agencies[agencyID]
	if live || r.cfg.Simulators == "" || !known {
		return MerchantAccount{}, false
	}
	base := connector.BaseURL(fromStored(simulatorScheme+"/"+operator.Operator, r.cfg.Simulators))
	fields := connector.NewStoredFields(operator.Simulated(agency.ID, agency.Slug), nil)
	return MerchantAccount{Account: operator.Account(base, fields), Simulated: true}, true
}

// Takes says whether an offer of an agency takes a currency (decisions § 7): as its
// operator says of the agency's account, if there is one; XAF alone where there is
// no operator, as at counters.
func (r *Registry) Takes(agencyID string, live bool, offer, currency string) bool {
	c, known := money.Lookup(currency)
	if _, offered := checkout.OfferChannel(offer); !known || !offered {
		return false
	}
	operator, ok := r.cfg.Operators.Offer(offer)
	if !ok || operator.Takes == nil {
		return currency == money.Default
	}
	a, _ := r.MerchantAccount(agencyID, live, offer)
	return operator.Takes(a.Account, c)
}
