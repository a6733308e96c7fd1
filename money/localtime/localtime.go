// Package localtime has the time zone in which citizens, counters and agencies count days.
package localtime

import "time"

// brazzaville is the time zone of the whole Congo, which has no summer time. It is fixed
// here so that it does not depend on a time zone database.
var brazzaville = time.FixedZone("WAT", 60*60)

// In returns t in the time zone of citizens and counters.
func In(t time.Time) time.Time { return t.In(brazzaville) }

// SameDay reports whether both times fall on the same local day.
func SameDay(a, b time.Time) bool {
	ay, am, ad := In(a).Date()
	by, bm, bd := In(b).Date()
	return ay == by && am == bm && ad == bd
}

// Day returns the local date, such as 2026-11-22. Later dates are greater texts.
func Day(t time.Time) string { return In(t).Format(time.DateOnly) }

// Begin returns when a local day begins, from its date as Day writes it. The error is that of a text that is no date.
func Begin(day string) (time.Time, error) {
	return time.ParseInLocation(time.DateOnly, day, brazzaville)
}
