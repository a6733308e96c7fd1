package client

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Creations are integrators who create sessions at times that do not depend on answers (an open loop).
type Creations struct {
	client  *Client
	keys    []string
	service string
	rate    int
}

// NewCreations returns integrators with keys who create rate sessions of a service of the catalogue a second, at the URL of an
// ingress.
func NewCreations(ingress, service string, keys []string, rate int) *Creations {
	return &Creations{&Client{Service: ingress, HTTP: &http.Client{
		Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256},
	}}, keys, service, rate}
}

// Taken is how long creations took, and the error of what ran meanwhile or of one of them.
type Taken struct {
	Took []time.Duration
	Err  error
}

// During creates sessions while do runs. A creation takes from when it was due to its answer.
func (c *Creations) During(ctx context.Context, do func(context.Context) error) (out Taken) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var mu sync.Mutex
	var all sync.WaitGroup
	begun := time.Now()
	for n := 0; ; n++ {
		due := begun.Add(time.Duration(n) * time.Second / time.Duration(c.rate))
		select {
		case err := <-done:
			all.Wait()
			if out.Err == nil {
				out.Err = err
			}
			return out
		case <-time.After(time.Until(due)):
		}
		all.Go(func() {
			_, err := c.client.Create(ctx, c.keys[n%len(c.keys)], fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":%q}`, uuid.NewString(), c.service))
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Err = err
				return
			}
			out.Took = append(out.Took, took)
		})
	}
}
