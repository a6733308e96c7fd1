package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quittance/internal/network"
	"quittance/internal/sessions"
)

const (
	// streamLife ends a stream, because its viewer may have gone without notice. A
	// viewer that is still there opens it again.
	streamLife = 15 * time.Minute
	// writePatience is how long a phone may take to accept a few bytes.
	writePatience = 10 * time.Second
	// returnAfter and returnWithin bound the pause after which the viewers of an instance that stops
	// open their streams again, so that they do not all come at once.
	returnAfter, returnWithin = time.Second, 10 * time.Second
)

// Serve answers a request of a client (web.Client) for the version of a session. The caller
// has set the security headers and checked that the browser may ask. See "Live status" in
// package checkout/page. A stream beyond a limit is refused with 429, or 503 if it is a
// limit of the instance.
func (w *Watcher) Serve(rw http.ResponseWriter, r *http.Request, id, client string) {
	wantsStream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	viewer, reached := w.enter(Viewer{w: w, id: id, streams: wantsStream, networks: network.Of(client)})
	if reached != "" {
		refuse(rw, reached)
		return
	}
	defer viewer.Leave()
	known, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil {
		known = 0 // older than any version
	}

	patience := time.NewTimer(pollPatience)
	defer patience.Stop()
	exists := false
	for {
		seen, found, current, changed := viewer.look()
		switch {
		case seen && !found && !exists:
			// The session may be missing because the read model is behind or rebuilt.
			switch err := w.exists(r.Context(), id); {
			case errors.Is(err, sessions.ErrNotFound):
				rw.WriteHeader(http.StatusNotFound)
				return
			case err != nil:
				unavailable(rw)
				return
			}
			exists = true
			continue
		case seen && !found:
		case seen && wantsStream:
			viewer.stream(rw, r, known)
			return
		case seen:
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(struct {
				Version string `json:"version"`
			}{strconv.FormatInt(max(current, known), 10)}) // never a step back
			return
		}
		select {
		case <-changed:
			continue
		case <-r.Context().Done():
			return
		case <-w.done:
		case <-patience.C:
		}
		unavailable(rw)
		return
	}
}

// exists returns nil if the session exists.
func (w *Watcher) exists(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, pollPatience)
	defer cancel()
	_, err := w.cfg.Sessions.ByID(ctx, id)
	if err != nil {
		return fmt.Errorf("looking for a watched session: %w", err)
	}
	return nil
}

// refuse tells a person who looks for the cause which limit is reached. The script of the
// page asks for the version instead.
func refuse(rw http.ResponseWriter, reached limit) {
	if reached == limitStreams || reached == limitViewers {
		unavailable(rw)
		return
	}
	rw.Header().Set("Retry-After", "60")
	rw.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(rw, "Too many streams of this "+string(reached)+" are open. Ask with Accept: application/json.\n")
}

func unavailable(rw http.ResponseWriter) {
	rw.Header().Set("Retry-After", "5")
	rw.WriteHeader(http.StatusServiceUnavailable)
}

// stream sends versions newer than the one that the viewer knows, until it leaves.
func (v Viewer) stream(rw http.ResponseWriter, r *http.Request, known int64) {
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("X-Accel-Buffering", "no") // tells a proxy to pass on small pieces at once
	rw.WriteHeader(http.StatusOK)
	conn := http.NewResponseController(rw)
	send := func(text string) bool {
		// The server's own deadline for answers is far too short for a stream.
		_ = conn.SetWriteDeadline(time.Now().Add(writePatience))
		_, err := io.WriteString(rw, text)
		return err == nil && conn.Flush() == nil
	}
	if !send(": here\n\n") {
		return
	}
	heartbeat := time.NewTicker(v.w.cfg.Heartbeat)
	defer heartbeat.Stop()
	life := time.NewTimer(streamLife)
	defer life.Stop()
	for {
		_, found, current, changed := v.look()
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
		case <-v.w.cfg.Ending:
			pause := returnAfter + rand.N(returnWithin-returnAfter) //nolint:gosec // spreads load
			send("retry: " + strconv.FormatInt(pause.Milliseconds(), 10) + "\n\n")
			return
		case <-v.w.done:
			return
		case <-r.Context().Done():
			return
		}
	}
}
