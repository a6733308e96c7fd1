package delivery_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/test/harness"
)

var faultGroups = []group{{name: "faults", subscribers: 8, endpoints: 1, inFlight: 16}}

// killed kills the worker again and again in a run of events, each time when it
// is at work.
func (r *deliveryReport) killed(t *testing.T, a *arena, run int) {
	events, rate, kills := 600, 60.0, 1
	if r.full {
		events, rate, kills = 20_000, 150, 10
	}
	bulletins := a.steadily(rate, time.Now().Add(200*time.Millisecond), time.Duration(float64(events)/rate*float64(time.Second)), a.groups["faults"]...)
	var at []string
	a.load(t, bulletins, func() {
		for n := range kills {
			a.flows(t, time.Duration(100+rand.IntN(1500))*time.Millisecond)
			if missing(bulletins) == 0 {
				t.Errorf("all was delivered before kill %d", n+1)
			}
			a.suddenly(t, "kill "+strconv.Itoa(n+1), func() { a.worker.Kill() })
			at = append(at, time.Now().UTC().Format(clockFormat))
			if err := a.worker.Start(); err != nil {
				t.Fatal(err)
			}
		}
	})
	a.settle(t.Context(), t, bulletins, time.Minute)
	r.line(t, "killed run=%d: SIGKILL of the worker %d times in %d events at %.0f/s, at %s", run, kills, len(bulletins), rate, strings.Join(at, " "))
	r.judge(t, a, "killed", bulletins)
}

// flows waits until deliveries arrive, and then for a while.
func (a *arena) flows(t testing.TB, then time.Duration) {
	t.Helper()
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for before := a.firsts.Load(); a.firsts.Load() == before; {
		if !measure.Pause(ctx, 5*time.Millisecond) {
			t.Fatalf("nothing has been delivered for %v", patience)
		}
	}
	measure.Pause(ctx, then)
}

// rebalance has a second worker join and leave, as at a deployment.
func (r *deliveryReport) rebalance(t *testing.T, a *arena, run int) {
	rate, joins, stay := 100.0, 1, 2*time.Second
	if r.full {
		rate, joins, stay = 400, 3, 5*time.Second
	}
	second := a.stack.Program.Process("webhook-second", program.Local(harness.Ports(t, 1)[0]), "sink", "webhook", "--instance", "1")
	t.Cleanup(second.Quit)
	r.disturb(t, a, "rebalance", run, rate, func() {
		for range joins {
			if err := second.Start(); err != nil {
				t.Fatal(err)
			}
			if err := program.AwaitReady(t.Context(), second); err != nil {
				t.Fatal(err)
			}
			a.flows(t, stay)
			second.Signal(syscall.SIGTERM)
			a.flows(t, stay)
		}
	})
	if n := second.Unexpected.Load(); n > 0 {
		t.Errorf("the second worker has ended by itself %d times; it says:\n%s", n, program.Tail(second.LogFile(), 4<<10))
	}
}

// postgres stops the database for a while.
func (r *deliveryReport) postgres(t *testing.T, a *arena, run int) {
	rate, away := 100.0, 10*time.Second
	if r.full {
		rate, away = 200, time.Minute
	}
	r.disturb(t, a, "Postgres away for "+away.String(), run, rate, func() {
		if err := a.stack.Server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		measure.Pause(t.Context(), away)
		if err := a.stack.StartPostgres(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.flows(t, 2*time.Second)
	})
}

// broker stops the broker in order and starts it again.
func (r *deliveryReport) broker(t *testing.T, a *arena, run int) {
	rate := 100.0
	if r.full {
		rate = 200
	}
	r.disturb(t, a, "broker restarted", run, rate, func() {
		if err := a.stack.Kafka.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.stack.Kafka.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.flows(t, 2*time.Second)
	})
}

// disturb runs a load before, during and after what do does.
func (r *deliveryReport) disturb(t *testing.T, a *arena, what string, run int, rate float64, do func()) {
	t.Helper()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	// Nobody knows how long it takes: as many as come until it is over.
	const most = 4 * time.Minute
	bulletins := a.steadily(rate, time.Now(), most, a.groups["faults"]...)
	written := make(chan int, 1)
	go func() {
		n, err := a.writeUntil(ctx, bulletins)
		if err != nil {
			t.Error(err)
		}
		written <- n
	}()
	a.flows(t, time.Second)
	begun := time.Now()
	a.meanwhile(t, what, do)
	took := time.Since(begun)
	enough()
	bulletins = bulletins[:<-written]
	a.settle(t.Context(), t, bulletins, time.Minute)
	r.line(t, "faults run=%d: %s at %.0f/s, %v in all", run, what, rate, measure.Rounded(took))
	r.judge(t, a, what, bulletins)
}
