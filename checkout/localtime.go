package checkout

import "time"

// brazzaville is the time zone of the whole Congo, which has no summer time. It is fixed
// here so that it does not depend on a time zone database.
var brazzaville = time.FixedZone("WAT", 60*60)

// LocalTime returns t in the time zone of citizens and counters.
func LocalTime(t time.Time) time.Time { return t.In(brazzaville) }

// SameDay reports whether both times fall on the same local day.
func SameDay(a, b time.Time) bool {
	ay, am, ad := LocalTime(a).Date()
	by, bm, bd := LocalTime(b).Date()
	return ay == by && am == bm && ad == bd
}

// LocalDay returns the local date, such as 2026-11-22. Later dates are greater texts.
func LocalDay(t time.Time) string { return LocalTime(t).Format(time.DateOnly) }
