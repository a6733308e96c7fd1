package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// cacheSize and memTable bound the memory of a Book, whatever the length of the history.
	cacheSize = 16 << 20
	memTable  = 4 << 20
)

// disk keeps what a Book and its worlds know in a temporary folder. Pebble, which the processors use too, keeps an
// ordered map on disk in bounded memory. After an error nothing is read or written; err has the first one. Not safe for
// concurrent use.
type disk struct {
	db  *pebble.DB
	dir string
	err error
}

// folder begins the names of the folders.
const folder = "quittance-periods-"

// leftAfter is how long nobody has made a file in a folder before it may be one that a killed process has left. A
// process that has just made its folder has not locked it yet.
const leftAfter = time.Hour

// removeLeft removes the folders of processes that were killed. A folder in use is locked. What cannot be removed, for
// instance because it is another user's, stays.
func removeLeft() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), folder+"*")) // the pattern is well-formed
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < leftAfter {
			continue
		}
		lock, err := pebble.LockDirectory(dir, vfs.Default)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}

// newDisk makes an empty folder, and removes those that killed processes have left.
func newDisk() (*disk, error) {
	removeLeft()
	dir, err := os.MkdirTemp("", folder)
	if err != nil {
		return nil, fmt.Errorf("making a folder for the closes of periods: %w", err)
	}
	cache := pebble.NewCache(cacheSize)
	defer cache.Unref() // the database holds its own reference
	db, err := pebble.Open(dir, &pebble.Options{Cache: cache, DisableWAL: true, MemTableSize: memTable, Logger: silent{}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a folder for the closes of periods: %w", err), os.RemoveAll(dir))
	}
	return &disk{db: db, dir: dir}, nil
}

// close removes everything.
func (d *disk) close() error { return errors.Join(d.db.Close(), os.RemoveAll(d.dir)) }

func (d *disk) failed(err error) bool {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("the temporary folder of the closes of periods: %w", err)
	}
	return d.err != nil
}

// forget removes all keys with a prefix.
func (d *disk) forget(prefix string) {
	if !d.failed(nil) {
		d.failed(d.db.DeleteRange([]byte(prefix), []byte(prefix+"\xff"), pebble.NoSync))
	}
}

// silent is the log of a database that nobody keeps.
type silent struct{}

func (silent) Infof(string, ...any)         {}
func (silent) Errorf(string, ...any)        {}
func (silent) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// table is a map on disk. Keys are in order. Values are JSON.
type table[V any] struct {
	disk   *disk
	prefix string
}

func (t table[V]) get(key string) (v V, ok bool) {
	if t.disk.failed(nil) {
		return v, false
	}
	text, closer, err := t.disk.db.Get([]byte(t.prefix + key))
	if errors.Is(err, pebble.ErrNotFound) || t.disk.failed(err) {
		return v, false
	}
	err = json.Unmarshal(text, &v)
	return v, !t.disk.failed(errors.Join(err, closer.Close()))
}

func (t table[V]) has(key string) bool {
	_, ok := t.get(key)
	return ok
}

func (t table[V]) put(key string, v V) {
	if t.disk.failed(nil) {
		return
	}
	text, err := json.Marshal(v)
	if !t.disk.failed(err) {
		t.disk.failed(t.disk.db.Set([]byte(t.prefix+key), text, pebble.NoSync))
	}
}

func (t table[V]) delete(key string) {
	if !t.disk.failed(nil) {
		t.disk.failed(t.disk.db.Delete([]byte(t.prefix+key), pebble.NoSync))
	}
}

// each calls do for the keys from from up to but not including before; an empty one is no bound. do may change the
// table, and sees it as it was.
func (t table[V]) each(from, before string, do func(key string, v V)) {
	if t.disk.failed(nil) {
		return
	}
	upper := t.prefix + before
	if before == "" {
		upper += "\xff"
	}
	it, err := t.disk.db.NewIter(&pebble.IterOptions{LowerBound: []byte(t.prefix + from), UpperBound: []byte(upper)})
	if t.disk.failed(err) {
		return
	}
	for it.First(); it.Valid() && t.disk.err == nil; it.Next() {
		var v V
		text, err := it.ValueAndErr()
		if err == nil {
			err = json.Unmarshal(text, &v)
		}
		if !t.disk.failed(err) {
			do(string(it.Key()[len(t.prefix):]), v)
		}
	}
	t.disk.failed(it.Close())
}
