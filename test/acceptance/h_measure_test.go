package acceptance_test

import (
	"context"
	"slices"
	"time"
)

// percentile of durations; 0 of none.
func percentile(of []time.Duration, p float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// until lets the time come and says whether it did before ctx ended.
func until(ctx context.Context, at time.Time) bool { return pause(ctx, time.Until(at)) }
