package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// attempts is the number of calls before the citizen sees an error.
const attempts = 4

// api calls Quittance with the secret key, which never leaves the back end.
type api struct {
	base, key string
	client    *http.Client
}

// newSession is the body of the request that creates a session.
type newSession struct {
	OrderID     string            `json:"order_id"`
	Amount      int64             `json:"amount"`
	Currency    string            `json:"currency"`
	Mode        string            `json:"mode"`
	Description string            `json:"description"`
	Metadata    map[string]string `json:"metadata"`
}

// created is a new session. ClientSecret is empty once the session is over.
type created struct {
	ID           string `json:"id"`
	ClientSecret string `json:"client_secret"`
}

// verified is the answer of verify-completion.
type verified struct {
	OrderID string `json:"order_id"`
	Paid    bool   `json:"paid"`
}

// problem is an error answer (RFC 9457).
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (p problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

func (a api) create(ctx context.Context, idempotencyKey string, s newSession) (out created, err error) {
	return out, a.post(ctx, "/checkout/sessions", idempotencyKey, s, &out)
}

func (a api) verify(ctx context.Context, token string) (out verified, err error) {
	return out, a.post(ctx, "/checkout/sessions/verify-completion", "", map[string]string{"completion_token": token}, &out)
}

// post makes a call and repeats it when the outcome is unknown. The same
// Idempotency-Key, or the same token, makes the repetition safe.
func (a api) post(ctx context.Context, path, idempotencyKey string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the body of %s: %w", path, err)
	}
	for attempt := 1; ; attempt++ {
		answer, err := a.once(ctx, path, idempotencyKey, text)
		var refused problem
		final := errors.As(err, &refused) && refused.Status != http.StatusServiceUnavailable && refused.Status != http.StatusTooManyRequests
		switch {
		case err != nil && (final || attempt == attempts):
			return fmt.Errorf("posting to %s: %w", path, err)
		case err == nil:
			if err := json.Unmarshal(answer, into); err != nil {
				return fmt.Errorf("reading the answer of %s: %w", path, err)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("posting to %s: %w", path, ctx.Err())
		case <-time.After(time.Duration(attempt) * time.Second):
		}
	}
}

// once makes one call and returns the answer's body, or the problem as an error.
func (a api) once(ctx context.Context, path, idempotencyKey string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Content-Type", "application/json")
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		var p problem
		_ = json.Unmarshal(answer, &p) // without a body the status suffices
		p.Status = resp.StatusCode
		err = p
	}
	return answer, err
}
