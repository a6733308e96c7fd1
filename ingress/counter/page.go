package counter

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/checkout/page"
	"quittance/ingress/problem"
	"quittance/internal/form"
	"quittance/internal/identity"
)

// pagePrefix is where clerks find the page.
const pagePrefix = "/counter"

// maxForm is more than any form of the page needs.
const maxForm = 16 << 10

// Fields of the page's forms.
const (
	fieldLang       = "lang"
	fieldKey        = "key"
	fieldRef        = "payment_ref"
	fieldCollection = "collection_id"
	fieldTotal      = "total"
	fieldReceipt    = "receipt"
	fieldReason     = "reason"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets/counter.css
var style []byte

// asset is the page's style, under a name with its hash.
type asset struct {
	path string
	body []byte
}

func loadStyle() asset {
	sum := sha256.Sum256(style)
	return asset{pagePrefix + "/assets/counter-" + hex.EncodeToString(sum[:6]) + ".css", style}
}

// The pages.
const (
	pageSignIn  = "signin"
	pageDesk    = "desk"
	pageReview  = "review"
	pageReceipt = "receipt"
	pageStands  = "stands"
	pageCase    = "case"
	pageUnsure  = "unsure"
)

func loadTemplates() (map[string]*template.Template, error) {
	out := map[string]*template.Template{}
	for _, name := range []string{pageSignIn, pageDesk, pageReview, pageReceipt, pageStands, pageCase, pageUnsure} {
		t, err := template.ParseFS(templateFiles, "templates/layout.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("counter page %s: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}

func (c *Counter) pages() http.Handler {
	r := chi.NewRouter()
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		c.visit(w, r).see("")
	})
	r.Get(strings.TrimPrefix(c.style.path, pagePrefix), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(c.style.body)
	})
	r.Get("/", c.signedIn(func(v visit) { v.showDesk(http.StatusOK, "", nil) }))
	r.Get("/{payment_ref:[0-9]+}", c.signedIn(visit.show))
	// A form's address, reopened, leads to where the payment is.
	r.Get("/{payment_ref:[0-9]+}/{step}", func(w http.ResponseWriter, r *http.Request) {
		c.visit(w, r).see(chi.URLParam(r, fieldRef))
	})
	r.Group(func(r chi.Router) {
		r.Use(c.ownForms)
		r.Post("/sign-in", func(w http.ResponseWriter, r *http.Request) { c.visit(w, r).signIn() })
		r.Post("/sign-out", func(w http.ResponseWriter, r *http.Request) {
			c.signOut(w)
			c.visit(w, r).see("")
		})
		r.Post("/look-up", c.signedIn(visit.lookUp))
		r.Post("/{payment_ref:[0-9]+}/take", c.signedIn(visit.take))
		r.Post("/{payment_ref:[0-9]+}/release", c.signedIn(visit.release))
		r.Post("/{payment_ref:[0-9]+}/reverse", c.signedIn(visit.reverse))
	})
	return r
}

// ownForms refuses posts from other sites. The page's own carry their origin, as
// its Referrer-Policy lets browsers send it.
func (c *Counter) ownForms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.sameSite.Check(r) != nil {
			setHeaders(w)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, french.Foreign+"\n"+english.Foreign+"\n")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

func setHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "payment=(), camera=(), microphone=(), geolocation=()")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Vary", "Accept-Language, Cookie")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex, nofollow")
}

// visit is one request of a clerk's browser.
type visit struct {
	c    *Counter
	w    http.ResponseWriter
	r    *http.Request
	lang money.Language
	form url.Values
	desk *desk // nil before signing in
}

func (c *Counter) visit(w http.ResponseWriter, r *http.Request) visit {
	v := visit{c: c, w: w, r: r}
	if r.Method == http.MethodPost && r.ParseForm() == nil {
		v.form = r.PostForm
	}
	asked := v.form.Get(fieldLang)
	if asked == "" {
		asked = r.URL.Query().Get(fieldLang)
	}
	v.lang = page.Negotiate(asked, r.Header.Get("Accept-Language"))
	return v
}

// signedIn is for who has signed in; others are asked to. What they were about to
// do is not done then.
func (c *Counter) signedIn(do func(visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := c.visit(w, r)
		clerk, in, ok := c.who(r)
		if ok && c.signIn(w, in) == nil {
			v.desk = &desk{c: c, ClerkPrincipal: clerk}
			do(v)
			return
		}
		ref := chi.URLParam(r, fieldRef)
		if ref == "" {
			ref = digits(v.form.Get(fieldRef))
		}
		status, fault := http.StatusOK, ""
		if _, err := r.Cookie(c.cookieName()); err == nil {
			c.signOut(w)
			fault = v.words().SignedOut
		}
		if r.Method == http.MethodPost {
			status, fault = http.StatusUnauthorized, v.words().SignedOutCash
		}
		v.askForKey(status, ref, fault)
	}
}

