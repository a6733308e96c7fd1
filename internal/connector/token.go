package connector

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Token is an access token and the time until which it is used. The zero value is no
// token.
type Token struct {
	text  string
	until time.Time
}

// NewToken is a token that its operator has just given out for so many seconds. Its use
// ends a little earlier, so that it does not expire during a call.
func NewToken(text string, now time.Time, seconds int64) Token {
	const longest = 24 * 3600
	lifetime := time.Duration(min(seconds, longest)) * time.Second
	return Token{text: text, until: now.Add(lifetime - min(lifetime/10, time.Minute))}
}

// Tokens keeps the token of one account. Calls that need one at the same time share
// one request for it. Safe for concurrent use.
type Tokens struct {
	// Now is the time in UTC. Required.
	Now func() time.Time
	// Issue asks the operator for a token. Nothing is collected by it, so its
	// errors are *Error with Sent unset. Required.
	Issue func(context.Context) (Token, error)

	flight singleflight.Group

	mu   sync.Mutex
	held Token
}

// Authorized makes a call with the account's token. After a 401, which means that the
// operator has done nothing, it makes the call once more with a new token. A second
// 401, or a 403, is returned as an *Error.
func (t *Tokens) Authorized(ctx context.Context, doing string, call func(token string) (Answer, error)) (Answer, error) {
	for attempt := 0; ; attempt++ {
		token, err := t.get(ctx)
		if err != nil {
			return Answer{}, err
		}
		a, err := call(token)
		if err != nil {
			return Answer{}, err
		}
		switch {
		case a.Status == http.StatusForbidden, a.Status == http.StatusUnauthorized && attempt > 0:
			return Answer{}, a.Fault(doing, false, "")
		case a.Status != http.StatusUnauthorized:
			return a, nil
		}
		t.drop(token)
	}
}

// get returns the held token or issues one. All callers that wait share the issuing
// call: the end of one caller's context does not cancel it, its own time-out does.
func (t *Tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	held := t.held
	t.mu.Unlock()
	if held.text != "" && t.Now().Before(held.until) {
		return held.text, nil
	}
	result := t.flight.DoChan("token", func() (any, error) {
		fresh, err := t.Issue(context.WithoutCancel(ctx))
		if err == nil {
			t.mu.Lock()
			t.held = fresh
			t.mu.Unlock()
		}
		return fresh.text, err
	})
	select {
	case <-ctx.Done():
		return "", NetworkError("awaiting a token", false, ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return "", r.Err
		}
		text, _ := r.Val.(string)
		return text, nil
	}
}

// drop forgets a token that the operator refused, unless it was replaced meanwhile.
func (t *Tokens) drop(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held.text == text {
		t.held = Token{}
	}
}
