package simulator

// history is an append-only list that drops its oldest entries. Entries are numbered 1, 2,
// 3 …, also after clear, so that a reader can poll for the entries after the last number
// that it saw. It is not safe for concurrent use.
type history[T any] struct {
	entries []T
	first   int64 // number of entries[0]
	max     int
}

func newHistory[T any](limit int) history[T] {
	return history[T]{first: 1, max: limit}
}

// next returns the number of the next entry.
func (h *history[T]) next() int64 { return h.first + int64(len(h.entries)) }

// add appends v and returns the entries that it dropped.
func (h *history[T]) add(v T) (forgotten []T) {
	for len(h.entries) >= h.max {
		forgotten = append(forgotten, h.drop())
	}
	h.entries = append(h.entries, v)
	return forgotten
}

// drop removes the oldest entry and returns it.
func (h *history[T]) drop() T {
	v := h.entries[0]
	var zero T
	h.entries[0] = zero // so that the array behind the slice does not keep it in memory
	h.entries = h.entries[1:]
	h.first++
	return v
}

func (h *history[T]) clear() {
	h.first = h.next()
	h.entries = nil
}

// window copies the entries that p asks for, oldest first.
func (h *history[T]) window(p page) []T {
	from := 0
	if p.after >= h.first {
		from = int(min(p.after-h.first+1, int64(len(h.entries))))
	}
	to := len(h.entries)
	if p.limit > 0 && to-from > p.limit {
		if p.resumes {
			to = from + p.limit
		} else {
			from = to - p.limit
		}
	}
	return append(make([]T, 0, to-from), h.entries[from:to]...)
}

// page is the requested part of a list. Without a starting point, limit selects the newest
// entries; with one, the entries after it.
type page struct {
	after   int64
	resumes bool // after was given
	limit   int  // 0: no limit
}
