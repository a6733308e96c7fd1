package statement

import "time"

// Batch is what the lines that one payout settles come to. The zero value has no lines.
type Batch struct {
	// Amount is the net sum of the lines that are money, and Filled says that there are such lines.
	Amount int64
	Filled bool
	// First and Last are the times of these lines; zero if they have none.
	First, Last time.Time
	// Payout is what the operator's own payout lines say, negative for money that it paid, and Paid
	// says that there are such lines.
	Payout int64
	Paid   bool
}

// Add adds a line to the batch.
func (b *Batch) Add(l *Line) {
	if !l.Kind.Money() {
		b.Paid = true
		b.Payout += l.Net()
		return
	}
	b.Filled = true
	b.Amount += l.Net()
	if l.At.After(b.Last) {
		b.Last = l.At
	}
	if b.First.IsZero() || l.At.Before(b.First) {
		b.First = l.At
	}
}

// Unpaid is what the operator's payouts leave of the lines.
func (b *Batch) Unpaid() int64 { return b.Amount + b.Payout }
