package operations_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/schemas"
	"quittance/test/harness"
	"quittance/test/servers"
)

// The flood of the quota test, in creations a minute and application.
const (
	quotaGranted   = 30 // what the contract grants
	quotaInstances = 4  // of ingress
	quotaFlooding  = 10 // applications that offer far more than their quota
	quotaOffered   = 300
	quotaQuiet     = 8 // applications that stay below it, one on each partition
	quotaBelow     = 20
)

// However many ingress instances take part, an application gets its quota of
// creations in each UTC minute, neither more nor less; a replay takes nothing of
// it, and whoever stays below it is never refused.
//
// QUITTANCE_QUOTA=full takes a minute without the flood and two with it, and
// prints, never judges, what the flood costs those who stay below;
// QUITTANCE_QUOTA_REPORT names a file that gets the last line as well.
func TestQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("floods an installation for a minute")
	}
	t.Parallel()
	full := os.Getenv("QUITTANCE_QUOTA") == "full"
	// Before the first flooded minute, so that it is met in full flight, and after
	// the last: the next one's quota is its own.
	lead, tail, quiet, flooded := 2400*time.Millisecond, 1600*time.Millisecond, 0, 1
	if full {
		lead, quiet, flooded = 0, 1, 2
	}
	s := harness.NewStack(t, servers.Dir(t), harness.Shape{Registry: quotaApplications, Ingresses: quotaInstances, Processors: 2})
	t.Cleanup(func() {
		if t.Failed() {
			s.Outputs(t)
		}
	})

	first := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
	if time.Until(first) < lead+time.Second {
		first = first.Add(time.Minute)
	}
	flood := first.Add(time.Duration(quiet) * time.Minute)
	end := flood.Add(time.Duration(flooded) * time.Minute)
	t.Logf("ready; the first whole minute is %s", first.Format(time.TimeOnly))

	l := newQuotaLoad(s)
	l.run(t.Context(), flood.Add(-lead), end.Add(tail))

	for _, fault := range l.faults {
		t.Error(fault)
	}
	v := judgeQuota(l, flood, end)
	for _, fault := range v.faults {
		t.Error(fault)
	}
	t.Logf("%d creations accepted, %d refused; %d replays; %d requests sent again after no answer",
		len(l.accepted), len(l.refused), l.replays, l.retries)
	// A run in which little happened would prove little.
	if wanted := flooded * quotaFlooding * (quotaOffered - quotaGranted) * 9 / 10; len(l.refused) < wanted {
		t.Errorf("%d creations were refused, want %d at least", len(l.refused), wanted)
	}
	if wanted := flooded * quotaFlooding; l.replays < wanted {
		t.Errorf("%d creations were replayed, want %d at least", l.replays, wanted)
	}
	line := fmt.Sprintf("minutes=%d exact=%s", flooded, map[bool]string{true: "yes", false: "no"}[len(v.faults) == 0])
	if full {
		before, during := l.p99(first, flood), l.p99(flood, end)
		line += fmt.Sprintf(" p99_quiet_ms=%.1f p99_flood_ms=%.1f ratio=%.2f", harness.Milliseconds(before), harness.Milliseconds(during), float64(during)/float64(before))
		l.distributions(t, first, flood, end)
	}
	t.Log(line)
	if file := os.Getenv("QUITTANCE_QUOTA_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(line+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// quotaApplications makes the registry: applications with the default quota, each of
// an agency of its own, spread over the partitions. The flooding ones come first.
func quotaApplications(s *harness.Stack) string {
	var b strings.Builder
	b.WriteString("agencies:\n")
	for n := range quotaFlooding + quotaQuiet {
		partition := n
		if n >= quotaFlooding {
			partition = n - quotaFlooding
		}
		app := harness.Application{
			ID: uuid.NewString(), Tenant: agencyOn(int32(partition % schemas.DefaultPartitions)), Slug: fmt.Sprintf("agency%d", n), Key: fmt.Sprintf("sk_test_QuotaKey%020d", n),
		}
		s.Apps = append(s.Apps, app)
		fmt.Fprintf(&b, "  - {id: %s, slug: %s, name: Agency %d, applications: [{id: %s, name: Application %d, offers: [momo], keys: [{secret: %s}]}]}\n",
			app.Tenant, app.Slug, n, app.ID, n, app.Key)
	}
	return b.String()
}

// agencyOn is a new agency id whose commands go to the partition.
func agencyOn(partition int32) string {
	for {
		if id := uuid.NewString(); schemas.PartitionOf(id, schemas.DefaultPartitions) == partition {
			return id
		}
	}
}

// quotaVerdict is what was wrong with the count.
type quotaVerdict struct{ faults []string }

func (v *quotaVerdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// appMinute is a UTC minute of an application, numbered as in s.apps.
type appMinute struct {
	app    int
	minute int64 // since 1970
}

// judgeQuota counts what was accepted by the minute of the command's stamp, which
// is the one in the session's id. Flooding applications must have got exactly
// their quota in each whole minute of the flood; nobody more in any; and nobody
// may have been refused in a minute in which some of it was left.
func judgeQuota(l *quotaLoad, flood, end time.Time) quotaVerdict {
	var v quotaVerdict
	got := map[appMinute]int{}
	sessions := map[string]bool{}
	left := map[appMinute]map[int]bool{}
	for _, a := range l.accepted {
		if sessions[a.session] {
			v.fault("session %s is the answer to two creations", a.session)
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
		if left[in][a.remaining] || a.remaining >= quotaGranted {
			v.fault("application %d was told twice, or wrongly, that %d creations were left in %s", a.app, a.remaining, in.clock())
		}
		left[in][a.remaining] = true
	}
	for in, n := range got {
		if n > quotaGranted {
			v.fault("application %d got %d creations in %s, its quota is %d", in.app, n, in.clock(), quotaGranted)
		}
	}
	for app := range quotaFlooding {
		for m := flood; m.Before(end); m = m.Add(time.Minute) {
			if in := (appMinute{app, m.Unix() / 60}); got[in] < quotaGranted {
				v.fault("application %d got %d creations in %s, its quota is %d", app, got[in], in.clock(), quotaGranted)
			}
		}
	}
	told := map[appMinute]bool{}
	for _, r := range l.refused {
		in := appMinute{r.app, r.sent.Unix() / 60}
		if in.minute != r.answered.Unix()/60 || told[in] {
			continue // it may have been stamped in either
		}
		if got[in] < quotaGranted {
			told[in] = true
			v.fault("application %d was refused in %s, in which it got %d creations of %d", r.app, in.clock(), got[in], quotaGranted)
		}
	}
	return v
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

// p99 of the quiet applications' creations that were sent from one time to
// another.
func (l *quotaLoad) p99(from, to time.Time) time.Duration {
	return harness.Percentile(l.quietTook(from, to), 0.99)
}

func (l *quotaLoad) quietTook(from, to time.Time) []time.Duration {
	var took []time.Duration
	for _, a := range l.accepted {
		if a.app >= quotaFlooding && !a.sent.Before(from) && a.sent.Before(to) {
			took = append(took, a.answered.Sub(a.sent))
		}
	}
	return took
}

// distributions shows what the p99s are of.
func (l *quotaLoad) distributions(t testing.TB, first, flood, end time.Time) {
	t.Helper()
	for _, phase := range []struct {
		name     string
		from, to time.Time
	}{{"without the flood", first, flood}, {"with it", flood, end}} {
		took := l.quietTook(phase.from, phase.to)
		t.Logf("%s: %d creations below the quota, p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, most %.1f ms", phase.name, len(took),
			harness.Milliseconds(harness.Percentile(took, 0.5)), harness.Milliseconds(harness.Percentile(took, 0.9)), harness.Milliseconds(harness.Percentile(took, 0.99)), harness.Milliseconds(harness.Percentile(took, 1)))
	}
}
