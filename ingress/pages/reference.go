package pages

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/contact"
	"quittance/internal/quota"
	"quittance/internal/sessions"
)

// Pages under /p are for people who know a payment reference and nothing else. A reference is
// printed and read aloud, so it is no key: see "Paying by reference" in the documentation of
// the package.

const (
	prefixReference = "/p/"
	// subjectShown is how many characters of a subject are shown, subjectLeast how many it must
	// have.
	subjectShown = 4
	subjectLeast = 8
	// grantLife is how long a browser is known to have paid, maxGrants how many references it
	// has at most.
	grantLife = 24 * time.Hour
	maxGrants = 6
	// grantLabel separates the seal of the cookie from others.
	// The cookies are two, so that a page that is loaded while the browser pays cannot take the
	// receipt away.
	foundCookie = "quittance_references"
	paidCookie  = "quittance_payments"
	// maxTyped is how many characters of a reference are shown again.
	maxTyped = 80
)

// The limits of looking up references in a minute, of all instances together.
const (
	LookupsPerClient = 30
	UnknownLookups   = 600
)

// Lookups limits the look-ups of references: internal/quota.
type Lookups interface {
	Begin(ctx context.Context, client string) (q quota.Lookup, until time.Duration, ok bool, err error)
}

// reference is what a visit under /p has in addition.
type reference struct {
	ref string
	// found are the references that this browser looked up, paid the payments that it confirmed.
	found, paid []grant
}

// grant says that a browser looked a reference up, or confirmed a payment of it.
type grant struct {
	Ref string `json:"ref"`
	// Collection is the id of the confirmation; empty for a look-up.
	Collection string    `json:"collection_id,omitempty"`
	At         time.Time `json:"at"`
}

// readReference returns the digits of a reference that somebody typed or that a code reader
// wrote. People write spaces and dashes between the digits, and letters that look like digits.
// The result may be no payment_ref.
func readReference(typed string) string {
	if address, _, found := strings.Cut(typed, "?"); found || strings.Contains(typed, "/") {
		address = strings.TrimRight(address, "/ ")
		typed = address[strings.LastIndex(address, "/")+1:]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || strings.ContainsRune("._\u2212", r):
			return -1
		case strings.ContainsRune("oOQ", r):
			return '0'
		case strings.ContainsRune("iIlL|", r):
			return '1'
		case strings.ContainsRune("zZ", r):
			return '2'
		case strings.ContainsRune("sS", r):
			return '5'
		case strings.ContainsRune("bB", r):
			return '8'
		}
		return r
	}, contact.Visible(typed))
}

// askReference is GET /p: the form to type a reference, and its answer.
func (p *Pages) askReference(w http.ResponseWriter, r *http.Request) {
	v := visit{p: p, w: w, r: r, lang: web.Language(r, nil), by: &reference{}}
	query := r.URL.Query()
	if !query.Has(page.FieldReference) {
		v.typeReference(http.StatusOK, "", "")
		return
	}
	typed := query.Get(page.FieldReference)
	switch ref := readReference(typed); {
	case ref == "":
		v.typeReference(http.StatusUnprocessableEntity, "", page.ErrorReferenceMissing)
	case !checkout.ValidPaymentRef(ref):
		v.typeReference(http.StatusUnprocessableEntity, typed, page.ErrorReferenceMistyped)
	default:
		v.by.ref = ref
		v.see()
	}
}

// typeReference answers with the form for a reference.
func (v visit) typeReference(status int, typed string, fault page.ErrorCode) {
	if r := []rune(typed); len(r) > maxTyped {
		typed = string(r[:maxTyped])
	}
	other := url.Values{page.FieldLanguage: {string(v.otherLanguage())}}
	if typed != "" {
		other.Set(page.FieldReference, typed)
	}
	out := page.View{
		Lang: v.lang, State: page.StateReference, Typed: typed, Action: strings.TrimSuffix(prefixReference, "/"),
		LanguageURL: strings.TrimSuffix(prefixReference, "/") + "?" + other.Encode(),
	}
	if fault != "" {
		out.Errors = []page.FieldError{{Field: page.FieldReference, Code: fault}}
	}
	v.write(status, out)
}

// errMistyped and errLimited are refusals of a reference before it is looked up.
var (
	errMistyped = errors.New("nobody issued this reference")
	errLimited  = errors.New("too many references are looked up")
)

