package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// mood is how an endpoint treats those who call it.
type mood int32

const (
	wellMood  mood = iota // answers 200
	hangMood              // takes the request and never answers
	dripMood              // answers 200 and then a byte a second, without end
	failMood              // answers 500 at once
	resetMood             // resets the connection
)

// subscriber is an application with endpoints.
type subscriber struct {
	id        string
	endpoints []*endpoint
}

// endpoint is a receiver of webhooks. Safe for concurrent use.
type endpoint struct {
	host   *host
	url    string
	secret string
	id     string // in the registry: the destination of deliveries

	mu       sync.Mutex
	mood     mood
	cured    chan struct{} // closed when the mood changes: who hangs is let go
	arrivals []arrival
	accepted map[int]time.Time // first arrival that was answered with a 2xx, by bulletin
}

// arrival is a request as it came. It is judged when the load is over.
type arrival struct {
	bulletin             int
	at                   time.Time
	accepted             bool
	timestamp, signature string
	body                 []byte
}

func newEndpoint(h *host, path, secret string) *endpoint {
	e := &endpoint{host: h, url: "http://" + h.addr + path, secret: secret, cured: make(chan struct{}), accepted: map[int]time.Time{}}
	h.endpoints[path] = e
	return e
}

// turn changes the mood; calls that the old one holds end without an answer.
func (e *endpoint) turn(to mood) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mood = to
	close(e.cured)
	e.cured = make(chan struct{})
}

// note keeps an arrival and says how to answer it.
func (e *endpoint) note(a arrival) (mood, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.accepted = e.mood == wellMood || e.mood == dripMood
	e.arrivals = append(e.arrivals, a)
	if _, before := e.accepted[a.bulletin]; a.accepted && !before {
		e.accepted[a.bulletin] = a.at
		e.host.firsts.Add(1)
	}
	return e.mood, e.cured
}

// first is when the endpoint first accepted the bulletin.
func (e *endpoint) first(bulletin int) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.accepted[bulletin]
	return at, ok
}

// take returns what came and forgets it, except that it came.
func (e *endpoint) take() []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.arrivals
	e.arrivals = nil
	return out
}

// host is an address with endpoints at its paths.
type host struct {
	addr      string
	endpoints map[string]*endpoint // by path; fixed once it is up
	firsts    *atomic.Int64        // first acceptances of all hosts
	server    *http.Server
}

// up lets the host answer; until then, and after down, connections are refused.
func (h *host) up(t testing.TB) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("receiver at %s: %v", h.addr, err))
		}
	}(h.server)
}

func (h *host) down() { _ = h.server.Close() }

// ServeHTTP keeps what comes and answers in the endpoint's mood.
func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, known := h.endpoints[r.URL.Path]
	body, err := io.ReadAll(r.Body)
	if !known || err != nil {
		http.Error(w, "not a delivery", http.StatusNotFound)
		return
	}
	at := time.Now()
	n, err := bulletinNumber(r.Header.Get(standardwebhooks.HeaderWebhookID))
	if err != nil || r.Header.Get("X-Service-Event-Id") != r.Header.Get(standardwebhooks.HeaderWebhookID) {
		http.Error(w, "unknown event", http.StatusNotFound)
		return
	}
	mood, cured := e.note(arrival{
		bulletin: n, at: at, body: body,
		timestamp: r.Header.Get(standardwebhooks.HeaderWebhookTimestamp), signature: r.Header.Get(standardwebhooks.HeaderWebhookSignature),
	})
	switch mood {
	case wellMood:
	case failMood:
		http.Error(w, "not today", http.StatusInternalServerError)
	case hangMood:
		select {
		case <-cured:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case dripMood:
		drip(r.Context(), w, cured)
	case resetMood:
		reset(w)
	}
}

// drip sends a byte a second until the other side has had enough.
func drip(ctx context.Context, w http.ResponseWriter, cured <-chan struct{}) {
	flush := http.NewResponseController(w)
	for {
		if _, err := w.Write([]byte{'.'}); err != nil || flush.Flush() != nil {
			return
		}
		select {
		case <-cured:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// reset ends the connection with a RST.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// numberedAt is where the number of a bulletin begins in its id.
const numberedAt = len("evt_delivery")

func bulletinID(n int) string { return fmt.Sprintf("evt_delivery%09d", n) }

func bulletinNumber(id string) (int, error) {
	if len(id) <= numberedAt {
		return 0, fmt.Errorf("id %q is none of ours", id)
	}
	return strconv.Atoi(id[numberedAt:])
}
