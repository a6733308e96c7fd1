package match

import (
	"time"

	"quittance/statement"
)

// RuleVersion numbers the rules of this package. Every result has it. A change of what
// matches is a new version.
const RuleVersion = 4

// Expected is money that the service says was moved: a collection with its items and fee; or,
// with a negative amount, a reversal, a refund or a payout. Its account is that of the run.
type Expected struct {
	// ID is unique among all expected money and lines.
	ID string
	// At is when the operator approved it.
	At time.Time
	// Amount is gross, in minor units of Currency: what the citizen paid, or what a payee got.
	Amount   int64
	Currency string
	// OperatorRef, PaymentRef and NoticeRefs may be empty.
	OperatorRef string
	PaymentRef  string
	NoticeRefs  []string
	// Undecided is a collection or a payout whose outcome the operator has not told. A line that
	// proves it proposes the decision.
	Undecided bool
	// Refused is a payout that paid nobody, by the word of its operator: no line may prove it.
	Refused bool
	// Payout is money that was paid to somebody, or came back from there. Only a reference finds its
	// line: salaries repeat the same amounts on the same day.
	Payout bool
	// Closed says that it is settled for good: people matched or explained it, or a closed period
	// has its match.
	Closed bool
}

// Refs returns the references by which lines name the money.
func (e *Expected) Refs() []string {
	return statement.Refs(append([]string{e.OperatorRef, e.PaymentRef}, e.NoticeRefs...)...)
}

// Line is a line of a statement. Its Account is needed for Settlements, which take the lines of
// several accounts.
type Line struct {
	statement.Line
	// Closed says that it is settled for good: people matched or explained it, or a closed period
	// has its match.
	Closed bool
}

// Rules are those of an account.
type Rules struct {
	// Zone is the time zone of the account's days.
	Zone *time.Location
	// Cutoff is the time of day at which the operator begins its next payout.
	Cutoff time.Duration
	// Grace is how many days a line may be late.
	Grace statement.Day
}

// dayOf returns the local day of a line.
func (r *Rules) dayOf(l *Line) statement.Day {
	if l.At.IsZero() {
		return l.Day
	}
	return statement.DayOf(l.At, r.Zone)
}

// window returns the day whose cut-off ends the payout that has the line.
func (r *Rules) window(l *Line) statement.Day {
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
