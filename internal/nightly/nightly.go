// Package nightly runs a job of the service each night.
package nightly

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"quittance/internal/kafka/consume"
	"quittance/money/localtime"
)

const (
	// hour is that of the local day from which the job of the night runs.
	hour = 2
	// lookEvery is the time between two looks at the clock, and retryAfter the time until a job that failed is
	// tried again.
	lookEvery  = time.Minute
	retryAfter = time.Hour
)

// Job is what runs each night. All fields but Every are required.
type Job struct {
	// Name of the job, for the log.
	Name string
	Do   func(ctx context.Context) error
	// Every is the time between two looks at the clock; a minute when zero.
	Every time.Duration
	// Now is the service's clock.
	Now func() time.Time
	Log *slog.Logger
}

// Run does the job each night from 2:00 in Brazzaville until ctx ends, then returns nil. A job that failed is tried
// again after an hour. A process that begins after the hour begins with the next night.
func (j Job) Run(ctx context.Context) error {
	last := j.night()
	for consume.Sleep(ctx, cmp.Or(j.Every, lookEvery)) {
		night := j.night()
		if night == last {
			continue
		}
		if err := j.Do(ctx); err != nil && ctx.Err() == nil {
			j.Log.LogAttrs(ctx, slog.LevelError, "a job of the night failed; it is tried again in an hour", slog.String("job", j.Name), slog.Any("error", err))
			consume.Sleep(ctx, retryAfter)
			continue
		}
		last = night
	}
	return nil
}

func (j Job) night() string { return localtime.Day(j.Now().Add(-hour * time.Hour)) }
