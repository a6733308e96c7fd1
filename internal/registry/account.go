package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/money"
)

// Labels of sealed accounts (internal/secret): of all fields, and of those that tell whose a report is and
// prove it, which the ingress opens.
const (
	LabelConnector = "connector accounts"
	LabelReports   = "operator reports"
)

// MerchantAccount is an agency's merchant account with an operator.
type MerchantAccount struct {
	// Account has the type of the operator's connector. When Locked is set, it holds only
	// the address and the flags.
	Account connector.Account
	// CallbackNetworks contain the addresses from which the operator itself reports.
	CallbackNetworks []netip.Prefix
	// Simulated means that the account is one with the simulators, which replaces a
	// missing test account in developer mode.
	Simulated bool
	// Replaced means that the agency has another account now. Money is no longer collected
	// with this one; its operator is still asked about the collections that name it.
	Replaced bool
	// Locked means that the sealed fields do not open with this process's master keys, or that the row
	// does not verify (internal/signed); it then holds nothing else. Requests wait.
	Locked bool
	// ReportsOnly means that this process has the key of reports only: the account has its
	// fingerprint and no secret of calls.
	ReportsOnly bool
}

// AccountKey names a merchant account. Name stands for its operator and its purpose
// (connector.AccountType). Postgres has it in the column offer, the name of which is older
// than operators that serve several offers.
type AccountKey struct {
	AgencyID string
	Live     bool
	Name     string
}

// aad binds the sealed fields to the key of their row.
func (k AccountKey) aad() []byte { return []byte(k.AgencyID + "/" + Mode(k.Live) + "/" + k.Name) }

// StoredAccount is a merchant account as registry files and Postgres hold it.
type StoredAccount struct {
	AccountKey
	BaseURL          string // without a slash at its end
	Fields           connector.StoredFields
	CallbackNetworks []netip.Prefix
	Locked           bool // Fields hold only the flags
	ReportsOnly      bool // Fields lack the secrets of calls
	// reported tells that what proves reports is sealed apart.
	reported bool
}

// of returns the account in the type of its operator's connector.
func (a StoredAccount) of(t connector.AccountType) connector.Account {
	return t.Read(connector.BaseURL(a.BaseURL), a.Fields)
}

func (l *loader) accounts() {
	read(l, "connector_accounts", func(r db.ConnectorAccount, believed bool) {
		a := l.account(r, believed)
		l.s.Accounts[a.AccountKey] = a
	})
	read(l, "replaced_accounts", func(r db.ReplacedAccount, believed bool) {
		a := l.account(db.ConnectorAccount{
			AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, BaseUrl: r.BaseUrl, Sealed: r.Sealed, ReportsSealed: r.ReportsSealed, Flags: r.Flags, CallbackNetworks: r.CallbackNetworks,
		}, believed)
		l.s.replaced[a.AccountKey] = append(l.s.replaced[a.AccountKey], a)
	})
}

func (l *loader) account(r db.ConnectorAccount, believed bool) StoredAccount {
	if !believed {
		return StoredAccount{AccountKey: AccountKey{r.AgencyID, r.Live, r.Offer}, Fields: connector.NewStoredFields(nil, nil), Locked: true}
	}
	a := StoredAccount{
		AccountKey: AccountKey{r.AgencyID, r.Live, r.Offer}, BaseURL: fromStored(r.BaseUrl, l.simulators),
		Fields: connector.NewStoredFields(nil, r.Flags), CallbackNetworks: r.CallbackNetworks, Locked: true, reported: len(r.ReportsSealed) > 0,
	}
	label, value := LabelConnector, r.Sealed
	if l.without(LabelConnector) && !l.without(LabelReports) {
		label, value, a.ReportsOnly = LabelReports, r.ReportsSealed, true
	}
	if sealed, ok := l.open(label, value, a.aad()); ok && sealed != nil {
		var fields map[string]string
		if json.Unmarshal(sealed, &fields) != nil {
			l.err = fmt.Errorf("reading the %s account of agency %s: its sealed value is not a JSON object of strings", r.Offer, r.AgencyID)
		}
		a.Fields, a.Locked = connector.NewStoredFields(fields, r.Flags), false
	}
	return a
}

