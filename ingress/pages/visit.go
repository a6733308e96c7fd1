package pages

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/problem"
	"quittance/ingress/watch"
	"quittance/ingress/web"
	"quittance/internal/connector"
	"quittance/internal/sessions"
	"quittance/money"
)

// Names of form fields and query parameters, besides those of package page.
const (
	fieldTotal   = "total"   // the total that the review showed, minor units
	fieldAttempt = "attempt" // a UUID, see collectionID
	// fieldOperator is the offer of the number's operator, which the page named because it
	// is not the chosen offer.
	fieldOperator = "operator"
	// queryReloads counts how often a page without JavaScript has loaded itself again.
	queryReloads = "reloads"
	queryStep    = "step"
	// queryReturned is in the address to which an acquirer's page leads back.
	queryReturned = connector.QueryReturned
	stepOffers    = "offers"
	stepPhone     = "phone"
	stepReview    = "review"
	stepCash      = "cash"
	stepTransfer  = "transfer"
)

// portal is where citizens see their dues, beside our pages.
const portal = "/portal"

// visit is one request of a citizen.
type visit struct {
	p    *Pages
	w    http.ResponseWriter
	r    *http.Request
	id   string
	lang money.Language
	// form is the form of a POST. It is empty when it could not be read, and fault is
	// then the status to answer.
	form  url.Values
	fault int
	// frame is set for a visit in an integrator's frame; known is then the session that
	// its secret opens.
	frame *frame
	known *checkout.Session
	// by is set for a visit under /p; known is then the reference's session.
	by *reference
}

// visit reads the request. When ok is false the request has been answered.
func (p *Pages) visit(w http.ResponseWriter, r *http.Request) (v visit, ok bool) {
	v = visit{p: p, w: w, r: r, id: chi.URLParam(r, "session_id")}
	if chi.URLParam(r, "payment_ref") != "" {
		v.form, v.fault = web.ReadForm(w, r)
		v.lang = web.Language(r, v.form)
		return v.byReference()
	}
	err := p.cfg.Gate.Session(r, v.id)
	limited := problem.From(err)
	if limited == nil {
		v.form, v.fault = web.ReadForm(w, r)
	}
	embedded := strings.HasPrefix(r.URL.Path, prefixEmbed)
	if embedded {
		v.lang = web.Language(r, v.form, queryLocale)
	} else {
		v.lang = web.Language(r, v.form)
	}
	switch {
	case limited != nil:
		v.limited(limited, embedded)
		return v, false
	case embedded && err != nil:
		v.refuse(http.StatusNotFound)
		return v, false
	case embedded:
		return v.embed()
	case err != nil:
		v.unknown()
		return v, false
	}
	return v, true
}

// limited answers one call too many, a script with the problem and a citizen with a page.
func (v visit) limited(why *problem.Problem, embedded bool) {
	if strings.Contains(v.r.Header.Get("Accept"), "application/json") {
		setHeaders(v.w.Header())
		problem.Write(v.w, v.r, why)
		return
	}
	// The session, and so its own list of origins, is not read.
	if parent := v.r.URL.Query().Get(queryParentOrigin); embedded && v.p.cfg.Agencies.Embeds(parent) {
		v.frameOf(parent, []string{parent})
	}
	v.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(why.RetryAfter.Seconds()))))
	v.write(why.Status, page.View{
		Lang: v.lang, State: page.StateUnavailable, SelfURL: v.url(v.lang, "", ""), LanguageURL: v.url(v.otherLanguage(), "", ""),
	})
}

// visited returns the handler of a request that visit admits.
func (p *Pages) visited(do func(visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if v, ok := p.visit(w, r); ok {
			do(v)
		}
	}
}

// url returns an address of this session's page. Step and offer may be empty.
func (v visit) url(lang money.Language, step, offer string) string {
	return v.path("") + "?" + query(lang, step, offer)
}

