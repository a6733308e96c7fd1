package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"time"

	"quittance/dev/bench/measure"
)

var faultGroups = []group{{name: "faults", subscribers: 8, endpoints: 1, inFlight: 16}}

// killed kills the worker again and again during a load, each time at work.
func (t *trial) killed(ctx context.Context) error {
	a := t.arena
	events, rate, kills := 600, 60.0, 1
	if t.size == Full {
		events, rate, kills = 20_000, 150, 10
	}
	all := a.steadily(rate, time.Now().Add(200*time.Millisecond), time.Duration(float64(events)/rate*float64(time.Second)), a.groups["faults"]...)
	var at []string
	var pauses []time.Duration
	if err := a.load(ctx, all, func(ctx context.Context) error {
		for n := range kills {
			if err := a.flows(ctx, time.Duration(100+rand.IntN(1500))*time.Millisecond); err != nil { //nolint:gosec // a moment, no secret
				return err
			}
			if missing(all) == 0 {
				t.fault("all was delivered before kill %d", n+1)
			}
			if err := a.suddenly(ctx, "kill "+strconv.Itoa(n+1), func() { a.worker.Kill() }); err != nil {
				return err
			}
			dead := time.Now().Add(-afterKill)
			at = append(at, dead.UTC().Format(clockFormat))
			if err := a.worker.Start(); err != nil {
				return err
			}
			if missing(all) == 0 {
				break // nothing is left that could show the pause
			}
			if err := a.flows(ctx, 0); err != nil {
				return err
			}
			pauses = append(pauses, time.Since(dead))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := t.settle(ctx, all, time.Minute); err != nil {
		return err
	}
	t.line("killed run=%d: SIGKILL of the worker %d times in %d events at %.0f/s, at %s; the next delivery after %.1f s, at most %.1f s", t.run, kills, len(all), rate,
		strings.Join(at, " "), measure.Percentile(pauses, 0.5).Seconds(), measure.Percentile(pauses, 1).Seconds())
	if t.size == Full {
		t.figure(figurePause, measure.Percentile(pauses, 0.5).Seconds())
		if got := t.median(figurePause); t.last() && got > pauseLimit.Seconds() {
			t.fault("%.1f s from a SIGKILL to the next delivery, want %v", got, pauseLimit)
		}
	}
	return t.judge(ctx, "killed", all)
}

// flows waits until deliveries arrive, and then for a while.
func (a *Arena) flows(ctx context.Context, then time.Duration) error {
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for before := a.firsts.Load(); a.firsts.Load() == before; {
		if !measure.Pause(ctx, 5*time.Millisecond) {
			return fmt.Errorf("waiting %v for a delivery: %w", patience, ctx.Err())
		}
	}
	measure.Pause(ctx, then)
	return nil
}

// rebalance makes a second worker join and leave, as at a deployment.
func (t *trial) rebalance(ctx context.Context) error {
	a := t.arena
	rate, joins, stay := 100.0, 1, 2*time.Second
	if t.size == Full {
		rate, joins, stay = 400, 3, 5*time.Second
	}
	second, err := a.sink("webhook", 1)
	if err != nil {
		return err
	}
	defer second.Quit()
	err = t.disturb(ctx, "rebalance", rate, func(ctx context.Context) error {
		for range joins {
			if err := a.in.Start(ctx, second); err != nil {
				return err
			}
			if err := a.flows(ctx, stay); err != nil {
				return err
			}
			second.Signal(syscall.SIGTERM)
			if err := a.flows(ctx, stay); err != nil {
				return err
			}
		}
		return nil
	})
	t.running("rebalance", second)
	return err
}

// postgres stops the database for a while.
func (t *trial) postgres(ctx context.Context) error {
	a, rate, away := t.arena, 100.0, 10*time.Second
	if t.size == Full {
		rate, away = 200, time.Minute
	}
	return t.disturb(ctx, "Postgres away for "+away.String(), rate, func(ctx context.Context) error {
		if err := a.in.StopPostgres(ctx); err != nil {
			return err
		}
		measure.Pause(ctx, away)
		if err := a.in.StartPostgres(ctx); err != nil {
			return err
		}
		return a.flows(ctx, 2*time.Second)
	})
}

// broker stops the broker in order and starts it again.
func (t *trial) broker(ctx context.Context) error {
	a, rate := t.arena, 100.0
	if t.size == Full {
		rate = 200
	}
	return t.disturb(ctx, "broker restarted", rate, func(ctx context.Context) error {
		if err := a.in.Kafka.Stop(ctx); err != nil {
			return err
		}
		if err := a.in.Kafka.Restart(ctx); err != nil {
			return err
		}
		return a.flows(ctx, 2*time.Second)
	})
}

// disturb runs a load before, during and after do.
func (t *trial) disturb(ctx context.Context, what string, rate float64, do func(context.Context) error) error {
	a := t.arena
	// It is not known how long do takes: the load goes on until do is over.
	const most = 4 * time.Minute
	all := a.steadily(rate, time.Now(), most, a.groups["faults"]...)
	writing, enough := context.WithCancel(ctx)
	defer enough()
	var n int
	var writeErr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		n, writeErr = a.writeUntil(writing, all)
	}()
	err := a.flows(ctx, time.Second)
	begun := time.Now()
	if err == nil {
		err = a.meanwhile(ctx, what, do)
	}
	took := time.Since(begun)
	enough()
	<-written
	if err := errors.Join(err, writeErr); err != nil {
		return err
	}
	if err := t.settle(ctx, all[:n], time.Minute); err != nil {
		return err
	}
	t.line("faults run=%d: %s at %.0f/s, %v in all", t.run, what, rate, measure.Rounded(took))
	return t.judge(ctx, what, all[:n])
}
