package counter

import (
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/money/language"
	"quittance/money/localtime"
)

// pagePrefix is where clerks find the page.
const pagePrefix = "/counter"

// Fields of the page's forms.
const (
	fieldKey        = "key"
	fieldRef        = "payment_ref"
	fieldCollection = "collection_id"
	fieldTotal      = "total"
	fieldReceipt    = "receipt"
	fieldReason     = "reason"
)

//go:embed templates
var templates embed.FS

// printing is the script of the button that prints a page.
//
//go:embed assets/print.js
var printing []byte

func (c *Counter) pages(r chi.Router) {
	r.Get("/", c.signedIn(func(v visit) { v.showDesk(http.StatusOK, "", nil) }))
	r.Get("/day", c.signedIn(visit.showDay))
	r.Get("/pin", c.signedIn(visit.showPIN))
	r.Get("/till", c.signedIn(visit.showTill))
	r.Get("/till/{till:[0-9a-f-]+}", c.signedIn(visit.showReport))
	r.Get("/till/{till:[0-9a-f-]+}/{step}", func(w http.ResponseWriter, r *http.Request) {
		c.visit(w, r).See("till/" + chi.URLParam(r, fieldTill))
	})
	r.Get("/{payment_ref:[0-9]+}", c.signedIn(visit.show))
	r.Get("/{payment_ref:[0-9]+}/"+pathReceipt, c.signedIn(visit.receiptPDF))
	// The address of a form, opened again, leads to the payment's page.
	r.Get("/{payment_ref:[0-9]+}/{step}", func(w http.ResponseWriter, r *http.Request) {
		c.visit(w, r).See(chi.URLParam(r, fieldRef))
	})
}

func (c *Counter) forms(r chi.Router) {
	r.Post("/sign-in", c.open(visit.signIn))
	r.Post("/sign-in/pin", c.open(visit.signInWithPIN))
	r.Post("/pin", c.signedIn(visit.choosePIN))
	r.Post("/pin/forget", c.signedIn(visit.forgetDevice))
	r.Post("/till/open", c.signedIn(visit.openTill))
	r.Post("/till/{till:[0-9a-f-]+}/count", c.signedIn(visit.countTill))
	r.Post("/till/{till:[0-9a-f-]+}/sign", c.signedIn(visit.signTill))
	r.Post("/sign-out", c.open(visit.signOut))
	r.Post("/look-up", c.signedIn(visit.lookUp))
	r.Post("/{payment_ref:[0-9]+}/take", c.signedIn(visit.take))
	r.Post("/{payment_ref:[0-9]+}/release", c.signedIn(visit.release))
	r.Post("/{payment_ref:[0-9]+}/reverse", c.signedIn(visit.reverse))
}

// visit is one request of a clerk's browser.
type visit struct {
	web.Visit
	c       *Counter
	w       *words
	desk    *desk  // nil when nobody is signed in
	session string // of the clerk
}

func (c *Counter) visit(w http.ResponseWriter, r *http.Request) visit {
	v := c.site.Visit(w, r)
	return visit{Visit: v, c: c, w: texts.In(v.Lang)}
}

// ref returns the reference in the page's address.
func (v visit) ref() string { return chi.URLParam(v.R, fieldRef) }

// signedIn runs a handler for a clerk who is signed in. Anybody else is asked to sign
// in, and the request is not carried out.
func (c *Counter) signedIn(do func(visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := c.visit(w, r)
		if !v.admitted() {
			return
		}
		id, present, ok := c.signIn.Session(r)
		if ok {
			clerk, err := c.cfg.Identities.ClerkSession(r.Context(), id)
			switch {
			case err == nil:
				v.desk, v.session = &desk{c: c, ClerkPrincipal: clerk}, id
				do(v)
				return
			case !errors.Is(err, identity.ErrUnauthorized):
				v.unavailable("reading a clerk's session", err, v.w.NothingDone)
				return
			}
		}
		ref := v.ref()
		if ref == "" {
			ref = reference(v.Form.Get(fieldRef))
		}
		status, fault := http.StatusOK, ""
		if present {
			c.signIn.End(w)
			fault = v.w.SignedOut
		}
		if r.Method == http.MethodPost {
			status, fault = http.StatusUnauthorized, v.w.SignedOutCash
		}
		v.askForKey(status, ref, fault)
	}
}

func (v visit) askForKey(status int, ref, fault string) {
	out := v.signInView(ref)
	field := fieldKey
	if out.PINKnown && fault != v.w.KeyRefused && fault != v.w.TooManyWrong {
		field = fieldCode // the first of the page
	}
	if fault != "" {
		out.Fault(field, fault, "")
	}
	v.Write(status, "signin", out)
}

