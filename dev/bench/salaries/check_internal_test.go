package salaries

import (
	"strings"
	"testing"
	"time"
)

// Each bar is missed alone, and a small file has no bar of time.
func TestCheckNamesWhatIsMissed(t *testing.T) {
	t.Parallel()
	of := func(change func(*figures)) figures {
		out := figures{sealed: maxSealed, workbook: maxWorkbook, mobile: minMobile, mb: maxMB, ratio: maxRatio, ready: maxReady, approval: maxApproval}
		change(&out)
		return out
	}
	if err := check(barLines, of(func(*figures) {})); err != nil {
		t.Error(err)
	}
	if err := check(barLines-1, of(func(f *figures) { f.sealed, f.workbook = 2*maxSealed, 2*maxWorkbook })); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*figures){
		"a CSV file":    func(f *figures) { f.sealed += time.Second },
		"a workbook":    func(f *figures) { f.workbook += time.Second },
		"the operators": func(f *figures) { f.mobile-- },
		"a process":     func(f *figures) { f.mb++ },
		"creations":     func(f *figures) { f.ratio += 0.1 },
		"the processor": func(f *figures) { f.ready += time.Second },
		"an approval":   func(f *figures) { f.approval += time.Millisecond },
	} {
		err := check(barLines, of(change))
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
