// Package watch shows changes of sessions as they happen. It reads all sessions that
// somebody looks at with one query an instance, several times a second, however many
// look at them.
//
// A page knows the version of the session that it shows (Version). Serve reports newer
// versions to its script, as a stream or once; package checkout/page has the protocol
// ("Live status"). A handler that waits for a change uses Watch.
package watch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/internal/network"
)

const (
	// DefaultHeartbeat is the longest silence of a stream.
	DefaultHeartbeat = 15 * time.Second
	// DefaultSessionStreams and DefaultClientStreams are explained at Config.
	DefaultSessionStreams = 10
	DefaultClientStreams  = 1000
	// maxViewers bounds the viewers of one instance. Streams leave a fifth of them to
	// requests that ask once, so that a page whose stream is refused can still ask.
	maxViewers = 10_000
	maxStreams = maxViewers / 5 * 4
	// siteShare and providerShare are the parts of all streams for a network of that width.
	siteShare, providerShare = 5, 2

	// pollEvery is how often the sessions are read. A citizen must see a change within a
	// second; the 500 ms of architecture, "Read path", took most of that.
	pollEvery = 250 * time.Millisecond
	// pollPatience bounds one query, and a viewer's wait for the first result.
	pollPatience = 2 * time.Second
	// pollBatch bounds the sessions of one query.
	pollBatch = 1000
)

// Sessions reads sessions; internal/sessions does.
type Sessions interface {
	// Statuses returns sessions by id, with one query and without waiting for the read
	// model. A session that is missing may exist. Only Sequence and Collection.Enquiries
	// need be set. No session may be older than one that another reading has shown before.
	Statuses(ctx context.Context, ids []string) (map[string]checkout.Session, error)
	// ByID returns a session, or sessions.ErrNotFound if none has the id.
	ByID(ctx context.Context, id string) (checkout.Session, error)
}

// Config of a Watcher. Fields without a default are required.
type Config struct {
	Sessions  Sessions
	Heartbeat time.Duration // DefaultHeartbeat
	// SessionStreams is the most streams of one session, DefaultSessionStreams when zero:
	// a citizen has a few tabs.
	SessionStreams int
	// ClientStreams is the most streams of one client (web.Client), DefaultClientStreams
	// when zero. Mobile operators send many phones through one IPv4 address. A wider network
	// has a share of all streams, or as many as a client if that is more.
	ClientStreams int
	// Ending is closed when the streams are to end, because the instance stops; nil for never.
	Ending  <-chan struct{}
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Version returns the version of a session: it grows with everything that a citizen
// can see. Enquiries, one every ten seconds, change nothing on a page and do not count.
func Version(s checkout.Session) int64 {
	v := s.Sequence
	if s.Collection != nil {
		v -= int64(s.Collection.Enquiries)
	}
	return v
}

// Watcher reads the versions of the sessions that somebody looks at. Safe for
// concurrent use.
type Watcher struct {
	cfg  Config
	done chan struct{} // closed when Run ends

	mu      sync.Mutex
	watched map[string]*watched
	viewers int
	streams int
	// networks counts the streams of the networks of clients. It has at most as many entries as
	// there are streams, for each width.
	networks [network.Widths]map[string]int
	most     [network.Widths]int

	gauge, open    prometheus.Gauge
	polls, refused *prometheus.CounterVec
}

// watched is a session that at least one viewer looks at.
type watched struct {
	viewers int
	streams int
	seen    bool // it was read
	found   bool
	version int64
	changed chan struct{} // closed and replaced when one of the above changes
}

// New makes a Watcher. It reads nothing before Run.
func New(cfg Config) *Watcher {
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, DefaultHeartbeat)
	cfg.SessionStreams = cmp.Or(cfg.SessionStreams, DefaultSessionStreams)
	cfg.ClientStreams = cmp.Or(cfg.ClientStreams, DefaultClientStreams)
	factory := promauto.With(cfg.Metrics)
	w := &Watcher{
		cfg: cfg, done: make(chan struct{}), watched: map[string]*watched{},
		most: [network.Widths]int{
			network.Subscriber: cfg.ClientStreams, network.Site: max(cfg.ClientStreams, maxStreams/siteShare), network.Provider: max(cfg.ClientStreams, maxStreams/providerShare),
		},
		gauge: factory.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_pages_live_viewers", Help: "Pages that await a change of their session.",
		}),
		open: factory.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_pages_live_streams", Help: "Open streams of live status.",
		}),
		refused: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_live_refused_total",
			Help: "Requests for live status that were refused, by the limit: session (streams of one session), client (streams of one client), network (streams of one of its wider networks), streams, viewers (of this instance). A page whose stream is refused asks every few seconds.",
		}, []string{"limit"}),
		polls: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_live_polls_total", Help: "Queries for the sessions being watched, by outcome: ok, error.",
		}, []string{"outcome"}),
	}
	for width := range w.networks {
		w.networks[width] = map[string]int{}
	}
	for _, outcome := range []string{"ok", "error"} {
		w.polls.WithLabelValues(outcome)
	}
	for _, l := range []limit{limitSession, limitClient, limitNetwork, limitStreams, limitViewers} {
		w.refused.WithLabelValues(string(l))
	}
	return w
}

