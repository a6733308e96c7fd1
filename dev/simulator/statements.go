package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"quittance/money"
)

// StatementAccount is an account of which the simulators write statements.
type StatementAccount struct {
	// Agency is the slug of the agency, and Code the account's name; both name the account in
	// /control/statements.
	Agency, Code string
	// Profile is that of internal/statements, which tells whose account it is: mtn, airtel,
	// card-settlement, cash-slip or camt.053.
	Profile string
	// Merchants are the names of the account at its operator; nil is all of them.
	Merchants []string
	// Payouts means that people are paid from the account, which takes no payments.
	Payouts bool
	// IBAN or Number is how the statement names the account.
	IBAN, Number string
	Currency     string
	// Zone has the account's days, and Cutoff is the local time at which the next payout begins.
	Zone   *time.Location
	Cutoff time.Duration
	// PayoutDelay is the time from the cut-off to the payout.
	PayoutDelay time.Duration
	// SettlesTo is the code of the bank account of the same agency that gets the payouts.
	SettlesTo string
}

// Profiles of the accounts that the simulators keep.
const (
	profileMTN    = "mtn"
	profileAirtel = "airtel"
	profileCard   = "card-settlement"
	profileCash   = "cash-slip"
	profileBank   = "camt.053"
)

// keptBy are the operators by the profiles of their accounts. A bank has payouts and transfers.
var keptBy = map[string]string{profileMTN: operatorMTN, profileAirtel: operatorAirtel, profileCard: operatorCard, profileCash: operatorCounter}

// batchNames begin the settlement batches and slips of a profile. A day follows.
var batchNames = map[string]string{profileMTN: "MTN", profileAirtel: "AM", profileCard: "CARD", profileCash: "SLIP"}

// operatorFees are what operators keep, in parts per thousand.
var operatorFees = map[string]int64{profileMTN: 10, profileAirtel: 10, profileCard: 20}

// bankDelay is the time from a payout to its entry at the bank.
const bankDelay = 30 * time.Minute

// defaultAccounts are the accounts of Config.Statements when it is nil: one for each profile,
// of all merchants, in XAF.
func defaultAccounts() []StatementAccount {
	wat := time.FixedZone("WAT", 3600)
	at := 17 * time.Hour
	return []StatementAccount{
		{Code: "mtn", Profile: profileMTN, Number: "46733123454", Currency: money.Default, Zone: wat, Cutoff: at, SettlesTo: "banque"},
		{Code: "airtel", Profile: profileAirtel, Number: "MER-042", Currency: money.Default, Zone: wat, Cutoff: at, SettlesTo: "banque"},
		{Code: "cartes", Profile: profileCard, Currency: money.Default, Zone: wat, Cutoff: at, SettlesTo: "banque"},
		{Code: "guichets", Profile: profileCash, Currency: money.Default, Zone: wat, Cutoff: at, SettlesTo: "banque"},
		{Code: "banque", Profile: profileBank, IBAN: "CG3930011000101013451300019", Currency: money.Default, Zone: wat},
	}
}

// The kinds of movements.
const (
	movementPayment  = "payment"
	movementRefund   = "refund"
	movementReversal = "reversal" // the operator takes back what it paid
	movementPayout   = "payout"
	movementTransfer = "transfer" // money for a person
	movementReturn   = "return"   // such money came back
)

// movement is a line of an account.
type movement struct {
	id        string // the operator's or the bank's
	reference string // ours, as the operator was told
	kind      string
	at        time.Time
	// amount is signed as the account holder sees it; fee is what the operator keeps of it.
	amount, fee int64
	batch       string
	payer       string
}

func (m *movement) net() int64 { return m.amount - m.fee }

// statementAccounts returns all accounts.
func (s *Simulator) statementAccounts() []StatementAccount {
	if s.cfg.Statements == nil {
		return defaultAccounts()
	}
	return s.cfg.Statements()
}

// ledger returns all movements of an account until now, in the order of their times, as its
// keeper has them. Faults that are planted in lines are in it.
func (s *Simulator) ledger(a StatementAccount, now time.Time) ([]movement, error) {
	var all []movement
	var err error
	switch {
	case a.Profile == profileBank:
		all, err = s.bankEntries(a, now)
	case a.Payouts:
		all, err = s.transfers(a)
	default:
		all, err = s.settled(a, now)
	}
	if err != nil {
		return nil, err
	}
	return s.faults.apply(a, all), nil
}

// settled returns the movements of an operator's, acquirer's or cash account with their
// batches, and the payouts. The operator pays out what it has, whatever its statement says:
// of all planted faults only a reversal moves money.
func (s *Simulator) settled(a StatementAccount, now time.Time) ([]movement, error) {
	all, err := s.collected(a, now)
	if err != nil {
		return nil, err
	}
	all = append(all, s.faults.reversals(a, all)...)
	sortMovements(all)
	var payouts []movement
	for begun := 0; begun < len(all); {
		day := a.payoutDay(all[begun].at)
		end := begun
		var sum int64
		for ; end < len(all) && a.payoutDay(all[end].at).Equal(day); end++ {
			all[end].batch = batchNames[a.Profile] + "-" + day.Format("20060102")
			sum += all[end].net()
		}
		if at := a.cutoffOf(day).Add(a.PayoutDelay); sum != 0 && !at.After(now) {
			payout := movement{id: "PAY" + day.Format("20060102"), kind: movementPayout, at: at, amount: -sum, batch: all[begun].batch}
			payouts = append(payouts, payout)
		}
		begun = end
	}
	all = append(all, payouts...)
	sortMovements(all)
	return all, nil
}

