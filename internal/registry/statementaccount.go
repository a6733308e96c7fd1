package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // days must not depend on the files of the machine

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/signed"
	"quittance/internal/statements"
)

// AccountKind says who keeps an account whose statements are reconciled.
type AccountKind string

// The kinds of accounts.
const (
	AccountOperator AccountKind = "operator" // of mobile money, or at the regional switch
	AccountAcquirer AccountKind = "acquirer" // of cards
	AccountBank     AccountKind = "bank"
	AccountCash     AccountKind = "cash" // what the counters took and deposit by slips
)

// AccountKinds lists all kinds.
var AccountKinds = []AccountKind{AccountOperator, AccountAcquirer, AccountBank, AccountCash}

// Channels lists the channels of the offers whose money arrives on such an account. A bank account may also have none.
func (k AccountKind) Channels() []checkout.Channel {
	return map[AccountKind][]checkout.Channel{
		AccountOperator: {checkout.ChannelMobileMoney, checkout.ChannelSwitch}, AccountAcquirer: {checkout.ChannelCard}, AccountCash: {checkout.ChannelCash},
		AccountBank: {checkout.ChannelBankTransfer},
	}[k]
}

// Profiles lists the profiles of the statements of such an account.
func (k AccountKind) Profiles() []string {
	return append(slices.Clone(map[AccountKind][]string{
		AccountOperator: {"airtel", "mtn"}, AccountAcquirer: {"card-settlement"}, AccountBank: {"camt.053"}, AccountCash: {"cash-slip"},
	}[k]), statements.ProfileCSV)
}

// Defaults and limits of accounts.
const (
	DefaultZone      = "Africa/Brazzaville"
	DefaultGraceDays = 2
	MaxGraceDays     = 31
	MaxBatchPattern  = 200
	DefaultKeepYears = 10
	MaxKeepYears     = 100
)

// StatementAccountKey names an account whose statements are reconciled.
type StatementAccountKey struct {
	AgencyID string
	Live     bool
	Code     string
}

// StatementAccount is an account whose statements are reconciled. Its kind, currency and zone never change, and its offer
// changes only as that of a bank account.
type StatementAccount struct {
	StatementAccountKey
	Kind AccountKind
	// Offer is that of the money that arrives, or one of those of the same operator. A bank account has none, or
	// checkout.OfferBankTransfer when citizens may transfer money to it. Of an account from which people are paid it is the code of the payout
	// account (PayoutAccount.Code), which is no offer's.
	Offer string
	// Fingerprint is that of a merchant account that was replaced; empty for the present one.
	Fingerprint string
	// IBAN, without spaces, or Number is what statements name the account by.
	IBAN, Number string
	// Holder is the name of the account as payers must write it, Bank the name of the bank. An account to which
	// citizens may transfer money has both, and an IBAN or a number. Others have neither.
	Holder, Bank string
	Currency     string
	Profile      string
	// Zone is the name of the time zone of the account's days, such as Africa/Brazzaville.
	Zone string
	// Cutoff is the local time of day at which the next payout begins.
	Cutoff time.Duration
	// GraceDays is how many days a line may be late.
	GraceDays int
	// KeepYears is how many years after its import the file of a statement is kept.
	KeepYears int
	// SettlesTo is the code of the bank account that gets the payouts; empty for none.
	SettlesTo string
	// BatchPattern finds a settlement batch id in the texts of a bank; empty for none.
	BatchPattern string
	// Columns is the layout of files of the profile csv; otherwise nil.
	Columns *statements.Layout
}

// Payouts reports whether people are paid from the account.
func (a StatementAccount) Payouts() bool {
	_, offer := checkout.OfferChannel(a.Offer)
	return a.Offer != "" && !offer
}

// Transfers reports whether citizens transfer money to the account, or did: transfers may be under way after another account
// is offered.
func (a StatementAccount) Transfers() bool { return a.Kind == AccountBank && a.Holder != "" }

// Location returns the time zone of the account's days.
func (a StatementAccount) Location() (*time.Location, error) {
	zone, err := time.LoadLocation(a.Zone)
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", a.Code, err)
	}
	return zone, nil
}

