package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/internal/connector"
	"quittance/internal/registry/internal/db"
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

// AccountKey names a merchant account.
type AccountKey struct {
	AgencyID string
	Live     bool
	Offer    string
}

// aad is what the sealed fields are bound to: the key of their row.
func (k AccountKey) aad() []byte { return []byte(k.AgencyID + "/" + Mode(k.Live) + "/" + k.Offer) }

// StoredAccount is a merchant account as registry files and Postgres have it.
type StoredAccount struct {
	AccountKey
	BaseURL string // without a slash at its end
	Fields  connector.StoredFields
	Locked  bool // the fields hold the flags alone
}

func (l *loader) accounts(q *db.Queries) {
	read(l, "merchant accounts", q.ConnectorAccounts, func(r db.ConnectorAccount) {
		a := StoredAccount{
			AccountKey: AccountKey{r.AgencyID, r.Live, r.Offer}, BaseURL: fromStored(r.BaseUrl, l.simulators),
			Fields: connector.NewStoredFields(nil, r.Flags), Locked: true,
		}
		if sealed, ok := l.open(labelConnector, r.Sealed, a.aad()); ok && sealed != nil {
			var fields map[string]string
			if json.Unmarshal(sealed, &fields) != nil {
				l.err = fmt.Errorf("reading the %s account of agency %s: its sealed value is no JSON object of strings", r.Offer, r.AgencyID)
			}
			a.Fields, a.Locked = connector.NewStoredFields(fields, r.Flags), false
		}
		l.s.Accounts[a.AccountKey] = a
	})
}

// PutAccount sets a merchant account, unless it is set so already: the same text
// sealed again would look like a change.
func (t *Tx) PutAccount(ctx context.Context, a StoredAccount) error {
	old, ok := t.Before.Accounts[a.AccountKey]
	if ok && !old.Locked && old.BaseURL == a.BaseURL && old.Fields.Equal(a.Fields) {
		return nil
	}
	text, err := json.Marshal(a.Fields.Reveal())
	if err != nil {
		return err
	}
	sealed, err := t.keys.Seal(labelConnector, text, a.aad())
	if err != nil {
		return err
	}
	return t.q.UpsertConnectorAccount(ctx, db.UpsertConnectorAccountParams{
		AgencyID: a.AgencyID, Live: a.Live, Offer: a.Offer, BaseUrl: ToStored(a.BaseURL), Sealed: sealed, Flags: a.Fields.Flags(),
	})
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
	if a, ok := s.Accounts[AccountKey{agencyID, live, offer}]; ok {
		return MerchantAccount{Account: operator.Account(connector.BaseURL(a.BaseURL), a.Fields), Locked: a.Locked}, true
	}
	agency, known := s.Agencies[agencyID]
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
