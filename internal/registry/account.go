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
	// Account has the type of the operator's connector. When Locked is set, it holds only
	// the address and the flags.
	Account connector.Account
	// Simulated means that the account is one with the simulators, which replaces a
	// missing test account in developer mode.
	Simulated bool
	// Locked means that the sealed fields do not open with this process's master keys.
	// Requests wait.
	Locked bool
}

// AccountKey names a merchant account.
type AccountKey struct {
	AgencyID string
	Live     bool
	Offer    string
}

// aad binds the sealed fields to the key of their row.
func (k AccountKey) aad() []byte { return []byte(k.AgencyID + "/" + Mode(k.Live) + "/" + k.Offer) }

// StoredAccount is a merchant account as registry files and Postgres hold it.
type StoredAccount struct {
	AccountKey
	BaseURL string // without a slash at its end
	Fields  connector.StoredFields
	Locked  bool // Fields hold only the flags
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
				l.err = fmt.Errorf("reading the %s account of agency %s: its sealed value is not a JSON object of strings", r.Offer, r.AgencyID)
			}
			a.Fields, a.Locked = connector.NewStoredFields(fields, r.Flags), false
		}
		l.s.Accounts[a.AccountKey] = a
	})
}

// PutAccount stores a merchant account. It writes nothing when it is the stored one, see
// PutERP.
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

// MerchantAccount returns an agency's merchant account for an offer; false when the
// agency has none or the offer has no operator. In developer mode an account with the
// simulators replaces a missing test account of a known agency, never a live one.
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

// Takes reports whether an offer of an agency takes a currency (decisions § 7). The
// operator decides by the agency's account. Without an operator, as at counters, an
// offer takes only XAF.
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
