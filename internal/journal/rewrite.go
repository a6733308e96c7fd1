package journal

import (
	"context"
	"errors"
	"fmt"
)

// Rewriting does something that writes rows of earlier records, and notes its beginning and its end in the
// table rewrites, also when it fails. Whoever keeps in memory what it has read of the journal reads it again
// after each of them. what is rebuild or replay.
func (s *Store) Rewriting(ctx context.Context, what string, do func() error) error {
	note := func(ctx context.Context, step string) error {
		if err := s.conn.Exec(ctx, "INSERT INTO rewrites (what, step) SELECT ?, ?", what, step); err != nil {
			return fmt.Errorf("noting that a %s has %s: %w", what, step, err)
		}
		return nil
	}
	if err := note(ctx, "begun"); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, note(context.WithoutCancel(ctx), "ended"))
}