// PutAccount stores a merchant account. It writes nothing when it is the stored one, see
// PutERP. A stored account of another fingerprint is kept among the replaced ones, because
// undecided collections may name it; one whose row does not verify is not.
func (t *Tx) PutAccount(ctx context.Context, a StoredAccount, of connector.AccountType) error {
	old, ok := t.Before.Accounts[a.AccountKey]
	forged := t.rows.Forged(signed.NewID("connector_accounts", a.AgencyID, a.Live, a.Name))
	if ok && !forged && !old.Locked && old.reported && old.BaseURL == a.BaseURL && old.Fields.Equal(a.Fields) && slices.Equal(old.CallbackNetworks, a.CallbackNetworks) {
		return nil
	}
	if ok && !forged && (old.Locked || !sameFingerprints(old.of(of), a.of(of))) {
		err := t.q.KeepReplacedAccount(ctx, db.KeepReplacedAccountParams{AgencyID: a.AgencyID, Live: a.Live, Offer: a.Name, ReplacedAt: t.Now})
		if err != nil {
			return fmt.Errorf("keeping the replaced %s account: %w", a.Name, err)
		}
	}
	if err := t.Anew(ctx, "connector_accounts", a.AgencyID, a.Live, a.Name); err != nil {
		return err
	}
	sealed, err := t.sealFields(LabelConnector, a.Fields.Reveal(), a.AccountKey)
	if err != nil {
		return err
	}
	reports, err := t.sealFields(LabelReports, a.Fields.Reports(), a.AccountKey)
	if err != nil {
		return err
	}
	return t.q.UpsertConnectorAccount(ctx, db.UpsertConnectorAccountParams{
		AgencyID: a.AgencyID, Live: a.Live, Offer: a.Name, BaseUrl: ToStored(a.BaseURL), Sealed: sealed, ReportsSealed: reports, Flags: a.Fields.Flags(),
		CallbackNetworks: append([]netip.Prefix{}, a.CallbackNetworks...),
	})
}

func (t *Tx) sealFields(label string, fields map[string]string, of AccountKey) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return t.keys.Seal(label, text, of.aad())
}

// SealReports seals what proves the reports of accounts apart, for accounts that were stored before that was
// done, and returns their number. Accounts that do not open stay as they are.
func SealReports(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, operators connector.Table, actor operation.Actor, now time.Time) (n int, err error) {
	types := map[string]connector.AccountType{}
	for _, t := range operators.Accounts(connector.PurposeCollect) {
		types[t.Name] = t
	}
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		n = 0
		rows, err := accountsWithoutReports(ctx, t, keys)
		for _, r := range rows {
			key := AccountKey{r.AgencyID, r.Live, r.Offer}
			var fields map[string]string
			plain, unopened := keys.Open(LabelConnector, r.Sealed, key.aad())
			if unopened != nil || json.Unmarshal(plain, &fields) != nil || types[r.Offer].Read == nil {
				continue
			}
			stored := types[r.Offer].Store(connector.NewStoredFields(fields, r.Flags))
			var with []byte
			if with, err = t.sealFields(LabelReports, stored.Reports(), key); err != nil {
				return err
			}
			var done int64
			if r.replaced > 0 {
				done, err = t.q.ResealReplacedAccountReports(ctx, db.ResealReplacedAccountReportsParams{Sealed: with, ID: r.replaced, Was: []byte{}})
			} else {
				done, err = t.q.ResealAccountReports(ctx, db.ResealAccountReportsParams{Sealed: with, AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, Was: []byte{}})
			}
			if err != nil {
				return err
			}
			n += int(done)
		}
		if err != nil || n == 0 {
			return err
		}
		return operation.Record(ctx, t, actor, now, operation.Entry{Action: "secrets.seal_reports", Subject: "connector_accounts", Detail: map[string]any{"values": n}})
	})
	return n, err
}

// storedRow is a row of connector_accounts, or with the id of its row one of replaced_accounts.
type storedRow struct {
	db.ConnectorAccount
	replaced int64
}

// accountsWithoutReports returns the rows that verify: a forged one must not be signed.
func accountsWithoutReports(ctx context.Context, tx pgx.Tx, keys *secret.Keys) (out []storedRow, err error) {
	verifier := signed.NewVerifier(keys)
	err = signed.Read(ctx, tx, verifier, "connector_accounts", func(r db.ConnectorAccount, row signed.Row) {
		if row.Verified && len(r.ReportsSealed) == 0 {
			out = append(out, storedRow{r, 0})
		}
	})
	if err != nil {
		return nil, err
	}
	err = signed.Read(ctx, tx, verifier, "replaced_accounts", func(r db.ReplacedAccount, row signed.Row) {
		if row.Verified && len(r.ReportsSealed) == 0 {
			out = append(out, storedRow{db.ConnectorAccount{AgencyID: r.AgencyID, Live: r.Live, Offer: r.Offer, Sealed: r.Sealed, Flags: r.Flags}, r.ID})
		}
	})
	return out, err
}

// sameFingerprints reports whether every collection that names one account names the other.
func sameFingerprints(a, b connector.Account) bool {
	earlier, ok := a.(connector.EarlierAccount)
	return connector.Is(b, a.Fingerprint()) && (!ok || connector.Is(b, earlier.EarlierFingerprint()))
}

