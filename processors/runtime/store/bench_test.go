package store

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"quittance/test/servers"
)

// BenchmarkCreations simulates a partition with b.N creations of sessions, 100 a
// transaction. Each session is paid 5000 creations later. A creation reads its order and
// its idempotency key, and writes session, order, idempotency key and quota. A payment
// reads and writes session and order. The store is flushed every 5000 creations: that is
// 500 a second at the flush interval of 10 s.
//
// cpu-µs/op is the time of all threads, compactions included. Compare settings with
// the same count: go test -run '^$' -bench Creations -benchtime 150000x
func BenchmarkCreations(b *testing.B) {
	const batch, flush = 100, 5000
	cache := pebble.NewCache(32 << 20) // a partition's share of 256 MiB
	defer cache.Unref()
	s, _, err := Open(Config{Dir: filepath.Join(b.TempDir(), "p"), Stamp: "bench", Cache: cache, Log: servers.Logger(b)})
	if err != nil {
		b.Fatal(err)
	}
	random := make([]byte, 1<<16)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(random)
	value := func(n, size int) []byte { // compresses to about a half
		v := make([]byte, size)
		copy(v[:size/2], random[n*31%(len(random)-size):])
		return v
	}
	key := func(kind string, n int) []byte { // keys in no order
		return fmt.Appendf(nil, "%s\x00018f0000-0000-7000-8000-%016x", kind, uint64(n)*0x9e3779b97f4a7c15)
	}
	base := time.Unix(1_800_000_000, 0)
	pos := Position{Input: NoInput}
	read := func(k []byte) Entry {
		e, err := s.Get(k)
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		t := s.NewBatch()
		put := func(k, v []byte, d, former Deadline) {
			if err := t.Set(k, Entry{Value: v, Deadline: d}, former); err != nil {
				b.Fatal(err)
			}
		}
		at := DeadlineAt(base.Add(time.Duration(n) * 2 * time.Millisecond))
		for i := n; i < n+batch; i++ {
			o, idem := key("o", i), key("i", i)
			read(o)
			read(idem)
			put(key("s", i), value(i, 700), at+Deadline(time.Hour), 0)
			put(o, value(i, 60), 0, 0)
			put(idem, value(i, 100), at+Deadline(720*time.Hour), 0)
			if paid := i - flush; paid >= 0 {
				e := read(key("s", paid))
				read(key("o", paid))
				put(key("s", paid), value(paid, 900), 0, e.Deadline)
				put(key("o", paid), value(paid, 60), 0, 0)
			}
		}
		put(key("q", 0), binary.BigEndian.AppendUint64(nil, uint64(n)), 0, 0)
		pos.Changelog, pos.Input = pos.Changelog+6*batch, int64(n)
		if err := s.Apply(t, pos); err != nil {
			b.Fatal(err)
		}
		if n%flush == 0 {
			if err := s.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := s.Flush(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	m := s.db.Metrics()
	total := m.Total()
	b.ReportMetric(float64(cpu)/1000/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(total.TableBytesFlushed+total.TableBytesCompacted+total.BlobBytesFlushed+total.BlobBytesCompacted)/(1<<20), "written-MiB")
	b.ReportMetric(float64(m.DiskSpaceUsage())/(1<<20), "disk-MiB")
	b.ReportMetric(float64(m.Compact.Count), "compactions")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
