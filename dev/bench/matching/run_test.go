package matching

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/test/servers"
)

// The role matches every line that has a reference, and the report has the numbers. What they are
// is not judged: other tests use the machine.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := Run(t.Context(), Config{Program: servers.QuittanceDev(t), Lines: 1000, Daily: 200, Days: 8, Reach: 5, Turns: 1, Log: servers.Logger(t)}, &out)
	line := func(lines, days int, first bool) string {
		return fmt.Sprintf(`match lines=%d history_days=%d first=%t seconds=\d+\.\d cpu_seconds=\d+\.\d peak_mb=[1-9]\d+ clickhouse_mb=[1-9]\d+ raw_seconds=\d+\.\d ratio=\S+\n`, lines, days, first)
	}
	want := "^" + line(1000, 3, true)
	for _, first := range []bool{true, false} {
		want += line(200, 3, first) + line(200, 4, first) + line(200, 8, first) + fmt.Sprintf(`match first=%t growth=\d+\.\d\d doubled=\d+\.\d\d history_rows=3200\n`, first)
	}
	want += "$"
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("it prints\n%s%v", out.String(), err)
	}
}

func TestBars(t *testing.T) {
	t.Parallel()
	if err := check(result{took: maxRun, mb: maxMB}, growths{maxGrowth, maxDoubled}); err != nil {
		t.Error(err)
	}
	if err := check(result{took: maxRun + time.Second, mb: maxMB + 1}, growths{maxGrowth + 0.1, maxDoubled + 0.1}); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("four bars are missed: %v", err)
	}
}