func query(lang money.Language, step, offer string) string {
	q := url.Values{page.FieldLanguage: {string(lang)}}
	if step != "" {
		q.Set(queryStep, step)
	}
	if offer != "" {
		q.Set(page.FieldOffer, offer)
	}
	return q.Encode()
}

// reloadAfter is when a page without JavaScript loads itself again: after the first of
// these times, then after the second, and so on; the last one is repeated.
var reloadAfter = []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second, 10 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second}

// refresh returns the next reload of a page without JavaScript.
func (v visit) refresh(step, offer string) page.Refresh {
	n, _ := strconv.Atoi(v.r.URL.Query().Get(queryReloads)) // 0 when it is missing or malformed
	n = min(max(n, 0), len(reloadAfter)-1)
	return page.Refresh{
		After: reloadAfter[n],
		URL:   v.url(v.lang, step, offer) + "&" + queryReloads + "=" + strconv.Itoa(n+1) + "#status",
	}
}

func (v visit) path(action string) string {
	if action != "" {
		action = "/" + action
	}
	switch {
	case v.frame != nil:
		return prefixEmbed + v.id + action
	case v.by != nil:
		return prefixReference + v.by.ref + action
	}
	return prefixHosted + v.id + action
}

// write answers with a page, hosted or for the frame.
func (v visit) write(status int, out page.View) {
	if v.frame == nil {
		v.p.write(v.w, v.r, status, out)
		return
	}
	out.Embed = &v.frame.Embed
	v.p.write(v.w, v.r, status, out, v.frame.origins...)
}

func (v visit) otherLanguage() money.Language {
	if v.lang == money.English {
		return money.French
	}
	return money.English
}

func (v visit) unknown() {
	if v.by != nil {
		v.typeReference(http.StatusNotFound, v.by.ref, page.ErrorReferenceUnknown)
		return
	}
	v.write(http.StatusNotFound, page.View{Lang: v.lang, State: page.StateUnknown})
}

// unavailable says that the session's state is unknown now. Its link reads the state
// again; it never sends a form again.
func (v visit) unavailable(doing string, err error) {
	if v.r.Context().Err() == nil {
		v.p.cfg.Log.LogAttrs(v.r.Context(), slog.LevelWarn, "checkout page is unavailable", slog.String("doing", doing),
			slog.String("request_id", problem.RequestID(v.r.Context())), slog.Any("error", err))
	}
	v.write(http.StatusServiceUnavailable, page.View{
		Lang: v.lang, State: page.StateUnavailable,
		SelfURL: v.url(v.lang, "", ""), LanguageURL: v.url(v.otherLanguage(), "", ""),
	})
}

// see sends the browser to the address that shows the session's state.
func (v visit) see() { v.seeAt("", "") }

func (v visit) seeAt(step, offer string) {
	setHeaders(v.w.Header())
	v.w.Header().Del("Content-Type") // there is no body
	v.w.Header().Set("Location", v.url(v.lang, step, offer))
	v.w.WriteHeader(http.StatusSeeOther)
}

// session returns the session. When ok is false the request has been answered.
func (v visit) session() (s checkout.Session, ok bool) {
	if v.known != nil {
		return *v.known, true
	}
	s, err := v.p.cfg.Sessions.ByID(v.r.Context(), v.id)
	switch {
	case errors.Is(err, sessions.ErrNotFound), errors.Is(err, checkout.ErrMalformedID):
		v.unknown()
	case err != nil:
		v.unavailable("reading the session", err)
	default:
		return s, true
	}
	return checkout.Session{}, false
}

