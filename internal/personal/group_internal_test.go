package personal

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Rows that arrive during a write are written together, and each request gets the outcome
// of its own batch.
func TestGroupWritesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		broken := errors.New("away")
		g := group{write: func(_ context.Context, rows []keyRow) error {
			sizes = append(sizes, len(rows))
			time.Sleep(time.Second)
			if len(sizes) == 2 {
				return broken
			}
			return nil
		}}
		var all sync.WaitGroup
		failed := make([]error, 10)
		all.Go(func() { failed[0] = g.add(t.Context(), keyRow{}) })
		synctest.Wait() // the first write runs
		for i := 1; i < 9; i++ {
			all.Go(func() { failed[i] = g.add(t.Context(), keyRow{}) })
		}
		given, giveUp := context.WithCancel(t.Context())
		all.Go(func() { failed[9] = g.add(given, keyRow{}) })
		synctest.Wait()
		giveUp()
		all.Wait()
		if len(sizes) != 2 || sizes[0] != 1 || sizes[1] != 9 {
			t.Errorf("writes of %v rows, want 1 and 9", sizes)
		}
		for i, err := range failed {
			if want := map[int]error{0: nil, 9: context.Canceled}; i == 0 || i == 9 {
				if !errors.Is(err, want[i]) || (err == nil) != (want[i] == nil) {
					t.Errorf("request %d: %v", i, err)
				}
			} else if !errors.Is(err, broken) {
				t.Errorf("request %d: %v, want the error of its write", i, err)
			}
		}
		if err := g.add(t.Context(), keyRow{}); err != nil || len(sizes) != 3 {
			t.Errorf("a later request: %v, %d writes", err, len(sizes))
		}
	})
}
