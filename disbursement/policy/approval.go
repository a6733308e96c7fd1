package policy

import (
	"errors"
	"slices"
)

// Approval is an approval that counts.
type Approval struct {
	// Level counts from 1.
	Level int
	// Person approved, for another one where For is set.
	Person, For string
}

// Reasons why an approval does not count.
var (
	// ErrMaker says that the person, or the person for whom a delegate stands, made the batch.
	ErrMaker = errors.New("who made the batch does not approve it")
	// ErrNotListed says that the level does not have the person.
	ErrNotListed = errors.New("the person is none of the level")
	// ErrTwice says that the person, or the person for whom a delegate stands, has approved before.
	ErrTwice = errors.New("the person has approved before")
	// ErrOtherLevel says that another level is the current one.
	ErrOtherLevel = errors.New("another level is the current one")
)

// Current returns the level that lacks a person, from 1; one more than there are levels if none does.
func Current(levels []Level, given []Approval) int {
	for i, l := range levels {
		n := 0
		for _, a := range given {
			if a.Level == i+1 {
				n++
			}
		}
		if n < l.Needed {
			return i + 1
		}
	}
	return len(levels) + 1
}

// Counts returns the approval of a person at a level, after those given. The error is ErrOtherLevel, ErrNotListed,
// ErrMaker or ErrTwice.
func Counts(levels []Level, given []Approval, maker string, level int, person string) (Approval, error) {
	if level != Current(levels, given) || level > len(levels) {
		return Approval{}, ErrOtherLevel
	}
	persons := levels[level-1].Persons
	i := slices.IndexFunc(persons, func(a Approver) bool { return a.ID == person })
	if i < 0 && person == maker {
		return Approval{}, ErrMaker
	}
	if i < 0 {
		return Approval{}, ErrNotListed
	}
	a := persons[i]
	if a.ID == maker || a.For == maker {
		return Approval{}, ErrMaker
	}
	for _, g := range given {
		if acted(g, a.ID) || a.For != "" && acted(g, a.For) {
			return Approval{}, ErrTwice
		}
	}
	return Approval{Level: level, Person: a.ID, For: a.For}, nil
}

// acted reports whether a person gave the approval, or it was given for the person.
func acted(a Approval, person string) bool { return a.Person == person || a.For == person }
