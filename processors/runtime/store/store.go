package store

import (
	"bytes"
	"encoding/binary"
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

// Format is the version of the layout below. A copy of another format is
// discarded and restored.
const Format = 1

// Layout. One byte sets the kinds of keys apart:
//
//	m s                       stamp: what this is a copy of
//	m p                       position: changelog, input, as of (8 bytes each)
//	s <key>                   deadline (8 bytes, 0 none) and the value
//	t <deadline, 8 bytes> <key>   index of deadlines, empty value
//
// An index entry counts only if the entry of its key still has that deadline. It
// is removed with the entry when the writer knows the former deadline, and
// otherwise when its time has come: no write needs a read.
const (
	kindMeta  = 'm'
	kindState = 's'
	kindTimer = 't'

	deadlineSize = 8
)

var (
	keyStamp    = []byte{kindMeta, 's'}
	keyPosition = []byte{kindMeta, 'p'}
)

// NoInput is Position.Input before any input was applied.
const NoInput = int64(-1)

// Position is the state of a copy relative to changelog and input.
type Position struct {
	// Changelog is the next offset of the changelog to be read.
	Changelog int64
	// Input is the offset of the last input record whose effects are in, or
	// NoInput.
	Input int64
}

// Reasons for which Open discards a copy.
const (
	DiscardedDamaged = "damaged"
	DiscardedStamp   = "stamp"
	DiscardedAge     = "age"
)

// Config is what a Store needs.
type Config struct {
	// Dir is the folder of this copy alone; empty keeps it in memory. The caller
	// sees to it that no other process uses it.
	Dir string
	// Stamp names what this is a copy of (topic, partition, version of the
	// deadlines' rules). A copy with another stamp is discarded.
	Stamp string
	// MaxAge is how long a copy may have been out of touch with its changelog.
	// An older one is discarded: the changelog's cleaner may since have removed
	// the tombstones of what the copy still holds. Zero is for ever.
	MaxAge time.Duration
	// Wall is the real time, which MaxAge is measured in: the broker's cleaner
	// knows no other. time.Now when nil.
	Wall func() time.Time
	// Cache is shared by the copies of a process; nil makes a small one.
	Cache *pebble.Cache
	// MemTableSize in bytes; 8 MiB when zero. A store has up to two memory tables, and
	// Pebble takes their size from Cache.
	MemTableSize uint64
	// Log gets Pebble's errors. Required.
	Log *slog.Logger
}

// Store is the copy of one partition's state. Its methods are for one goroutine
// at a time, except Flush, which may be called beside them.
type Store struct {
	cfg Config
	db  *pebble.DB

	pos   Position
	floor uint64 // no index entry lies below it
	key   []byte // scratch

	asOf time.Time // when the copy was level with its changelog, see Live
	live bool

	dirty  atomic.Bool // something was applied since the last flush
	mu     sync.Mutex  // Flush against Close
	closed bool
}

// Open opens the copy in cfg.Dir or makes an empty one. discarded is one of the
// Discarded reasons when a copy was discarded, empty otherwise.
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
		_ = s.db.Close() // it is discarded
	}
	if reason == "" {
		// The changelog has everything. An error of the disk occurs again below.
		reason = DiscardedDamaged
		cfg.Log.Error("local store cannot be opened", slog.String("dir", cfg.Dir), slog.Any("error", err))
	}
	if err := os.RemoveAll(cfg.Dir); err != nil {
		return nil, "", fmt.Errorf("discarding local store: %w", err)
	}
	s, _, err = open(cfg, vfs.Default, cfg.Dir)
	if err != nil {
		return nil, "", err
	}
	return s, reason, nil
}

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
		MemTableSize:       cfg.MemTableSize,
		Logger:             logger{cfg.Log},
	}
	if opts.MemTableSize == 0 {
		opts.MemTableSize = 8 << 20
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
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, "", fmt.Errorf("opening local store: %w", err)
	}
	// An empty copy has nothing to hold back: its age counts from now.
	s = &Store{cfg: cfg, db: db, pos: Position{Input: NoInput}, asOf: cfg.Wall()}

	stamp := fmt.Sprintf("%d|%s", Format, cfg.Stamp)
	switch have, err := s.read(keyStamp); {
	case err != nil:
		return s, "", err
	case have == nil:
		if err := db.Set(keyStamp, []byte(stamp), pebble.NoSync); err != nil {
			return s, "", fmt.Errorf("stamping local store: %w", err)
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
	return s, "", nil
}

// read does not use DB.Get, which does not use the bloom filters of the lowest level.
// That level holds nearly all entries, and most keys that are looked up are new (a new
// order, a new idempotency key). Each look-up then read a block from the disk's cache,
// which took four tenths of a busy processor's CPU time.
func (s *Store) read(key []byte) (out []byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{UseL6Filters: true, KeyTypes: pebble.IterKeyTypePointsOnly})
	if err != nil {
		return nil, fmt.Errorf("reading local store: %w", err)
	}
	defer func() {
		if e := it.Close(); e != nil && err == nil {
			out, err = nil, fmt.Errorf("reading local store: %w", e)
		}
	}()
	if !it.SeekPrefixGE(key) || !bytes.Equal(it.Key(), key) {
		return nil, nil // an error comes with Close
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("reading local store: %w", err)
	}
	return append(make([]byte, 0, len(v)), v...), nil
}

