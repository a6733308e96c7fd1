package reports

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/dev/bench/measure"
	"quittance/test/servers"
)

// The engine makes the rows, every report finds some, and the last line has the numbers.
// What they are is not judged: other tests use the machine.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := Run(t.Context(), Config{Rows: minRows, Log: servers.Logger(t)}, &out)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := lines[len(lines)-1]
	if !regexp.MustCompile(`^rows=100000 day_ms=\d+ month_ms=\d+ all_ms=\d+ lookup_ms=\d+ rss_mb=[1-9]\d+ growth=\d+\.\d\d$`).MatchString(last) {
		t.Errorf("it ends with %q, %v", last, err)
	}
	if err := Run(t.Context(), Config{Rows: 10, Log: servers.Logger(t)}, &out); err == nil || !strings.Contains(err.Error(), "--rows") {
		t.Errorf("ten rows: %v", err)
	}
}

func TestBars(t *testing.T) {
	t.Parallel()
	good := result{rows: 1, day: maxDay, month: maxMonth, all: maxAll, lookup: maxLookup, rss: maxRSS, growth: maxGrowth}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	bad := result{day: maxDay + time.Millisecond, month: maxMonth + 1, all: maxAll + 1, lookup: maxLookup + 1, rss: maxRSS + 1, growth: maxGrowth + 0.1}
	if err := bad.check(); err == nil || strings.Count(err.Error(), "\n") != 5 {
		t.Errorf("six bars are missed: %v", err)
	}
	if got := measure.Milliseconds(good.day); got != 200 {
		t.Errorf("a day may take %v ms", got)
	}
}
