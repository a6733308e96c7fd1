// Package decisions takes the steps of decisions by two people (casework.Decision). A step
// is checked, stored and recorded in the audit table in one transaction.
//
// A noun, such as an operator case, keeps its decisions in a table of its own and has its own
// refusals. Its package reads the decision and the people, locked until the end of the
// transaction (identity.LockStaff), and describes the step.
package decisions

import (
	"context"
	"errors"
	"time"

	"quittance/casework"
	"quittance/internal/operation"
)

// Step is a step that a person takes in a decision.
type Step struct {
	Decision casework.Decision
	// Proposer and By are whoever proposed and whoever takes the step, as of At.
	Proposer, By casework.Person
	Actor        operation.Actor // By, with the place
	At           time.Time       // of the service's clock
	// Refusals are what By is told, for the errors of casework. A person who was revoked is
	// told so in any case.
	Refusals map[error]error
	// Store writes the step and returns its entry of the audit table. If the decision does not
	// wait any more, it writes nothing and returns casework.ErrLapsed or casework.ErrDecided.
	Store func() (operation.Entry, error)
}

// Propose makes the decision. By must be in force. A refusal is an *operation.Error; after
// any error the transaction must not commit. So it is for the steps below.
func Propose(ctx context.Context, tx operation.Execer, s Step) error {
	if !s.By.InForce {
		return s.take(ctx, tx, casework.ErrRevoked)
	}
	return s.take(ctx, tx, nil)
}

// Approve approves the decision if casework allows it.
func Approve(ctx context.Context, tx operation.Execer, s Step) error {
	return s.take(ctx, tx, s.Decision.MayApprove(s.At, s.By, s.Proposer))
}

// Reject rejects the decision, or withdraws it if By has proposed it.
func Reject(ctx context.Context, tx operation.Execer, s Step) error {
	return s.take(ctx, tx, s.Decision.MayReject(s.By))
}

// take takes the step unless there is a reason against it.
func (s Step) take(ctx context.Context, tx operation.Execer, reason error) error {
	if reason != nil {
		return s.Refusal(reason)
	}
	entry, err := s.Store()
	if err != nil {
		return s.Refusal(err)
	}
	return operation.Record(ctx, tx, s.Actor, s.At, entry)
}

// Refusal returns what the person is told for an error of casework, or the error.
func (s Step) Refusal(reason error) error {
	if errors.Is(reason, casework.ErrRevoked) {
		return operation.Refuse("staff.revoked", "", operation.Args{"name": s.By.Name})
	}
	for of, refusal := range s.Refusals {
		if errors.Is(reason, of) {
			return refusal
		}
	}
	return reason
}
