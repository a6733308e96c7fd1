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
	// redirectPatience is how long a confirmation waits for the address of the
	// acquirer's page. After that the page that follows shows it.
	redirectPatience = 3 * time.Second
	// redirectPatienceJSON is the same for a script, which waits without a blank page.
	redirectPatienceJSON = 10 * time.Second
)

// nextAction is the JSON answer to a confirmation (contract, "Card payment").
// NextAction is null when the citizen only waits: for the approval on the phone, or,
// with status 202, for the acquirer. After a 202 the same confirmation may be sent
// again.
type nextAction struct {
	NextAction *redirectAction `json:"next_action"`
}

type redirectAction struct {
	Redirect connector.Redirect `json:"redirect"`
}

// next answers a confirmation that was accepted. The answer to a form never leads to
// another origin (form-action forbids it): the page that follows has the link.
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
			out.NextAction = &redirectAction{*redirect}
		case waiting:
			status = http.StatusAccepted
		}
	}
	if !script {
		st.see()
		return
	}
	setHeaders(st.w.Header())
	st.w.Header().Set("Content-Type", "application/json")
	if status == http.StatusAccepted {
		st.w.Header().Set("Retry-After", "1")
	}
	st.w.WriteHeader(status)
	_ = json.NewEncoder(st.w).Encode(out)
}

// redirect waits for the address of the acquirer's page. waiting reports that there is
// none yet and that the collection is still in flight.
func (v visit) redirect(ctx context.Context, patience time.Duration) (_ *connector.Redirect, waiting bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	viewer, ok := v.p.cfg.Live.Watch(v.id)
	if !ok {
		return nil, true
	}
	defer viewer.Leave()
	for {
		changed := viewer.Changed()
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
		case <-viewer.Done():
			return nil, true
		}
	}
}

// opened returns the address of the acquirer's page for the session's collection, nil
// when there is none.
func (v visit) opened(s checkout.Session) *connector.Redirect {
	c := s.Collection
	if c == nil || len(c.RedirectSealed) == 0 {
		return nil
	}
	r, err := connector.OpenRedirect(v.p.cfg.Opener, s.ID, c.ID, c.RedirectSealed)
	if err != nil {
		v.p.cfg.Log.LogAttrs(v.r.Context(), slog.LevelError, "opening the address of the acquirer's page",
			slog.String("collection_id", c.ID), slog.Any("error", err))
		return nil
	}
	return &r
}
