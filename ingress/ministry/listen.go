package ministry

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"quittance/ingress/problem"
	"quittance/internal/identity"
	"quittance/internal/sessions"
)

// The stream of webhooks to a developer's machine (`quittance listen`). It is not in openapi.yaml: it is
// for tests, its form is that of Server-Sent Events, and it promises no event, as endpoints do.

// pathListen is the path of the stream.
const pathListen = Prefix + "/checkout/webhooks"

const (
	// listenersOf is the most streams of an application, or of a platform key, at one instance, and
	// listenersInAll that of all.
	listenersOf, listenersInAll = 3, 50
	// listenLife ends a stream, because its reader may have gone without notice. A reader that is still
	// there asks again, from the last event on.
	listenLife = 30 * time.Minute
	// listenPoll is how often a stream looks for events, and listenBeat how often it shows that it is alive.
	listenPoll, listenBeat = 500 * time.Millisecond, 10 * time.Second
	// listenOverlap is how far back each look goes: events of several agencies may come out of order.
	listenOverlap = 5 * time.Minute
	// listenSince is how far back a stream may begin.
	listenSince = 24 * time.Hour
	// listenPatience is how long a reader may take to accept some events.
	listenPatience = 10 * time.Second
)

// listeners counts the open streams, by what they are counted for.
type listeners struct {
	mu    sync.Mutex
	of    map[string]int
	inAll int
}

// enter counts a stream. The error is a *problem.Problem when there are too many.
func (l *listeners) enter(of string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.of[of] >= listenersOf:
		return rateLimited(nil, time.Minute).Saying("%d streams of webhooks are open: end one of them.", listenersOf)
	case l.inAll >= listenersInAll:
		return problem.New("generic.unavailable").Saying("Too many streams of webhooks are open.")
	}
	l.of[of]++
	l.inAll++
	return nil
}

func (l *listeners) leave(of string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inAll--
	if l.of[of]--; l.of[of] == 0 {
		delete(l.of, of)
	}
}

// heard is an event as the stream sends it. Body is the signed text.
type heard struct {
	EventID       string `json:"event_id"`
	Event         string `json:"event"`
	CreatedAt     string `json:"created_at"`
	ApplicationID string `json:"application_id"`
	SessionID     string `json:"session_id"`
	Body          string `json:"body"`
}

// listen answers GET /api/v1/checkout/webhooks with the events of the caller's test sessions as they
// occur. The query may name since, a date and time of RFC 3339.
func (a *API) listen(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	token := problem.Bearer(r)
	c, err := a.admit(r, described{})
	if err == nil && c.Live {
		err = forbiddenAgency().Saying("Webhooks are streamed to test keys only: register an endpoint for live events.")
	}
	from := a.cfg.Now()
	if since := r.URL.Query().Get("since"); err == nil && since != "" {
		if from, err = instant(since); err != nil || from.Before(a.cfg.Now().Add(-listenSince)) {
			err = problem.New("generic.invalid_query").Saying("since must be a date and time of RFC 3339 in the last 24 hours.")
		}
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	owner := listenerOf(c.Principal)
	if err := a.listeners.enter(owner); err != nil {
		a.fail(w, r, err)
		return
	}
	defer a.listeners.leave(owner)
	s := &stream{api: a, w: w, r: r, token: token, from: from, seen: map[string]time.Time{}}
	s.run(owner)
}

// listenerOf is whose events a caller hears, and what its streams are counted for.
func listenerOf(p identity.Principal) string {
	if p.Platform {
		return p.KeyID
	}
	return p.ApplicationID
}

// stream is an open stream of webhooks.
type stream struct {
	api   *API
	w     http.ResponseWriter
	r     *http.Request
	token string
	// from is the time of the first event to look for.
	from time.Time
	// seen are the events that were sent since from.
	seen map[string]time.Time
}

// run sends events until the reader leaves, the key is no longer valid, or the stream has lived long
// enough.
func (s *stream) run(owner string) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.Header().Set("X-Accel-Buffering", "no") // tells a proxy to pass on small pieces at once
	s.w.WriteHeader(http.StatusOK)
	if !s.send("secret", map[string]string{"signing_secret": s.api.cfg.ListenSecret(owner).Reveal()}) {
		return
	}
	look, beat, life := time.NewTicker(listenPoll), time.NewTicker(listenBeat), time.NewTimer(listenLife)
	defer look.Stop()
	defer beat.Stop()
	defer life.Stop()
	for {
		select {
		case <-look.C:
			if !s.look() {
				return
			}
		case <-beat.C:
			if !s.write(": here\n\n") {
				return
			}
		case <-life.C:
			return
		case <-s.api.cfg.Done:
			return
		case <-s.r.Context().Done():
			return
		}
	}
}

// look sends the events that have come. It returns false when the stream is over.
func (s *stream) look() bool {
	p, err := s.api.cfg.Identities.AuthenticateKey(s.token)
	if err != nil {
		return false // revoked meanwhile
	}
	apps, err := s.api.scope(p, "")
	if err != nil {
		return false
	}
	found, err := s.api.cfg.Sessions.Recent(s.r.Context(), applicationIDs(apps), s.from, slices.AppendSeq([]string{}, maps.Keys(s.seen)))
	if err != nil {
		return s.r.Context().Err() == nil // Postgres is away or the read model is rebuilt: the next look may find them
	}
	for _, e := range found {
		s.seen[e.ID] = e.OccurredAt
		if !s.send("webhook", toHeard(e)) {
			return false
		}
		s.forget(e.OccurredAt.Add(-listenOverlap))
	}
	return true
}

// forget moves the beginning of the next look, and forgets the events before it.
func (s *stream) forget(before time.Time) {
	if !before.After(s.from) {
		return
	}
	s.from = before
	for id, at := range s.seen {
		if at.Before(before) {
			delete(s.seen, id)
		}
	}
}

func toHeard(e sessions.Told) heard {
	return heard{
		EventID: e.ID, Event: string(e.Type), CreatedAt: e.OccurredAt.Format(millisecond), ApplicationID: e.ApplicationID,
		SessionID: e.SessionID, Body: string(e.Body),
	}
}

func (s *stream) send(event string, data any) bool {
	text, err := json.Marshal(data)
	return err == nil && s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, text))
}

func (s *stream) write(text string) bool {
	conn := http.NewResponseController(s.w)
	// The server's own deadline for answers is far too short for a stream.
	_ = conn.SetWriteDeadline(time.Now().Add(listenPatience))
	_, err := s.w.Write([]byte(text))
	return err == nil && conn.Flush() == nil
}
