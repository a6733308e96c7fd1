package matcher

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A table holds what a map holds, after any puts and removals.
func TestTable(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	want, got := map[string]int{}, newTable[int]()
	for i := 1; i <= 5000; i++ {
		id := fmt.Sprint(random.IntN(300))
		if random.IntN(3) == 0 {
			delete(want, id)
			got.remove(id)
		} else {
			want[id] = i
			got.put(id, i)
		}
		if row := got.get(id); (row != nil) != (want[id] != 0) || row != nil && *row != want[id] {
			t.Fatalf("step %d: %s is %v, want %d", i, id, row, want[id])
		}
	}
	all := map[string]int{}
	for id, row := range got.all() {
		all[id] = *row
	}
	if !maps.Equal(all, want) || len(got.rows) != len(want) || len(slices.Collect(got.ids())) != len(want) {
		t.Errorf("it has %d rows, want %d", len(all), len(want))
	}
	m, left := newTicked(got), 0
	for id := range want {
		if len(id) == 1 {
			m.tick(id)
		}
	}
	m.tick("nobody")
	for id := range m.others() {
		if len(id) == 1 {
			t.Errorf("%s is marked", id)
		}
		left++
	}
	if left == 0 || left == len(want) {
		t.Errorf("%d of %d rows are not marked", left, len(want))
	}
}

// Lists of texts are in queries that the development engine takes, whole and in order.
func TestChunks(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range 60_000 {
		texts = append(texts, fmt.Sprintf("%011d", i))
	}
	parts := chunks(texts)
	if !slices.Equal(slices.Concat(parts...), texts) || len(parts) != 4 {
		t.Errorf("%d lists", len(parts))
	}
	for _, part := range parts {
		if n := len(list(part)); n > maxList+100 {
			t.Errorf("a list has %d bytes", n)
		}
	}
	if got := chunks(nil); got != nil {
		t.Errorf("no texts are %v", got)
	}
}
