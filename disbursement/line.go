package disbursement

import (
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
	// for. Settled counts the decisions of two people.
	Unsent, Settled int
	// SentAt is when the attempt was first requested, RequestedAt when it was last requested, EnquiredAt when the operator
	// was last asked about it.
	SentAt, RequestedAt, EnquiredAt time.Time
	// Answered is set when the last request was answered, or can no longer be carried out for the first time.
	Answered bool
	// Declined is set when the operator refused a request of the attempt, or its content cannot be opened. The attempt is
	// not requested again, since it would be refused again.
	Declined bool
	// Unproven says that the operator's refusal does not prove that no money moved.
	Unproven bool
	// Contested says that an answer contradicts the status. Nothing of the line is sent until people have decided.
	Contested bool
	// Doubt is the attempt whose word made the line contested, PaidBy the attempt that paid; 0 for none. Out is set when the
	// last attempt was undecided as people settled the line for an earlier one: the operator is still asked about it.
	Doubt, PaidBy int
	Out           bool
	// Case is the kind of the line's open case; empty for none.
	Case casework.Kind
	// Code is the operator's reason of the refusal, OperatorRef its own reference of the payment.
	Code, OperatorRef string
	EndedAt           time.Time
}

// AttemptID returns the id of the line's last attempt.
func (l Line) AttemptID() AttemptID { return NewAttemptID(l.Batch, l.Position, l.Attempt) }
