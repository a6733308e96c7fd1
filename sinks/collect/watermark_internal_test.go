package collect

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWatermarkMarksOnlyWhatIsDoneWithoutAGap(t *testing.T) {
	t.Parallel()
	var marked []int64
	w := &watermark{mark: func(r *kgo.Record) { marked = append(marked, r.Offset) }}
	offsets := []int64{3, 4, 7, 8, 20} // compaction and control records leave gaps
	for _, o := range offsets {
		w.take(&kgo.Record{Offset: o})
	}
	for _, o := range []int64{4, 8} {
		w.done(&kgo.Record{Offset: o})
	}
	if len(marked) != 0 {
		t.Fatalf("marked %v before the first record was done", marked)
	}
	w.done(&kgo.Record{Offset: 3})
	w.done(&kgo.Record{Offset: 20})
	w.done(&kgo.Record{Offset: 7})
	if want := []int64{4, 20}; !slices.Equal(marked, want) {
		t.Errorf("marked %v, want %v", marked, want)
	}
	w.take(&kgo.Record{Offset: 21})
	w.release()
	w.done(&kgo.Record{Offset: 21})
	if len(marked) != 2 {
		t.Errorf("marked %v after the partition was taken away", marked)
	}
}

func TestWatermarkInAnyOrder(t *testing.T) {
	t.Parallel()
	for range 50 {
		var last int64 = -1
		done := map[int64]bool{}
		w := &watermark{mark: func(r *kgo.Record) {
			if r.Offset <= last {
				t.Fatalf("marked %d after %d", r.Offset, last)
			}
			last = r.Offset
			for o := int64(0); o <= last; o++ {
				if !done[o] {
					t.Fatalf("marked %d while %d is not done", last, o)
				}
			}
		}}
		const n = 200
		for o := range int64(n) {
			w.take(&kgo.Record{Offset: o})
		}
		for _, o := range rand.Perm(n) {
			done[int64(o)] = true
			w.done(&kgo.Record{Offset: int64(o)})
		}
		if last != n-1 {
			t.Fatalf("last mark %d, want %d", last, n-1)
		}
	}
}
