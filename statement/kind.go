// Package statement has what a statement of an account says: lines of several kinds, on days, in
// batches that a payout settles. Readers of files, the journal and the matcher share it.
//
// Amounts are in minor units. Everything in this package is pure and safe for concurrent use.
package statement

// Kind says what a line is.
type Kind string

// Kinds of lines. A bank's lines are entries.
const (
	KindPayment  Kind = "payment"  // money received
	KindRefund   Kind = "refund"   // money given back by us
	KindReversal Kind = "reversal" // money taken back by the operator
	KindPayout   Kind = "payout"   // money paid out to the bank account
	KindCharge   Kind = "charge"   // fees and charges that belong to no payment
	KindEntry    Kind = "entry"    // an entry of a bank account
	KindTransfer Kind = "transfer" // money paid to a person or a company, by a line of a batch
	KindReturn   Kind = "return"   // money of a transfer that came back
)

// Kinds lists all kinds. Read only.
var Kinds = []Kind{KindPayment, KindRefund, KindReversal, KindPayout, KindCharge, KindEntry, KindTransfer, KindReturn}

// Incoming reports whether the kind raises the balance.
func (k Kind) Incoming() bool { return k == KindPayment || k == KindReturn }

// Pays reports whether a line of the kind can be a payout to somebody, or the return of one. A bank has entries alone.
func (k Kind) Pays() bool { return k == KindTransfer || k == KindReturn || k == KindEntry }

// Money reports whether a line of the kind is money of its own. A payout is not: it says that the
// money of other lines was paid out.
func (k Kind) Money() bool { return k != KindPayout }
