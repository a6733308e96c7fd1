package delivery

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// At every rate, no second has more calls than the rate and one burst. A caller that asks
// again after the returned wait gets its calls.
func TestPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.IntRange(1, 2000).Draw(t, "perSecond")
		burst := max(1, perSecond/paceBurst)
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		end := now.Add(5 * time.Second)
		var p pace
		var begun []time.Time
		for now.Before(end) {
			wait := p.take(now, perSecond)
			if wait == 0 {
				begun = append(begun, now)
				continue
			}
			if wait > time.Second+time.Millisecond {
				t.Fatalf("told to wait %v at %d a second", wait, perSecond)
			}
			now = now.Add(wait + time.Duration(rapid.IntRange(0, 3).Draw(t, "late"))*time.Millisecond)
		}
		for i, from := range begun {
			n := 0
			for _, at := range begun[i:] {
				if at.Sub(from) < time.Second {
					n++
				}
			}
			if n > perSecond+burst {
				t.Fatalf("%d calls in a second at %d a second", n, perSecond)
			}
			if i > 200 {
				break
			}
		}
		if len(begun) < perSecond { // five seconds, each wait up to 4 ms too long
			t.Fatalf("only %d calls in five seconds at %d a second", len(begun), perSecond)
		}
	})
}

func TestPaceBacklog(t *testing.T) {
	t.Parallel()
	var p pace
	for _, c := range []struct {
		perSecond, queued int
		ok                bool
	}{
		{0, 100_000, true}, {1, 0, true}, {1, 4, true}, {1, 5, false}, {100, 499, true}, {100, 500, false},
	} {
		after, ok := p.backlog(c.perSecond, c.queued)
		if ok != c.ok {
			t.Errorf("%d a second, %d waiting: may wait is %v", c.perSecond, c.queued, ok)
		}
		if !ok && after < paceWait {
			t.Errorf("%d a second, %d waiting: put off by %v only", c.perSecond, c.queued, after)
		}
	}
}
