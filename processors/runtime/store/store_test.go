package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/test/servers"
)

func config(t *testing.T, dir string) Config {
	return Config{Dir: dir, Stamp: "topic|0", MaxAge: time.Hour, Log: servers.Logger(t)}
}

func reopen(t *testing.T, cfg Config) (*Store, string) {
	t.Helper()
	s, discarded, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, discarded
}

func at(sec int64) Deadline { return DeadlineAt(time.Unix(sec, 0)) }

func set(t *testing.T, s *Store, pos int64, key, value string, d, former Deadline) {
	t.Helper()
	b := s.NewBatch()
	if err := b.Set([]byte(key), Entry{Value: []byte(value), Deadline: d}, former); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(b, Position{Changelog: pos, Input: pos / 2}); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s *Store, key string) (string, bool) {
	t.Helper()
	e, err := s.Get([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Value), e.Value != nil
}

func due(t *testing.T, s *Store, sec int64, limit int) (keys []string, next time.Time) {
	t.Helper()
	timers, next, err := s.Due(time.Unix(sec, 0), limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range timers {
		keys = append(keys, string(x.Key))
	}
	return keys, next
}

func TestEntriesAndPositionAreOneWrite(t *testing.T) {
	t.Parallel()
	cfg := config(t, filepath.Join(t.TempDir(), "p"))
	s, _ := reopen(t, cfg)
	if p := s.Position(); p != (Position{Input: NoInput}) {
		t.Fatalf("an empty store is at %+v", p)
	}
	set(t, s, 10, "a", "1", 0, 0)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	set(t, s, 20, "a", "2", 0, 0)
	set(t, s, 30, "b", "", 0, 0)
	if v, ok := get(t, s, "b"); !ok || v != "" {
		t.Error("an empty value is not there")
	}
	// After a crash the flushed changes are there, with their position.
	if err := s.Abandon(); err != nil {
		t.Fatal(err)
	}
	s, discarded := reopen(t, cfg)
	if v, _ := get(t, s, "a"); v != "1" || s.Position() != (Position{Changelog: 10, Input: 5}) || discarded != "" {
		t.Errorf("after a crash: %q at %+v, discarded %q", v, s.Position(), discarded)
	}
	if _, ok := get(t, s, "b"); ok {
		t.Error("an entry without its position")
	}
	// A graceful end keeps everything.
	set(t, s, 40, "c", "3", 0, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = reopen(t, cfg)
	if v, _ := get(t, s, "c"); v != "3" || s.Position().Changelog != 40 {
		t.Errorf("after a stop: %q at %+v", v, s.Position())
	}
}

// Values of every size survive flushes, compactions and a crash. Large values are in
// separate files.
func TestLargeValuesSurviveCompactions(t *testing.T) {
	t.Parallel()
	cfg := config(t, filepath.Join(t.TempDir(), "p"))
	s, _ := reopen(t, cfg)
	want := map[string]string{}
	for n := range 40 {
		for k := range 20 { // half of the keys are written again each time
			key, value := fmt.Sprint("k", k+10*(n%3)), strings.Repeat(fmt.Sprint(n, k, "."), k*k)
			want[key] = value
			set(t, s, int64(n+1), key, value, at(int64(n+1)), 0)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Abandon(); err != nil {
		t.Fatal(err)
	}
	s, discarded := reopen(t, cfg)
	if discarded != "" || s.Position().Changelog != 40 {
		t.Fatalf("discarded %q, at %+v", discarded, s.Position())
	}
	for k, v := range want {
		if have, ok := get(t, s, k); !ok || have != v {
			t.Errorf("%s has %d bytes, want %d", k, len(have), len(v))
		}
	}
	if m := s.db.Metrics(); m.BlobFiles.LiveCount == 0 {
		t.Error("no value is in a separate file")
	}
}

func TestDeadlinesAreIndexed(t *testing.T) {
	t.Parallel()
	cfg := config(t, filepath.Join(t.TempDir(), "p"))
	s, _ := reopen(t, cfg)
	for n := range 6 {
		set(t, s, int64(n+1), fmt.Sprintf("k%d", n), "v", at(int64(100+n)), 0)
	}
	set(t, s, 7, "k1", "the former deadline is known", at(500), at(101))
	set(t, s, 8, "k2", "the former deadline is unknown", at(501), 0)
	set(t, s, 9, "k3", "none", 0, 0)
	b := s.NewBatch()
	if err := b.Delete([]byte("k4"), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(b, Position{Changelog: 10}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if keys, next := due(t, s, 99, 10); len(keys) != 0 || !next.Equal(time.Unix(100, 0)) {
			t.Fatalf("due %v, next %v", keys, next)
		}
		if keys, next := due(t, s, 105, 1); fmt.Sprint(keys) != "[k0]" || next.IsZero() {
			t.Fatalf("due %v, next %v", keys, next)
		}
		if keys, next := due(t, s, 499, 10); fmt.Sprint(keys) != "[k0 k5]" || !next.Equal(time.Unix(500, 0)) {
			t.Fatalf("due %v, next %v", keys, next)
		}
		// After a restart the index is the same.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, _ = reopen(t, cfg)
	}
	// A deadline before all deadlines that Due has read is found.
	due(t, s, 105, 10)
	set(t, s, 11, "early", "v", at(1), 0)
	if keys, _ := due(t, s, 105, 10); fmt.Sprint(keys) != "[early k0 k5]" {
		t.Fatalf("due %v", keys)
	}
}

// A postponed entry is due at its later deadline, and counted until it is set or deleted.
func TestPostponedEntries(t *testing.T) {
	t.Parallel()
	cfg := config(t, filepath.Join(t.TempDir(), "p"))
	s, _ := reopen(t, cfg)
	postponed := func(want int, keys string) {
		t.Helper()
		n, err := s.Postponed()
		if err != nil {
			t.Fatal(err)
		}
		if have, _ := due(t, s, 200, 10); n != want || fmt.Sprint(have) != keys {
			t.Fatalf("%d postponed, due %v; want %d, %s", n, have, want, keys)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		set(t, s, 1, key, "v", at(100), 0)
	}
	b := s.NewBatch()
	for _, key := range []string{"a", "b", "c"} {
		if err := b.Postpone([]byte(key), Entry{Value: []byte("v"), Deadline: at(300)}, at(100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Apply(b, Position{Changelog: 2}); err != nil {
		t.Fatal(err)
	}
	postponed(3, "[]")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = reopen(t, cfg)
	postponed(3, "[]")
	if keys, _ := due(t, s, 300, 10); fmt.Sprint(keys) != "[a b c]" {
		t.Fatalf("due %v", keys)
	}
	set(t, s, 3, "a", "v", at(100), 0) // a restore does not know the former deadline
	b = s.NewBatch()
	if err := b.Delete([]byte("b"), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(b, Position{Changelog: 4}); err != nil {
		t.Fatal(err)
	}
	postponed(1, "[a]")
	set(t, s, 5, "c", "v", 0, at(300))
	postponed(0, "[a]")
}

func TestDeadlinesAtTheEdges(t *testing.T) {
	t.Parallel()
	for _, x := range []time.Time{{}, time.Unix(-1, 0), time.Unix(0, 0)} {
		if d := DeadlineAt(x); d != 1 {
			t.Errorf("%v is %d", x, d)
		}
	}
	if a, b := DeadlineAt(time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)), DeadlineAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)); a >= b {
		t.Errorf("%d is not before %d", a, b)
	}
	x := time.Date(2026, 5, 6, 7, 8, 9, 10, time.UTC)
	if got := DeadlineAt(x).Time(); got != x {
		t.Errorf("%v became %v", x, got)
	}
}

func TestWhatDoesNotFitIsDiscarded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"the same", func(*Config) {}, ""},
		{"another topic", func(c *Config) { c.Stamp = "other|0" }, DiscardedStamp},
		{"young", func(c *Config) { c.Wall = func() time.Time { return now.Add(59 * time.Minute) } }, ""},
		{"old", func(c *Config) { c.Wall = func() time.Time { return now.Add(61 * time.Minute) } }, DiscardedAge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, filepath.Join(t.TempDir(), "p"))
			cfg.Wall = func() time.Time { return now }
			s, _ := reopen(t, cfg)
			set(t, s, 10, "a", "1", 0, 0)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.change(&cfg)
			s, discarded := reopen(t, cfg)
			_, kept := get(t, s, "a")
			if discarded != c.want || kept != (c.want == "") || (s.Position().Changelog == 10) != kept {
				t.Errorf("discarded %q, entry kept %v, position %+v", discarded, kept, s.Position())
			}
		})
	}
}

// An interrupted restore must not renew the age of the copy.
func TestAgeIsRenewedByLiveStoresOnly(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cfg := config(t, filepath.Join(t.TempDir(), "p"))
	cfg.Wall = func() time.Time { return now }
	s, _ := reopen(t, cfg)
	now = now.Add(50 * time.Minute)
	set(t, s, 10, "a", "1", 0, 0) // of a restore
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(20 * time.Minute)
	s, discarded := reopen(t, cfg)
	if discarded != DiscardedAge {
		t.Fatalf("discarded %q", discarded)
	}
	if err := s.Live(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(50 * time.Minute)
	set(t, s, 20, "a", "1", 0, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(50 * time.Minute)
	if _, discarded = reopen(t, cfg); discarded != "" {
		t.Fatalf("discarded %q", discarded)
	}
}

// damage overwrites the manifest.
func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifest: %v", err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("no manifest"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedStoreIsDiscarded(t *testing.T) {
	t.Parallel()
	cfg := config(t, filepath.Join(t.TempDir(), "p"))
	s, _ := reopen(t, cfg)
	set(t, s, 10, "a", "1", 0, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, cfg.Dir)
	s, discarded := reopen(t, cfg)
	if discarded != DiscardedDamaged || s.Position().Changelog != 0 {
		t.Fatalf("discarded %q, at %+v", discarded, s.Position())
	}
}