func (v visit) words() *words { return wordsFor(v.lang) }

func (v visit) askForKey(status int, ref, fault string) {
	out := v.view(pageSignIn, v.words().SignInTitle)
	out.Ref = ref
	if fault != "" {
		out.Faults = []fieldFault{{Field: fieldKey, Message: fault}}
	}
	v.write(status, out)
}

func (v visit) signIn() {
	ref := digits(v.form.Get(fieldRef))
	clerk, err := v.c.cfg.Identities.AuthenticateClerk(strings.TrimSpace(v.form.Get(fieldKey)))
	if err != nil {
		v.c.signIns.WithLabelValues("refused").Inc()
		v.askForKey(http.StatusUnauthorized, ref, v.words().KeyRefused)
		return
	}
	now := v.c.now()
	if err := v.c.signIn(v.w, signedIn{KeyID: clerk.KeyID, Since: now, Last: now}); err != nil {
		v.askForKey(http.StatusServiceUnavailable, ref, v.words().Refusals[codeUnavailable])
		return
	}
	v.c.signIns.WithLabelValues("ok").Inc()
	if !checkout.ValidPaymentRef(ref) {
		ref = ""
	}
	v.see(ref)
}

// see sends the browser to the page of a payment, or to the desk.
func (v visit) see(ref string, query ...string) {
	setHeaders(v.w)
	http.Redirect(v.w, v.r, v.url(ref, query...), http.StatusSeeOther) //nolint:gosec // a path of ours with digits
}

func (v visit) url(ref string, query ...string) string {
	q := url.Values{fieldLang: {string(v.lang)}}
	for i := 0; i+1 < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	path := pagePrefix
	if ref != "" {
		path += "/" + ref
	}
	return path + "?" + q.Encode()
}

// queryDone tells the desk what has just been done.
const queryDone = "done"

func (v visit) showDesk(status int, ref string, refused *refusal) {
	out := v.view(pageDesk, v.words().DeskTitle)
	out.Ref = ref
	if v.r.URL.Query().Get(queryDone) == "released" {
		out.Notice = v.words().Released
	}
	if refused != nil {
		out.Faults = []fieldFault{{Field: fieldRef, Message: v.refusal(refused)}}
	}
	v.write(status, out)
}

// refusal is why, in the clerk's language.
func (v visit) refusal(r *refusal) string {
	w := v.words()
	if s := r.session; s != nil {
		switch {
		case r.code == string(checkout.CodeReserved) && held(*s, v.c.now()):
			return fmt.Sprintf(w.HeldBy, s.Collection.Clerk, page.Clock(s.Collection.WindowEndsAt))
		case r.code == string(checkout.CodeSessionEnded):
			return v.stands(*s)
		}
	}
	if text, ok := w.Refusals[r.code]; ok {
		return text
	}
	return w.Refusals[codeUnavailable]
}

// stands says where a payment stands that this clerk cannot take cash for now.
func (v visit) stands(s checkout.Session) string {
	w := v.words()
	_, cash := s.Offer(checkout.OfferCashAgency)
	switch s.Status {
	case checkout.StatusCompleted:
		return w.Paid
	case checkout.StatusExpired:
		return w.Expired
	case checkout.StatusCancelled:
		return w.Cancelled
	case checkout.StatusFailed:
		return w.Failed
	case checkout.StatusOpen:
	}
	switch {
	case !cash:
		return w.Elsewhere
	case held(s, v.c.now()):
		return fmt.Sprintf(w.HeldBy, s.Collection.Clerk, page.Clock(s.Collection.WindowEndsAt))
	case s.Collection != nil && s.Collection.Channel != checkout.ChannelCash:
		return w.InFlight
	}
	return w.Free
}

// lookUp is POST /counter/look-up: it reserves.
func (v visit) lookUp() {
	ref := digits(v.form.Get(fieldRef))
	s, _, err := v.desk.reserve(v.r.Context(), ref)
	switch refused := (*refusal)(nil); {
	case err == nil:
		v.see(s.PaymentRef)
	case errors.As(err, &refused) && refused.session != nil && v.own(*refused.session):
		v.see(ref) // which says more
	default:
		v.refuse(err, ref)
	}
}

