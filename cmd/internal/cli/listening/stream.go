package listening

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quittance/internal/kafka/consume"
	"quittance/internal/secret"
	"quittance/internal/transport"
	"quittance/schemas/record"
)

// Stream reads the webhooks of a test key's application from the service (ingress/ministry/listen.go)
// and asks again when the stream ends. All fields but Since are required.
type Stream struct {
	// URL is the service's address without a path.
	URL *url.URL
	Key secret.Text
	// Since is how far back to begin, at most 24 hours; 0 begins now.
	Since time.Duration
	// Started is called once, with the secret to sign with.
	Started func(secret.Text)
	// Hear is called for each event, one at a time. An error ends Run.
	Hear func(context.Context, *record.Notification, secret.Text) error
	// Note is told when the stream has broken and when it is back.
	Note func(text string)

	signing secret.Text
	last    time.Time       // of the last event
	known   map[string]bool // events at and around last, which may come again
	broken  bool
}

const (
	// firstAgain and longestAgain bound the wait before the stream is asked for again.
	firstAgain, longestAgain = time.Second, 30 * time.Second
	// silence is how long a stream may say nothing: it shows every 10 s that it is alive.
	silence = 35 * time.Second
	// longestEvent is the most bytes of an event that are read.
	longestEvent = 1 << 20
)

// refusal is an answer that another try would get again.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// Run listens until ctx ends, then returns nil. It returns an error when the service refuses the key, or
// is not reached at the first time.
func (s *Stream) Run(ctx context.Context) error {
	s.known = map[string]bool{}
	client := &http.Client{
		Transport:     transport.HTTP(&net.Dialer{Timeout: 10 * time.Second}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
	}
	for wait := firstAgain; ; wait = min(2*wait, longestAgain) {
		began := time.Now()
		err := s.read(ctx, client)
		var refused *refusal
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused), s.signing == (secret.Text{}):
			return err
		}
		if time.Since(began) > time.Minute { // it was open
			wait = firstAgain
		}
		if err != nil && !s.broken {
			s.broken = true
			s.Note("The stream has broken; listening again as soon as the service answers.")
		}
		if !consume.Sleep(ctx, wait) {
			return nil
		}
	}
}

// read reads one stream until it ends. The error is nil when the service ended it.
func (s *Stream) read(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := time.AfterFunc(silence, cancel)
	defer alive.Stop()
	at := *s.URL
	at.Path = "/api/v1/checkout/webhooks"
	switch {
	case !s.last.IsZero():
		at.RawQuery = url.Values{"since": {s.last.UTC().Format(time.RFC3339Nano)}}.Encode()
	case s.Since > 0:
		at.RawQuery = url.Values{"since": {time.Now().Add(-s.Since).UTC().Format(time.RFC3339)}}.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key.Reveal())
	r.Header.Set("Accept", "text/event-stream, application/problem+json")
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("asking %s: %w", s.URL.Host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return answer(resp)
	}
	if s.broken {
		s.broken = false
		s.Note("The stream is back.")
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, longestEvent)
	for kind := ""; lines.Scan(); {
		alive.Reset(silence)
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = name
		} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := s.take(ctx, kind, []byte(data)); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	return nil
}

// take takes an event of the stream. Kinds that it does not know may come with a later version.
func (s *Stream) take(ctx context.Context, kind string, data []byte) error {
	switch kind {
	case "secret":
		var first struct {
			SigningSecret string `json:"signing_secret"`
		}
		if err := json.Unmarshal(data, &first); err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
		started := s.signing != (secret.Text{})
		if s.signing = secret.NewText(first.SigningSecret); !started {
			s.Started(s.signing)
		}
	case "webhook":
		var e struct {
			EventID       string    `json:"event_id"`
			Event         string    `json:"event"`
			CreatedAt     time.Time `json:"created_at"`
			ApplicationID string    `json:"application_id"`
			SessionID     string    `json:"session_id"`
			Body          string    `json:"body"`
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
		if s.known[e.EventID] {
			return nil
		}
		s.known[e.EventID] = true
		if e.CreatedAt.After(s.last) {
			s.last = e.CreatedAt
		}
		return s.Hear(ctx, &record.Notification{
			EventID: e.EventID, Event: e.Event, ApplicationID: e.ApplicationID, SessionID: e.SessionID, OccurredAt: e.CreatedAt, Body: []byte(e.Body),
		}, s.signing)
	}
	return nil
}

// answer returns the error of an answer that is no stream.
func answer(resp *http.Response) error {
	var p struct{ Detail, Code string }
	text, _ := io.ReadAll(io.LimitReader(resp.Body, longestEvent))
	if json.Unmarshal(text, &p) != nil || p.Code == "" {
		p.Detail = "the answer is not of this service"
	}
	err := fmt.Errorf("%d: %s", resp.StatusCode, p.Detail)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return err
	}
	return &refusal{err.Error()}
}