// ask sends a command of the citizen. When ok is false the request has been answered.
// The code of an answer is never CodeSessionNotFound.
func (v visit) ask(ctx context.Context, do checkout.Action) (a checkout.Answer, outcome string, ok bool) {
	a, err := v.p.cfg.Commands.Ask(ctx, checkout.Command{
		At: v.p.cfg.Now().UTC().Truncate(time.Millisecond), SessionID: v.id, Do: do,
	})
	switch {
	case errors.Is(err, checkout.ErrMalformedID), err == nil && a.Code == checkout.CodeSessionNotFound:
		v.unknown()
		return a, string(checkout.CodeSessionNotFound), false
	case err != nil:
		v.unavailable("asking the processors", err)
		return a, "unavailable", false
	}
	return a, string(a.Code), true
}

// end returns the page of a session that has no steps left, "" when it has.
func end(s checkout.Session, now time.Time) page.State {
	if !s.ReversedAt.IsZero() {
		return page.StateReversed
	}
	// Money that was taken, or may be, matters more than how the session ended: the
	// citizen must not pay a second time.
	if s.Doubtful() && !s.Paid() && !s.InFlight() {
		return page.StateMismatched // also when it was refused or approved: a person must look at it
	}
	if c := s.Collection; c != nil && s.Ended() && !s.Paid() {
		switch {
		case c.Status == checkout.CollectionApproved:
			return page.StateLate
		case !c.Final():
			return page.StateUndecided
		}
	}
	switch {
	case s.Ended():
		return ends[s.Status]
	case s.InFlight():
		return page.StateWaiting
	case !now.Before(s.ExpiresAt):
		return page.StateExpired // although the processor has not ended it yet
	}
	return ""
}

// notDebited reports whether the session has taken no money and can take none: nothing was sent
// to an operator, or each operator refused itself, with a code after which nothing was debited. A
// payment that the operator does not know, or that was not approved in time, proves nothing, nor
// does a session with another sum.
func notDebited(s checkout.Session) bool {
	if len(s.Cases) > 0 || len(s.Orphans) > 0 || !refusedByOperator(s.Collection) {
		return false
	}
	return !slices.ContainsFunc(s.Refusals, func(r checkout.Refusal) bool {
		return !page.Definite(string(r.FailureCode)) || !refusedByOperator(r.Collection)
	})
}

// refusedByOperator reports whether the operator itself refused the collection. A nil
// collection was not sent.
func refusedByOperator(c *checkout.Collection) bool {
	if c == nil {
		return true
	}
	// The code is the operator's, not the one with which the session ended.
	if c.Status != checkout.CollectionRefused || c.Mismatched || c.Unreadable || !page.Definite(string(c.FailureCode)) {
		return false
	}
	return !slices.ContainsFunc(c.Reports, func(r checkout.Report) bool { return r.Status != checkout.OutcomeRefused })
}

// view returns what every page of a session shows. When ok is false the request has
// been answered.
func (v visit) view(s checkout.Session) (out page.View, ok bool) {
	agency, known := v.p.cfg.Agencies.Payee(s.TenantID)
	currency, listed := money.Lookup(s.Currency)
	if !known || agency.Name == "" || !listed {
		// A citizen must see who is paid.
		v.unavailable("finding the payee", errors.New("agency or currency is not registered"))
		return page.View{}, false
	}
	out = page.View{
		Lang: v.lang, Test: !s.Live, Agency: agency.Name, Logo: agency.Logo, Contact: agency.Contact, Service: s.ServiceLabel, Description: s.Description,
		Items: items(s), PaymentRef: s.PaymentRef, Currency: currency, Due: s.Amount,
		SelfURL: v.url(v.lang, "", ""), LanguageURL: v.url(v.otherLanguage(), "", ""),
		SuccessURL: s.SuccessURL, CancelURL: s.CancelURL,
	}
	if v.by != nil {
		out = v.printed(s, out)
		out.ByReference = true
	}
	return out, true
}

// items are the dues of a cart; none when there is one, and after their labels were erased.
func items(s checkout.Session) (out []page.Item) {
	if len(s.Items) < 2 {
		return nil
	}
	for _, it := range s.Items {
		label := it.Label
		if it.ServiceLabel != "" && it.ServiceLabel != label && s.ServiceLabel == "" {
			label += ", " + it.ServiceLabel
		}
		if it.Label == "" {
			return nil
		}
		out = append(out, page.Item{Label: label, Amount: it.Amount})
	}
	return out
}

