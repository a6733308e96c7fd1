package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the version of the layout below. A copy of another format is discarded and
// restored. Raise it also when an application changes the deadlines of existing entries.
const Format = 1

// Layout. The first byte of a key is its kind:
//
//	m s                           stamp: source of this copy
//	m p                           position: changelog, input, time (8 bytes each)
//	m m                           mark: offset (8 bytes) and transaction; absent in copies of earlier releases
//	s <key>                       deadline (8 bytes, 0 for none) and value
//	t <deadline, 8 bytes> <key>   index of deadlines, empty value
//	w <key>                       deadline (8 bytes) to which Postpone moved the entry
//
// An index entry counts only if the entry of its key still has that deadline. A writer
// that knows the former deadline removes the old index entry. Otherwise Due removes it
// when it is due. A write therefore needs no read.
const (
	kindMeta  = 'm'
	kindState = 's'
	kindTimer = 't'
	kindLater = 'w'

	deadlineSize = 8

	// memTableSize in bytes. A store has up to two memory tables, and Pebble takes their
	// size from Config.Cache.
	memTableSize = 8 << 20
)

var (
	keyStamp    = []byte{kindMeta, 's'}
	keyPosition = []byte{kindMeta, 'p'}
	keyMark     = []byte{kindMeta, 'm'}
)

// NoInput is Position.Input before any input was applied.
const NoInput = int64(-1)

// Position is the progress of a copy in the changelog and in the input.
type Position struct {
	// Changelog is the offset of the next changelog record to read.
	Changelog int64
	// Input is the offset of the last input record that is applied, or NoInput.
	Input int64
	// Mark is a changelog record that the copy has.
	Mark Mark
}

// Mark names a record of the changelog and the transaction that wrote it. If the changelog has another transaction's
// record at the offset, the copy is of another history. The zero value is none.
type Mark struct {
	Offset      int64
	Transaction string
}

// Reasons for which Open discards a copy.
const (
	DiscardedDamaged = "damaged"
	DiscardedStamp   = "stamp"
	DiscardedAge     = "age"
)

// Config is what a Store needs.
type Config struct {
	// Dir is the folder of this copy. Empty keeps the copy in memory. The caller ensures
	// that nothing else uses the folder.
	Dir string
	// Stamp names the source of the copy (topic and partition). A copy with another stamp
	// is discarded.
	Stamp string
	// MaxAge is how long a copy may be out of use. An older copy is discarded: the cleaner
	// of the changelog may have removed tombstones of entries that the copy still holds.
	// No limit when zero.
	MaxAge time.Duration
	// Wall returns the real time, which measures MaxAge: the cleaner uses real time, too.
	// time.Now when nil.
	Wall func() time.Time
	// Cache is shared by the copies of a process. Nil creates a small one.
	Cache *pebble.Cache

	// Log receives Pebble's errors. Required.
	Log *slog.Logger
}

// Store is the copy of one partition's state. One goroutine at a time may call its
// methods. Only Flush may run at the same time as another method.
type Store struct {
	cfg Config
	db  *pebble.DB

	pos   Position
	floor uint64 // no index entry has an earlier deadline
	key   []byte // scratch
	// reads serves all reads between two Applies: a transaction reads some hundred
	// entries, and each iterator of its own would open tables again.
	reads *pebble.Iterator

	asOf time.Time // last time at which the copy had the whole changelog
	live bool      // see Live

	dirty  atomic.Bool // there are changes since the last flush
	mu     sync.Mutex  // excludes Flush and Close from each other
	closed bool
}

// Open opens the copy in cfg.Dir or creates an empty one. If a copy was discarded,
// discarded is one of the Discarded reasons, otherwise empty.
func Open(cfg Config) (s *Store, discarded string, err error) {
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Dir == "" {
		s, _, err = open(cfg, vfs.NewMem(), "memory")
		return s, "", err
	}
	s, reason, err := open(cfg, vfs.Default, cfg.Dir)
	if err == nil && reason == "" {
		return s, "", nil
	}
	if s != nil {
		_ = s.Abandon() // it is discarded
	}
	if reason == "" {
		// A full restore is possible. An error of the disk occurs again below.
		reason = DiscardedDamaged
		cfg.Log.Error("opening the local store failed", slog.String("dir", cfg.Dir), slog.Any("error", err))
	}
	if err := os.RemoveAll(cfg.Dir); err != nil {
		return nil, "", fmt.Errorf("discarding the local store: %w", err)
	}
	s, _, err = open(cfg, vfs.Default, cfg.Dir)
	if err != nil {
		return nil, "", err
	}
	return s, reason, nil
}

