package decisions

import (
	"errors"
	"fmt"
	"time"

	"quittance/casework"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Signer signs steps where the person's key is checked. *secret.Keys implements it.
type Signer interface {
	Sign(label string, data []byte) ([]byte, error)
	Verifier
}

// Verifier verifies what a Signer has signed. *secret.Keys implements it, also those of a role
// that cannot sign.
type Verifier interface {
	VerifySignature(label string, data, signature []byte) bool
}

// Sign returns the step of a person with its signature. s has all else. An *operation.Error says
// that this process has no key to sign with.
func Sign(signer Signer, a casework.Agreement, verdict casework.DecisionState, s casework.Signed) (*casework.Signed, error) {
	s.At = s.At.UTC().Truncate(time.Millisecond)
	if signer == nil {
		return nil, operation.Refuse("decision.no_signing_key", "", operation.Args{"why": secret.ErrKeys.Error()})
	}
	statement := a.Statement(verdict, s)
	signature, err := signer.Sign(secret.LabelDecisions, statement)
	if errors.Is(err, secret.ErrNotHeld) {
		signature, err = signer.Sign(secret.LabelOfficeDecisions, statement)
	}
	if errors.Is(err, secret.ErrKeys) || errors.Is(err, secret.ErrNotHeld) {
		return nil, operation.Refuse("decision.no_signing_key", "", operation.Args{"why": err.Error()})
	}
	if err != nil {
		return nil, fmt.Errorf("signing a decision: %w", err)
	}
	s.Signature = signature
	return &s, nil
}

// Verify returns what verifies the signatures of steps, by commands and on pages.
func Verify(v Verifier) casework.Verify {
	return func(statement, signature []byte) bool {
		return ByCommand(v, statement, signature) || v.VerifySignature(secret.LabelOfficeDecisions, statement, signature)
	}
}

// ByCommand reports whether a step was signed by a command that has checked the person's key. One that was signed on
// pages counts with the proof of a passkey only.
func ByCommand(v Verifier, statement, signature []byte) bool {
	return v.VerifySignature(secret.LabelDecisions, statement, signature)
}
