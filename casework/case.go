package casework

import "time"

// Kind says what a case is about. Each domain has its own kinds.
type Kind string

// Resolution is the exit of a case. Domains add their own to those below.
type Resolution string

// Resolutions of several domains.
const (
	// ResolutionWriteOff closes a case with evidence.
	ResolutionWriteOff Resolution = "write_off"
	// ResolutionAcknowledge closes a case that moves no money.
	ResolutionAcknowledge Resolution = "acknowledge"
)

// Case is what any case has: something that a person must judge, and its exit.
type Case struct {
	ID   string
	Kind Kind
	// Amount in minor units of Currency. Both are zero in a case about no money.
	Amount   int64
	Currency string
	// Reason says why the case was opened.
	Reason string
	// By is the person who opened the case; empty if it was none.
	By       string
	OpenedAt time.Time

	// Resolution is empty while the case is open.
	Resolution Resolution
	Reference  string // of the evidence
	ClosedBy   string // who proposed the resolution
	ClosedAt   time.Time

	// Proposed, Decided and Refused are the numbers of the last proposal, of the last approval or rejection, and of the last
	// refusal of an approved one that an event records.
	Proposed, Decided, Refused int
}

// Open reports whether the case has no exit yet.
func (c Case) Open() bool { return c.Resolution == "" }