// loopback are the networks of simulators, which run beside the service.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// MerchantAccount returns an agency's merchant account for an offer; false when the
// agency has none or the offer has no operator. In developer mode an account with the
// simulators replaces a missing test account of a known agency, never a live one.
func (r *Registry) MerchantAccount(agencyID string, live bool, offer string) (MerchantAccount, bool) {
	operator, ok := r.cfg.Operators.Collecting(offer)
	if !ok {
		return MerchantAccount{}, false
	}
	return r.present(r.current.Load(), agencyID, live, operator.Operator, operator.Collector.Account)
}

// present returns the account of a type, which is that of an operator and a purpose.
func (r *Registry) present(s *Snapshot, agencyID string, live bool, operator string, t connector.AccountType) (MerchantAccount, bool) {
	if a, ok := s.Accounts[AccountKey{agencyID, live, t.Name}]; ok {
		return MerchantAccount{Account: a.of(t), CallbackNetworks: a.CallbackNetworks, Locked: a.Locked, ReportsOnly: a.ReportsOnly}, true
	}
	agency, known := s.Agencies[agencyID]
	if live || r.cfg.Simulators == "" || !known {
		return MerchantAccount{}, false
	}
	base := connector.BaseURL(fromStored(simulatorScheme+"/"+operator, r.cfg.Simulators))
	fields := connector.NewStoredFields(t.Simulated(agency.ID, agency.Slug), nil)
	return MerchantAccount{Account: t.Read(base, fields), CallbackNetworks: loopback, Simulated: true}, true
}

// AccountOfCollection returns the account that a collection by an offer names by its
// fingerprint, see CollectingAccount.
func (r *Registry) AccountOfCollection(agencyID string, live bool, offer, fingerprint string) (MerchantAccount, bool) {
	return r.CollectingAccount(agencyID, live, r.cfg.Operators.Offers[offer], fingerprint)
}

// CollectingAccount returns the account of an operator that a collection names by its
// fingerprint: the present one, or one that it replaced. An account whose address or
// credentials were corrected is returned as it is now. Collections of early releases name
// none; theirs is the present one. An account that is locked cannot be found.
func (r *Registry) CollectingAccount(agencyID string, live bool, name, fingerprint string) (MerchantAccount, bool) {
	operator, known := r.cfg.Operators.Operator(name)
	if !known || operator.Collector == nil {
		return MerchantAccount{}, false
	}
	return r.named(r.current.Load(), agencyID, live, operator.Operator, operator.Collector.Account, fingerprint)
}

// named returns the account of a type that something names by its fingerprint, as CollectingAccount says.
func (r *Registry) named(s *Snapshot, agencyID string, live bool, operator string, t connector.AccountType, fingerprint string) (MerchantAccount, bool) {
	present, ok := r.present(s, agencyID, live, operator, t)
	ok = ok && !present.Locked
	if ok && (fingerprint == "" || connector.Is(present.Account, fingerprint)) {
		return present, true
	}
	if fingerprint == "" {
		return MerchantAccount{}, false
	}
	replaced := s.replaced[AccountKey{agencyID, live, t.Name}] // newest first
	find := func(fingerprint string) (MerchantAccount, bool) {
		for _, a := range replaced {
			if account := a.of(t); !a.Locked && connector.Is(account, fingerprint) {
				return MerchantAccount{Account: account, CallbackNetworks: a.CallbackNetworks, Replaced: true, ReportsOnly: a.ReportsOnly}, true
			}
		}
		return MerchantAccount{}, false
	}
	named, found := find(fingerprint)
	if !found {
		return MerchantAccount{}, false
	}
	merchant := named.Account.Fingerprint()
	if ok && connector.Is(present.Account, merchant) {
		return present, true
	}
	return find(merchant)
}

// Takes reports whether an offer of an agency takes a currency (docs/design/decisions.md § 7). The
// operator decides by the agency's account. Without an operator, as at counters, an
// offer takes only XAF, and a bank transfer what the agency has an account for. While the fee's row does not verify, it takes nothing.
func (r *Registry) Takes(agencyID string, live bool, offer, currency string) bool {
	c, known := money.Lookup(currency)
	channel, offered := checkout.OfferChannel(offer)
	if !known || !offered || r.current.Load().closedFees[feeKey{agencyID, string(channel), currency}] {
		return false
	}
	if offer == checkout.OfferBankTransfer {
		_, ok := r.StatementAccountOf(agencyID, live, offer, currency, "")
		return ok
	}
	operator, ok := r.cfg.Operators.Collecting(offer)
	if !ok || operator.Collector.Takes == nil {
		return currency == money.Default
	}
	a, _ := r.present(r.current.Load(), agencyID, live, operator.Operator, operator.Collector.Account)
	return operator.Collector.Takes(a.Account, c)
}
