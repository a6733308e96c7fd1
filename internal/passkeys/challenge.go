package passkeys

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/jackc/pgx/v5"

	"quittance/internal/secret"
)

// ChallengeLifetime is how long a browser may take to answer a challenge.
const ChallengeLifetime = 5 * time.Minute

// SignInChallenge is the length of the challenge of BeginSignIn, in bytes. A challenge of a caller's (BeginProof) should
// have another one, so that its answer signs nobody in.
const SignInChallenge = protocol.ChallengeLength

// Challenge is what a browser has to sign.
type Challenge webauthn.SessionData

// Purpose is what a challenge is for.
type Purpose string

// The purposes of challenges.
const (
	PurposeRegister Purpose = "register"
	PurposeSignIn   Purpose = "sign_in"
)

// expired deletes some challenges that nobody may answer any more, and waits for no other
// transaction.
const expired = `DELETE FROM passkey_challenges WHERE (browser, purpose) IN
	(SELECT browser, purpose FROM passkey_challenges WHERE at <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)`

// Keep stores a challenge for a browser, which its secret names. An earlier one for the same
// purpose is void.
func Keep(ctx context.Context, tx pgx.Tx, browser secret.Text, purpose Purpose, c Challenge, now time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(expired, now.Add(-ChallengeLifetime))
	batch.Queue(`INSERT INTO passkey_challenges (browser, purpose, session, at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (browser, purpose) DO UPDATE SET session = excluded.session, at = excluded.at`, hash(browser), string(purpose), c, now)
	return tx.SendBatch(ctx, batch).Close()
}

// Querier is a pool or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Take returns the challenge of a browser. It is used up, whatever the answer to it is. The
// error is ErrRefused if there is none, or if it is too old.
func Take(ctx context.Context, db Querier, browser secret.Text, purpose Purpose, now time.Time) (c Challenge, err error) {
	var at time.Time
	err = db.QueryRow(ctx, `DELETE FROM passkey_challenges WHERE browser = $1 AND purpose = $2 RETURNING session, at`, hash(browser), string(purpose)).Scan(&c, &at)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !now.Before(at.Add(ChallengeLifetime)) {
		err = ErrRefused
	}
	return c, err
}

// Sweep adds the deletion of the challenges that nobody may answer any more to a batch.
func Sweep(batch *pgx.Batch, now time.Time) {
	batch.Queue(`DELETE FROM passkey_challenges WHERE at <= $1`, now.Add(-ChallengeLifetime))
}

func hash(browser secret.Text) []byte {
	sum := sha256.Sum256([]byte(browser.Reveal()))
	return sum[:]
}