// Position returns the position of the last Apply.
func (s *Store) Position() Position { return s.pos }

// Entry is a value and its deadline.
type Entry struct {
	// Value is nil when there is no entry. It belongs to the caller.
	Value []byte
	// Deadline is zero when the entry has none.
	Deadline Deadline
}

// Deadline is a moment in nanoseconds since 1970 UTC; zero is none.
type Deadline uint64

// DeadlineAt is t as a Deadline. Moments before 1970 are due since then, those
// that nanoseconds do not reach (2262) are at the end of what they reach.
func DeadlineAt(t time.Time) Deadline {
	switch s := t.Unix(); {
	case s < 0 || s == 0 && t.Nanosecond() == 0:
		return 1
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return Deadline(t.UnixNano())
}

// Time is d in UTC.
func (d Deadline) Time() time.Time { return time.Unix(0, int64(d)).UTC() } //nolint:gosec // below MaxInt64, see DeadlineAt

// Get reads the entry of key.
func (s *Store) Get(key []byte) (Entry, error) {
	s.key = append(append(s.key[:0], kindState), key...)
	v, err := s.read(s.key)
	if err != nil || v == nil {
		return Entry{}, err
	}
	if len(v) < deadlineSize {
		return Entry{}, fmt.Errorf("reading local store: entry of %d bytes", len(v))
	}
	return Entry{Value: v[deadlineSize:], Deadline: Deadline(binary.BigEndian.Uint64(v))}, nil
}

// Batch collects changes for Apply.
type Batch struct {
	b     *pebble.Batch
	floor uint64
	key   []byte
}

// NewBatch returns an empty batch. Apply or Close ends it.
func (s *Store) NewBatch() *Batch {
	return &Batch{b: s.db.NewBatch(), floor: math.MaxUint64}
}

// Close drops a batch that is not applied.
func (b *Batch) Close() { _ = b.b.Close() } // nothing is lost with it

func (b *Batch) timer(d Deadline, key []byte) []byte {
	b.key = append(b.key[:0], kindTimer)
	b.key = binary.BigEndian.AppendUint64(b.key, uint64(d))
	b.key = append(b.key, key...)
	return b.key
}

// Set sets the entry of key. former is its deadline so far where the caller
// knows it, zero otherwise.
func (b *Batch) Set(key []byte, e Entry, former Deadline) error {
	op := b.b.SetDeferred(1+len(key), deadlineSize+len(e.Value))
	op.Key[0] = kindState
	copy(op.Key[1:], key)
	binary.BigEndian.PutUint64(op.Value, uint64(e.Deadline))
	copy(op.Value[deadlineSize:], e.Value)
	if err := op.Finish(); err != nil {
		return fmt.Errorf("writing local store: %w", err)
	}
	if former != 0 && former != e.Deadline {
		if err := b.DropTimer(former, key); err != nil {
			return err
		}
	}
	if e.Deadline == 0 || e.Deadline == former {
		return nil
	}
	b.floor = min(b.floor, uint64(e.Deadline))
	if err := b.b.Set(b.timer(e.Deadline, key), nil, nil); err != nil {
		return fmt.Errorf("writing local store: %w", err)
	}
	return nil
}

// Delete removes the entry of key; former as in Set.
func (b *Batch) Delete(key []byte, former Deadline) error {
	b.key = append(append(b.key[:0], kindState), key...)
	if err := b.b.Delete(b.key, nil); err != nil {
		return fmt.Errorf("writing local store: %w", err)
	}
	if former != 0 {
		return b.DropTimer(former, key)
	}
	return nil
}

// DropTimer takes a deadline out of the index and leaves the entry as it is.
func (b *Batch) DropTimer(d Deadline, key []byte) error {
	if err := b.b.Delete(b.timer(d, key), nil); err != nil {
		return fmt.Errorf("writing local store: %w", err)
	}
	return nil
}

// Apply writes the batch together with the position that it leads to.
func (s *Store) Apply(b *Batch, pos Position) error {
	if s.live {
		s.asOf = s.cfg.Wall()
	}
	v := make([]byte, 0, 24)
	v = binary.BigEndian.AppendUint64(v, uint64(pos.Changelog)) //nolint:gosec // read back as int64
	v = binary.BigEndian.AppendUint64(v, uint64(pos.Input))     //nolint:gosec // read back as int64
	v = binary.BigEndian.AppendUint64(v, uint64(s.asOf.UnixNano()))
	if err := b.b.Set(keyPosition, v, nil); err != nil {
		return fmt.Errorf("writing local store: %w", err)
	}
	if err := b.b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("writing local store: %w", err)
	}
	if err := b.b.Close(); err != nil {
		return fmt.Errorf("writing local store: %w", err)
	}
	s.pos = pos
	s.floor = min(s.floor, b.floor)
	s.dirty.Store(true)
	return nil
}

