package consume_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quittance/internal/kafka/consume"
)

func TestWatermarkMarksOnlyWhatIsDoneWithoutAGap(t *testing.T) {
	t.Parallel()
	var marked []int64
	var epochs []int32
	w := consume.NewWatermark(3)
	w.Moved = func(next int64, epoch int32) { marked, epochs = append(marked, next-1), append(epochs, epoch) }
	offsets := []int64{3, 4, 7, 8, 20} // compaction and control records leave gaps
	for _, o := range offsets {
		w.Take(o, int32(o/10))
	}
	for _, o := range []int64{4, 8} {
		w.Done(o)
	}
	if len(marked) != 0 {
		t.Fatalf("marked %v before the first record was done", marked)
	}
	w.Done(3)
	w.Done(20)
	w.Done(7)
	if want := []int64{4, 20}; !slices.Equal(marked, want) {
		t.Errorf("marked %v, want %v", marked, want)
	}
	if want := []int32{0, 2}; !slices.Equal(epochs, want) {
		t.Errorf("marked with epochs %v, want %v", epochs, want)
	}
	w.Take(21, 2)
	w.Release()
	w.Done(21)
	if len(marked) != 2 {
		t.Errorf("marked %v after Release", marked)
	}
}

func TestWatermarkInAnyOrder(t *testing.T) {
	t.Parallel()
	for range 50 {
		var last int64 = -1
		done := map[int64]bool{}
		w := consume.NewWatermark(0)
		w.Moved = func(next int64, _ int32) {
			if next-1 <= last {
				t.Fatalf("marked %d after %d", next-1, last)
			}
			last = next - 1
			for o := int64(0); o <= last; o++ {
				if !done[o] {
					t.Fatalf("marked %d while %d is not done", last, o)
				}
			}
		}
		const n = 200
		for o := range int64(n) {
			w.Take(o, int32(o/10))
		}
		for _, o := range rand.Perm(n) {
			done[int64(o)] = true
			w.Done(int64(o))
		}
		if last != n-1 {
			t.Fatalf("last mark %d, want %d", last, n-1)
		}
	}
}

// In any order of Done, the watermark is the lowest offset that is taken and not done. It
// never falls. After Release there is none.
func TestWatermarkIsTheLowestUndone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1000).Draw(t, "start")
		tr := consume.NewWatermark(start)
		next, open, last := start, map[int64]bool{}, start
		revoked, stopped := false, false
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				next += rapid.Int64Range(0, 3).Draw(t, "gap") // compaction and markers leave gaps
				ok := tr.Take(next, 0)
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
				tr.Done(offset)
				if !revoked {
					delete(open, offset)
				}
			},
			"stop": func(t *rapid.T) {
				if rapid.IntRange(0, 30).Draw(t, "dice") == 0 {
					tr.Stop()
					stopped = true
				}
			},
			"revoke": func(t *rapid.T) {
				if rapid.IntRange(0, 30).Draw(t, "dice") == 0 {
					tr.Release()
					revoked, stopped = true, true
				}
			},
			"": func(t *rapid.T) {
				low, ok := tr.Next()
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
				if n := tr.Waiting(); n != len(open) {
					t.Fatalf("%d waiting, want %d", n, len(open))
				}
				last = low
			},
		})
	})
}

// A call runs while the partition moves to another member. The next owner commits a higher
// offset. Then the call ends: its Done must not move the offset.
func TestDoneAfterReleaseMovesNothing(t *testing.T) {
	t.Parallel()
	tr := consume.NewWatermark(10)
	tr.Take(10, 0)
	tr.Take(11, 0)
	tr.Done(11)
	tr.Stop()
	if tr.Take(12, 0) {
		t.Error("read after stop")
	}
	if low, ok := tr.Next(); !ok || low != 10 {
		t.Errorf("watermark %d, %v before the revoke", low, ok)
	}
	tr.Release()
	tr.Done(10)
	if low, ok := tr.Next(); ok {
		t.Errorf("watermark %d after the revoke", low)
	}
}
