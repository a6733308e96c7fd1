package flood

import (
	"fmt"
	"time"

	"quittance/checkout"
)

// appMinute is a UTC minute of an application.
type appMinute struct {
	app    int   // index of its key
	minute int64 // since 1970
}

// judge counts the accepted creations by the minute of their command, which is in the id
// of the session. A flooding application must get exactly its quota in each whole minute
// of the flood. No application may get more in any minute, and none may be refused in a
// minute in which some of its quota is left.
func (l *load) judge(flood, end time.Time) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	got := map[appMinute]int{}
	sessions := map[string]bool{}
	left := map[appMinute]map[int]bool{}
	for _, a := range l.accepted {
		if sessions[a.session] {
			fault("session %s is the answer to two creations", a.session)
		}
		sessions[a.session] = true
		in := appMinute{a.app, minuteOf(a.session, a.answered)}
		got[in]++
		if a.remaining < 0 { // the answer was lost, and its replay has no rest
			continue
		}
		if left[in] == nil {
			left[in] = map[int]bool{}
		}
		if left[in][a.remaining] || a.remaining >= granted {
			fault("two answers to application %d, or a wrong one, say that %d creations are left in %s", a.app, a.remaining, in.clock())
		}
		left[in][a.remaining] = true
	}
	for in, n := range got {
		if n > granted {
			fault("application %d got %d creations in %s, its quota is %d", in.app, n, in.clock(), granted)
		}
	}
	for app := range flooding {
		for m := flood; m.Before(end); m = m.Add(time.Minute) {
			if in := (appMinute{app, m.Unix() / 60}); got[in] < granted {
				fault("application %d got %d creations in %s, its quota is %d", app, got[in], in.clock(), granted)
			}
		}
	}
	reported := map[appMinute]bool{}
	for _, r := range l.refused {
		in := appMinute{r.app, r.sent.Unix() / 60}
		if in.minute != r.answered.Unix()/60 || reported[in] {
			continue // the command may be of either minute
		}
		if got[in] < granted {
			reported[in] = true
			fault("application %d was refused in %s, in which it got %d creations of %d", r.app, in.clock(), got[in], granted)
		}
	}
	return faults
}

func (m appMinute) clock() string { return time.Unix(m.minute*60, 0).UTC().Format("15:04") }

// minuteOf returns the UTC minute of a session id. Ids sort by the time of the command,
// which is not later than the answer.
func minuteOf(session string, answered time.Time) int64 {
	m := answered.UTC().Truncate(time.Minute)
	for session < checkout.NewSessionID(m, 0, [16]byte{}) {
		m = m.Add(-time.Minute)
	}
	return m.Unix() / 60
}