// byReference admits a visit under /p and finds its session. When ok is false the request has
// been answered.
func (v visit) byReference() (_ visit, ok bool) {
	typed := chi.URLParam(v.r, "payment_ref")
	if plain, err := url.PathUnescape(typed); err == nil {
		typed = plain
	}
	v.by = &reference{ref: readReference(typed)}
	if checkout.ValidPaymentRef(v.by.ref) && !strings.HasPrefix(v.r.URL.Path, prefixReference+v.by.ref) {
		v.see() // to the one spelling of the address
		return v, false
	}
	wait, err := v.find()
	switch {
	case err == nil:
		return v, true
	case errors.Is(err, errMistyped):
		v.typeReference(http.StatusNotFound, typed, page.ErrorReferenceMistyped)
	case errors.Is(err, errLimited):
		v.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		v.typeReference(http.StatusTooManyRequests, v.by.ref, page.ErrorTooManyLookups)
	case errors.Is(err, sessions.ErrNotFound):
		v.unknown()
	default:
		v.unavailable("looking up a payment reference", err)
	}
	return v, false
}

// find finds the session of the reference. A browser that has found it before does not count as
// another look-up. The errors are errMistyped, errLimited with the time to wait, what wraps
// sessions.ErrNotFound, and others for a session that cannot be read now.
func (v *visit) find() (wait time.Duration, err error) {
	if !checkout.ValidPaymentRef(v.by.ref) {
		return 0, errMistyped
	}
	v.by.found, v.by.paid = v.p.grants(v.r, foundCookie), v.p.grants(v.r, paidCookie)
	known := slices.ContainsFunc(slices.Concat(v.by.found, v.by.paid), func(g grant) bool { return g.Ref == v.by.ref })
	if limited := problem.From(v.admit(known)); limited != nil {
		return limited.RetryAfter, errLimited
	}
	var lookup quota.Lookup
	if !known {
		var admitted bool
		switch lookup, wait, admitted, err = v.p.cfg.Lookups.Begin(v.r.Context(), web.Client(v.r)); {
		case err != nil:
			return 0, err
		case !admitted:
			v.p.lookups.WithLabelValues("refused").Inc()
			return wait, errLimited
		}
	}
	s, err := v.p.cfg.Sessions.ByPaymentRef(v.r.Context(), v.by.ref)
	if err == nil && s.Mode != checkout.ModeHosted {
		err = sessions.ErrNotFound // its page is the frame of an integrator
	}
	switch {
	case errors.Is(err, sessions.ErrNotFound):
		v.p.lookups.WithLabelValues("unknown").Inc()
		return 0, err
	case err != nil:
		return 0, err
	}
	v.id, v.known = s.ID, &s
	if known {
		return 0, nil
	}
	v.p.lookups.WithLabelValues("found").Inc()
	if err := lookup.Found(v.r.Context()); err != nil {
		v.p.cfg.Log.LogAttrs(v.r.Context(), slog.LevelWarn, "a known reference counts as an unknown one", slog.Any("error", err))
	}
	v.by.found, err = v.note(foundCookie, v.by.found, grant{Ref: v.by.ref})
	return 0, err
}

// admit admits a visit by a reference. A browser that has found it is in the middle of a payment.
func (v *visit) admit(known bool) error {
	if known {
		return v.p.cfg.Gate.Payer(v.r, "reference "+v.by.ref)
	}
	return v.p.cfg.Gate.Call(v.r)
}

