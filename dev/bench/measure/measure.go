// Package measure has what load generators and their reports share: percentiles of
// durations, and pauses that end with a context.
package measure

import (
	"context"
	"slices"
	"time"
)

// Percentile returns the value at the share p of durations, for example 0.99. It
// returns 0 for none.
func Percentile(of []time.Duration, p float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// Rounded rounds a duration for a report.
func Rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// Milliseconds converts a duration to milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Pause waits for d. It returns false when ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Until waits until a time. It returns false when ctx ended first.
func Until(ctx context.Context, at time.Time) bool { return Pause(ctx, time.Until(at)) }
