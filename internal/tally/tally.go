// Package tally counts payments and sums their amounts, to compare a copy with the source
// from which it was made.
package tally

import (
	"cmp"
	"slices"
)

// Key is what a sum is by.
type Key struct {
	Live     bool
	Currency string
	// Status of the session; empty for events of no session.
	Status string
}

// Count is what is summed. A source and its copy leave the same fields at zero.
type Count struct {
	Sessions, Events int64
	// Amount is the sum of the due amounts in minor units.
	Amount int64
}

// Tally is the sums by key. Make it with make or a literal before Add.
type Tally map[Key]Count

// Add adds a count to the sum of a key.
func (t Tally) Add(k Key, c Count) {
	s := t[k]
	t[k] = Count{s.Sessions + c.Sessions, s.Events + c.Events, s.Amount + c.Amount}
}

// Line is a sum in the source and in the copy.
type Line struct {
	Key
	Source, Copy Count
}

// Equal reports whether source and copy agree.
func (l Line) Equal() bool { return l.Source == l.Copy }

// Compare returns a line for each key of either, in the order of their keys.
func Compare(source, duplicate Tally) []Line {
	var lines []Line
	for k, s := range source {
		lines = append(lines, Line{k, s, duplicate[k]})
	}
	for k, c := range duplicate {
		if _, both := source[k]; !both {
			lines = append(lines, Line{Key: k, Copy: c})
		}
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(-compareBool(a.Live, b.Live), cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Status, b.Status))
	})
	return lines
}

// Equal reports whether all lines agree.
func Equal(lines []Line) bool {
	return !slices.ContainsFunc(lines, func(l Line) bool { return !l.Equal() })
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