// own says that the payment's page has more to say to this clerk than why a
// look-up is refused: cash is on record, or he may still have it.
func (v visit) own(s checkout.Session) bool {
	c := s.Collection
	return c != nil && (isTaken(s, c.ID) || held(s, v.c.now()) && c.Clerk == v.desk.Code)
}

// refuse goes back to the desk and says why.
func (v visit) refuse(err error, ref string) {
	r := asRefusal(err)
	v.showDesk(r.status(), ref, r)
}

// show is GET /counter/{payment_ref}: whatever there is to see or do now.
func (v visit) show() { v.showWith(http.StatusOK) }

func (v visit) showWith(status int, faults ...fieldFault) {
	ref := chi.URLParam(v.r, fieldRef)
	err := v.desk.lookUps(v.r.Context())
	var s checkout.Session
	if err == nil {
		s, err = v.desk.find(v.r.Context(), ref)
	}
	if err != nil {
		v.refuse(err, ref)
		return
	}
	v.showSession(status, s, faults...)
}

// justTaken is how long after its confirmation a receipt is that of the cash at hand.
const justTaken = 2 * time.Minute

func (v visit) showSession(status int, s checkout.Session, faults ...fieldFault) {
	now := v.c.now()
	show := func(out *view, field string) {
		for _, f := range faults {
			if f.Field != field {
				f.Field = "" // the summary links only to what is on the page
			}
			out.Faults = append(out.Faults, f)
		}
		v.write(status, out)
	}
	switch c := s.Collection; {
	case c != nil && isTaken(s, c.ID):
		out := v.view(pageReceipt, v.words().ReceiptTitle)
		out.about(s)
		out.receipt(s, v.desk.ClerkPrincipal, checkout.SameDay(c.DecidedAt, now))
		if c.Clerk != v.desk.Code || now.Sub(c.DecidedAt) > justTaken {
			out.Already = out.W.Already
		}
		show(out, fieldReason)
	case held(s, now) && c.Clerk == v.desk.Code:
		out := v.view(pageReview, v.words().ReviewTitle)
		out.about(s)
		out.Until = fmt.Sprintf(out.W.HeldUntil, page.Clock(c.WindowEndsAt))
		out.CollectionID, out.TotalMinor, out.Ended = c.ID, c.Amount, s.Ended()
		show(out, fieldReceipt)
	default:
		out := v.view(pageStands, v.words().StandsTitle)
		out.about(s)
		out.Stands = v.stands(s)
		out.Free = out.Stands == out.W.Free
		show(out, "")
	}
}

// take is POST /counter/{payment_ref}/take. The form may be sent as often as it
// likes.
func (v visit) take() {
	ref, receipt := chi.URLParam(v.r, fieldRef), strings.TrimSpace(v.form.Get(fieldReceipt))
	id, ok := form.CanonicalUUID(v.form.Get(fieldCollection))
	total, err := strconv.ParseInt(v.form.Get(fieldTotal), 10, 64)
	switch {
	case !ok || err != nil:
		v.see(ref)
		return
	case receipt != "" && !form.IsLine(receipt, maxReceipt):
		v.showWith(http.StatusUnprocessableEntity, fieldFault{fieldReceipt, v.words().ReceiptTooLong, receipt})
		return
	}
	s, became, _, err := v.desk.take(v.r.Context(), report{ref, id, total, receipt})
	refused := (*refusal)(nil)
	switch {
	case err == nil && became == takenCase:
		out := v.view(pageCase, v.words().CaseTitle)
		out.about(s)
		out.Clerk, out.Receipt, out.CollectionID = v.desk.Code, receipt, id
		v.write(http.StatusOK, out)
	case err == nil:
		v.see(ref)
	case errors.As(err, &refused) && (refused.code == codeUnavailable || refused.code == string(checkout.CodeRateLimited)):
		out := v.view(pageUnsure, v.words().UnsureTitle)
		out.Ref, out.CollectionID, out.TotalMinor, out.Receipt = ref, id, total, receipt
		v.write(refused.status(), out)
	default:
		v.refuse(err, ref)
	}
}

// release is POST /counter/{payment_ref}/release.
func (v visit) release() {
	ref := chi.URLParam(v.r, fieldRef)
	id, ok := form.CanonicalUUID(v.form.Get(fieldCollection))
	if !ok {
		v.see(ref)
		return
	}
	if err := v.desk.release(v.r.Context(), ref, id); err != nil {
		v.refuse(err, ref)
		return
	}
	v.see("", queryDone, "released")
}