// limit names a limit of viewers that is reached.
type limit string

const (
	limitSession limit = "session"
	limitClient  limit = "client"
	limitNetwork limit = "network"
	limitStreams limit = "streams"
	limitViewers limit = "viewers"
)

// Run reads the sessions until ctx ends. Then it ends the streams that Config.Ending has not ended.
func (w *Watcher) Run(ctx context.Context) error {
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
			w.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "live status cannot be read", slog.Any("error", err))
		}
		failing = err != nil
	}
}

// poll reads every watched session.
func (w *Watcher) poll(ctx context.Context) error {
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

func (w *Watcher) read(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, pollPatience)
	defer cancel()
	sessions, err := w.cfg.Sessions.Statuses(ctx, ids)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		e := w.watched[id]
		if e == nil {
			continue // all its viewers have left
		}
		s, found := sessions[id]
		v := Version(s)
		if e.seen && e.found == found && e.version == v {
			continue
		}
		e.seen, e.found, e.version = true, found, v
		close(e.changed)
		e.changed = make(chan struct{})
	}
	return nil
}

// Viewer looks at one session. It must Leave.
type Viewer struct {
	w  *Watcher
	id string
	e  *watched

	streams  bool             // it is a stream
	networks network.Networks // of a stream
}

// Watch begins to watch a session. It returns false when the instance has too many
// viewers.
func (w *Watcher) Watch(id string) (Viewer, bool) {
	v, reached := w.enter(Viewer{w: w, id: id})
	return v, reached == ""
}

// enter adds a viewer. It returns the limit that is reached, or "".
func (w *Watcher) enter(v Viewer) (Viewer, limit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.watched[v.id]
	var reached limit
	switch {
	case w.viewers >= maxViewers:
		reached = limitViewers
	case !v.streams:
	case e != nil && e.streams >= w.cfg.SessionStreams:
		reached = limitSession
	case w.streams >= maxStreams:
		reached = limitStreams
	default:
		reached = w.full(v.networks)
	}
	if reached != "" {
		w.refused.WithLabelValues(string(reached)).Inc()
		return Viewer{}, reached
	}
	if e == nil {
		e = &watched{changed: make(chan struct{})}
		w.watched[v.id] = e
	}
	v.e = e
	e.viewers++
	w.viewers++
	w.gauge.Inc()
	if v.streams {
		e.streams++
		w.streams++
		for width, name := range v.networks {
			w.networks[width][name]++
		}
		w.open.Inc()
	}
	return v, ""
}

// full returns the limit of the narrowest network that has as many streams as it may, or "".
func (w *Watcher) full(of network.Networks) limit {
	for width, name := range of {
		switch {
		case w.networks[width][name] < w.most[width]:
		case network.Width(width) == network.Subscriber:
			return limitClient
		default:
			return limitNetwork
		}
	}
	return ""
}

// Leave ends the watch.
func (v Viewer) Leave() {
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.e.viewers--; v.e.viewers == 0 {
		delete(w.watched, v.id)
	}
	w.viewers--
	w.gauge.Dec()
	if !v.streams {
		return
	}
	v.e.streams--
	w.streams--
	for width, name := range v.networks {
		if w.networks[width][name]--; w.networks[width][name] == 0 {
			delete(w.networks[width], name)
		}
	}
	w.open.Dec()
}

// Changed returns a channel that is closed at the next change after this call.
func (v Viewer) Changed() <-chan struct{} {
	_, _, _, changed := v.look()
	return changed
}

// Done returns a channel that is closed when the Watcher ends: there will be no
// further change.
func (v Viewer) Done() <-chan struct{} { return v.w.done }

// look returns what is known of the session now, and when to look again.
func (v Viewer) look() (seen, found bool, version int64, changed <-chan struct{}) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	return v.e.seen, v.e.found, v.e.version, v.e.changed
}
