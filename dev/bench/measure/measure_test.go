package measure_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"quittance/dev/bench/measure"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	var of []time.Duration
	for n := range 100 {
		of = append(of, time.Duration(100-n))
	}
	for p, want := range map[float64]time.Duration{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := measure.Percentile(of, p); got != want {
			t.Errorf("percentile %v of 100…1 is %d, want %d", p, got, want)
		}
	}
	if of[0] != 100 {
		t.Error("the durations were sorted in place")
	}
	if got := measure.Percentile(nil, 0.5); got != 0 {
		t.Errorf("percentile of nothing is %v", got)
	}
}

func TestPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if !measure.Pause(ctx, time.Millisecond) || !measure.Until(ctx, time.Now()) {
		t.Error("a pause was cut short")
	}
	cancel()
	if measure.Pause(ctx, time.Hour) {
		t.Error("a pause of an hour ended in time")
	}
}

func TestChildren(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(measure.Children(os.Getpid()), cmd.Process.Pid) {
		t.Error("a running child is missing")
	}
	if _, ok := measure.CPU(cmd.Process.Pid); !ok {
		t.Error("a running process has no CPU time")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, ok := measure.CPU(cmd.Process.Pid); ok {
		t.Error("a process that has ended has CPU time")
	}
}

func TestPeakMB(t *testing.T) {
	t.Parallel()
	if mb, err := measure.PeakMB(os.Getpid()); err != nil || mb < 1 || mb > 10_000 {
		t.Errorf("this process has had %d MB, %v", mb, err)
	}
	if mb, err := measure.PeakMB(1 << 30); err == nil {
		t.Errorf("no process has had %d MB", mb)
	}
}