// Reader returns the account as the readers of statements take it.
func (a StatementAccount) Reader() (statements.Account, error) {
	r := statements.Account{Code: a.Code, IBAN: a.IBAN, Number: a.Number, Currency: a.Currency, Profile: a.Profile, Columns: a.Columns}
	var err error
	if r.Zone, err = a.Location(); err != nil {
		return r, err
	}
	if a.BatchPattern != "" {
		if r.Batch, err = regexp.Compile(a.BatchPattern); err != nil {
			return r, fmt.Errorf("account %s: %w", a.Code, err)
		}
	}
	return r, nil
}

// CutoffText returns the cut-off such as 17:00.
func (a StatementAccount) CutoffText() string {
	return fmt.Sprintf("%02d:%02d", int(a.Cutoff.Hours()), int(a.Cutoff.Minutes())%60)
}

func (l *loader) statementAccounts() {
	read(l, "statement_accounts", func(r db.StatementAccount, believed bool) {
		if !believed {
			return
		}
		a := StatementAccount{
			StatementAccountKey: StatementAccountKey{r.AgencyID, r.Live, r.Code}, Kind: AccountKind(r.Kind), Offer: value(r.Offer), Fingerprint: r.Fingerprint,
			IBAN: r.Iban, Number: r.Number, Holder: r.Holder, Bank: r.Bank, Currency: r.Currency, Profile: r.Profile, Zone: r.Zone, Cutoff: time.Duration(r.CutoffMinutes) * time.Minute,
			GraceDays: int(r.GraceDays), KeepYears: int(r.KeepYears), SettlesTo: value(r.SettlesTo), BatchPattern: r.BatchPattern,
		}
		if r.Columns != nil {
			a.Columns = &statements.Layout{Name: statements.ProfileCSV}
			if json.Unmarshal(r.Columns, a.Columns) != nil && l.err == nil {
				l.err = fmt.Errorf("reading account %s of agency %s: its columns are not those of a layout", r.Code, r.AgencyID)
			}
		}
		l.s.statementAccounts[a.StatementAccountKey] = a
	})
}