// reverse is POST /counter/{payment_ref}/reverse.
func (v visit) reverse() {
	ref, reason := chi.URLParam(v.r, fieldRef), strings.TrimSpace(v.form.Get(fieldReason))
	id, ok := form.CanonicalUUID(v.form.Get(fieldCollection))
	switch {
	case !ok:
		v.see(ref)
		return
	case !form.IsLine(reason, maxReason):
		v.showWith(http.StatusUnprocessableEntity, fieldFault{fieldReason, v.words().ReasonRequired, reason})
		return
	}
	_, _, err := v.desk.reverse(v.r.Context(), ref, id, reason)
	refused := (*refusal)(nil)
	switch {
	case err == nil:
		v.see(ref)
	case errors.As(err, &refused) && refused.session != nil:
		v.showSession(refused.status(), *refused.session, fieldFault{Message: v.refusal(refused)})
	default:
		v.refuse(err, ref)
	}
}

// digits is a reference as people write it: without spaces and the like.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("-.\u202f\u200b", r) {
			return -1
		}
		return r
	}, s)
}

// fieldFault is what is wrong with a field of the page, or with no field, and what
// was typed there.
type fieldFault struct{ Field, Message, Typed string }

// view is what a page says.
type view struct {
	W           *words
	Page, Title string
	Style       string
	LanguageURL string
	Test        bool
	Who         string // the clerk signed in
	Faults      []fieldFault
	Notice      string

	Ref, RefText             string
	Agency, Service, Subject string
	Due, Fee, Total          string
	TotalMinor               int64
	CollectionID             string
	Until                    string
	Ended                    bool // meanwhile
	Stands                   string
	Free                     bool

	Late, Mine, CanReverse bool
	// Already warns of cash that was taken before this look-up.
	Already                string
	Clerk, Receipt, PaidAt string
	Reversed               string
}

// At is what is wrong with a field; nothing is.
func (out *view) At(field string) fieldFault {
	for _, f := range out.Faults {
		if f.Field == field {
			return f
		}
	}
	return fieldFault{}
}

func (v visit) view(name, title string) *view {
	w := v.words()
	ref := chi.URLParam(v.r, fieldRef)
	other := v
	other.lang = money.Language(w.OtherTag)
	out := &view{W: w, Page: name, Title: title, Style: v.c.style.path, LanguageURL: other.url(ref), Ref: ref}
	if v.desk != nil {
		out.Test, out.Who, out.Agency = !v.desk.Live, fmt.Sprintf(w.SignedInAs, v.desk.Name, v.desk.Counter), v.desk.AgencyName
	}
	return out
}

// about says what is paid.
func (out *view) about(s checkout.Session) {
	out.Ref, out.RefText = s.PaymentRef, page.GroupReference(s.PaymentRef)
	out.Service, out.Subject = s.ServiceLabel, s.Description
	currency, ok := money.Lookup(s.Currency)
	if !ok {
		return
	}
	lang := money.Language(out.W.Code)
	out.Due = currency.Format(lang, s.Amount)
	if offer, ok := s.Offer(checkout.OfferCashAgency); ok {
		out.Fee, out.Total = currency.Format(lang, offer.Fee), currency.Format(lang, s.Amount+offer.Fee)
	}
}

// receipt says that cash was taken, and what may become of it.
func (out *view) receipt(s checkout.Session, clerk identity.ClerkPrincipal, today bool) {
	c := s.Collection
	out.CollectionID, out.Clerk, out.Receipt = c.ID, c.Clerk, c.OperatorRef
	out.PaidAt = page.Date(money.Language(out.W.Code), c.DecidedAt)
	out.Late, out.Mine = !s.Paid(), c.Clerk == clerk.Code
	out.CanReverse = c.ReversedBy == "" && today
	if c.ReversedBy != "" {
		out.Reversed = fmt.Sprintf(out.W.ReversedText, c.ReversedBy, page.Date(money.Language(out.W.Code), c.ReversedAt))
	}
}

func (v visit) write(status int, out *view) {
	var b bytes.Buffer
	if err := v.c.templates[out.Page].ExecuteTemplate(&b, "layout.html", out); err != nil {
		v.c.cfg.Log.LogAttrs(v.r.Context(), slog.LevelError, "rendering a counter page", slog.String("page", out.Page),
			slog.String("request_id", problem.RequestID(v.r.Context())), slog.Any("error", err))
		http.Error(v.w, v.words().Refusals[codeUnavailable], http.StatusInternalServerError)
		return
	}
	setHeaders(v.w)
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		v.w.Header().Set("Retry-After", "5")
	}
	v.w.WriteHeader(status)
	_, _ = b.WriteTo(v.w)
}
