package simulator_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"quittance/dev/simulator"
)

func secret(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// signed returns the headers of a webhook, signed at the given time.
func signed(t *testing.T, secret, body string, at time.Time) map[string]string {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := hook.Sign("evt_1", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"webhook-id": "evt_1", "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": signature,
		"X-Service-Event-Id": "evt_1", "Content-Type": "application/json",
	}
}

type message struct {
	ID             int64             `json:"id"`
	ReceivedAt     time.Time         `json:"received_at"`
	Headers        map[string]string `json:"headers"`
	Body           string            `json:"body"`
	SignatureValid *bool             `json:"signature_valid"`
	Answered       int               `json:"answered"`
}

func (w *world) inbox(path string) []message {
	w.t.Helper()
	var got []message
	w.call(http.MethodGet, "/inbox/"+path, "", nil).decode(w.t, &got)
	return got
}

func TestInboxJudgesSignatures(t *testing.T) {
	t.Parallel()
	var secrets atomic.Pointer[[]string]
	secrets.Store(&[]string{secret("a")})
	w := newWorld(t, func(c *simulator.Config) {
		c.Secrets = func(name string) []string {
			if name != "guichet" {
				return nil
			}
			return *secrets.Load()
		}
	})
	const body = "{\"event\":\"checkout.completed\", \"note\":\"é<&>\"}\n"
	post := func(name, body string, header map[string]string) *bool {
		t.Helper()
		if a := w.call(http.MethodPost, "/inbox/"+name, body, header); a.status != http.StatusOK {
			t.Fatalf("delivery: %d %s", a.status, a.body)
		}
		all := w.inbox(name)
		last := all[len(all)-1]
		if last.Body != body {
			t.Errorf("kept %q, sent %q", last.Body, body)
		}
		return last.SignatureValid
	}
	now := w.clock.Now()
	good := signed(t, secret("a"), body, now)
	unsigned := map[string]string{"Content-Type": "application/json"}
	both := signed(t, secret("b"), body, now)
	both["webhook-signature"] += " " + good["webhook-signature"]

	for name, row := range map[string]struct {
		body   string
		header map[string]string
		want   bool
	}{
		"good":          {body, good, true},
		"two secrets":   {body, both, true},
		"other secret":  {body, signed(t, secret("b"), body, now), false},
		"changed body":  {strings.TrimSpace(body), good, false},
		"unsigned":      {body, unsigned, false},
		"five min old":  {body, signed(t, secret("a"), body, now.Add(-5*time.Minute)), true},
		"too old":       {body, signed(t, secret("a"), body, now.Add(-5*time.Minute-time.Second)), false},
		"in the future": {body, signed(t, secret("a"), body, now.Add(6*time.Minute)), false},
	} {
		if got := post("guichet", row.body, row.header); got == nil || *got != row.want {
			t.Errorf("%s: signature_valid %v, want %v", name, got, row.want)
		}
	}
	if got := post("stranger", body, good); got != nil {
		t.Errorf("an inbox without a secret judged %v", *got)
	}

	// The timestamp is compared with Config.Timestamp, and secrets can change at run time.
	w.clock.advance(24 * time.Hour)
	secrets.Store(&[]string{secret("b"), secret("a")})
	if got := post("guichet", body, signed(t, secret("a"), body, w.clock.Now())); got == nil || !*got {
		t.Error("a webhook of tomorrow is not valid tomorrow")
	}
	if got := post("guichet", body, good); got == nil || *got {
		t.Error("yesterday's webhook is still valid")
	}
	if got := post("guichet", body, signed(t, secret("b"), body, w.clock.Now())); got == nil || !*got {
		t.Error("the new secret is not known")
	}
}

func TestInboxListsAndPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simulator.Config) { c.MaxInboxMessages = 5 })
	if got := w.inbox("a"); len(got) != 0 {
		t.Fatalf("a new inbox has %v", got)
	}
	post := func(body string) {
		w.call(http.MethodPost, "/inbox/a", body, map[string]string{"X-Service-Event-Id": "evt_" + body})
	}
	ids := func(path string) (got []int64) {
		for _, m := range w.inbox(path) {
			if m.Body != strconv.FormatInt(m.ID, 10) || m.Headers["x-service-event-id"] != "evt_"+m.Body || m.Answered != 200 || !m.ReceivedAt.Equal(w.clock.Now()) {
				t.Errorf("message %+v", m)
			}
			got = append(got, m.ID)
		}
		return got
	}
	for i := 1; i <= 7; i++ {
		post(strconv.Itoa(i))
	}
	for path, want := range map[string][]int64{
		"a":                 {3, 4, 5, 6, 7},
		"a?after=0":         {3, 4, 5, 6, 7},
		"a?after=5":         {6, 7},
		"a?after=7":         nil,
		"a?after=99":        nil,
		"a?limit=2":         {6, 7},
		"a?after=3&limit=2": {4, 5},
		"b":                 nil,
	} {
		if got := ids(path); !slices.Equal(got, want) {
			t.Errorf("GET /inbox/%s: %v, want %v", path, got, want)
		}
	}
	w.call(http.MethodDelete, "/inbox/a", "", nil)
	if got := ids("a"); len(got) != 0 {
		t.Errorf("after DELETE: %v", got)
	}
	post("8")
	if got := ids("a?after=7"); !slices.Equal(got, []int64{8}) {
		t.Errorf("ids after DELETE: %v", got)
	}
	if a := w.call(http.MethodGet, "/inbox/a?after=x&limit=0&page=2", "", nil); a.status != http.StatusBadRequest ||
		!strings.Contains(a.body, `"after"`) || !strings.Contains(a.body, `"limit"`) || !strings.Contains(a.body, `"page"`) {
		t.Errorf("bad query: %d %s", a.status, a.body)
	}
}

func TestInboxBytesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simulator.Config) { c.MaxInboxBytes = 1000 })
	for i := range 5 {
		w.call(http.MethodPost, "/inbox/a", strings.Repeat(strconv.Itoa(i), 400), nil)
	}
	if got := w.inbox("a"); len(got) != 2 || got[0].ID != 4 {
		t.Errorf("%d messages kept, first %d", len(got), got[0].ID)
	}
	if a := w.call(http.MethodPost, "/inbox/a", strings.Repeat("x", 1<<20+1), nil); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("huge body: %d", a.status)
	}
}

func TestInboxMisbehaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	post := func() answer { return w.call(http.MethodPost, "/inbox/a", "{}", nil) }

	w.control("/inbox/a", `{"status":410}`)
	if a := post(); a.status != http.StatusGone {
		t.Errorf("status 410: %d", a.status)
	}
	w.control("/inbox/a", `{"retry_after":120,"times":1}`)
	if a := post(); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "120" {
		t.Errorf("retry_after: %d %v", a.status, a.header)
	}
	if a := post(); a.status != http.StatusOK {
		t.Errorf("after one time: %d", a.status)
	}
	w.control("/inbox/a", `{"redirect":"http://127.0.0.1:1/x"}`)
	if a := post(); a.status != http.StatusFound || a.header.Get("Location") != "http://127.0.0.1:1/x" {
		t.Errorf("redirect: %d %v", a.status, a.header)
	}
	for _, conduct := range []string{`{"hang":true}`, `{"drip":true}`, `{"delay":"5m"}`} {
		w.control("/inbox/a", conduct)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if a, err := w.try(ctx, http.MethodPost, "/inbox/a", "{}", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: answered %d (%v)", conduct, a.status, err)
		}
		cancel()
	}
	w.control("/inbox/a", `{"reset":true}`)
	if a := post(); a.status != http.StatusOK {
		t.Errorf("after reset: %d", a.status)
	}
	// Each delivery is kept with its answer.
	var answered []int
	for _, m := range w.inbox("a") {
		answered = append(answered, m.Answered)
	}
	if want := []int{410, 429, 200, 302, 0, 200, 200, 200}; !slices.Equal(answered, want) {
		t.Errorf("answers kept: %v, want %v", answered, want)
	}
}

// A hanging answer must not delay the end of the process. It must not end as a 200, which
// the sender would take for a delivery.
func TestHangingEndsWithTheSimulator(t *testing.T) {
	t.Parallel()
	for _, conduct := range []string{`{"hang":true}`, `{"delay":"5m"}`} {
		t.Run(conduct, func(t *testing.T) {
			t.Parallel()
			ended := make(chan string, 1)
			// Runs after the world's own clean-up, which stops the simulator and
			// waits for its handlers.
			t.Cleanup(func() {
				if got := <-ended; got != "503" {
					t.Errorf("the hanging call ended with %s", got)
				}
			})
			w := newWorld(t, nil)
			w.control("/inbox/a", conduct)
			go func() {
				a, err := w.try(context.WithoutCancel(t.Context()), http.MethodPost, "/inbox/a", "{}", nil)
				if err != nil {
					ended <- err.Error()
					return
				}
				ended <- strconv.Itoa(a.status)
			}()
			w.eventually("delivery", func() bool { return len(w.inbox("a")) == 1 })
		})
	}
}
