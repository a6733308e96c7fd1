package matcher

import (
	"iter"
	"maps"
)

// table is rows by their ids. It holds a million rows in the memory that the rows need: a map of
// them is up to twice as large.
type table[T any] struct {
	rows []T
	at   map[string]int32
}

func newTable[T any]() *table[T] { return &table[T]{at: map[string]int32{}} }

// get returns the row with the id, or nil. It is valid until the table changes.
func (t *table[T]) get(id string) *T {
	if i, ok := t.at[id]; ok {
		return &t.rows[i]
	}
	return nil
}

// put adds a row or replaces the one with its id.
func (t *table[T]) put(id string, row T) {
	if i, ok := t.at[id]; ok {
		t.rows[i] = row
		return
	}
	t.at[id] = int32(len(t.rows)) //nolint:gosec // bounded by the memory
	t.rows = append(t.rows, row)
}

// remove removes the row with the id, if there is one.
func (t *table[T]) remove(id string) {
	i, ok := t.at[id]
	if !ok {
		return
	}
	delete(t.at, id)
	last := int32(len(t.rows) - 1) //nolint:gosec // as in put
	if i != last {
		t.rows[i] = t.rows[last]
		for other, at := range t.at { // rare: money that was withdrawn
			if at == last {
				t.at[other] = i
				break
			}
		}
	}
	t.rows = t.rows[:last]
}

// ids returns the ids of all rows.
func (t *table[T]) ids() iter.Seq[string] { return maps.Keys(t.at) }

// all returns all rows with their ids.
func (t *table[T]) all() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for id, i := range t.at {
			if !yield(id, &t.rows[i]) {
				return
			}
		}
	}
}

// ticked marks rows of a table.
type ticked[T any] struct {
	table *table[T]
	is    []bool
}

func newTicked[T any](t *table[T]) ticked[T] { return ticked[T]{t, make([]bool, len(t.rows))} }

// tick marks the row with the id, if there is one.
func (m ticked[T]) tick(id string) {
	if i, ok := m.table.at[id]; ok {
		m.is[i] = true
	}
}

// others returns the rows that are not marked.
func (m ticked[T]) others() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for id, i := range m.table.at {
			if !m.is[i] && !yield(id, &m.table.rows[i]) {
				return
			}
		}
	}
}

// words are texts that many rows have: each is kept once.
type words map[string]string

func (w words) of(text string) string {
	if one, ok := w[text]; ok {
		return one
	}
	w[text] = text
	return text
}
