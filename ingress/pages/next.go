package pages

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/internal/connector"
)

const (
	// redirectPatience is how long a confirmation waits for the acquirer to say
	// where the citizen goes on. The page shows it later all the same.
	redirectPatience = 3 * time.Second
	// redirectPatienceJSON is that of a script, which can wait without a blank page.
	redirectPatienceJSON = 10 * time.Second
)

// nextAction is the JSON answer to a confirmation (contract, "Card payment").
// NextAction is null where nothing is left to do but wait: for the payer's
// approval on the phone, or, with status 202, for the acquirer; the same
// confirmation again then tells more.
type nextAction struct {
	NextAction *struct {
		Redirect connector.Redirect `json:"redirect"`
	} `json:"next_action"`
}

// next answers a confirmation that is on its way. A form's answer never leaves our
// own origin (form-action): the page that it leads to has the link.
func (st steps) next(ctx context.Context, chosen option) {
	script := strings.Contains(st.r.Header.Get("Accept"), "application/json")
	status, out := http.StatusOK, nextAction{}
	if chosen.kind() == page.KindCard {
		patience := redirectPatience
		if script {
			patience = redirectPatienceJSON
		}
		redirect, waiting := st.redirect(ctx, patience)
		switch {
		case redirect != nil:
			out.NextAction = &struct {
				Redirect connector.Redirect `json:"redirect"`
			}{*redirect}
		case waiting:
			status = http.StatusAccepted
		}
	}
	if !script {
		st.see()
		return
	}
	setHeaders(st.w)
	st.w.Header().Set("Content-Type", "application/json")
	if status == http.StatusAccepted {
		st.w.Header().Set("Retry-After", "1")
	}
	st.w.WriteHeader(status)
	_ = json.NewEncoder(st.w).Encode(out)
}

// redirect waits until the acquirer has told where the citizen goes on. waiting
// says that it has not, and that the collection is still in flight.
func (v visit) redirect(ctx context.Context, patience time.Duration) (_ *connector.Redirect, waiting bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, ok := v.p.watcher.watch(v.id)
	if !ok {
		return nil, true
	}
	defer v.p.watcher.leave(v.id)
	for {
		_, _, _, changed := v.p.watcher.look(e)
		s, err := v.p.cfg.Sessions.ByID(ctx, v.id)
		if err != nil {
			return nil, true
		}
		if r := v.opened(s); r != nil || !s.InFlight() {
			return r, false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, true
		case <-v.p.watcher.done:
			return nil, true
		}
	}
}

// opened is where the session's collection goes on, nil when that is not known.
func (v visit) opened(s checkout.Session) *connector.Redirect {
	c := s.Collection
	if c == nil || len(c.RedirectSealed) == 0 {
		return nil
	}
	r, err := connector.OpenRedirect(v.p.cfg.Opener, s.ID, c.ID, c.RedirectSealed)
	if err != nil {
		v.p.cfg.Log.LogAttrs(v.r.Context(), slog.LevelError, "the way to the acquirer does not open",
			slog.String("session_id", s.ID), slog.Any("error", err))
		return nil
	}
	return &r
}
