package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
)

const (
	// pollEvery is how often the sessions being watched are read. At 500 ms
	// (architecture, "Read path") it was most of what citizens waited for, and the
	// second that they may wait had little to spare.
	pollEvery = 250 * time.Millisecond
	// pollPatience bounds one reading, and a viewer's wait for the first.
	pollPatience = 2 * time.Second
	// pollBatch bounds one query.
	pollBatch = 1000
	// streamLife ends a stream whose viewer is perhaps long gone; one that is not
	// opens it again.
	streamLife = 15 * time.Minute
	// writePatience is how long a phone may take to accept a few bytes.
	writePatience = 10 * time.Second
)

// version grows with everything that a citizen could see. Enquiries, one every
// ten seconds, change nothing on the page and must not make it load again.
func version(s checkout.Session) int64 {
	v := s.Sequence
	if s.Collection != nil {
		v -= int64(s.Collection.Enquiries)
	}
	return v
}

// watcher reads the versions of the sessions that somebody looks at, all of them
// with one query, however many look.
type watcher struct {
	sessions   Sessions
	maxViewers int
	log        *slog.Logger
	done       chan struct{} // closed when run ends

	mu      sync.Mutex
	watched map[string]*watched
	viewers int

	gauge prometheus.Gauge
	polls *prometheus.CounterVec
}

// watched is a session that at least one viewer looks at.
type watched struct {
	viewers int
	seen    bool // it has been asked for
	found   bool
	version int64
	changed chan struct{} // closed and replaced whenever one of the above changes
}

func newWatcher(sessions Sessions, maxViewers int, log *slog.Logger, factory promauto.Factory) *watcher {
	w := &watcher{
		sessions: sessions, maxViewers: maxViewers, log: log, done: make(chan struct{}), watched: map[string]*watched{},
		gauge: factory.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_pages_live_viewers", Help: "Pages that await a change of their session.",
		}),
		polls: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_live_polls_total", Help: "Queries for the sessions being watched, by outcome: ok, error.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{"ok", "error"} {
		w.polls.WithLabelValues(outcome)
	}
	return w
}

func (w *watcher) run(ctx context.Context) error {
	defer close(w.done)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := w.poll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			w.log.LogAttrs(ctx, slog.LevelWarn, "live status cannot be read", slog.Any("error", err))
		}
		failing = err != nil
	}
}

// poll reads every session being watched.
func (w *watcher) poll(ctx context.Context) error {
	w.mu.Lock()
	ids := make([]string, 0, len(w.watched))
	for id := range w.watched {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	for len(ids) > 0 {
		batch := ids[:min(pollBatch, len(ids))]
		ids = ids[len(batch):]
		if err := w.read(ctx, batch); err != nil {
			w.polls.WithLabelValues("error").Inc()
			return fmt.Errorf("reading %d sessions: %w", len(batch), err)
		}
		w.polls.WithLabelValues("ok").Inc()
	}
	return nil
}

func (w *watcher) read(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, pollPatience)
	defer cancel()
	sessions, err := w.sessions.Statuses(ctx, ids)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		e := w.watched[id]
		if e == nil {
			continue // everybody left meanwhile
		}
		s, found := sessions[id]
		v := version(s)
		if e.seen && e.found == found && e.version == v {
			continue
		}
		e.seen, e.found, e.version = true, found, v
		close(e.changed)
		e.changed = make(chan struct{})
	}
	return nil
}

// watch begins to watch a session. ok is false when too many are looking; else
// the caller calls leave.
func (w *watcher) watch(id string) (e *watched, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.viewers >= w.maxViewers {
		return nil, false
	}
	e = w.watched[id]
	if e == nil {
		e = &watched{changed: make(chan struct{})}
		w.watched[id] = e
	}
	e.viewers++
	w.viewers++
	w.gauge.Inc()
	return e, true
}

func (w *watcher) leave(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.watched[id]
	if e.viewers--; e.viewers == 0 {
		delete(w.watched, id)
	}
	w.viewers--
	w.gauge.Dec()
}

// look is what is known of a session now, and when to look again.
func (w *watcher) look(e *watched) (seen, found bool, version int64, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.seen, e.found, e.version, e.changed
}

// live is GET /c/{id}/live; see "Live status" in package page.
func (p *Pages) live(w http.ResponseWriter, r *http.Request) {
	setHeaders(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	id := chi.URLParam(r, "session_id")
	if _, err := checkout.SessionPartition(id); err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	e, ok := p.watcher.watch(id)
	if !ok {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer p.watcher.leave(id)
	known, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil {
		known = 0 // older than any
	}

	patience := time.NewTimer(pollPatience)
	defer patience.Stop()
	for {
		seen, found, current, changed := p.watcher.look(e)
		switch {
		case seen && !found:
			w.WriteHeader(http.StatusNotFound)
			return
		case seen && strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
			p.stream(w, r, e, known)
			return
		case seen:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(struct {
				Version string `json:"version"`
			}{strconv.FormatInt(max(current, known), 10)}) // never a step back
			return
		}
		select {
		case <-changed:
			continue
		case <-r.Context().Done():
			return
		case <-p.watcher.done:
		case <-patience.C:
		}
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
}

// stream tells versions that are newer than the one the viewer knows, until the
// viewer leaves.
func (p *Pages) stream(w http.ResponseWriter, r *http.Request, e *watched, known int64) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not keep what is small
	w.WriteHeader(http.StatusOK)
	conn := http.NewResponseController(w)
	send := func(text string) bool {
		// A server's own deadline for answers is far too short for a stream.
		_ = conn.SetWriteDeadline(time.Now().Add(writePatience))
		_, err := io.WriteString(w, text)
		return err == nil && conn.Flush() == nil
	}
	if !send(": here\n\n") {
		return
	}
	heartbeat := time.NewTicker(p.cfg.Heartbeat)
	defer heartbeat.Stop()
	life := time.NewTimer(streamLife)
	defer life.Stop()
	for {
		_, found, current, changed := p.watcher.look(e)
		if found && current > known {
			known = current
			if !send("id: " + strconv.FormatInt(current, 10) + "\ndata: changed\n\n") {
				return
			}
		}
		select {
		case <-changed:
		case <-heartbeat.C:
			if !send(": here\n\n") {
				return
			}
		case <-life.C:
			return
		case <-p.watcher.done:
			return
		case <-r.Context().Done():
			return
		}
	}
}
