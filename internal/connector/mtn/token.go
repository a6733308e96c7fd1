package mtn

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"quittance/internal/connector"
)

// token is an access token and the moment from which it is not used any more.
type token struct {
	text  string
	until time.Time
}

// tokens keeps the token of one account. However many calls want one at once, it
// is asked for once. The zero value is ready. Safe for concurrent use.
type tokens struct {
	flight singleflight.Group

	mu   sync.Mutex
	held token
}

// get returns the held token or issues one. The issuing call belongs to all who
// wait for it, so one of them going away does not end it; its own time-out does.
func (t *tokens) get(ctx context.Context, now func() time.Time, issue func(context.Context) (token, error)) (string, error) {
	t.mu.Lock()
	held := t.held
	t.mu.Unlock()
	if held.text != "" && now().Before(held.until) {
		return held.text, nil
	}
	result := t.flight.DoChan("token", func() (any, error) {
		fresh, err := issue(context.WithoutCancel(ctx))
		if err == nil {
			t.mu.Lock()
			t.held = fresh
			t.mu.Unlock()
		}
		return fresh.text, err
	})
	select {
	case <-ctx.Done():
		return "", connector.NetworkError("awaiting a token", false, ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return "", r.Err
		}
		text, _ := r.Val.(string)
		return text, nil
	}
}

// drop forgets a token that the operator refused, unless another came meanwhile.
func (t *tokens) drop(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held.text == text {
		t.held = token{}
	}
}
