package identity

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/internal/operation"
)

// ChallengeOver returns the options with which the browser of a session has the person's passkey sign a statement of a
// disbursement batch or of an agency's people (disbursement/digest), which is a SHA-256 (PublicKeyCredentialRequestOptionsJSON,
// below publicKey). The challenge is 32 random bytes and the statement; it is valid for five minutes, once. among are the
// SHA-256 of the public keys that count there; nil for all that approve. Refusals are those of Challenge, and
// decision.other_passkeys if none of the person's is among them.
func (d *Desk) ChallengeOver(ctx context.Context, a Acting, statement [sha256.Size]byte, among [][sha256.Size]byte) (json.RawMessage, error) {
	return d.challenge(ctx, a, statement[:], statement, d.cfg.Now().UTC().Truncate(time.Millisecond), among)
}

// Sign verifies the answer of a passkey to a challenge of ChallengeOver with the statement (AuthenticationResponseJSON), and
// returns it in the form that the processor of batches verifies again. It uses the challenge up. Refusals are those of
// Answered and Acting.Prove.
func (d *Desk) Sign(ctx context.Context, a Acting, response []byte, statement [sha256.Size]byte) (s disbursement.Signed, err error) {
	if a, err = d.Answered(ctx, a, response); err != nil {
		return s, err
	}
	err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		p, err := a.pressed(ctx, tx, statement[:], statement)
		if err != nil {
			return err
		}
		e := a.proof.answer.Evidence()
		s = disbursement.Signed{Person: p.person.ID, Assertion: assertion.Assertion{
			PublicKey: p.public, ClientData: e.ClientData, AuthenticatorData: e.AuthenticatorData, Signature: e.Signature,
		}}
		return nil
	})
	var refusal *operation.Error
	if err != nil && !errors.As(err, &refusal) {
		err = fmt.Errorf("verifying a signature about a batch: %w", err)
	}
	return s, err
}