// open opens or creates the database in dir. A reason says that it must be discarded.
func open(cfg Config, fs vfs.FS, dir string) (s *Store, reason string, err error) {
	cache := cfg.Cache
	if cache == nil {
		cache = pebble.NewCache(8 << 20)
		defer cache.Unref() // the database holds its own reference
	}
	opts := &pebble.Options{
		FS:                 fs,
		Cache:              cache,
		DisableWAL:         true,
		FormatMajorVersion: pebble.FormatValueSeparation,
		MemTableSize:       memTableSize,
		Logger:             logger{cfg.Log},
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		opts.Levels[i].FilterType = pebble.TableFilter
		opts.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	// Flushed tables are soon compacted: compressing them first took a tenth of a busy
	// processor's CPU time.
	opts.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	// Most bytes are sessions. Compactions rewrite keys and small values only, and run
	// half as often: BenchmarkCreations needs a sixth less CPU time. Reads ask the bloom
	// filters of the additional tables.
	opts.L0CompactionThreshold, opts.L0StopWritesThreshold = 8, 24
	opts.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{
			Enabled: true, MinimumSize: 256, MaxBlobReferenceDepth: 10, RewriteMinimumAge: 5 * time.Minute, TargetGarbageRatio: 0.3,
		}
	}
	// One compaction runs at a time, so a waiting one begins when that has ended. Pebble's
	// default scheduler also looks for it ten times a second, in each partition; the one
	// that Pebble names after its tests does not. Whoever allows more takes the default again.
	opts.CompactionConcurrencyRange = func() (lower, upper int) { return 1, 1 }
	opts.Experimental.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, "", fmt.Errorf("opening the local store: %w", err)
	}
	// The age of an empty copy counts from now.
	s = &Store{cfg: cfg, db: db, pos: Position{Input: NoInput}, asOf: cfg.Wall()}

	stamp := fmt.Sprintf("%d|%s", Format, cfg.Stamp)
	switch have, err := s.read(keyStamp); {
	case err != nil:
		return s, "", err
	case have == nil:
		if err := db.Set(keyStamp, []byte(stamp), pebble.NoSync); err != nil {
			return s, "", fmt.Errorf("stamping the local store: %w", err)
		}
		return s, "", nil
	case string(have) != stamp:
		return s, DiscardedStamp, nil
	}
	switch p, err := s.read(keyPosition); {
	case err != nil:
		return s, "", err
	case p == nil:
	case len(p) != 24:
		return s, DiscardedDamaged, nil
	default:
		s.pos.Changelog = int64(binary.BigEndian.Uint64(p))           //nolint:gosec // written as int64
		s.pos.Input = int64(binary.BigEndian.Uint64(p[8:]))           //nolint:gosec // written as int64
		s.asOf = time.Unix(0, int64(binary.BigEndian.Uint64(p[16:]))) //nolint:gosec // written as int64
		if cfg.MaxAge > 0 && cfg.Wall().Sub(s.asOf) > cfg.MaxAge {
			return s, DiscardedAge, nil
		}
	}
	mark, err := s.read(keyMark)
	if err == nil && len(mark) > 8 {
		s.pos.Mark = Mark{int64(binary.BigEndian.Uint64(mark)), string(mark[8:])} //nolint:gosec // written as int64
	}
	return s, "", err
}

