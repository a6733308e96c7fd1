package disbursement

import (
	"slices"
	"time"

	"quittance/casework"
	"quittance/disbursement/digest"
)

// LineStatus is the state of a line.
type LineStatus string

// The statuses of a line.
const (
	LineReady     LineStatus = "ready"
	LineSent      LineStatus = "sent"
	LinePaid      LineStatus = "paid"
	LineRefused   LineStatus = "refused"
	LineCancelled LineStatus = "cancelled"
	LineReturned  LineStatus = "returned"
)

// LineStatuses has all statuses of a line.
func LineStatuses() []LineStatus {
	return []LineStatus{LineReady, LineSent, LinePaid, LineRefused, LineCancelled, LineReturned}
}

// LineKey names a line. The zero value names none.
type LineKey struct {
	Batch    string
	Position int // from 0, by line_ref
}

// Line is the state of a line.
type Line struct {
	LineKey

	Ref     string // line_ref
	Account int    // index of the batch's payout account
	Amount  int64  // minor units
	Leaf    digest.Hash
	// Sealed is the content and its salt, encrypted. Only its sender and the sink can open it.
	Sealed []byte
	// Corrects is the line that this one pays again, with its line_ref, and CorrectedBy the one that pays this one again.
	Corrects    LineKey
	CorrectsRef string
	CorrectedBy LineKey

	Status LineStatus
	// Attempt is the number of the last attempt, from 1; 0 before the first. Try counts its requests, Retries the attempts
	// that people asked for.
	Attempt, Try, Retries int
	// Unsent counts the attempts that moved no money and were made again without a person, since the last that people asked
	// for. Settled counts the decisions of two people; the last one was about the attempt SettledFor.
	Unsent, Settled, SettledFor int
	// SentAt is when the attempt was first requested, RequestedAt when it was last requested, EnquiredAt when the operator
	// was last asked about it.
	SentAt, RequestedAt, EnquiredAt time.Time
	// Answered is set when the last request was answered, or can no longer be carried out for the first time.
	Answered bool
	// Declined is set when the operator refused a request of the attempt, or its content cannot be opened. The attempt is
	// not requested again, since it would be refused again.
	Declined bool
	// Unproven says that the operator's refusal does not prove that no money moved. UnprovenAt is when the proof of the last
	// attempt was taken back; zero if none was.
	Unproven   bool
	UnprovenAt time.Time
	// Proofs are the attempts of which statements alone prove that no money moved.
	Proofs []Proof
	// Contested says that an answer contradicts the status. Nothing of the line is sent until people have decided.
	Contested bool
	// Doubt is the attempt whose word made the line contested, PaidBy the attempt that paid; 0 for none. Out is set when the
	// last attempt was undecided as people settled the line for an earlier one: the operator is still asked about it.
	Doubt, PaidBy int
	Out           bool
	// PaidAt is when the service learned that PaidBy had paid; zero for a line that was paid and came back before this was noted.
	PaidAt time.Time
	// ReturnShown says that a statement alone says that the money came back.
	ReturnShown bool
	// Case is the kind of the line's open case; empty for none.
	Case casework.Kind
	// Code is the operator's reason of the refusal, OperatorRef its own reference of the payment.
	Code, OperatorRef string
	EndedAt           time.Time
}

// Proof says since when statements alone prove that an attempt paid nobody.
type Proof struct {
	Attempt int
	At      time.Time
}

// proof returns the index of an attempt's proof; -1 if statements alone do not prove it.
func (l Line) proof(attempt int) int {
	return slices.IndexFunc(l.Proofs, func(p Proof) bool { return p.Attempt == attempt })
}

// paidAt returns when the service learned that the line was paid; zero if it is not known any more, or was not paid.
func (l Line) paidAt() time.Time {
	if l.Status == LinePaid && l.PaidAt.IsZero() {
		return l.EndedAt
	}
	return l.PaidAt
}

// settledPaid reports whether two people have decided about the attempt that paid the line: statements ask them no more.
func (l Line) settledPaid() bool {
	return l.Settled > 0 && (l.SettledFor == l.PaidBy || l.SettledFor == 0) // 0: before the attempt was noted
}

// AttemptID returns the id of the line's last attempt.
func (l Line) AttemptID() AttemptID { return NewAttemptID(l.Batch, l.Position, l.Attempt) }
