package roles

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

const (
	// defaultDrain is how long a balancer has to notice that the ingress is unready.
	defaultDrain = 5 * time.Second
	// longestDrain keeps the whole end below 25 s: systemd and Kubernetes kill after 30 s.
	longestDrain = 10 * time.Second
	// answerWithin is how long requests in flight are answered after the listener is closed.
	answerWithin = 10 * time.Second
	// lastCall is when requests that wait for somebody outside are told to answer now.
	lastCall = answerWithin - time.Second
)

// errStopping is why a role that ends is unready.
var errStopping = errors.New("it is being stopped")

// ending is how far the end of the roles has come.
type ending struct {
	begun atomic.Bool
	// streams is closed when open streams are to end, and waits ends when requests that wait for
	// somebody outside are to answer with what they know.
	streams   chan struct{}
	waits     context.Context //nolint:containedctx // the end of all waits, not of a call
	stopWaits context.CancelFunc
}

func newEnding() *ending {
	e := &ending{streams: make(chan struct{})}
	e.waits, e.stopWaits = context.WithCancel(context.Background()) //nolint:gosec // drain calls it; a process that does not drain ends
	return e
}

// drain ends the servers, in steps, before the parts that make their answers. The roles are unready at
// once and answer on for --drain, so that a balancer moves on. Then the listeners are closed, streams
// end, and what is in flight is answered, with the reader of replies still open. A role without callers
// has nothing to wait for.
func (b *Base) drain() {
	b.ending.begun.Store(true)
	if b.patient {
		b.systemd(daemon.SdNotifyStopping)
	}
	b.mu.Lock()
	servers := b.servers
	b.mu.Unlock()
	if len(servers) == 0 {
		return
	}
	b.Log.Info("stopping: unready, and answering on", slog.Duration("drain", b.Drain))
	select {
	case <-time.After(b.Drain):
	case <-b.ctx.Done(): // a part has failed
		return
	}
	close(b.ending.streams)
	defer time.AfterFunc(lastCall, b.ending.stopWaits).Stop()
	ctx, cancel := context.WithTimeout(b.ctx, answerWithin)
	defer cancel()
	var closing sync.WaitGroup
	for _, server := range servers {
		closing.Go(func() {
			if err := server.Shutdown(ctx); err != nil {
				b.Log.Warn("requests were cut off at the end", slog.Any("error", err))
				_ = server.Close()
			}
		})
	}
	closing.Wait()
}

// leaving tells the callers of a role that ends to open no further request on their connection.
func (b *Base) leaving(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.ending.begun.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}
