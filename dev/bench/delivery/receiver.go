package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// behaviour is how an endpoint answers.
type behaviour int32

const (
	healthy behaviour = iota // answers 200
	hangs                    // reads the request and never answers
	drips                    // answers 200 and then sends a byte a second without end
	fails                    // answers 500 at once
	resets                   // resets the connection
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
	behaves  behaviour
	changed  chan struct{} // closed when the behaviour changes, so that requests that hang end
	arrivals []arrival
	accepted map[int]time.Time // first request that was answered with 2xx, by notification
}

// arrival is a request as it came. It is judged after the load, so that the check costs
// no time during it.
type arrival struct {
	notification         int
	at                   time.Time
	accepted             bool
	timestamp, signature string
	body                 []byte
}

func newEndpoint(h *host, path, secret string) *endpoint {
	e := &endpoint{host: h, url: "http://" + h.addr + path, secret: secret, changed: make(chan struct{}), accepted: map[int]time.Time{}}
	h.endpoints[path] = e
	return e
}

// turn changes the behaviour. Requests that hang end without an answer.
func (e *endpoint) turn(to behaviour) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.behaves = to
	close(e.changed)
	e.changed = make(chan struct{})
}

// note records an arrival and returns how to answer it.
func (e *endpoint) note(a arrival) (behaviour, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.accepted = e.behaves == healthy || e.behaves == drips
	e.arrivals = append(e.arrivals, a)
	if _, before := e.accepted[a.notification]; a.accepted && !before {
		e.accepted[a.notification] = a.at
		e.host.arena.firsts.Add(1)
	}
	return e.behaves, e.changed
}

// first is when the endpoint first accepted a notification.
func (e *endpoint) first(notification int) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.accepted[notification]
	return at, ok
}

// take returns the arrivals and forgets them. It does not forget which notifications
// were accepted.
func (e *endpoint) take() []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.arrivals
	e.arrivals = nil
	return out
}

// host is an address with endpoints at its paths.
type host struct {
	arena     *Arena
	addr      string
	endpoints map[string]*endpoint // by path; fixed once it is up
	server    *http.Server         // nil while it is down
}

// up makes the host answer. Before it and after down, connections are refused.
func (h *host) up(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.addr)
	if err != nil {
		return fmt.Errorf("starting a receiver: %w", err)
	}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			h.arena.failed(fmt.Errorf("receiver at %s: %w", h.addr, err))
		}
	}(h.server)
	return nil
}

func (h *host) down() {
	if h.server != nil {
		_ = h.server.Close()
		h.server = nil
	}
}

// ServeHTTP records a request and answers as the endpoint behaves.
func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, known := h.endpoints[r.URL.Path]
	body, err := io.ReadAll(r.Body)
	if !known || err != nil {
		http.Error(w, "not a delivery", http.StatusNotFound)
		return
	}
	at := time.Now()
	n, err := notificationNumber(r.Header.Get(standardwebhooks.HeaderWebhookID))
	if err != nil || r.Header.Get("X-Service-Event-Id") != r.Header.Get(standardwebhooks.HeaderWebhookID) {
		http.Error(w, "unknown event", http.StatusNotFound)
		return
	}
	behaves, changed := e.note(arrival{
		notification: n, at: at, body: body,
		timestamp: r.Header.Get(standardwebhooks.HeaderWebhookTimestamp), signature: r.Header.Get(standardwebhooks.HeaderWebhookSignature),
	})
	switch behaves {
	case healthy:
	case fails:
		http.Error(w, "the endpoint fails", http.StatusInternalServerError)
	case hangs:
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case drips:
		drip(r.Context(), w, changed)
	case resets:
		reset(w)
	}
}

// drip sends a byte a second until the client hangs up or the behaviour changes.
func drip(ctx context.Context, w http.ResponseWriter, changed <-chan struct{}) {
	flush := http.NewResponseController(w)
	for {
		if _, err := w.Write([]byte{'.'}); err != nil || flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
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

// idPrefix precedes the number of a notification in its id.
const idPrefix = "evt_delivery"

func notificationID(n int) string { return fmt.Sprintf(idPrefix+"%09d", n) }

func notificationNumber(id string) (int, error) {
	if len(id) <= len(idPrefix) {
		return 0, fmt.Errorf("id %q is not an id of this load", id)
	}
	return strconv.Atoi(id[len(idPrefix):])
}
