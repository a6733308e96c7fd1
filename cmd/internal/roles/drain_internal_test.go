package roles

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	observe "quittance/test/await"
	"quittance/test/httpclient"
	"quittance/test/servers"
)

// A restart of the edge lost every reply that was in flight, 16 of 16: the reader of replies ended
// with the signal, before the requests that waited for it. Now the role is unready at once, answers on,
// closes its listener, and answers what is in flight before its parts end.
func TestDrainAnswersWhatIsInFlight(t *testing.T) {
	t.Parallel()
	const inFlight = 16
	ctx, terminate := context.WithCancel(context.Background())
	b := newBase(ctx, Settings{Drain: 300 * time.Millisecond}, servers.Logger(t))
	waiting, replies := make(chan struct{}, inFlight), make(chan struct{})
	address := freeAddress(t)
	err := b.Serve("test", address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/quick" {
			return
		}
		waiting <- struct{}{}
		select {
		case <-replies:
		case <-r.Context().Done():
		}
	}), Limits{Connections: 2 * inFlight})
	if err != nil {
		t.Fatal(err)
	}
	b.Run("reader of replies", func(ctx context.Context) error { <-ctx.Done(); return nil })

	answers := make(chan error, inFlight)
	for range inFlight {
		go func() { _, err := ask(ctx, "http://"+address+"/slow"); answers <- err }()
	}
	for range inFlight {
		<-waiting
	}
	terminate()
	observe.Within(10*time.Second, func() bool { return b.Unready() != nil })
	if err := b.Unready(); !errors.Is(err, errStopping) {
		t.Errorf("after the signal it is unready with %v", err)
	}
	if closes, err := ask(ctx, "http://"+address+"/quick"); err != nil || !closes {
		t.Errorf("a request of a balancer that has not noticed: %v, its connection closes: %v", err, closes)
	}
	refused := func() bool {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}
	if !observe.Within(10*time.Second, refused) {
		t.Error("the listener stays open")
	}
	select {
	case <-b.ending.streams:
	default:
		t.Error("streams are not told to end")
	}
	if err := b.ctx.Err(); err != nil {
		t.Errorf("the reader of replies has ended before the requests: %v", err)
	}
	close(replies)
	for range inFlight {
		if err := <-answers; err != nil {
			t.Errorf("a reply was lost: %v", err)
		}
	}
	if err := b.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// A part that fails ends the role at once, without the drain.
func TestFailureDoesNotDrain(t *testing.T) {
	t.Parallel()
	b := newBase(t.Context(), Settings{Drain: time.Hour}, servers.Logger(t))
	if err := b.Serve("test", freeAddress(t), http.NotFoundHandler(), Limits{Connections: 1}); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the part has failed")
	b.Run("part", func(context.Context) error { return failed })
	if err := b.Wait(); !errors.Is(err, failed) {
		t.Errorf("it ends with %v", err)
	}
}

// ask makes a request that does not end with ctx, and reports whether the server closes the connection.
func ask(ctx context.Context, url string) (closes bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return false, err
	}
	if resp.StatusCode != http.StatusOK {
		return false, errors.New(resp.Status)
	}
	return resp.Close, nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// answerOf returns the status and the body of an answer; zero without one.
func answerOf(req *http.Request) (status int, body string) {
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}