// read returns the value of a key of the database, or nil. It does not use DB.Get, which
// ignores the bloom filters of the lowest level. That level holds nearly all entries, and
// most keys that are looked up are new (a new order, a new idempotency key). With DB.Get
// each look-up read a block from the disk's cache, which took four tenths of a busy
// processor's CPU time.
func (s *Store) read(key []byte) ([]byte, error) {
	if s.reads == nil {
		it, err := s.db.NewIter(&pebble.IterOptions{UseL6Filters: true, KeyTypes: pebble.IterKeyTypePointsOnly})
		if err != nil {
			return nil, fmt.Errorf("reading the local store: %w", err)
		}
		s.reads = it
	}
	if !s.reads.SeekPrefixGE(key) || !bytes.Equal(s.reads.Key(), key) {
		if err := s.reads.Error(); err != nil {
			return nil, errors.Join(fmt.Errorf("reading the local store: %w", err), s.endReads())
		}
		return nil, nil
	}
	v, err := s.reads.ValueAndErr()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the local store: %w", err), s.endReads())
	}
	return append(make([]byte, 0, len(v)), v...), nil
}

// endReads closes the iterator of read, which sees the changes before it was made only.
func (s *Store) endReads() error {
	if s.reads == nil {
		return nil
	}
	err := s.reads.Close()
	s.reads = nil
	if err != nil {
		return fmt.Errorf("reading the local store: %w", err)
	}
	return nil
}

// Position returns the position of the last Apply.
func (s *Store) Position() Position { return s.pos }

// Entry is a value and its deadline.
type Entry struct {
	// Value is nil if there is no entry. The caller may keep it.
	Value []byte
	// Deadline is zero if the entry has none.
	Deadline Deadline
}

// Deadline is a moment in nanoseconds since 1970 UTC; zero is none.
type Deadline uint64

