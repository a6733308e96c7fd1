package delivery

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever the order of settling, the watermark is the lowest offset that is
// read and not settled, it never falls, and after a revoke there is none.
func TestTrackerWatermark(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1000).Draw(t, "start")
		tr := newTracker(start)
		next, open, last := start, map[int64]bool{}, start
		revoked, stopped := false, false
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				next += rapid.Int64Range(0, 3).Draw(t, "gap") // compaction and markers leave gaps
				ok := tr.read(next)
				if ok == stopped {
					t.Fatalf("read %v although stopped is %v", ok, stopped)
				}
				if ok {
					open[next] = true
					next++
				}
			},
			"settle": func(t *rapid.T) {
				offset := rapid.Int64Range(start, next).Draw(t, "offset") // also twice, also unknown ones
				tr.settle(offset)
				if !revoked {
					delete(open, offset)
				}
			},
			"stop": func(t *rapid.T) {
				if rapid.IntRange(0, 30).Draw(t, "dice") == 0 {
					tr.stop()
					stopped = true
				}
			},
			"revoke": func(t *rapid.T) {
				if rapid.IntRange(0, 30).Draw(t, "dice") == 0 {
					tr.revoke()
					revoked, stopped = true, true
				}
			},
			"": func(t *rapid.T) {
				low, ok := tr.watermark()
				if ok == revoked {
					t.Fatalf("watermark %v although revoked is %v", ok, revoked)
				}
				if !ok {
					return
				}
				for o := range open {
					if o < low {
						t.Fatalf("watermark %d above the unsettled %d", low, o)
					}
				}
				if len(open) > 0 && !open[low] {
					t.Fatalf("watermark %d is settled, open are %v", low, open)
				}
				if low < last {
					t.Fatalf("watermark fell from %d to %d", last, low)
				}
				if n := tr.waiting(); n != len(open) {
					t.Fatalf("%d waiting, want %d", n, len(open))
				}
				last = low
			},
		})
	})
}

// The story: a call is under way, the partition goes elsewhere, the next owner
// commits further on, and then the answer comes. It must not move anything.
func TestSettlingAfterRevokeCommitsNothing(t *testing.T) {
	t.Parallel()
	tr := newTracker(10)
	tr.read(10)
	tr.read(11)
	tr.settle(11)
	tr.stop()
	if tr.read(12) {
		t.Error("read after stop")
	}
	if low, ok := tr.watermark(); !ok || low != 10 {
		t.Errorf("watermark %d, %v before the revoke", low, ok)
	}
	tr.revoke()
	tr.settle(10)
	if low, ok := tr.watermark(); ok {
		t.Errorf("watermark %d after the revoke", low)
	}
}