// signInView is the page on which clerks sign in. A remembered device asks for a PIN first.
func (v visit) signInView(ref string) *view {
	out := v.view(v.w.SignInTitle)
	out.Ref = ref
	_, _, out.PINKnown = v.c.devices.Session(v.R)
	if v.R.URL.Query().Get(queryDone) == doneForgotten {
		out.Notice = v.w.PIN.Forgotten
	}
	return out
}

// toPayment leads a clerk who has signed in to the payment that the clerk asked for before,
// or to the desk.
func (v visit) toPayment(ref string) {
	if !checkout.ValidPaymentRef(ref) {
		ref = ""
	}
	v.See(ref)
}

// signIn is POST /counter/sign-in.
func (v visit) signIn() {
	ref := reference(v.Form.Get(fieldRef))
	clerk, err := v.c.cfg.Identities.AuthenticateClerk(strings.TrimSpace(v.Form.Get(fieldKey)))
	if err != nil && !errors.Is(err, identity.ErrUnauthorized) {
		v.unavailable("signing a clerk in", err, v.w.NothingDone)
		return
	}
	if err != nil {
		v.refuseKey(ref)
		return
	}
	id, err := v.c.cfg.Identities.BeginClerkSession(v.R.Context(), clerk.KeyID)
	if err == nil {
		err = v.c.signIn.Begin(v.W, id)
	}
	if err != nil {
		v.unavailable("signing a clerk in", err, v.w.NothingDone)
		return
	}
	v.c.signIns.WithLabelValues("ok").Inc()
	v.toPayment(ref)
}

// signOut is POST /counter/sign-out. The browser keeps the cookie until the session has
// ended on the server: whoever copied the cookie would stay signed in otherwise.
func (v visit) signOut() {
	if id, _, ok := v.c.signIn.Session(v.R); ok {
		if err := v.c.cfg.Identities.EndClerkSession(v.R.Context(), id); err != nil {
			v.unavailable("signing a clerk out", err, v.w.StillSignedIn)
			return
		}
	}
	v.c.signIn.End(v.W)
	v.See("")
}

// unavailable says that the service cannot answer, and what that means for the clerk.
func (v visit) unavailable(doing string, err error, meaning string) {
	v.c.cfg.Log.LogAttrs(v.R.Context(), slog.LevelWarn, "the page of a counter is unavailable", slog.String("doing", doing),
		slog.String("request_id", problem.RequestID(v.R.Context())), slog.Any("error", err))
	out := v.view(v.w.UnsureTitle)
	out.Stands = meaning
	v.Write(http.StatusServiceUnavailable, "away", out)
}

// queryDone says in the desk's address what was just done.
const queryDone = "done"

// Values of queryDone.
const (
	doneReleased  = "released"
	doneChosen    = "pin"
	doneForgotten = "forgotten"
)

// showDesk answers with the form for a reference, and with the refusal of the last
// one unless it is nil.
func (v visit) showDesk(status int, ref string, r *refusal) {
	out := v.view(v.w.DeskTitle)
	out.Ref = ref
	switch v.R.URL.Query().Get(queryDone) {
	case doneReleased:
		out.Notice = v.w.Released
	case doneChosen:
		out.Notice = v.w.PIN.Chosen
	}
	out.PINKnown = v.desk.Device != ""
	if r != nil {
		out.Fault(fieldRef, v.refusal(r), ref)
	}
	v.Write(status, "desk", out)
}

// lookUp is POST /counter/look-up. It reserves the session.
func (v visit) lookUp() {
	ref := reference(v.Form.Get(fieldRef))
	s, _, err := v.desk.reserve(v.R.Context(), ref)
	switch r := (*refusal)(nil); {
	case err == nil:
		v.See(s.PaymentRef)
	case errors.As(err, &r) && r.session != nil && v.own(*r.session):
		v.See(ref) // the payment's page says more
	default:
		v.refuse(err, ref)
	}
}

// own reports whether the payment's page says more to this clerk than the refusal of
// a look-up: cash is on record, or this clerk holds the session.
func (v visit) own(s checkout.Session) bool {
	c := s.Collection
	return c != nil && (isTaken(s, c.ID) || held(s, v.c.now()) && c.Clerk == v.desk.Code)
}

// refuse goes back to the desk and says why.
func (v visit) refuse(err error, ref string) {
	r := asRefusal(err)
	v.RetryAfter(r.after())
	v.showDesk(r.status(), ref, r)
}

// show is GET /counter/{payment_ref}: the payment and what the clerk can do with it.
func (v visit) show() { v.showFault(http.StatusOK, "", "", "") }