// liveByReference is GET /p/{payment_ref}/live.
func (p *Pages) liveByReference(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v := visit{p: p, w: w, r: r, by: &reference{ref: chi.URLParam(r, "payment_ref")}}
	wait, err := v.find()
	switch {
	case err == nil:
		p.cfg.Live.Serve(w, r, v.id, web.Client(r))
	case errors.Is(err, errLimited):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		w.WriteHeader(http.StatusTooManyRequests)
	case errors.Is(err, errMistyped), errors.Is(err, sessions.ErrNotFound):
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func grantLabel(cookie string) string { return "payment references of a browser: " + cookie }

// Labels returns the labels under which the pages seal cookies (internal/secret).
func Labels() []string { return []string{grantLabel(foundCookie), grantLabel(paidCookie)} }

func (p *Pages) cookie(name string) web.Cookie {
	return web.Cookie{Base: name, PublicURL: p.cfg.PublicURL, SameSite: http.SameSiteLaxMode} // the acquirer's page leads back to the receipt
}

// grants returns what a cookie of the browser says. A cookie that cannot be read says nothing.
func (p *Pages) grants(r *http.Request, name string) (out []grant) {
	cookie, err := r.Cookie(p.cookie(name).Name())
	if err != nil {
		return nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return nil
	}
	plain, err := p.cfg.Keys.OpenCredential(grantLabel(name), sealed, nil)
	if err != nil || json.Unmarshal(plain, &out) != nil {
		return nil
	}
	return slices.DeleteFunc(out, func(g grant) bool { return p.cfg.Now().Sub(g.At) >= grantLife })
}

// note adds a grant to a cookie of the browser and returns all of it. It must be called before
// the answer is written.
func (v visit) note(name string, old []grant, g grant) ([]grant, error) {
	g.At = v.p.cfg.Now().UTC().Truncate(time.Second)
	all := append(slices.DeleteFunc(old, func(o grant) bool { return o.Ref == g.Ref && o.Collection == g.Collection }), g)
	all = all[max(0, len(all)-maxGrants):]
	plain, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	sealed, err := v.p.cfg.Keys.Seal(grantLabel(name), plain, nil)
	if err != nil {
		return nil, err
	}
	v.p.cookie(name).Set(v.w, base64.RawURLEncoding.EncodeToString(sealed), int(grantLife.Seconds()))
	return all, nil
}

// pays notes that this browser confirms the payment with the id. Without a reference there is
// nothing to note: whoever has the session's address may see everything.
func (v visit) pays(collection string) (err error) {
	if v.by != nil {
		v.by.paid, err = v.note(paidCookie, v.by.paid, grant{Ref: v.by.ref, Collection: collection})
	}
	return err
}

// shows reports whether the visitor may see who paid the session and how: the visitor has the
// session's address, or this browser confirmed its payment. A payment that waits for somebody
// else's phone is not shown to the holder of the address either, who cannot approve it.
func (v visit) shows(s checkout.Session) bool {
	if v.by == nil {
		return !s.InFlight() || !s.Collection.ByReference
	}
	return s.Collection != nil && v.began(s.Collection.ID)
}

// began reports whether this browser confirmed the payment by the reference.
func (v visit) began(collection string) bool {
	return slices.ContainsFunc(v.by.paid, func(g grant) bool { return g.Ref == v.by.ref && g.Collection == collection })
}

// refusal returns the refusal of the session's last payment by the reference, if this browser
// confirmed it.
func (st steps) refusal() []page.FieldError {
	n := len(st.s.Refusals)
	if st.by == nil || n == 0 || !st.began(st.s.Refusals[n-1].CollectionID) {
		return nil
	}
	return []page.FieldError{{Code: page.ErrorRefused, Failure: string(st.s.Refusals[n-1].FailureCode)}}
}

// othersEnd are the pages of a session without steps for somebody who knows the reference and
// did not pay.
var othersEnd = map[page.State]page.State{
	page.StateWaiting: page.StateBusy, page.StateCompleted: page.StatePaid, page.StateExpired: page.StateExpired,
	page.StateUndecided: page.StateHeld, page.StateLate: page.StateHeld, page.StateMismatched: page.StateHeld,
	page.StateFailed: page.StateClosed, page.StateCancelled: page.StateClosed, page.StateReversed: page.StateClosed,
}

// subjectEnds returns the last characters of those who owe the session's dues.
func subjectEnds(s checkout.Session) (out []string) {
	for _, item := range s.Items {
		subject := []rune(item.SubjectRef)
		if len(subject) < subjectLeast {
			continue
		}
		if end := string(subject[len(subject)-subjectShown:]); !slices.Contains(out, end) {
			out = append(out, end)
		}
	}
	return out
}

// services returns the names of the services that the session pays, from the agency's catalogue.
func services(s checkout.Session) string {
	if s.ServiceLabel != "" {
		return s.ServiceLabel
	}
	var out []string
	for _, item := range s.Items {
		if item.ServiceLabel != "" && !slices.Contains(out, item.ServiceLabel) {
			out = append(out, item.ServiceLabel)
		}
	}
	return strings.Join(out, ", ")
}

// printed leaves in a page what a slip shows. The integrator's addresses often have the number
// of the order.
func (v visit) printed(s checkout.Session, out page.View) page.View {
	out.Description, out.Items, out.SuccessURL, out.CancelURL = "", nil, "", ""
	out.Service, out.SubjectEnds = services(s), subjectEnds(s)
	return out
}
