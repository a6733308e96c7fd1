package match

import (
	"fmt"
	"time"
)

// RuleVersion numbers the rules of this package. Every result has it. A change of what
// matches is a new version.
const RuleVersion = 3

// Day is a calendar day, counted from 1970-01-01.
type Day int32

// DayOf returns the day of a time in a time zone.
func DayOf(at time.Time, zone *time.Location) Day {
	at = at.In(zone)
	return Day((at.Unix() + int64(offset(at))) / 86400) //nolint:gosec // years 1970 to 2200
}

func offset(at time.Time) int {
	_, seconds := at.Zone()
	return seconds
}

// ParseDay reads a day such as 2026-11-21.
func ParseDay(text string) (Day, error) {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("reading a day: %w", err)
	}
	return DayOf(at, time.UTC), nil
}

// String returns the day such as 2026-11-21.
func (d Day) String() string { return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly) }

// Expected is money that the service says was received: a collection with its items and
// fee, or a reversal or refund with a negative amount. Its account is that of the run.
type Expected struct {
	// ID is unique among all expected money and lines.
	ID string
	// At is when the operator approved it.
	At time.Time
	// Amount is gross, in minor units of Currency: what the citizen paid.
	Amount   int64
	Currency string
	// OperatorRef, PaymentRef and NoticeRefs may be empty.
	OperatorRef string
	PaymentRef  string
	NoticeRefs  []string
	// Undecided is a collection whose outcome the operator has not told. A line that proves it
	// proposes the decision.
	Undecided bool
	// Closed says that it is settled for good: people matched or explained it, or a closed period
	// has its match.
	Closed bool
}

// Refs returns the references by which lines name the money.
func (e *Expected) Refs() []string {
	return refs(append([]string{e.OperatorRef, e.PaymentRef}, e.NoticeRefs...)...)
}

// Kind says what a line is. The values are those of internal/statements.
type Kind string

// Kinds of lines.
const (
	KindPayment  Kind = "payment"
	KindRefund   Kind = "refund"
	KindReversal Kind = "reversal"
	KindPayout   Kind = "payout"
	KindCharge   Kind = "charge"
	KindEntry    Kind = "entry"
)

// Line is a line of a statement.
type Line struct {
	// ID is unique among all lines and expected money.
	ID string
	// Account is needed for Settlements, which take the lines of several accounts.
	Account string
	// At is the time of the line; zero if the statement has only a Day.
	At   time.Time
	Day  Day
	Kind Kind
	// Amount is gross and Fee what the operator kept of it, in minor units of Currency.
	Amount, Fee int64
	Currency    string
	OperatorRef string
	PaymentRef  string
	NoticeRef   string
	// Batch is the settlement batch or the deposit slip.
	Batch string
	// Reversal marks a line that undoes an earlier one.
	Reversal bool
	// Closed says that it is settled for good: people matched or explained it, or a closed period
	// has its match.
	Closed bool
}

// Net is what the line adds to its account.
func (l *Line) Net() int64 { return l.Amount - l.Fee }

// Refs returns the references by which the line names money.
func (l *Line) Refs() []string { return refs(l.OperatorRef, l.PaymentRef, l.NoticeRef) }

func refs(all ...string) (out []string) {
	for _, ref := range all {
		if ref != "" {
			out = append(out, ref)
		}
	}
	return out
}

// Rules are those of an account.
type Rules struct {
	// Zone is the time zone of the account's days.
	Zone *time.Location
	// Cutoff is the time of day at which the operator begins its next payout.
	Cutoff time.Duration
	// Grace is how many days a line may be late.
	Grace Day
}

// dayOf returns the local day of a line.
func (r *Rules) dayOf(l *Line) Day {
	if l.At.IsZero() {
		return l.Day
	}
	return DayOf(l.At, r.Zone)
}

// window returns the day whose cut-off ends the payout that has the line.
func (r *Rules) window(l *Line) Day {
	day := r.dayOf(l)
	if l.At.IsZero() || r.Cutoff == 0 {
		return day
	}
	at := l.At.In(r.Zone)
	if time.Duration(at.Hour())*time.Hour+time.Duration(at.Minute())*time.Minute+time.Duration(at.Second())*time.Second >= r.Cutoff {
		return day + 1
	}
	return day
}
