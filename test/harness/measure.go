package harness

import (
	"context"
	"slices"
	"time"
)

// Percentile of durations; 0 of none.
func Percentile(of []time.Duration, p float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// Rounded is a duration as a report shows it.
func Rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// Milliseconds is a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Until lets the time come and says whether it did before ctx ended.
func Until(ctx context.Context, at time.Time) bool { return Pause(ctx, time.Until(at)) }
