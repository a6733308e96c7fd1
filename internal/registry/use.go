package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quittance/internal/registry/internal/db"
)

// uses are when keys were last used, as far as this process has seen. The zero
// value is empty.
type uses struct {
	latest sync.Map // key id → *use
}

type use struct {
	at      atomic.Int64 // Unix seconds
	written int64        // what of it Postgres has; writeUses' own
}

// note is on the way of every request: it takes no lock, and of a busy key it
// writes one word a second.
func (u *uses) note(keyID string, now time.Time) {
	v, ok := u.latest.Load(keyID)
	if !ok {
		v, _ = u.latest.LoadOrStore(keyID, &use{})
	}
	at, seen := &v.(*use).at, now.Unix()
	for old := at.Load(); seen > old && !at.CompareAndSwap(old, seen); old = at.Load() {
	}
}

// writeUses writes them down until ctx ends, and then once more. What cannot be
// written is kept for the next time.
func (r *Registry) writeUses(ctx context.Context) {
	tick := time.NewTicker(r.cfg.UsesEvery)
	defer tick.Stop()
	for last, failing := false, false; !last; {
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
		err := r.writeUsesOnce(context.WithoutCancel(ctx))
		if err != nil && !failing {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "when keys were last used cannot be written, it waits", slog.Any("error", err))
		}
		failing = err != nil
	}
}

func (r *Registry) writeUsesOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q := db.New(r.cfg.Pool)
	keys := r.uses.write(func(batch []sighting) func(func(int, error)) {
		rows := make([]db.NoteKeyUseParams, len(batch))
		for i, s := range batch {
			rows[i] = db.NoteKeyUseParams{ID: s.keyID, LastUsedAt: &s.at}
		}
		return q.NoteKeyUse(ctx, rows).Exec
	})
	clerks := r.clerkUses.write(func(batch []sighting) func(func(int, error)) {
		rows := make([]db.NoteClerkKeyUseParams, len(batch))
		for i, s := range batch {
			rows[i] = db.NoteClerkKeyUseParams{ID: s.keyID, LastUsedAt: &s.at}
		}
		return q.NoteClerkKeyUse(ctx, rows).Exec
	})
	if err := errors.Join(keys, clerks); err != nil {
		return fmt.Errorf("writing when keys were last used: %w", err)
	}
	return nil
}

// sighting is when a key was last used.
type sighting struct {
	keyID string
	at    time.Time
}

// write gives what is new to send, in one batch, and remembers it once it is
// written.
func (u *uses) write(send func([]sighting) (exec func(func(int, error)))) error {
	var batch []sighting
	u.latest.Range(func(id, v any) bool {
		if at, used := v.(*use).at.Load(), v.(*use); at > used.written {
			batch = append(batch, sighting{id.(string), time.Unix(at, 0).UTC()})
		}
		return true
	})
	if len(batch) == 0 {
		return nil
	}
	// A batch is one transaction: in one order, so that two instances that write
	// the same keys cannot wait for each other.
	slices.SortFunc(batch, func(a, b sighting) int { return strings.Compare(a.keyID, b.keyID) })
	var failed error
	send(batch)(func(_ int, err error) {
		if failed == nil {
			failed = err
		}
	})
	if failed != nil {
		return failed
	}
	for _, s := range batch {
		if v, ok := u.latest.Load(s.keyID); ok {
			v.(*use).written = s.at.Unix()
		}
	}
	return nil
}
