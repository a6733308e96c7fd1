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

// patience bounds the writing of uses.
const patience = 3 * time.Second

// uses are when keys were last used, as far as this process has seen. The zero
// value is empty.
type uses struct {
	latest sync.Map // key id → *use
}

type use struct {
	at      atomic.Int64 // Unix seconds
	written int64        // what of it Postgres has; only write reads and sets it
}

// note is called for every request: it takes no lock, and of a busy key it writes
// one word a second.
func (u *uses) note(keyID string, now time.Time) {
	v, ok := u.latest.Load(keyID)
	if !ok {
		v, _ = u.latest.LoadOrStore(keyID, &use{})
	}
	at, seen := &v.(*use).at, now.Unix()
	for old := at.Load(); seen > old && !at.CompareAndSwap(old, seen); old = at.Load() {
	}
}

// Run writes down when keys were last used, in batches until ctx ends and then
// once more. What cannot be written waits for the next time.
func (i *Identities) Run(ctx context.Context) error {
	tick := time.NewTicker(i.cfg.UsesEvery)
	defer tick.Stop()
	for last, failing := false, false; !last; {
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
		err := i.writeUses(context.WithoutCancel(ctx))
		if err != nil && !failing {
			i.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the last uses of keys cannot be written yet", slog.Any("error", err))
		}
		failing = err != nil
	}
	return nil
}

// writeUses sends what is new in one batch, and remembers it once it is written.
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
	// A batch is one transaction: in one order, so that two instances that write
	// the same keys cannot wait for each other.
	slices.SortFunc(batch, func(a, b db.NoteUseParams) int { return strings.Compare(a.ID, b.ID) })
	var failed error
	db.New(i.cfg.Pool).NoteUse(ctx, batch).Exec(func(_ int, err error) { failed = cmp.Or(failed, err) })
	if failed != nil {
		return fmt.Errorf("writing when keys were last used: %w", failed)
	}
	for _, row := range batch {
		if v, ok := i.uses.latest.Load(row.ID); ok {
			v.(*use).written = row.LastUsedAt.Unix()
		}
	}
	return nil
}
