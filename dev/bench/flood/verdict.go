package flood

import (
	"fmt"
	"time"

	"quittance/checkout"
)

// appMinute is a UTC minute of an application, numbered as the keys are.
type appMinute struct {
	app    int
	minute int64 // since 1970
}

// judge counts what was accepted by the minute of the command's stamp, which is the
// one in the session's id. A flooding application must have got exactly its quota in
// each whole minute of the flood. No application may have got more in any minute, or
// have been refused in a minute in which some of its quota was left.
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
		if a.remaining < 0 { // the answer was lost, and its replay does not tell
			continue
		}
		if left[in] == nil {
			left[in] = map[int]bool{}
		}
		if left[in][a.remaining] || a.remaining >= granted {
			fault("application %d was told twice, or wrongly, that %d creations were left in %s", a.app, a.remaining, in.clock())
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
	told := map[appMinute]bool{}
	for _, r := range l.refused {
		in := appMinute{r.app, r.sent.Unix() / 60}
		if in.minute != r.answered.Unix()/60 || told[in] {
			continue // it may have been stamped in either
		}
		if got[in] < granted {
			told[in] = true
			fault("application %d was refused in %s, in which it got %d creations of %d", r.app, in.clock(), got[in], granted)
		}
	}
	return faults
}

func (m appMinute) clock() string { return time.Unix(m.minute*60, 0).UTC().Format("15:04") }

// minuteOf is the UTC minute of a session id, which sorts by its time: that of
// the command's stamp. The stamp is not later than the answer.
func minuteOf(session string, answered time.Time) int64 {
	m := answered.UTC().Truncate(time.Minute)
	for session < checkout.NewSessionID(m, 0, [16]byte{}) {
		m = m.Add(-time.Minute)
	}
	return m.Unix() / 60
}