// PutStatementAccount stores an account. It writes nothing when it is the stored one.
func (t *Tx) PutStatementAccount(ctx context.Context, a StatementAccount) error {
	forged := t.rows.Forged(signed.NewID("statement_accounts", a.AgencyID, a.Live, a.Code))
	if old, ok := t.Before.statementAccounts[a.StatementAccountKey]; ok && !forged && reflect.DeepEqual(old, a) {
		return nil
	}
	if err := t.Anew(ctx, "statement_accounts", a.AgencyID, a.Live, a.Code); err != nil {
		return err
	}
	var columns []byte
	if a.Columns != nil {
		var err error
		if columns, err = json.Marshal(a.Columns); err != nil {
			return err
		}
	}
	return t.q.UpsertStatementAccount(ctx, db.UpsertStatementAccountParams{
		AgencyID: a.AgencyID, Live: a.Live, Code: a.Code, Kind: string(a.Kind), Offer: optional(a.Offer), Fingerprint: a.Fingerprint,
		Iban: a.IBAN, Number: a.Number, Currency: a.Currency, Profile: a.Profile, Zone: a.Zone, CutoffMinutes: int64(a.Cutoff / time.Minute),
		GraceDays: int64(a.GraceDays), KeepYears: int64(a.KeepYears), SettlesTo: optional(a.SettlesTo), BatchPattern: a.BatchPattern, Columns: columns,
		Holder: a.Holder, Bank: a.Bank,
	})
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// StatementAccount finds an account; false when there is none.
func (s *Snapshot) StatementAccount(key StatementAccountKey) (StatementAccount, bool) {
	a, ok := s.statementAccounts[key]
	return a, ok
}

// StatementAccounts lists the accounts of an agency in a mode by code.
func (s *Snapshot) StatementAccounts(agencyID string, live bool) []StatementAccount {
	all := maps.Clone(s.statementAccounts)
	maps.DeleteFunc(all, func(k StatementAccountKey, _ StatementAccount) bool { return k.AgencyID != agencyID || k.Live != live })
	return sorted(all, func(a StatementAccount) string { return a.Code })
}

// FindStatementAccount finds an account by its code. The error is an *operation.Error with
// the field account.
func (s *Snapshot) FindStatementAccount(agencyID string, live bool, code string) (StatementAccount, error) {
	if a, ok := s.statementAccounts[StatementAccountKey{agencyID, live, code}]; ok {
		return a, nil
	}
	codes := []string{}
	for _, a := range s.StatementAccounts(agencyID, live) {
		codes = append(codes, a.Code)
	}
	return StatementAccount{}, operation.Refuse("account.unknown", "account", operation.Args{"accounts": codes, "mode": Mode(live), "agency": s.Agencies[agencyID].Slug})
}

// StatementAccount finds an account; false when there is none.
func (r *Registry) StatementAccount(key StatementAccountKey) (StatementAccount, bool) {
	return r.current.Load().StatementAccount(key)
}

// StatementAccounts lists the accounts of an agency in a mode by code.
func (r *Registry) StatementAccounts(agencyID string, live bool) []StatementAccount {
	return r.current.Load().StatementAccounts(agencyID, live)
}

// StatementAccountOf returns the account on which the money of a collection arrives, or from which a payout account pays:
// the one with the fingerprint of its merchant account, else the one for the present merchant account of the offer's
// operator. offer may be the code of a payout account. A bank transfer names its account by the code, also after citizens
// get another one; without a code it is the one that they get now. It is false when the agency has no such account in the
// mode and currency.
func (r *Registry) StatementAccountOf(agencyID string, live bool, offer, currency, fingerprint string) (StatementAccount, bool) {
	if offer == checkout.OfferBankTransfer && fingerprint != "" {
		a, ok := r.StatementAccount(StatementAccountKey{agencyID, live, fingerprint})
		if !ok || a.Kind != AccountBank || a.Currency != currency {
			return StatementAccount{}, false
		}
		return a, true
	}
	var present StatementAccount
	for _, a := range r.StatementAccounts(agencyID, live) {
		switch {
		case !r.cfg.Operators.SameMerchant(a.Offer, offer) || a.Currency != currency:
		case a.Fingerprint == "":
			present = a
		case a.Fingerprint == fingerprint:
			return a, true
		default:
			if named, ok := r.paidFrom(a, fingerprint); ok && fingerprint != "" && connector.Is(named, a.Fingerprint) {
				return a, true
			}
		}
	}
	return present, present.Code != ""
}

// paidFrom returns the merchant account or the payout account that money of a statement account names by its fingerprint.
func (r *Registry) paidFrom(a StatementAccount, fingerprint string) (connector.Account, bool) {
	if a.Payouts() {
		p, ok := r.PayoutAccount(a.AgencyID, a.Live, a.Offer, fingerprint)
		return p.Account, ok
	}
	m, ok := r.AccountOfCollection(a.AgencyID, a.Live, a.Offer, fingerprint)
	return m.Account, ok
}

// StatementAccountEntry is an account as operators see it.
type StatementAccountEntry struct {
	StatementAccount
	Agency string // the slug
}

// ListStatementAccounts lists the accounts of an agency, named by its slug or id, or of all
// agencies when named is empty, by agency, mode and code. A refusal is an *operation.Error.
func ListStatementAccounts(ctx context.Context, pool *pgxpool.Pool, named string) (list []StatementAccountEntry, err error) {
	s, err := Read(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("listing accounts: %w", err)
	}
	agencies := sorted(s.Agencies, func(a Agency) string { return a.Slug })
	if named != "" {
		a, err := s.FindAgency(named)
		if err != nil {
			return nil, err
		}
		agencies = []Agency{a}
	}
	for _, agency := range agencies {
		for _, live := range []bool{false, true} {
			for _, a := range s.StatementAccounts(agency.ID, live) {
				list = append(list, StatementAccountEntry{a, agency.Slug})
			}
		}
	}
	return list, nil
}

// ParseIBAN returns an IBAN without spaces and in upper case, and whether it has the form and
// the check digits of ISO 13616.
func ParseIBAN(text string) (string, bool) {
	iban := strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	if !ibanPattern.MatchString(iban) || strings.HasPrefix(iban, "CG") && len(iban) != congoIBAN {
		return iban, false
	}
	rest := 0
	for _, c := range iban[4:] + iban[:4] {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return iban, rest == 1
}

// congoIBAN is the length of a Congolese IBAN.
const congoIBAN = 27

var ibanPattern = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$`)
