package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/identity/internal/db"
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
	id = uuid.NewString()
	err = pgx.BeginFunc(ctx, i.cfg.Pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if err := q.BeginClerkSession(ctx, db.BeginClerkSessionParams{ID: id, KeyID: keyID, BegunAt: i.cfg.Now()}); err != nil {
			return err
		}
		return q.KeepNewestClerkSessions(ctx, db.KeepNewestClerkSessionsParams{KeyID: keyID, Newest: maxClerkSessions})
	})
	if err != nil {
		return "", fmt.Errorf("beginning a clerk's session: %w", err)
	}
	return id, nil
}

// ClerkSession returns the clerk of a session and notes its use. It reads Postgres, so that
// a session that EndClerkSession ended is over on every instance at once. The error is
// ErrUnauthorized when the session is over; any other error means that Postgres does not
// answer.
func (i *Identities) ClerkSession(ctx context.Context, id string) (ClerkPrincipal, error) {
	now := i.cfg.Now()
	keyID, err := db.New(i.cfg.Pool).UseClerkSession(ctx, db.UseClerkSessionParams{
		ID: id, Now: now, BegunAfter: now.Add(-ClerkSessionLifetime), UsedAfter: now.Add(-ClerkSessionIdle),
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ClerkPrincipal{}, ErrSessionEnded
	case err != nil:
		return ClerkPrincipal{}, fmt.Errorf("reading a clerk's session: %w", err)
	}
	return i.ClerkByKey(keyID)
}

// EndClerkSession signs a clerk out. A session that has ended stays so.
func (i *Identities) EndClerkSession(ctx context.Context, id string) error {
	if err := db.New(i.cfg.Pool).EndClerkSession(ctx, id); err != nil {
		return fmt.Errorf("ending a clerk's session: %w", err)
	}
	return nil
}

// cleanSessions deletes the rows of sessions that have ended.
func (i *Identities) cleanSessions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := i.cfg.Now()
	if err := db.New(i.cfg.Pool).CleanClerkSessions(ctx, db.CleanClerkSessionsParams{
		BegunBefore: now.Add(-ClerkSessionLifetime), UsedBefore: now.Add(-ClerkSessionIdle),
	}); err != nil {
		return fmt.Errorf("deleting ended sessions of clerks: %w", err)
	}
	return nil
}