// DeadlineAt converts t to a Deadline. Times before 1970 become the earliest Deadline,
// times after the range of nanoseconds (2262) the latest.
func DeadlineAt(t time.Time) Deadline {
	switch s := t.Unix(); {
	case s < 0 || s == 0 && t.Nanosecond() == 0:
		return 1
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return Deadline(t.UnixNano())
}

// Time returns d in UTC.
func (d Deadline) Time() time.Time { return time.Unix(0, int64(d)).UTC() } //nolint:gosec // below MaxInt64, see DeadlineAt

// Get returns the entry of key.
func (s *Store) Get(key []byte) (Entry, error) {
	s.key = append(append(s.key[:0], kindState), key...)
	v, err := s.read(s.key)
	if err != nil || v == nil {
		return Entry{}, err
	}
	if len(v) < deadlineSize {
		return Entry{}, fmt.Errorf("reading the local store: an entry has %d bytes", len(v))
	}
	return Entry{Value: v[deadlineSize:], Deadline: Deadline(binary.BigEndian.Uint64(v))}, nil
}

// Batch collects changes for Apply.
type Batch struct {
	b     *pebble.Batch
	floor uint64
	key   []byte
}

// NewBatch returns an empty batch. The caller ends it with Apply or Close.
func (s *Store) NewBatch() *Batch {
	return &Batch{b: s.db.NewBatch(), floor: math.MaxUint64}
}

// Close drops a batch that is not applied.
func (b *Batch) Close() { _ = b.b.Close() } // its changes are dropped anyway

// timer returns the key of an index entry. The next call overwrites it.
func (b *Batch) timer(d Deadline, key []byte) []byte {
	b.key = append(b.key[:0], kindTimer)
	b.key = binary.BigEndian.AppendUint64(b.key, uint64(d))
	b.key = append(b.key, key...)
	return b.key
}

// Set sets the entry of key. former is the entry's previous deadline if the caller knows
// it, otherwise zero.
func (b *Batch) Set(key []byte, e Entry, former Deadline) error {
	op := b.b.SetDeferred(1+len(key), deadlineSize+len(e.Value))
	op.Key[0] = kindState
	copy(op.Key[1:], key)
	binary.BigEndian.PutUint64(op.Value, uint64(e.Deadline))
	copy(op.Value[deadlineSize:], e.Value)
	if err := op.Finish(); err != nil {
		return writing(err)
	}
	if former != 0 && former != e.Deadline {
		if err := b.dropTimer(former, key); err != nil {
			return err
		}
	}
	if e.Deadline == 0 || e.Deadline == former {
		return nil
	}
	b.floor = min(b.floor, uint64(e.Deadline))
	return writing(b.b.Set(b.timer(e.Deadline, key), nil, nil))
}

// writing describes an error of a write. It returns nil if err is nil.
func writing(err error) error {
	if err != nil {
		return fmt.Errorf("writing the local store: %w", err)
	}
	return nil
}

// Delete removes the entry of key. former is as in Set.
func (b *Batch) Delete(key []byte, former Deadline) error {
	b.key = append(append(b.key[:0], kindState), key...)
	if err := b.b.Delete(b.key, nil); err != nil || former == 0 {
		return writing(err)
	}
	return b.dropTimer(former, key)
}

// dropTimer removes a deadline from the index. The entry does not change.
func (b *Batch) dropTimer(d Deadline, key []byte) error {
	return writing(b.b.Delete(b.timer(d, key), nil))
}

// Postpone sets the entry of key with a later deadline than its value asks for, and marks
// it for Postponed. The next Set or Delete of the entry ends the postponement. former is
// as in Set.
func (b *Batch) Postpone(key []byte, e Entry, former Deadline) error {
	if err := b.Set(key, e, former); err != nil {
		return err
	}
	b.key = append(append(b.key[:0], kindLater), key...)
	return writing(b.b.Set(b.key, binary.BigEndian.AppendUint64(nil, uint64(e.Deadline)), nil))
}

// Apply writes the batch and the position after it in one atomic write.
func (s *Store) Apply(b *Batch, pos Position) error {
	if err := s.endReads(); err != nil {
		return err
	}
	if s.live {
		s.asOf = s.cfg.Wall()
	}
	v := make([]byte, 0, 24)
	v = binary.BigEndian.AppendUint64(v, uint64(pos.Changelog)) //nolint:gosec // read back as int64
	v = binary.BigEndian.AppendUint64(v, uint64(pos.Input))     //nolint:gosec // read back as int64
	v = binary.BigEndian.AppendUint64(v, uint64(s.asOf.UnixNano()))
	if err := b.b.Set(keyPosition, v, nil); err != nil {
		return writing(err)
	}
	if pos.Mark != s.pos.Mark {
		mark := append(binary.BigEndian.AppendUint64(nil, uint64(pos.Mark.Offset)), pos.Mark.Transaction...) //nolint:gosec // read back as int64
		if err := b.b.Set(keyMark, mark, nil); err != nil {
			return writing(err)
		}
	}
	if err := b.b.Commit(pebble.NoSync); err != nil {
		return writing(err)
	}
	if err := b.b.Close(); err != nil {
		return writing(err)
	}
	s.pos = pos
	s.floor = min(s.floor, b.floor)
	s.dirty.Store(true)
	return nil
}

// Live marks the copy as up to date with its changelog. Every later Apply renews the
// copy's age (Config.MaxAge). A restore calls Live only after it has read the whole
// changelog. Another call renews the age of a copy without changes.
func (s *Store) Live() error {
	s.live = true
	return s.Apply(s.NewBatch(), s.pos)
}

// Lags ends the effect of Live before another restore.
func (s *Store) Lags() { s.live = false }

// Timer is one entry of the index of deadlines.
type Timer struct {
	Key      []byte
	Deadline Deadline
}

// Due returns up to limit entries whose deadline is at or before now, earliest first.
// next is the deadline of the first entry after them, or zero if there is none. Due also
// removes index entries that no longer count.
func (s *Store) Due(now time.Time, limit int) (due []Timer, next time.Time, err error) {
	until := uint64(DeadlineAt(now))
	lower := binary.BigEndian.AppendUint64([]byte{kindTimer}, s.floor)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: []byte{kindTimer + 1}})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading deadlines: %w", err)
	}
	defer func() {
		if cerr := it.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("reading deadlines: %w", cerr)
		}
	}()

	stale := s.NewBatch()
	defer stale.Close()
	looked := 0
	ok := it.First()
	first := uint64(math.MaxUint64) // earliest deadline that stays in the index
	for ; ok && len(due) < limit; ok = it.Next() {
		k := it.Key()
		at := binary.BigEndian.Uint64(k[1:])
		if at > until {
			break
		}
		// One call removes a limited number of old index entries.
		if looked++; looked > 16*limit {
			break
		}
		key := append([]byte(nil), k[1+deadlineSize:]...)
		e, err := s.Get(key)
		if err != nil {
			return nil, time.Time{}, err
		}
		if uint64(e.Deadline) != at {
			if err := stale.b.Delete(k, nil); err != nil {
				return nil, time.Time{}, fmt.Errorf("clearing deadlines: %w", err)
			}
			continue
		}
		first = min(first, at)
		due = append(due, Timer{Key: key, Deadline: Deadline(at)})
	}
	if ok {
		at := binary.BigEndian.Uint64(it.Key()[1:])
		next = Deadline(at).Time()
		first = min(first, at)
	} else if err := it.Error(); err != nil {
		return nil, time.Time{}, fmt.Errorf("reading deadlines: %w", err)
	}
	if !stale.b.Empty() {
		if err := stale.b.Commit(pebble.NoSync); err != nil {
			return nil, time.Time{}, fmt.Errorf("clearing deadlines: %w", err)
		}
	}
	// The next call begins here and skips the deleted index entries before.
	s.floor = first
	return due, next, nil
}