// Live says that the copy is level with its changelog from now on: every Apply
// renews its age (Config.MaxAge), which a restore must not do before it has read
// all there is. Called again, it renews the age of a copy to which nothing
// happens.
func (s *Store) Live() error {
	s.live = true
	return s.Apply(s.NewBatch(), s.pos)
}

// Lags ends Live, for another restore.
func (s *Store) Lags() { s.live = false }

// Timer is an entry of the index of deadlines.
type Timer struct {
	Key      []byte
	Deadline Deadline
}

// Due returns up to limit entries whose deadline is at or before now, earliest
// first, and when the first one after them is due: zero when there is none. It
// removes what no longer counts from the index as it goes.
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
	first := uint64(math.MaxUint64) // of what stays
	for ; ok && len(due) < limit; ok = it.Next() {
		k := it.Key()
		at := binary.BigEndian.Uint64(k[1:])
		if at > until {
			break
		}
		// A backlog of old index entries is removed in portions, too.
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
	// The next look begins here and skips deleted index entries.
	s.floor = first
	return due, next, nil
}

// Flush makes what was applied so far durable. A copy that was not flushed goes
// on from an older position after a crash.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Cleared first: changes that are applied during the flush need the next flush.
	if s.closed || !s.dirty.Swap(false) {
		return nil
	}
	if err := s.db.Flush(); err != nil {
		s.dirty.Store(true)
		return fmt.Errorf("flushing local store: %w", err)
	}
	return nil
}

// Close flushes and closes the copy.
func (s *Store) Close() error {
	ferr := s.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing local store: %w", err)
	}
	return ferr
}

// Abandon closes the copy as a crash would: what was not flushed is gone.
func (s *Store) Abandon() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing local store: %w", err)
	}
	return nil
}

// Discard closes the copy, removes it and returns an empty one in its place.
func (s *Store) Discard() (*Store, error) {
	if err := s.Abandon(); err != nil {
		return nil, err
	}
	if s.cfg.Dir != "" {
		if err := os.RemoveAll(s.cfg.Dir); err != nil {
			return nil, fmt.Errorf("discarding local store: %w", err)
		}
	}
	fresh, _, err := Open(s.cfg)
	return fresh, err
}

// logger passes on what Pebble complains of.
type logger struct{ log *slog.Logger }

func (logger) Infof(string, ...any) {} // one line for each flush and compaction

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("local store", slog.String("message", fmt.Sprintf(format, args...)))
}

// Fatalf is called when Pebble cannot go on, for instance because the disk is
// gone; it must not return.
func (l logger) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.log.Error("local store cannot go on", slog.String("message", msg))
	panic("local store cannot go on: " + msg)
}
