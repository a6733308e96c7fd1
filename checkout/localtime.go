package checkout

import "time"

// brazzaville is the time of the whole Congo, without summer time. It is written
// out so that a machine without a time zone database tells it right.
var brazzaville = time.FixedZone("WAT", 60*60)

// LocalTime is the moment by the clocks of citizens and counters.
func LocalTime(t time.Time) time.Time { return t.In(brazzaville) }

// SameDay says whether both moments are on one day there.
func SameDay(a, b time.Time) bool {
	ay, am, ad := LocalTime(a).Date()
	by, bm, bd := LocalTime(b).Date()
	return ay == by && am == bm && ad == bd
}
