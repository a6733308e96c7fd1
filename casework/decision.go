package casework

import (
	"errors"
	"time"
)

// DecisionState is the state of a decision by two people. It also names the step that led
// to it.
type DecisionState string

// The states of a decision. Only a proposed one can change.
const (
	DecisionProposed DecisionState = "proposed" // waits for another person
	DecisionApproved DecisionState = "approved"
	DecisionRejected DecisionState = "rejected"
	// DecisionLapsed says that nobody approved the decision in time, or that its proposer
	// was revoked. It has no actor.
	DecisionLapsed DecisionState = "lapsed"
	// DecisionRefused says that whoever carries decisions out has refused an approved one. It is a step, and no state of a stored
	// decision: that stays approved.
	DecisionRefused DecisionState = "refused"
)

// Reasons why a person cannot take a step of a decision.
var (
	// ErrDecided says that the decision was approved or rejected before.
	ErrDecided = errors.New("the decision was taken before")
	// ErrLapsed says that the decision can no longer be approved.
	ErrLapsed = errors.New("the decision has lapsed")
	// ErrSamePerson says that another person than the proposer must approve.
	ErrSamePerson = errors.New("the person proposed the decision")
	// ErrRevoked says that the person may not act any more.
	ErrRevoked = errors.New("the person is not in force")
)

// Person takes part in decisions.
type Person struct {
	ID, Name string
	// InForce means that the person may act: somebody has admitted the person, and nobody
	// has revoked the person since.
	InForce bool
}

// Decision is what one person proposes and another one approves or rejects.
type Decision struct {
	// State is the stored one. A decision lapses without being written, see At.
	State      DecisionState
	ProposedBy string // id of the person
	ProposedAt time.Time
	// Life is how long the decision waits for its approval; for ever when zero.
	Life time.Duration
	// Alone means that the proposer may approve.
	Alone bool
}

// At returns the state at a time. proposer is the person who proposed, as of that time.
func (d Decision) At(now time.Time, proposer Person) DecisionState {
	if d.State == DecisionProposed && (!proposer.InForce || d.Life > 0 && !now.Before(d.ProposedAt.Add(d.Life))) {
		return DecisionLapsed
	}
	return d.State
}

// MayApprove returns why a person cannot approve the decision at a time; nil if the person
// can. by and proposer are as of that time.
func (d Decision) MayApprove(now time.Time, by, proposer Person) error {
	switch d.At(now, proposer) {
	case DecisionApproved, DecisionRejected, DecisionRefused:
		return ErrDecided
	case DecisionLapsed:
		return ErrLapsed
	case DecisionProposed:
	}
	return d.MayBeSecond(by)
}

// MayBeSecond is MayApprove for a decision that is known to wait.
func (d Decision) MayBeSecond(by Person) error {
	switch {
	case by.ID == d.ProposedBy && !d.Alone:
		return ErrSamePerson
	case !by.InForce:
		return ErrRevoked
	}
	return nil
}

// MayReject returns why a person cannot reject the decision; nil if the person can. Whoever
// proposed it may withdraw it so, and one that has lapsed since may be rejected.
func (d Decision) MayReject(by Person) error {
	switch {
	case !by.InForce:
		return ErrRevoked
	case d.State != DecisionProposed:
		return ErrDecided
	}
	return nil
}
