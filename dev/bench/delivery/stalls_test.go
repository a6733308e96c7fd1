package delivery

import (
	"testing"
	"time"
)

// Slow deliveries near each other are one stall, which names the step that took longest.
func TestStalls(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	of := func(due int, ends ...int) journey {
		j := journey{due: at(due)}
		for i, e := range ends {
			j.ends[i] = at(due + e)
		}
		return j
	}
	got := stalls([]journey{
		of(900, 1, 2, 3, 250), // another one
		of(0, 1, 5, 6, 7), of(10, 200, 205, 206, 207), of(50, 3, 160, 161, 162), of(60, 3, 5, 6, 119),
	}, 120*time.Millisecond)
	if len(got) != 2 {
		t.Fatalf("%d stalls: %+v", len(got), got)
	}
	if s := got[0]; !s.from.Equal(at(10)) || !s.until.Equal(at(50)) || s.count != 2 || s.worst != 207*time.Millisecond || s.by["write"] != 1 || s.by["plan"] != 1 {
		t.Errorf("the first is %+v", s)
	}
	if s := got[1]; s.count != 1 || s.by["call"] != 1 {
		t.Errorf("the second is %+v", s)
	}
	w := watch{late: []lateness{{at(100), 80 * time.Millisecond}, {at(400), 70 * time.Millisecond}}}
	if by := w.during(at(150), at(390)); by != 80*time.Millisecond {
		t.Errorf("late by %v", by)
	}
}
