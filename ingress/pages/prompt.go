package pages

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/quota"
	"quittance/internal/sessions"
)

// Prompts limits the requests to pay that are sent to a phone: quota.Prompts.
type Prompts interface {
	Begin(ctx context.Context, number string, q quota.Prompt) (quota.Prompted, error)
	End(ctx context.Context, collectionID string) error
	Withdraw(ctx context.Context, collectionID string) error
}

// prompt is what a confirmation would send to a phone.
type prompt struct {
	quota.Prompt
	payer string // in the operator's form
	// added says that the prompt was counted for this confirmation.
	added bool
}

// admit counts the prompt, unless the phone has another open one or got too many, or
// the network of the browser sent too many. Test sessions
// ring no phone and are not counted. When ok is false the request has been answered.
func (st steps) admit(q *prompt, chosen option, typed, attempt string) (ok bool) {
	if !st.s.Live || chosen.kind() != page.KindMobileMoney {
		return true
	}
	q.Share = st.share(chosen, q.payer)
	out, err := st.p.cfg.Prompts.Begin(st.r.Context(), q.payer, q.Prompt)
	if err == nil && out.Open != nil && st.decided(*out.Open) {
		if err = st.p.cfg.Prompts.End(st.r.Context(), out.Open.CollectionID); err == nil {
			out, err = st.p.cfg.Prompts.Begin(st.r.Context(), q.payer, q.Prompt)
		}
	}
	if err != nil {
		st.unavailable("counting the prompts to a phone", err)
		return false
	}
	fault := page.FieldError{Code: page.ErrorPromptOpen}
	switch {
	case out.Admitted:
		q.added = out.Added
		return true
	case out.Network:
		fault = page.FieldError{Code: page.ErrorNetworkLimited, Minutes: int(math.Ceil(out.Wait.Minutes()))}
	case out.Open == nil:
		fault = page.FieldError{Code: page.ErrorPromptsLimited, Minutes: int(math.Ceil(out.Wait.Minutes()))}
	}
	st.p.confirmations.WithLabelValues(string(fault.Code)).Inc()
	st.review(http.StatusTooManyRequests, chosen, typed, attempt, fault)
	return false
}

// share returns as what a prompt to the payer's number counts. The number of the session's contact data was
// given by the integrator, or proven by the account of a citizen of the portal. Whoever pays by the reference of
// a paper has no session of their own.
func (st steps) share(chosen option, payer string) quota.Share {
	own, ok := st.contactPhone()
	if !ok {
		return quota.ShareTyped
	}
	number, err := chosen.Payer.Payer(own)
	switch {
	case err != nil || number != payer:
		return quota.ShareTyped
	case st.s.CitizenID != "":
		return quota.ShareProven
	}
	return quota.ShareGiven
}

// decided reports whether the collection of an open prompt waits for nobody any more. While that
// cannot be read the prompt counts as open.
func (st steps) decided(open quota.Prompt) bool {
	s, err := st.p.cfg.Sessions.ByID(st.r.Context(), open.SessionID)
	if errors.Is(err, sessions.ErrNotFound) {
		return true
	}
	c := s.Collection
	return err == nil && (c == nil || c.ID != open.CollectionID || c.Status != checkout.CollectionPending)
}

// withdraw says that nothing was sent to the phone, because the processor refused the
// confirmation.
func (st steps) withdraw(q prompt) {
	if !q.added {
		return
	}
	if err := st.p.cfg.Prompts.Withdraw(context.WithoutCancel(st.r.Context()), q.CollectionID); err != nil {
		st.p.cfg.Log.LogAttrs(st.r.Context(), slog.LevelWarn, "a prompt that was not sent counts",
			slog.String("request_id", problem.RequestID(st.r.Context())), slog.Any("error", err))
	}
}

// promptOf is the prompt of a collection that begins now.
func (st steps) promptOf(collectionID, payer string) prompt {
	return prompt{
		Prompt: quota.Prompt{CollectionID: collectionID, SessionID: st.id, Client: web.Client(st.r), EndsAt: st.p.cfg.Now().UTC().Add(approvalWindow + sendWithin)},
		payer:  payer,
	}
}

// promptMetrics are the outcomes of confirmations that send no prompt.
var promptMetrics = []string{string(page.ErrorPromptOpen), string(page.ErrorPromptsLimited), string(page.ErrorNetworkLimited)}
