package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Sends remembers which messages are not sent again. A message of a kind with Once has a row before
// its provider is called, so that it is sent at most once. Another message has a row when its
// provider has accepted it, unless the provider reports on messages (Reports). Safe for concurrent
// use.
type Sends struct{ pool *pgxpool.Pool }

// NewSends makes Sends over the pool, which the caller closes.
func NewSends(pool *pgxpool.Pool) *Sends { return &Sends{pool} }

// queryTimeout bounds a query.
const queryTimeout = 5 * time.Second

// Begin reports whether the message may be sent now, and records that it is being sent. It may
// be sent if it never was, or if its last call was definitely refused and the kind allows
// another. After an error nobody knows: ask again.
func (s *Sends) Begin(ctx context.Context, messageID string, k Kind, now time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, `
		INSERT INTO message_sends AS s (message_id, first_at, sends) VALUES ($1, $2, 1)
		ON CONFLICT (message_id) DO UPDATE SET sends = s.sends + 1, refused_at = NULL
		WHERE s.refused_at IS NOT NULL AND s.sends <= $3 AND ($4 = interval '0' OR $2 <= s.first_at + $4)`,
		messageID, now, len(k.Retries), k.RetryWithin)
	if err != nil {
		return false, fmt.Errorf("recording that a message is being sent: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Refused records that the provider has definitely not accepted the message.
func (s *Sends) Refused(ctx context.Context, messageID string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if _, err := s.pool.Exec(ctx, `UPDATE message_sends SET refused_at = $2 WHERE message_id = $1`, messageID, now); err != nil {
		return fmt.Errorf("recording that a message was refused: %w", err)
	}
	return nil
}

// Accepted records that the provider has accepted a message of a kind without Once.
func (s *Sends) Accepted(ctx context.Context, messageID string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if _, err := s.pool.Exec(ctx, `INSERT INTO message_sends (message_id, first_at, sends) VALUES ($1, $2, 1) ON CONFLICT DO NOTHING`, messageID, now); err != nil {
		return fmt.Errorf("recording that a message was accepted: %w", err)
	}
	return nil
}

// Done reports whether the provider has accepted a message of a kind without Once.
func (s *Sends) Done(ctx context.Context, messageID string) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM message_sends WHERE message_id = $1)`, messageID).Scan(&done); err != nil {
		return false, fmt.Errorf("reading whether a message was accepted: %w", err)
	}
	return done, nil
}

// Sweep deletes rows older than two days: twice the longest Life of a kind with Once.
func (s *Sends) Sweep(ctx context.Context, now time.Time) (deleted int64, err error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM message_sends WHERE first_at < $1`, now.Add(-2*maxLifeOnce))
	if err != nil {
		return 0, fmt.Errorf("deleting old sends of messages: %w", err)
	}
	return tag.RowsAffected(), nil
}
