package identity

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quittance/internal/identity/internal/db"
)

// patience is the time-out of writing uses.
const patience = 3 * time.Second

// uses holds the last uses of keys in this process. The zero value is empty.
type uses struct {
	latest sync.Map // *use by key id
}

type use struct {
	at      atomic.Int64 // Unix seconds
	written int64        // the time that Postgres has; only writeUses reads and sets it
}

// note records a use. Every request calls it, so it takes no lock and writes to a busy
// key's memory once a second.
func (u *uses) note(keyID string, now time.Time) {
	v, ok := u.latest.Load(keyID)
	if !ok {
		v, _ = u.latest.LoadOrStore(keyID, &use{})
	}
	at, seen := &v.(*use).at, now.Unix()
	for old := at.Load(); seen > old && !at.CompareAndSwap(old, seen); old = at.Load() {
	}
}

// Run writes the last uses of keys in batches until ctx ends, and then once more. After an error it tries
// again at the next interval. A process that authenticates nobody need not run it.
func (i *Identities) Run(ctx context.Context) error {
	uses := time.NewTicker(i.cfg.UsesEvery)
	defer uses.Stop()
	failing := false
	write := func() {
		err := i.writeUses(context.WithoutCancel(ctx))
		if err != nil && !failing {
			i.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the last uses of keys are not written, it is tried again", slog.Any("error", err))
		}
		failing = err != nil
	}
	for {
		select {
		case <-ctx.Done():
			write()
			return nil
		case <-uses.C:
			write()
		}
	}
}

// writeUses writes new uses in one batch.
func (i *Identities) writeUses(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var batch []db.NoteUseParams
	i.uses.latest.Range(func(id, v any) bool {
		if u := v.(*use); u.at.Load() > u.written {
			at := time.Unix(u.at.Load(), 0).UTC()
			batch = append(batch, db.NoteUseParams{ID: id.(string), LastUsedAt: &at})
		}
		return true
	})
	if len(batch) == 0 {
		return nil
	}
	// A batch is one transaction. The order prevents a deadlock between two instances that
	// write the same keys.
	slices.SortFunc(batch, func(a, b db.NoteUseParams) int { return strings.Compare(a.ID, b.ID) })
	var failed error
	db.New(i.cfg.Pool).NoteUse(ctx, batch).Exec(func(_ int, err error) { failed = cmp.Or(failed, err) })
	if failed != nil {
		return fmt.Errorf("writing the last uses of keys: %w", failed)
	}
	for _, row := range batch {
		if v, ok := i.uses.latest.Load(row.ID); ok {
			v.(*use).written = row.LastUsedAt.Unix()
		}
	}
	return nil
}