// collected returns what the payers of an account paid, and cash that was given back.
func (s *Simulator) collected(a StatementAccount, now time.Time) (all []movement, err error) {
	currency, known := money.Lookup(a.Currency)
	if !known {
		return nil, fmt.Errorf("account %s: unknown currency %q", a.Code, a.Currency)
	}
	for _, c := range s.book.list(filter{state: stateApproved, operator: keptBy[a.Profile]}, page{}, now) {
		if c.currency != a.Currency || a.Merchants != nil && !slices.Contains(a.Merchants, c.account) {
			continue
		}
		amount, err := c.minor(currency)
		if err != nil || amount <= 0 {
			continue // /control may have made the operator report something that is no amount
		}
		m := movement{id: c.operatorRef, reference: c.externalID, kind: movementPayment, at: c.decidedAt, amount: amount, fee: (amount*operatorFees[a.Profile] + 500) / 1000, payer: c.payer}
		all = append(all, m)
		if !c.givenBackAt.IsZero() {
			all = append(all, movement{id: m.id + "-B", reference: m.reference, kind: movementRefund, at: c.givenBackAt, amount: -amount})
		}
	}
	return all, nil
}

// transfers returns what people were paid from an account, as often as money moved, whatever the operator tells, and what came
// back of it. A return is less by what the operator keeps.
func (s *Simulator) transfers(a StatementAccount) (all []movement, err error) {
	currency, known := money.Lookup(a.Currency)
	if !known {
		return nil, fmt.Errorf("account %s: unknown currency %q", a.Code, a.Currency)
	}
	for _, p := range s.payouts.list(keptBy[a.Profile]) {
		if p.currency != a.Currency || a.Merchants != nil && !slices.Contains(a.Merchants, p.account) {
			continue
		}
		amount, err := currency.ParseDecimal(p.amount)
		if err != nil || amount <= 0 {
			continue // no amount was moved
		}
		for n := range p.payments {
			m := movement{id: p.operatorRef, reference: p.externalID, kind: movementTransfer, at: p.decidedAt, amount: -amount, payer: p.payee}
			if n > 0 {
				m.id += "-" + strconv.Itoa(n+1)
			}
			all = append(all, m)
		}
		if !p.returnedAt.IsZero() {
			kept, err := currency.ParseDecimal(p.fee)
			if err != nil {
				kept = 0
			}
			all = append(all, movement{id: p.operatorRef + "-R", reference: p.externalID, kind: movementReturn, at: p.returnedAt, amount: amount, fee: kept, payer: p.payee})
		}
	}
	sortMovements(all)
	return all, nil
}

// minor returns the amount that the operator reports, in minor units.
func (c *collection) minor(currency money.Currency) (int64, error) {
	if c.operator == operatorCard || c.operator == operatorCounter {
		return strconv.ParseInt(c.reported, 10, 64)
	}
	return currency.ParseDecimal(c.reported)
}

// bankEntries returns the payouts and the transfers to a bank account.
func (s *Simulator) bankEntries(bank StatementAccount, now time.Time) (entries []movement, err error) {
	for _, a := range s.statementAccounts() {
		if a.Agency != bank.Agency || a.SettlesTo != bank.Code || a.Currency != bank.Currency || a.Profile == profileBank {
			continue
		}
		all, err := s.settled(a, now)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if at := m.at.Add(bankDelay); m.kind == movementPayout && !at.After(now) {
				entries = append(entries, movement{id: "BK" + m.batch, kind: movementPayment, at: at, amount: -m.amount, batch: m.batch})
			}
		}
	}
	for _, m := range s.received.of(bank) {
		if !m.at.After(now) {
			entries = append(entries, m)
		}
	}
	entries = append(entries, s.faults.reversals(bank, entries)...)
	sortMovements(entries)
	return entries, nil
}

func sortMovements(all []movement) {
	slices.SortStableFunc(all, func(a, b movement) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
}

// day returns the local midnight of a time.
func (a *StatementAccount) day(at time.Time) time.Time {
	y, m, d := at.In(a.Zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, a.Zone)
}

// payoutDay returns the day whose payout has a movement.
func (a *StatementAccount) payoutDay(at time.Time) time.Time {
	day := a.day(at)
	if !at.Before(a.cutoffOf(day)) {
		return day.AddDate(0, 0, 1)
	}
	return day
}

// cutoffOf returns the cut-off of a day; midnight ends the day.
func (a *StatementAccount) cutoffOf(day time.Time) time.Time {
	if a.Cutoff == 0 {
		return day.AddDate(0, 0, 1)
	}
	return time.Date(day.Year(), day.Month(), day.Day(), int(a.Cutoff.Hours()), int(a.Cutoff.Minutes())%60, 0, 0, a.Zone)
}
