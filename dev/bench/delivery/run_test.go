package delivery

import (
	"strings"
	"testing"
	"time"
)

func TestChosenScenarios(t *testing.T) {
	t.Parallel()
	if all := (Config{}).chosen(); len(all) != len(Scenarios) {
		t.Errorf("without names %d scenarios are chosen", len(all))
	}
	names, err := Parse("killed,single")
	if err != nil {
		t.Fatal(err)
	}
	// The order of Scenarios, since those that disturb come last.
	if two := (Config{Scenarios: names}).chosen(); len(two) != 2 || two[0].Name != "single" || two[1].Name != "killed" {
		t.Errorf("got %v", two)
	}
	if _, err := Parse("single,flood"); err == nil || !strings.Contains(err.Error(), "rebalance") {
		t.Errorf("an unknown name is answered with: %v", err)
	}
}

// The last line has what was measured and nothing else, and the median of the runs
// counts.
func TestReportEndsWithTheFigures(t *testing.T) {
	t.Parallel()
	var said []string
	r := NewReport(Full, 3, func(line string) { said = append(said, line) })
	for _, rate := range []float64{900, 2600, 2400} {
		r.figure(figureFanout, rate)
	}
	r.doubled = 2
	if got, want := r.figuresLine(), "fanout_per_s=2400 lost=0 doubled=2"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
	r.line("a line of %d", 1)
	if got := r.String(); got != "a line of 1\n" || len(said) != 1 {
		t.Errorf("the report is %q, and %q was said", got, said)
	}
}

// Healthy endpoints may take twice as long beside faulty ones. The median of the runs is
// judged, after the last run.
func TestUnharmed(t *testing.T) {
	t.Parallel()
	r := NewReport(Full, 3, func(string) {})
	var faults []string
	for run, with := range []time.Duration{10, 300, 300} {
		tr := &trial{Report: r, run: run + 1}
		tr.unharmed("a fault", 100, with)
		if faults = tr.faults; run < 2 && len(faults) > 0 {
			t.Errorf("run %d is judged alone: %v", run+1, faults)
		}
	}
	if len(faults) != 1 || !strings.Contains(faults[0], "3.00 times") {
		t.Errorf("a p99 of three times what it was is judged with %q", faults)
	}
}
