package sessions

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"quittance/checkout"
)

// live returns the bytes of the heap that are in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The comparison of four times as many sessions, and of as many rows that no event makes, keeps no more. Each session is
// compared in exactly one part. Not parallel: it measures the heap of the process.
func TestMemoryDoesNotGrowWithHistory(t *testing.T) {
	const atOnce = 20_000
	begin := time.UnixMilli(1_790_000_000_000).UTC()
	id := func(n int) string {
		return checkout.NewSessionID(begin.Add(time.Duration(n)*time.Second), int32(n%12), [16]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	}
	most := func(history int) (peak int64) {
		before := live()
		v := &verification{cfg: VerifyConfig{AtOnce: atOnce}}
		compared := 0
		for from := (time.Time{}); ; {
			p := &part{verification: v, from: from, sessions: map[uint64]*stateHash{}, unknown: map[uint64]string{}}
			p.bound()
			for n := range history {
				if sid := id(n); p.covers(sid) {
					var s Snapshot
					s.ID, s.Sequence, s.Status = sid, 1, checkout.StatusOpen
					p.add(nil, s)
				}
				if n%20_000 == 0 {
					peak = max(peak, live()-before)
				}
			}
			peak = max(peak, live()-before)
			for n := range history { // rows of sessions that nobody made
				p.take(row{sessionsTable, append([]any{fmt.Sprintf("chs_%d", n)}, make([]any, len(sessionsTable.columns)-1)...)})
			}
			peak = max(peak, live()-before)
			if len(p.sessions) > atOnce || len(p.unknown) > atOnce {
				t.Fatalf("%d sessions and %d others are in memory", len(p.sessions), len(p.unknown))
			}
			compared += len(p.sessions)
			if p.before.IsZero() {
				break
			}
			from = p.before
		}
		if compared != history {
			t.Fatalf("%d of %d sessions are compared", compared, history)
		}
		return peak
	}
	const n = 2 * atOnce
	most(n) // what tests before this one left in memory goes
	few, many := most(n), most(4*n)
	ratio := float64(many) / float64(few)
	t.Logf("%d sessions: %d KiB; %d sessions: %d KiB; ratio %.2f", n, few>>10, 4*n, many>>10, ratio)
	if ratio > 1.5 { // maps grow by doubling; without a bound it is 4
		t.Error("the memory grows with the history")
	}
}
