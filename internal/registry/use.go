package registry

import (
	"context"
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
	type news struct {
		*use
		at int64
	}
	var batch []db.NoteKeyUseParams
	var of []news
	r.uses.latest.Range(func(id, v any) bool {
		u := v.(*use)
		if at := u.at.Load(); at > u.written {
			seen := time.Unix(at, 0).UTC()
			batch = append(batch, db.NoteKeyUseParams{ID: id.(string), LastUsedAt: &seen})
			of = append(of, news{u, at})
		}
		return true
	})
	if len(batch) == 0 {
		return nil
	}
	// A batch is one transaction: in one order, so that two instances that write
	// the same keys cannot wait for each other.
	slices.SortFunc(batch, func(a, b db.NoteKeyUseParams) int { return strings.Compare(a.ID, b.ID) })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed error
	db.New(r.cfg.Pool).NoteKeyUse(ctx, batch).Exec(func(_ int, err error) {
		if failed == nil {
			failed = err
		}
	})
	if failed != nil {
		return fmt.Errorf("writing when keys were last used: %w", failed)
	}
	for _, n := range of {
		n.written = n.at
	}
	return nil
}
