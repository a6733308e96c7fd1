package delivery

import (
	"testing"
	"time"

	"quittance/internal/call"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t.Run("half of ten", func(t *testing.T) {
		t.Parallel()
		var b breaker
		for range 5 {
			b.succeeded(now)
		}
		for range 4 {
			b.failed(now, false)
		}
		if b.state(now) != breakerClosed {
			t.Fatal("open at nine calls")
		}
		b.failed(now, false)
		if b.state(now) != breakerOpen || b.reopenAt.Sub(now) != breakerFirst {
			t.Fatalf("not open for %v at five of ten", breakerFirst)
		}
	})
	t.Run("window", func(t *testing.T) {
		t.Parallel()
		var b breaker
		for i := range 30 {
			b.failed(now.Add(time.Duration(i)*10*time.Second), false) // never ten within a minute
		}
		if b.open {
			t.Fatal("open at six failures a minute")
		}
	})
	t.Run("time-outs in a row", func(t *testing.T) {
		t.Parallel()
		var b breaker
		b.failed(now, true)
		b.failed(now, true)
		b.succeeded(now)
		b.failed(now, true)
		b.failed(now, true)
		if b.open {
			t.Fatal("open at two in a row")
		}
		b.failed(now, true)
		if b.state(now) != breakerOpen {
			t.Fatal("closed at three in a row")
		}
	})
	t.Run("asked to wait", func(t *testing.T) {
		t.Parallel()
		var b breaker
		b.failed(now, false)
		b.wait(now, asksToWait(call.Result{Status: 429, RetryAfter: 7 * time.Second}))
		b.succeeded(now.Add(time.Second)) // was under way
		if b.state(now.Add(6*time.Second)) != breakerOpen {
			t.Fatal("called before the time that was asked for")
		}
		if b.state(now.Add(7*time.Second)) != breakerProbing {
			t.Fatal("not probed after it")
		}
		b.wait(now, 24*time.Hour)
		if b.state(now.Add(breakerLongest)) != breakerProbing {
			t.Fatal("kept away for longer than a breaker may")
		}
		b.succeeded(now.Add(breakerLongest))
		if b.state(now.Add(breakerLongest)) != breakerClosed {
			t.Fatal("a probe that succeeded did not close it")
		}
		for _, r := range []call.Result{{Status: 500, RetryAfter: time.Minute}, {Status: 429}, {Status: 200, RetryAfter: time.Minute}} {
			if asksToWait(r) != 0 {
				t.Errorf("%+v asks for nothing", r)
			}
		}
	})
	t.Run("probes", func(t *testing.T) {
		t.Parallel()
		var b breaker
		at := now
		for range breakerTimeouts {
			b.failed(at, true)
		}
		for want := breakerFirst; want < breakerLongest; want *= 2 {
			if hold := b.reopenAt.Sub(at); hold != want {
				t.Fatalf("held for %v, want %v", hold, want)
			}
			b.failed(at, true) // under way when it opened: says nothing
			at = b.reopenAt
			if b.state(at) != breakerProbing {
				t.Fatal("no probe after the hold")
			}
			b.failed(at, false)
		}
		if hold := b.reopenAt.Sub(at); hold != breakerLongest {
			t.Fatalf("held for %v, want %v", hold, breakerLongest)
		}
		b.succeeded(b.reopenAt)
		if b.state(at) != breakerClosed || b.hold != 0 {
			t.Fatal("a success does not close it")
		}
	})
}