// Postponed returns the number of entries that wait for the deadline of their Postpone. It
// also removes the marks of other entries.
func (s *Store) Postponed() (n int, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kindLater}, UpperBound: []byte{kindLater + 1}})
	if err != nil {
		return 0, fmt.Errorf("reading postponed deadlines: %w", err)
	}
	defer func() {
		if cerr := it.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("reading postponed deadlines: %w", cerr)
		}
	}()
	stale := s.NewBatch()
	defer stale.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return 0, fmt.Errorf("reading postponed deadlines: %w", err)
		}
		e, err := s.Get(it.Key()[1:])
		if err != nil {
			return 0, err
		}
		if len(v) == deadlineSize && e.Deadline == Deadline(binary.BigEndian.Uint64(v)) {
			n++
			continue
		}
		if err := stale.b.Delete(it.Key(), nil); err != nil {
			return 0, fmt.Errorf("clearing postponed deadlines: %w", err)
		}
	}
	if err := it.Error(); err != nil {
		return 0, fmt.Errorf("reading postponed deadlines: %w", err)
	}
	if !stale.b.Empty() {
		if err := stale.b.Commit(pebble.NoSync); err != nil {
			return 0, fmt.Errorf("clearing postponed deadlines: %w", err)
		}
	}
	return n, nil
}

// Flush makes all applied changes durable. After a crash the copy continues from the
// position of its last flush.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Clear the flag first: changes that are applied during the flush need the next one.
	if s.closed || !s.dirty.Swap(false) {
		return nil
	}
	if err := s.db.Flush(); err != nil {
		s.dirty.Store(true)
		return fmt.Errorf("flushing the local store: %w", err)
	}
	return nil
}

// Close flushes and closes the copy.
func (s *Store) Close() error {
	flushed := s.Flush()
	if err := s.Abandon(); err != nil {
		return err
	}
	return flushed
}

// Abandon closes the copy without a flush, like a crash.
func (s *Store) Abandon() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := errors.Join(s.endReads(), s.db.Close()); err != nil {
		return fmt.Errorf("closing the local store: %w", err)
	}
	return nil
}

// Discard closes and removes the copy. It returns an empty one in the same folder.
func (s *Store) Discard() (*Store, error) {
	if err := s.Abandon(); err != nil {
		return nil, err
	}
	if s.cfg.Dir != "" {
		if err := os.RemoveAll(s.cfg.Dir); err != nil {
			return nil, fmt.Errorf("discarding the local store: %w", err)
		}
	}
	fresh, _, err := Open(s.cfg)
	return fresh, err
}

// logger logs Pebble's errors.
type logger struct{ log *slog.Logger }

func (logger) Infof(string, ...any) {} // one line for each flush and compaction

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("error of the local store", slog.String("message", fmt.Sprintf(format, args...)))
}

// Fatalf is called when Pebble cannot continue, for instance because the disk failed. It
// must not return.
func (l logger) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.log.Error("the local store cannot continue", slog.String("message", msg))
	panic("the local store cannot continue: " + msg)
}
