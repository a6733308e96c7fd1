package pages

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/checkout/page"
	"quittance/internal/sessions"
)

// Names of the page's own form fields and query parameters, beside those of
// package page.
const (
	fieldTotal   = "total"   // what the review showed, minor units
	fieldAttempt = "attempt" // a UUID, see collectionID
	queryStep    = "step"
	stepOffers   = "offers"
	stepPhone    = "phone"
	stepReview   = "review"
	stepCash     = "cash"
)

// visit is one request of a citizen.
type visit struct {
	p    *Pages
	w    http.ResponseWriter
	r    *http.Request
	id   string
	lang money.Language
	// form is a POST's body, empty where it could not be read; fault is the
	// status that this deserves, else 0. Nothing is ever taken from the query of
	// a POST: addresses end in logs.
	form  url.Values
	fault int
	// frame is set for a visit within an integrator's page, known is the session
	// that its secret opens.
	frame *frame
	known *checkout.Session
}

// visit reads the request. When ok is false it has been answered with 404.
func (p *Pages) visit(w http.ResponseWriter, r *http.Request) (v visit, ok bool) {
	v = visit{p: p, w: w, r: r, id: chi.URLParam(r, "session_id"), form: url.Values{}}
	asked := r.URL.Query().Get(page.FieldLanguage)
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		err := r.ParseForm()
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			v.fault = http.StatusRequestEntityTooLarge
		case err != nil:
			v.fault = http.StatusUnprocessableEntity
		default:
			v.form = r.PostForm
		}
		if lang := v.form.Get(page.FieldLanguage); lang != "" {
			asked = lang
		}
	}
	embedded := strings.HasPrefix(r.URL.Path, prefixEmbed)
	if embedded {
		asked = cmp.Or(asked, r.URL.Query().Get(queryLocale))
	}
	v.lang = page.Negotiate(asked, r.Header.Get("Accept-Language"))
	_, err := checkout.SessionPartition(v.id)
	switch {
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

// url is an address of this session's page. A step and an offer may be empty.
func (v visit) url(lang money.Language, step, offer string) string {
	q := url.Values{page.FieldLanguage: {string(lang)}}
	if step != "" {
		q.Set(queryStep, step)
	}
	if offer != "" {
		q.Set(page.FieldOffer, offer)
	}
	return v.path("") + "?" + q.Encode()
}

func (v visit) path(action string) string {
	if action != "" {
		action = "/" + action
	}
	if v.frame != nil {
		return prefixEmbed + v.id + action
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
	v.write(http.StatusNotFound, page.View{Lang: v.lang, State: page.StateUnknown})
}

// unavailable says that it is not known now what is. The citizen tries again by
// looking, never by sending a form once more.
func (v visit) unavailable(doing string, err error) {
	if v.r.Context().Err() == nil {
		v.p.cfg.Log.LogAttrs(v.r.Context(), slog.LevelWarn, "checkout page is unavailable", slog.String("doing", doing),
			slog.String("session_id", v.id), slog.Any("error", err))
	}
	v.write(http.StatusServiceUnavailable, page.View{
		Lang: v.lang, State: page.StateUnavailable,
		SelfURL: v.url(v.lang, "", ""), LanguageURL: v.url(v.otherLanguage(), "", ""),
	})
}

// see sends the browser to the address that shows what is.
func (v visit) see() { v.seeAt("", "") }

func (v visit) seeAt(step, offer string) {
	setHeaders(v.w)
	v.w.Header().Del("Content-Type") // there is no body
	v.w.Header().Set("Location", v.url(v.lang, step, offer))
	v.w.WriteHeader(http.StatusSeeOther)
}

// session reads the session. When ok is false the request has been answered.
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

// ask sends a command of the citizen's. When ok is false the request has been
// answered; the answer's code is never CodeSessionNotFound.
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

// end is the page of a session that is past its steps, "" for one that is not.
func end(s checkout.Session, now time.Time) page.State {
	// Money that may be taken, or is, goes before how the session ended: the
	// citizen must not pay a second time.
	if c := s.Collection; c != nil && s.Ended() && !s.Paid() {
		switch {
		case c.Mismatched: // first: a payment that was also refused or approved is for a person to read
			return page.StateMismatched
		case c.Status == checkout.CollectionApproved:
			return page.StateLate
		case !c.Final():
			return page.StateUndecided
		}
	}
	switch s.Status {
	case checkout.StatusCompleted:
		return page.StateCompleted
	case checkout.StatusFailed:
		return page.StateFailed
	case checkout.StatusCancelled:
		return page.StateCancelled
	case checkout.StatusExpired:
		return page.StateExpired
	case checkout.StatusOpen:
	}
	switch {
	case s.InFlight():
		return page.StateWaiting
	case !now.Before(s.ExpiresAt):
		return page.StateExpired // its tick is on the way
	}
	return ""
}

// view is what every page of a session says. When ok is false the request has
// been answered.
func (v visit) view(s checkout.Session) (out page.View, ok bool) {
	agency, known := v.p.cfg.Agencies.AgencyName(s.TenantID)
	currency, listed := money.Lookup(s.Currency)
	if !known || agency == "" || !listed {
		// Nobody shall be asked to pay to somebody without a name.
		v.unavailable("finding who is paid", errors.New("agency or currency is not registered"))
		return page.View{}, false
	}
	return page.View{
		Lang: v.lang, Test: !s.Live, Agency: agency, Service: s.ServiceLabel, Description: s.Description,
		PaymentRef: s.PaymentRef, Currency: currency, Due: s.Amount,
		SelfURL: v.url(v.lang, "", ""), LanguageURL: v.url(v.otherLanguage(), "", ""),
		SuccessURL: s.SuccessURL, CancelURL: s.CancelURL,
	}, true
}

// showEnd answers with the page of a session that is past its steps.
func (v visit) showEnd(s checkout.Session, state page.State) {
	out, ok := v.view(s)
	if !ok {
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
	out.Receipt.NoticeRef, out.Receipt.PaidAt = s.NoticeRef, s.EndedAt
	out.Version, out.LiveURL = v.live(s)
	v.write(http.StatusOK, out)
}

// live is the version of the session and where changes of it are told: in one
// place for frames as well, since a version tells nothing.
func (v visit) live(s checkout.Session) (now, at string) {
	return strconv.FormatInt(version(s), 10), prefixHosted + v.id + "/live"
}

// kinds are the page's words for channels.
var kinds = map[checkout.Channel]page.Kind{
	checkout.ChannelMobileMoney: page.KindMobileMoney, checkout.ChannelCard: page.KindCard, checkout.ChannelCash: page.KindCash,
}
