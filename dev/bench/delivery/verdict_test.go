package delivery

import (
	"testing"
	"time"
)

// A disturbance between the two requests explains a double, but only when the outcome of
// the first request was not on record.
func TestDoublesAreExplained(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	kill := &disturbance{from: at(10), until: at(10.1), marks: []mark{{at(10), map[int32]int64{0: 100, 1: 50}}}}
	move := &disturbance{from: at(10), until: at(30), marks: []mark{
		{at(10), map[int32]int64{0: 100}}, {at(15), map[int32]int64{0: 200}}, {at(19), map[int32]int64{0: 300}},
	}}
	for _, c := range []struct {
		name          string
		by            *disturbance
		first, second float64
		recorded      *place
		want          bool
	}{
		{"killed before the outcome was on record", kill, 9.9, 20, &place{0, 100}, true},
		{"the outcome never came", kill, 9.9, 20, nil, true},
		{"killed after it was on record", kill, 9.9, 20, &place{0, 99}, false},
		{"… on the other partition", kill, 9.9, 20, &place{1, 50}, true},
		{"both before the kill", kill, 9.8, 9.9, nil, false},
		{"both after the kill", kill, 11, 12, &place{0, 120}, false},
		{"partitions moved before it was on record", move, 11, 16, &place{0, 150}, true},
		{"partitions moved long after it was on record", move, 11, 18, &place{0, 150}, false},
		{"the disturbance was over", move, 31, 40, &place{0, 400}, false},
	} {
		if got := c.by.explains(at(c.first), at(c.second), c.recorded); got != c.want {
			t.Errorf("%s: explained: %t, want %t", c.name, got, c.want)
		}
	}
}
