package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// caller is one client. Not for concurrent use.
type caller interface {
	// call sends a request and waits for its answer.
	call(ctx context.Context) error
	// hangUp closes the connection. The next call opens another.
	hangUp()
}

// afterError is the pause of a client after an error, so that it does not spin.
const afterError = 20 * time.Millisecond

// sample is the result of one measurement.
type sample struct {
	// rate of answers within the window, per second.
	rate     float64
	p50, p99 time.Duration
	calls    int
	failed   int
	// firstError is the error of one of the failed calls.
	firstError error
}

// tally gathers the latencies of one client, so that counting needs no lock.
type tally struct {
	latencies []time.Duration
	answered  int
	failed    int
	err       error
}

// add counts a call that was due at `due` and ended at `ended`.
func (t *tally) add(w window, due, ended time.Time, err error) {
	if due.Before(w.begin) {
		return
	}
	if err != nil {
		t.failed++
		if t.err == nil {
			t.err = err
		}
		return
	}
	t.latencies = append(t.latencies, ended.Sub(due))
	if ended.Before(w.end) {
		t.answered++
	}
}

// window is the time in which calls count, after the warm-up.
type window struct{ begin, end time.Time }

func newWindow(warmup, length time.Duration) window {
	begin := time.Now().Add(warmup)
	return window{begin, begin.Add(length)}
}

// sum makes one sample of the tallies of all clients.
func (w window) sum(tallies []tally) sample {
	var s sample
	var all []time.Duration
	answered := 0
	for _, t := range tallies {
		all = append(all, t.latencies...)
		answered += t.answered
		s.failed += t.failed
		if s.firstError == nil {
			s.firstError = t.err
		}
	}
	s.calls = len(all) + s.failed
	s.rate = float64(answered) / w.end.Sub(w.begin).Seconds()
	slices.Sort(all)
	s.p50, s.p99 = quantile(all, 0.50), quantile(all, 0.99)
	return s
}

// quantile returns the smallest latency that at least the share q does not exceed, of
// sorted latencies.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(float64(len(sorted))*q+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// closedLoop makes every client send its next request when the last is answered.
func closedLoop(ctx context.Context, clients []caller, warmup, length time.Duration) sample {
	w := newWindow(warmup, length)
	tallies := make([]tally, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			defer c.hangUp()
			for ctx.Err() == nil {
				due := time.Now()
				if !due.Before(w.end) {
					return
				}
				err := c.call(ctx)
				tallies[i].add(w, due, time.Now(), err)
				if err != nil {
					time.Sleep(afterError)
				}
			}
		})
	}
	wg.Wait()
	return w.sum(tallies)
}

// openLoop sends requests at the times of a Poisson process of `rate` per second. A free
// client sends each one. While no client is free the request waits, and its wait counts.
func openLoop(ctx context.Context, clients []caller, rate float64, warmup, length time.Duration) sample {
	w := newWindow(warmup, length)
	arrivals := make(chan time.Time, 1+int(2*rate*(warmup+length).Seconds())) // large enough that the schedule never waits
	tallies := make([]tally, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			defer c.hangUp()
			for due := range arrivals {
				if ctx.Err() != nil {
					continue
				}
				err := c.call(ctx)
				tallies[i].add(w, due, time.Now(), err)
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same arrivals in every run
	for due := time.Now(); due.Before(w.end) && ctx.Err() == nil; {
		if early := time.Until(due); early > 0 {
			time.Sleep(early)
		}
		arrivals <- due
		due = due.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
	}
	close(arrivals)
	wg.Wait()
	return w.sum(tallies)
}

// median returns the median of each number of the rounds.
func median(samples []sample) sample {
	if len(samples) == 0 {
		return sample{}
	}
	of := func(f func(sample) float64) float64 {
		v := make([]float64, len(samples))
		for i, s := range samples {
			v[i] = f(s)
		}
		return middle(v)
	}
	m := sample{
		rate: of(func(s sample) float64 { return s.rate }),
		p50:  time.Duration(of(func(s sample) float64 { return float64(s.p50) })),
		p99:  time.Duration(of(func(s sample) float64 { return float64(s.p99) })),
	}
	for _, s := range samples { // failures are added up: a median would hide them
		m.calls += s.calls
		m.failed += s.failed
		if m.firstError == nil {
			m.firstError = s.firstError
		}
	}
	return m
}

// middle returns the median of values, or 0 for none.
func middle(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	switch n := len(v); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (v[n/2-1] + v[n/2]) / 2
	default:
		return v[n/2]
	}
}