// showFault reads the session again and shows it with a fault of the form.
func (v visit) showFault(status int, field, message, typed string) {
	s, err := v.desk.look(v.R.Context(), v.ref())
	if err != nil {
		v.refuse(err, v.ref())
		return
	}
	v.showSession(status, s, field, message, typed)
}

// justTaken is how long after its confirmation a receipt is that of the cash at hand.
const justTaken = 2 * time.Minute

// showSession answers with the page of a session, and with a fault unless its message
// is empty.
func (v visit) showSession(status int, s checkout.Session, field, message, typed string) {
	now := v.c.now()
	c := s.Collection
	var out *view
	name, form := "stands", "" // form is the page's own field
	switch {
	case c != nil && isTaken(s, c.ID):
		name, form, out = "receipt", fieldReason, v.view(v.w.ReceiptTitle)
		out.receipt(v, s, localtime.SameDay(c.DecidedAt, now))
		if c.Clerk != v.desk.Code || now.Sub(c.DecidedAt) > justTaken {
			out.Already = v.w.Already
		}
	case held(s, now) && c.Clerk == v.desk.Code:
		name, form, out = "review", fieldReceipt, v.view(v.w.ReviewTitle)
		out.Until = fmt.Sprintf(v.w.HeldUntil, language.Clock(c.WindowEndsAt))
		out.CollectionID, out.TotalMinor, out.Ended = c.ID, c.Amount, s.Ended()
	default:
		out = v.view(v.w.StandsTitle)
		out.Stands = v.stands(s)
		out.Free = out.Stands == v.w.Free
	}
	out.about(v, s)
	if field != form {
		field = "" // the summary links only to a field that is on the page
	}
	if message != "" {
		out.Fault(field, message, typed)
	}
	v.Write(status, name, out)
}

// take is POST /counter/{payment_ref}/take. Sending the form again changes nothing.
func (v visit) take() {
	ref, receipt := v.ref(), strings.TrimSpace(v.Form.Get(fieldReceipt))
	id, ok := form.CanonicalUUID(v.Form.Get(fieldCollection))
	total, err := strconv.ParseInt(v.Form.Get(fieldTotal), 10, 64)
	switch {
	case !ok || err != nil:
		v.See(ref)
		return
	case receipt != "" && !form.IsLine(receipt, maxReceipt):
		v.showFault(http.StatusUnprocessableEntity, fieldReceipt, v.w.ReceiptTooLong, receipt)
		return
	}
	s, became, _, err := v.desk.take(v.R.Context(), report{ref, id, total, receipt})
	r := (*refusal)(nil)
	switch {
	case err == nil && became == takenCase:
		out := v.view(v.w.CaseTitle)
		out.about(v, s)
		out.Clerk, out.Receipt, out.CollectionID = v.desk.Code, receipt, id
		v.Write(http.StatusOK, "case", out)
	case err == nil:
		v.See(ref)
	case errors.As(err, &r) && slices.Contains([]string{codeUnavailable, codeGuessed, string(checkout.CodeRateLimited)}, r.code):
		out := v.view(v.w.UnsureTitle)
		out.Ref, out.CollectionID, out.TotalMinor, out.Receipt = ref, id, total, receipt
		v.RetryAfter(r.after())
		v.Write(r.status(), "unsure", out)
	default:
		v.refuse(err, ref)
	}
}

// release is POST /counter/{payment_ref}/release.
func (v visit) release() {
	id, ok := form.CanonicalUUID(v.Form.Get(fieldCollection))
	if !ok {
		v.See(v.ref())
		return
	}
	if err := v.desk.release(v.R.Context(), v.ref(), id); err != nil {
		v.refuse(err, v.ref())
		return
	}
	v.See("", queryDone, doneReleased)
}

// reverse is POST /counter/{payment_ref}/reverse.
func (v visit) reverse() {
	ref, reason := v.ref(), strings.TrimSpace(v.Form.Get(fieldReason))
	id, ok := form.CanonicalUUID(v.Form.Get(fieldCollection))
	switch {
	case !ok:
		v.See(ref)
		return
	case !form.IsLine(reason, maxReason):
		v.showFault(http.StatusUnprocessableEntity, fieldReason, v.w.ReasonRequired, reason)
		return
	}
	_, _, err := v.desk.reverse(v.R.Context(), ref, id, reason)
	r := (*refusal)(nil)
	switch {
	case err == nil:
		v.See(ref)
	case errors.As(err, &r) && r.session != nil:
		v.showSession(r.status(), *r.session, "", v.refusal(r), "")
	default:
		v.refuse(err, ref)
	}
}
