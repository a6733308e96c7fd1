package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/identity/internal/db"
	"quittance/internal/passkeys"
	"quittance/internal/signed"
)

// A clerk's session ends ClerkSessionLifetime after the clerk signed in, and after
// ClerkSessionIdle without a request.
const (
	ClerkSessionLifetime = 12 * time.Hour
	ClerkSessionIdle     = 30 * time.Minute
)

// maxClerkSessions is the number of sessions of one key. A further one ends the oldest.
const maxClerkSessions = 10

// ErrSessionEnded says that a clerk's session is unknown, has ended, or its key was revoked.
var ErrSessionEnded = fmt.Errorf("%w: the clerk's session has ended", ErrUnauthorized)

// BeginClerkSession signs the holder of a clerk's key in and returns the id of the session.
// The caller has authenticated the key.
func (i *Identities) BeginClerkSession(ctx context.Context, keyID string) (id string, err error) {
	err = pgx.BeginFunc(ctx, i.cfg.Pool, func(tx pgx.Tx) error {
		id, err = i.beginSession(ctx, db.New(tx), keyID, "")
		return err
	})
	if err != nil {
		return "", fmt.Errorf("beginning a clerk's session: %w", err)
	}
	return id, nil
}

// beginSession begins a session that ends with a device, unless device is empty.
func (i *Identities) beginSession(ctx context.Context, q *db.Queries, keyID, device string) (id string, err error) {
	id = uuid.NewString()
	begun := i.cfg.Now()
	mac := i.sessionMAC(id, keyID, given(device), begun)
	if err := q.BeginClerkSession(ctx, db.BeginClerkSessionParams{ID: id, KeyID: keyID, Device: given(device), BegunAt: begun, Mac: mac}); err != nil {
		return "", err
	}
	return id, q.KeepNewestClerkSessions(ctx, db.KeepNewestClerkSessionsParams{KeyID: keyID, Newest: maxClerkSessions})
}

// sessionMAC proves that this role has begun a session, whose it is and with which device it ends. Whoever
// writes to Postgres cannot make a session another clerk's.
func (i *Identities) sessionMAC(id, keyID string, device *string, begun time.Time) []byte {
	return signed.MAC(i.macs, "clerk_sessions", sessionValues(id, keyID, device, begun)...)
}

func sessionValues(id, keyID string, device *string, begun time.Time) []any {
	return []any{id, keyID, value(device), begun}
}

// ClerkSession returns the clerk of a session and notes its use. It reads Postgres, so that
// a session that EndClerkSession ended is over on every instance at once. The error is
// ErrUnauthorized when the session is over; any other error means that Postgres does not
// answer.
func (i *Identities) ClerkSession(ctx context.Context, id string) (ClerkPrincipal, error) {
	now := i.cfg.Now()
	used, err := db.New(i.cfg.Pool).UseClerkSession(ctx, db.UseClerkSessionParams{
		ID: id, Now: now, BegunAfter: now.Add(-ClerkSessionLifetime), UsedAfter: now.Add(-ClerkSessionIdle),
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ClerkPrincipal{}, ErrSessionEnded
	case err != nil:
		return ClerkPrincipal{}, fmt.Errorf("reading a clerk's session: %w", err)
	case !signed.VerifyMAC(i.macs, used.Mac, "clerk_sessions", sessionValues(id, used.KeyID, used.Device, used.BegunAt)...):
		return ClerkPrincipal{}, ErrSessionEnded // somebody else has written it, or an earlier release
	}
	clerk, err := i.ClerkByKey(used.KeyID)
	clerk.Device = value(used.Device)
	return clerk, err
}

// EndClerkSession signs a clerk out. A session that has ended stays so.
func (i *Identities) EndClerkSession(ctx context.Context, id string) error {
	if err := db.New(i.cfg.Pool).EndClerkSession(ctx, id); err != nil {
		return fmt.Errorf("ending a clerk's session: %w", err)
	}
	return nil
}

// Sweep deletes the rows of sessions of clerks and of staff that have ended, of devices that are forgotten, and of
// challenges that nobody may answer any more.
func Sweep(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	q := db.New(pool)
	if err := q.CleanClerkSessions(ctx, db.CleanClerkSessionsParams{
		BegunBefore: now.Add(-ClerkSessionLifetime), UsedBefore: now.Add(-ClerkSessionIdle),
	}); err != nil {
		return fmt.Errorf("deleting ended sessions of clerks: %w", err)
	}
	if err := q.CleanDevices(ctx, now.Add(-DeviceLifetime)); err != nil {
		return fmt.Errorf("deleting forgotten devices of clerks: %w", err)
	}
	if err := q.CleanStaffChallenges(ctx, now.Add(-passkeys.ChallengeLifetime)); err != nil {
		return fmt.Errorf("deleting challenges of staff: %w", err)
	}
	if err := q.CleanStaffSessions(ctx, db.CleanStaffSessionsParams{BegunBefore: now.Add(-StaffSessionLifetime), UsedBefore: now.Add(-StaffSessionIdle)}); err != nil {
		return fmt.Errorf("deleting ended sessions of staff: %w", err)
	}
	if err := errors.Join(q.CleanAtIssuer(ctx, now.Add(-IssuerVisitLife)), q.CleanLogoutTokens(ctx, now)); err != nil {
		return fmt.Errorf("deleting visits to issuers: %w", err)
	}
	return nil
}
