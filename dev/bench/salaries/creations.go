package salaries

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"quittance/dev/bench"
	"quittance/dev/bench/client"
)

// creations are integrators who create sessions at times that do not depend on answers.
type creations struct {
	client *client.Client
	keys   []string
}

func newCreations(service string, keys []string) *creations {
	return &creations{client: &client.Client{Service: service, HTTP: &http.Client{
		Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256},
	}}, keys: keys}
}

// taken is how long creations took, and the error of what ran meanwhile or of one of them.
type taken struct {
	took []time.Duration
	err  error
}

// during creates sessions while do runs, from when each was due.
func (c *creations) during(ctx context.Context, do func(context.Context) error) (out taken) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var mu sync.Mutex
	var all sync.WaitGroup
	begun := time.Now()
	for n := 0; ; n++ {
		due := begun.Add(time.Duration(n) * time.Second / creationRate)
		select {
		case err := <-done:
			all.Wait()
			if out.err == nil {
				out.err = err
			}
			return out
		case <-time.After(time.Until(due)):
		}
		all.Go(func() {
			_, err := c.client.Create(ctx, c.keys[n%len(c.keys)], fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":%q}`, uuid.NewString(), bench.ServiceCode))
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.err = err
				return
			}
			out.took = append(out.took, took)
		})
	}
}
