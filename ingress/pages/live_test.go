package pages_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/sessions"
)

// stream opens the live status and returns a channel of its lines that are not empty.
func stream(t *testing.T, server *httptest.Server, id, known string) (status int, lines <-chan string) {
	t.Helper()
	return streamIn(t.Context(), t, server, id, known)
}

// streamIn is stream until ctx ends.
func streamIn(ctx context.Context, t *testing.T, server *httptest.Server, id, known string) (status int, lines <-chan string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/c/"+id+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "gzip, br")
	if known != "" {
		req.Header.Set("Last-Event-ID", known)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	out := make(chan string)
	go func() {
		defer close(out)
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			if s.Text() == "" {
				continue
			}
			select {
			case out <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream is %s", resp.Header.Get("Content-Type"))
	}
	return resp.StatusCode, out
}

// next returns the next line other than a heartbeat, or "" if there is none within d.
func next(lines <-chan string, d time.Duration) (line string, heartbeats int) {
	timeout := time.After(d)
	for {
		select {
		case line, ok := <-lines:
			if !ok || !strings.HasPrefix(line, ":") {
				return line, heartbeats
			}
			heartbeats++
		case <-timeout:
			return "", heartbeats
		}
	}
}

// waiting brings a session to its waiting page and returns the version shown there.
func waiting(t *testing.T, w *world, server *httptest.Server, order string) (id, version string) {
	t.Helper()
	id = w.create(order, nil)
	b := browse(t, server).toReview(id).forward()
	for _, div := range b.root.all("div") {
		if v := div.attr["data-version"]; v != "" {
			if div.attr["data-live"] != "/c/"+id+"/live" {
				t.Errorf("live status is at %s", div.attr["data-live"])
			}
			return id, v
		}
	}
	t.Fatalf("no version on\n%s", b.html)
	return "", ""
}

func TestStream(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id, version := waiting(t, w, server, "A-1")
	status, lines := stream(t, server, id, version)
	if status != 200 {
		t.Fatalf("stream answers %d", status)
	}
	line, heartbeats := next(lines, 900*time.Millisecond)
	if line != "" || heartbeats < 2 {
		t.Errorf("%d heartbeats and %q, want some and nothing else", heartbeats, line)
	}

	// An enquiry does not change the page.
	w.Change(func() { w.Time = w.Time.Add(10 * time.Second) })
	before := w.Session(id).Sequence
	w.Do(id, checkout.Tick{})
	if w.Session(id).Sequence == before {
		t.Fatal("no enquiry was made")
	}
	if line, _ := next(lines, 900*time.Millisecond); line != "" {
		t.Errorf("an enquiry makes the page load again: %q", line)
	}

	w.outcome(id, checkout.OutcomeApproved, "")
	begun := time.Now()
	if line, _ = next(lines, 3*time.Second); !strings.HasPrefix(line, "id: ") || line == "id: "+version {
		t.Fatalf("after the payment the stream says %q", line)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("a change took %s", took)
	}
	if data, _ := next(lines, time.Second); strings.Contains(data, "completed") || strings.Contains(data, "paid") {
		t.Errorf("the stream tells the status: %q", data)
	}

	// A viewer with an older version learns of the change at once.
	if _, lines = stream(t, server, id, version); true {
		if again, _ := next(lines, 2*time.Second); again != line {
			t.Errorf("a viewer with the old version hears %q, want %q", again, line)
		}
	}
}

func TestPolling(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id, version := waiting(t, w, server, "A-1")
	b := browse(t, server)
	b.header.Set("Accept", "application/json")
	b.header.Set("Last-Event-ID", version)
	if b.get("/c/" + id + "/live"); b.status != 200 || strings.TrimSpace(b.html) != `{"version":"`+version+`"}` ||
		b.answer.Get("Content-Type") != "application/json" || b.answer.Get("Cache-Control") != "no-store" {
		t.Errorf("answers %d %s", b.status, b.html)
	}
	w.outcome(id, checkout.OutcomeApproved, "")
	if b.get("/c/" + id + "/live"); strings.Contains(b.html, `"`+version+`"`) {
		t.Errorf("after the payment it still answers %s", b.html)
	}
	for _, unknown := range []string{"chs_1", checkout.NewSessionID(start, 3, [16]byte{9, 9})} {
		if b.get("/c/" + unknown + "/live"); b.status != 404 {
			t.Errorf("an unknown session answers %d", b.status)
		}
	}
	w.Change(func() { w.blind = errors.New("postgres is away") })
	if b.get("/c/" + id + "/live"); b.status != 503 {
		t.Errorf("without a read model it answers %d", b.status)
	}
}

// An instance starts while the read model is rebuilt. A session whose row is missing was
// reported as unknown (404).
func TestLiveStatusDuringARebuild(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id, version := waiting(t, w, server, "A-1")
	b := browse(t, server)
	b.header.Set("Accept", "application/json")
	b.header.Set("Last-Event-ID", version)
	w.Change(func() { w.rebuilt = sessions.ErrBehind })
	if b.get("/c/" + id + "/live"); b.status != 503 || b.answer.Get("Retry-After") == "" {
		t.Errorf("during a rebuild it answers %d", b.status)
	}
	if status, _ := stream(t, server, id, version); status != 503 {
		t.Errorf("during a rebuild a stream answers %d", status)
	}
	w.Change(func() { w.rebuilt = nil })
	if b.get("/c/" + id + "/live"); b.status != 200 || strings.TrimSpace(b.html) != `{"version":"`+version+`"}` {
		t.Errorf("after a rebuild it answers %d %s", b.status, b.html)
	}
}

// One visitor opened streams until the instance refused everybody. A stream beyond a limit
// is refused, and the page can still ask.
func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	one, version := waiting(t, w, server, "A-1")
	two, _ := waiting(t, w, server, "A-2")
	three, _ := waiting(t, w, server, "A-3")
	polls := func(id string) {
		t.Helper()
		b := browse(t, server)
		b.header.Set("Accept", "application/json")
		if b.get("/c/" + id + "/live"); b.status != 200 {
			t.Errorf("a request that asks once is answered %d", b.status)
		}
	}
	open := func(id string, n int) (leave func()) {
		t.Helper()
		for range n - 1 {
			if status, _ := stream(t, server, id, version); status != 200 {
				t.Fatalf("a stream is answered %d", status)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		if status, _ := streamIn(ctx, t, server, id, version); status != 200 {
			t.Fatalf("a stream is answered %d", status)
		}
		return cancel
	}
	leave := open(one, 12) // the session's limit
	if status, _ := stream(t, server, one, version); status != 429 {
		t.Errorf("a stream beyond the session's limit is answered %d", status)
	}
	polls(one)
	open(two, 12)
	open(three, 1) // the client's limit
	if status, _ := stream(t, server, three, version); status != 429 {
		t.Errorf("a stream beyond the client's limit is answered %d", status)
	}
	polls(three)
	leave()
	for end := time.Now().Add(10 * time.Second); ; {
		if status, _ := stream(t, server, three, version); status == 200 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a viewer that left still counts")
		}
	}
}

// All sessions are read with one query at a time, for any number of viewers.
func TestOneQueryForAllViewers(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	one, version := waiting(t, w, server, "A-1")
	two, _ := waiting(t, w, server, "A-2")
	for range 10 {
		stream(t, server, one, version)
		stream(t, server, two, version)
	}
	w.Change(func() { w.polls = nil })
	begun := time.Now()
	time.Sleep(1200 * time.Millisecond)
	w.Lock()
	defer w.Unlock()
	took := time.Since(begun) // longer than the sleep on a busy machine
	// Four queries a second: a span has at most one more than its quarters of a second.
	if n := len(w.polls); n < 1 || n > int(took/(250*time.Millisecond))+1 {
		t.Errorf("%d queries in %v", n, took)
	}
	want := []string{one, two}
	slices.Sort(want)
	for _, ids := range w.polls {
		if slices.Sort(ids); !slices.Equal(ids, want) {
			t.Errorf("a query asks for %v", ids)
		}
	}
}

// A server that shuts down does not wait for viewers.
func TestStreamsEndWithRun(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id, version := waiting(t, w, server, "A-1")
	_, lines := stream(t, server, id, version)
	w.stop()
	timeout := time.After(3 * time.Second)
	for {
		select {
		case _, ok := <-lines:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatal("the stream goes on after Run has ended")
		}
	}
}

// All viewers of an instance that was replaced came back in the same second.
func TestStreamsOfAnInstanceThatStops(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id, version := waiting(t, w, server, "A-1")
	_, lines := stream(t, server, id, version)
	close(w.ending)
	timeout := time.After(3 * time.Second)
	pause := 0
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				if pause < 1000 || pause > 10_000 {
					t.Errorf("the stream ends with a pause of %d ms, want 1 to 10 s", pause)
				}
				return
			}
			_, _ = fmt.Sscanf(line, "retry: %d", &pause)
		case <-timeout:
			t.Fatal("the stream goes on")
		}
	}
}
