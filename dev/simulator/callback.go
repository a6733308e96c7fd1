package simulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	callbackWorkers = 16
	callbackTimeout = 5 * time.Second
)

// callback is one call of an operator to a merchant, with a few attempts.
type callback struct {
	collection string
	operator   string
	method     string
	url        string
	body       []byte
	attempt    int
	insists    bool // repeats without end after no answer, a 429 or a 5xx
	// authorization returns the header of an attempt; nil for none.
	authorization func() string
}

// callbacks sends callbacks. A receiver that hangs occupies a worker for at most five
// seconds. It delays other callbacks but no decision.
type callbacks struct {
	queue    *timers[callback]
	client   *http.Client
	attempts int
	backoff  time.Duration
	done     func(c callback, status int)
}

func newCallbacks(attempts int, backoff time.Duration) *callbacks {
	return &callbacks{
		queue:    newTimers[callback](),
		attempts: attempts,
		backoff:  backoff,
		client: &http.Client{
			Timeout: callbackTimeout,
			// No proxy of the environment is used, because receivers are on this machine.
			Transport: &http.Transport{MaxIdleConnsPerHost: callbackWorkers, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

// run sends due callbacks until ctx ends, then waits for the calls under way. Queued
// callbacks are lost.
func (c *callbacks) run(ctx context.Context, s *Simulator) error {
	work := make(chan callback)
	var workers errgroup.Group
	for range callbackWorkers {
		workers.Go(func() error {
			for cb := range work {
				c.send(ctx, s, cb)
			}
			return nil
		})
	}
	c.queue.run(ctx, s.cfg.Now, s.cfg.Poll, func(cb callback) {
		select {
		case work <- cb:
		case <-ctx.Done():
		}
	})
	close(work)
	err := workers.Wait()
	c.client.CloseIdleConnections()
	if n := c.queue.len(); n > 0 {
		s.cfg.Log.Info("callbacks not sent", slog.Int("count", n))
	}
	return err
}

func (c *callbacks) send(ctx context.Context, s *Simulator, cb callback) {
	cb.attempt++
	status, _, err := c.put(context.WithoutCancel(ctx), cb)
	outcome := "delivered"
	if err != nil || status/100 != 2 {
		outcome = "failed"
	}
	c.done(cb, status)
	s.metrics.callbacks.WithLabelValues(cb.operator, outcome).Inc()
	s.cfg.Log.Debug("operator called back",
		slog.String("operator", cb.operator), slog.String("collection", cb.collection),
		slog.Int("attempt", cb.attempt), slog.Int("status", status), slog.String("outcome", outcome))
	again := cb.attempt < c.attempts
	if cb.insists {
		again = status == 0 || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	}
	if outcome == "failed" && again {
		c.queue.add(s.cfg.Now().Add(c.backoff), cb)
	}
}

// put makes one call and returns its answer. The status is 0 without an answer.
func (c *callbacks) put(ctx context.Context, cb callback) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, cb.method, cb.url, bytes.NewReader(cb.body))
	if err != nil {
		return 0, nil, fmt.Errorf("building the callback: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if cb.authorization != nil {
		req.Header.Set("Authorization", cb.authorization())
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("calling back: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	// The answer is read, up to a limit, so that the connection can be used again.
	answer, _ = io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	return resp.StatusCode, answer, nil
}