// showEnd answers with the page of a session that has no steps left.
func (v visit) showEnd(s checkout.Session, state page.State) {
	v.showEndWith(http.StatusOK, s, state)
}

func (v visit) showEndWith(status int, s checkout.Session, state page.State, faults ...page.FieldError) {
	out, ok := v.view(s)
	if !ok {
		return
	}
	out.NotDebited = notDebited(s)
	if state == page.StateCancelled && s.CancelledBy == checkout.ByDueChange { // nobody has paid
		out.State, out.DuesURL = state, cmp.Or(out.CancelURL, portal)
		v.write(status, out)
		return
	}
	if !v.shows(s) {
		out.State = othersEnd[state]
		out.Version, out.LiveURL = v.live(s)
		out.Refresh = v.refresh("", "")
		v.write(status, out)
		return
	}
	out.State = state
	out.FailureCode = string(s.FailureCode)
	out.Total = s.Amount
	if c := s.Collection; c != nil {
		out.Fee, out.Total = c.Fee, c.Amount
		out.Offer, out.Kind, out.Payer = c.OfferID, kinds[c.Channel], c.PayerMasked
		if r := v.opened(s); r != nil {
			out.Redirect = r.URL
		}
		out.USSD = v.p.cfg.MobileMoney[c.OfferID].USSD
		out.Now, out.WindowEnds = v.p.cfg.Now().UTC(), c.WindowEndsAt
		out.Receipt.OperatorRef = c.OperatorRef
	}
	if state == page.StateMismatched && slices.ContainsFunc(s.Cases, func(c checkout.Case) bool {
		return c.Open() && c.Channel == checkout.ChannelBankTransfer
	}) {
		out.Kind = page.KindTransfer
	}
	out.Receipt.NoticeRef, out.Receipt.PaidAt, out.Receipt.Links = s.NoticeRef, s.PaidAt(), v.receipts(s)
	if v.by != nil && s.NoticeRef == s.OrderID {
		out.Receipt.NoticeRef = ""
	}
	out.Version, out.LiveURL = v.live(s)
	out.Refresh = v.refresh("", "")
	out.ReportedAt = s.ReportedAt()
	out.Send, out.Errors = v.sendForm(s, len(faults) > 0), faults
	if v.r.URL.Query().Has(queryReturned) && state == page.StateWaiting {
		// The page knows it again when it loads itself.
		out.Returned = true
		out.SelfURL += "&" + queryReturned
		out.LanguageURL += "&" + queryReturned
		out.Refresh.URL = strings.Replace(out.Refresh.URL, "?", "?"+queryReturned+"&", 1)
	}
	v.write(status, out)
}

// live returns the version of the session and the address that reports newer ones. It
// is the same for frames: a version is no secret.
func (v visit) live(s checkout.Session) (now, at string) {
	at = prefixHosted + v.id
	if v.by != nil {
		at = prefixReference + v.by.ref
	}
	return strconv.FormatInt(watch.Version(s), 10), at + "/live"
}

// ends are the pages of sessions that have ended.
var ends = map[checkout.Status]page.State{
	checkout.StatusCompleted: page.StateCompleted, checkout.StatusFailed: page.StateFailed,
	checkout.StatusCancelled: page.StateCancelled, checkout.StatusExpired: page.StateExpired,
}

// kinds are the page's kinds of offers by channel.
var kinds = map[checkout.Channel]page.Kind{
	checkout.ChannelMobileMoney: page.KindMobileMoney, checkout.ChannelCard: page.KindCard, checkout.ChannelCash: page.KindCash,
	checkout.ChannelSwitch:       page.KindMobileMoney, // a number, and a request on the phone
	checkout.ChannelBankTransfer: page.KindTransfer,
}
