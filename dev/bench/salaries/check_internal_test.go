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
