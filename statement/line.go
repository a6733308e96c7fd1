package statement

import "time"

// Line is a line of a statement.
type Line struct {
	// ID is unique among all lines and expected money.
	ID      string
	Account string
	// At is the time of the line, in UTC; zero if the statement has only a Day.
	At   time.Time
	Day  Day
	Kind Kind
	// Amount is gross, negative for money that leaves the account, and Fee what the operator kept
	// of it, in minor units of Currency.
	Amount, Fee int64
	Currency    string
	OperatorRef string
	PaymentRef  string
	NoticeRef   string
	// Batch is the settlement batch or the deposit slip.
	Batch string
	// Reversal marks a line that undoes an earlier one.
	Reversal bool
}

// Net is what the line adds to its account.
func (l *Line) Net() int64 { return l.Amount - l.Fee }

// Refs returns the references by which the line names money.
func (l *Line) Refs() []string { return Refs(l.OperatorRef, l.PaymentRef, l.NoticeRef) }

// Refs returns those references that are not empty.
func Refs(all ...string) (out []string) {
	for _, ref := range all {
		if ref != "" {
			out = append(out, ref)
		}
	}
	return out
}
