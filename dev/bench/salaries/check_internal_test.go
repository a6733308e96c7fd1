package salaries

import (
	"strings"
	"testing"
	"time"
)

// Each bar is missed alone, and a small file has no bar of time.
func TestCheckNamesWhatIsMissed(t *testing.T) {
	t.Parallel()
	if err := check(barLines, maxSealed, maxWorkbook, minMobile, maxMB, maxRatio); err != nil {
		t.Error(err)
	}
	if err := check(barLines-1, 2*maxSealed, 2*maxWorkbook, minMobile, maxMB, maxRatio); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"a CSV file":    check(barLines, maxSealed+time.Second, maxWorkbook, minMobile, maxMB, maxRatio),
		"a workbook":    check(barLines, maxSealed, maxWorkbook+time.Second, minMobile, maxMB, maxRatio),
		"the operators": check(barLines, maxSealed, maxWorkbook, minMobile-1, maxMB, maxRatio),
		"a process":     check(barLines, maxSealed, maxWorkbook, minMobile, maxMB+1, maxRatio),
		"creations":     check(barLines, maxSealed, maxWorkbook, minMobile, maxMB, maxRatio+0.1),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), ";") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A run that did not measure something says so, in place of a number that nobody measured.
func TestMeasuredNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	of := func(n int, each time.Duration) []time.Duration {
		out := make([]time.Duration, n)
		for i := range out {
			out[i] = each
		}
		return out
	}
	enough := int(creationRate * quiet.Seconds())
	if err := measured(time.Second, of(enough, maxAlone), of(creationRate, time.Second)); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"the restart":     measured(0, of(enough, maxAlone), of(creationRate, time.Second)),
		"0 creations":     measured(time.Second, nil, of(creationRate, time.Second)),
		"creations alone": measured(time.Second, of(enough, maxAlone+time.Millisecond), of(creationRate, time.Second)),
		"39 creations":    measured(time.Second, of(enough, maxAlone), of(creationRate-1, time.Second)),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), ";") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
