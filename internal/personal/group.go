package personal

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// keyRow is a new row of personal_keys.
type keyRow struct {
	id        uuid.UUID
	sessionID string
	sealed    []byte
	keepUntil *time.Time // nil: the age counts
}

// group writes the rows of concurrent requests: those that arrive during a write go
// together into the next one. A statement for each would cost ingress and Postgres more CPU
// time than the rest of a creation.
type group struct {
	write func(context.Context, []keyRow) error

	mu      sync.Mutex
	next    *batch // nil when no row waits
	writing bool
}

type batch struct {
	rows []keyRow
	done chan struct{} // closed when err is set
	err  error
}

// add returns when the row is stored. After an error it may or may not be.
func (g *group) add(ctx context.Context, row keyRow) error {
	g.mu.Lock()
	if g.next == nil {
		g.next = &batch{done: make(chan struct{})}
	}
	b := g.next
	b.rows = append(b.rows, row)
	if !g.writing {
		g.writing = true
		go g.run() //nolint:gosec // it writes for several requests
	}
	g.mu.Unlock()
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run writes batches until no row waits.
func (g *group) run() {
	for {
		g.mu.Lock()
		b := g.next
		g.next, g.writing = nil, b != nil
		g.mu.Unlock()
		if b == nil {
			return
		}
		// A row must not miss because another request of its batch was given up.
		ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
		b.err = g.write(ctx, b.rows)
		cancel()
		close(b.done)
	}
}

// insert stores data keys.
func (s *Store) insert(ctx context.Context, rows []keyRow) error {
	ids, sessions, sealed, until := make([]uuid.UUID, len(rows)), make([]string, len(rows)), make([][]byte, len(rows)), make([]*time.Time, len(rows))
	for i, r := range rows {
		ids[i], sessions[i], sealed[i], until[i] = r.id, r.sessionID, r.sealed, r.keepUntil
	}
	_, err := s.cfg.Pool.Exec(ctx, `INSERT INTO personal_keys (id, session_id, sealed, created_at, keep_until)
		SELECT id, session_id, sealed, $4, keep_until FROM unnest($1::uuid[], $2::text[], $3::bytea[], $5::timestamptz[]) AS n (id, session_id, sealed, keep_until)`,
		ids, sessions, sealed, s.cfg.Now(), until)
	return err
}
