package citizen

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/contact"
	"quittance/internal/network"
	"quittance/internal/secret"
	"quittance/money"
)

// PortalPrefix is where citizens find the portal's pages.
const PortalPrefix = "/portal"

// Fields of the pages' forms.
const (
	fieldAddress = "address"
	fieldCode    = "code"
	fieldAgency  = "tenant_id"
	fieldSubject = "subject_ref"
	fieldLink    = "link_code"
	fieldDue     = "due"
	fieldAmount  = "amount-" // and the position of the due
	fieldKey     = "key"
	fieldReplace = "replace"
	// fieldReminders is how a citizen wants reminders.
	fieldReminders = "reminders"
	// fieldKeep has what a person typed whose session ended meanwhile, or fieldBack.
	fieldKeep = "keep"
	// fieldBack is the page to which somebody comes back who has signed in: security or reminders.
	fieldBack = "back"
	// fieldPerson is whose form it is: what one person typed is not shown to the next one who
	// signs in in the browser.
	fieldPerson = "person"

	queryDone = "done"
	queryPage = "page"
)

//go:embed templates
var templates embed.FS

//go:embed assets/passkey.js
var script []byte

// Portal serves the citizen portal's pages. They call the operations of a Service. Safe for
// concurrent use.
type Portal struct {
	service *Service
	site    *web.Site
	clients *web.Clients
}

// NewPortal makes the pages of a Service, within limits of calls a second.
func NewPortal(s *Service, limits web.Limits) (*Portal, error) {
	if !(limits[network.Subscriber] > 0) {
		return nil, errors.New("citizen: a client must be allowed more than 0 calls a second")
	}
	site, err := web.New(web.Config{Prefix: PortalPrefix, Files: templates, PublicURL: s.cfg.PublicURL, Log: s.cfg.Log, Script: script})
	if err != nil {
		return nil, err
	}
	return &Portal{service: s, site: site, clients: web.NewClients(limits, web.ClientBurst)}, nil
}

// Routes adds the pages to the router of the whole edge.
func (p *Portal) Routes(r chi.Router) {
	p.site.Routes(r.With(web.Compress()), func(r chi.Router) {
		r.Get("/", p.signedIn(visit.showDues))
		r.Get("/references", p.signedIn(func(v visit) { v.showReferences(http.StatusOK, nil) }))
		r.Get("/payments", p.signedIn(visit.showPayments))
		r.Get("/reminders", p.signedIn(func(v visit) { v.showReminders(http.StatusOK, "") }))
		r.Get("/security", p.signedIn(visit.showSecurity))
		r.Get("/security/prove", p.signedIn(visit.proveAddress))
		r.Get("/security/again", p.signedIn(func(v visit) { v.signInAgain(http.StatusOK) }))
	}, func(r chi.Router) {
		r.Use(p.own)
		r.Post("/sign-in", p.open(visit.askCode))
		r.Post("/verify", p.open(visit.enterCode))
		r.Post("/sign-out", p.open(visit.signOut))
		r.Post("/references", p.signedIn(visit.addReference))
		r.Post("/references/{id}/remove", p.signedIn(visit.removeReference))
		r.Post("/references/{id}/renew", p.signedIn(visit.askRenewal))
		r.Post("/resume", p.signedIn(visit.resume))
		r.Post("/reminders", p.signedIn(visit.chooseReminders))
		r.Post("/security/later", p.open(visit.noPasskeyNow))
		r.Post("/security/sign-out", p.signedIn(visit.signOutEverywhere))
		r.Post("/security/passkeys/{id}/remove", p.signedIn(visit.removePasskey))
		r.Post("/cart", p.signedIn(visit.openCart))
		r.Post("/checkout", p.signedIn(visit.payCart))
	})
}

// own is middleware that refuses what is not of our own pages, by the rule of the API.
func (p *Portal) own(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.service.OwnOrigin(r) {
			v := p.visit(w, r)
			v.Form = url.Values{} // it is somebody else's
			v.explain(http.StatusForbidden, v.w.ForeignTitle, v.w.Foreign)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// visit is one request of a citizen's browser.
type visit struct {
	web.Visit
	p   *Portal
	w   *words
	who Visitor // zero when nobody is signed in
}

func (p *Portal) visit(w http.ResponseWriter, r *http.Request) visit {
	v := p.site.Visit(w, r)
	return visit{Visit: v, p: p, w: texts.In(v.Lang)}
}

// open returns the handler of a form that needs nobody to be signed in.
func (p *Portal) open(do func(visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := p.visit(w, r)
		if !p.clients.Allow(r) {
			v.explain(http.StatusTooManyRequests, v.w.DownTitle, v.w.TooMany)
			return
		}
		do(v)
	}
}

// signedIn returns a handler for a citizen who is signed in. Anybody else is asked to sign in,
// and keeps what the form had.
func (p *Portal) signedIn(do func(visit)) http.HandlerFunc {
	return p.open(func(v visit) {
		session := p.service.SessionOf(v.R)
		who, err := p.service.Session(v.R.Context(), session)
		switch {
		case err == nil:
			v.who = who
			do(v)
		case RefusalOf(err).Code != CodeSignedOut:
			v.unavailable("reading a citizen's session", err)
		default:
			if !session.Empty() {
				p.service.EndSession(v.W)
			}
			status, fault := http.StatusOK, ""
			if v.R.Method == http.MethodPost || !session.Empty() {
				status, fault = http.StatusUnauthorized, v.w.SignedOut
			}
			v.showSignIn(status, "", fault, kept(v.R.URL.Path, v.Form))
		}
	})
}

// kept returns what a form had that may be shown again when its person signs in next in this
// browser: no codes.
func kept(path string, form url.Values) string {
	switch {
	case strings.HasPrefix(path, PortalPrefix+"/security"):
		return backToSecurity
	case path == PortalPrefix+"/reminders":
		return backToReminders
	}
	if form.Get(fieldPerson) == "" {
		return ""
	}
	out := url.Values{}
	for name, values := range form {
		if name == fieldDue || name == fieldSubject || name == fieldAgency || strings.HasPrefix(name, fieldAmount) {
			out[name] = values
		}
	}
	if len(out) == 0 || strings.HasPrefix(path, PortalPrefix+"/references/") {
		return ""
	}
	out.Set(fieldPerson, form.Get(fieldPerson))
	return out.Encode()
}

// person names the account in its forms, without the id.
func (v visit) person() string {
	if v.who.ID == "" {
		return ""
	}
	h := sha256.Sum256([]byte("forms of " + v.who.ID))
	return hex.EncodeToString(h[:12])
}

// view is what the portal's pages show.
type view struct {
	web.View
	W *words
	// Here is the page's place in the navigation: dues, references, payments, reminders or security.
	Here string
	// Passkey is what the page's script needs; nil on a page without one.
	Passkey *passkeyView
	// Security is what the page of passkeys shows.
	Security *securityView
	// Reminders is what the page of reminders shows.
	Reminders *remindersView
	// Address is what a person signs in with, Keep what their form had before.
	Address, Keep string
	// Person is whose forms the page has.
	Person string
	Text   string

	Agencies []agencyView
	Links    []linkView
	Groups   []groupView
	Cart     *cartView
	Payments []paymentView
	// Later and Earlier lead to the pages of newer and older payments.
	Later, Earlier string
	NoLinks        bool
	// Unproven are the masked addresses that get no messages until they are proven again.
	Unproven []string
}

type agencyView struct {
	ID, Name string
	Selected bool
}

// view returns the layout of a page. The path is below the site's.
func (v visit) view(title, here, path string) *view {
	out := &view{View: v.View(v.w.Site, title, path), W: v.w, Here: here}
	out.Test, out.Person = !v.p.service.cfg.Live, v.person()
	if len(v.who.Addresses) > 0 {
		out.Who = v.who.Addresses[0]
	}
	out.Unproven = v.who.Unproven
	out.Notice = v.w.Done[v.R.URL.Query().Get(queryDone)]
	return out
}

// explain answers with a page that has one thing to say.
func (v visit) explain(status int, title, text string) {
	out := v.view(title, "", "")
	out.Text = text
	v.Write(status, "explain", out)
}

// unavailable says that nothing can be shown or done now.
func (v visit) unavailable(doing string, err error) {
	if v.R.Context().Err() == nil {
		v.p.service.cfg.Log.LogAttrs(v.R.Context(), slog.LevelWarn, "the citizen portal is unavailable", slog.String("doing", doing),
			slog.String("request_id", problem.RequestID(v.R.Context())), slog.Any("error", err))
	}
	v.explain(http.StatusServiceUnavailable, v.w.DownTitle, v.w.Down)
}

// refused answers an operation's error that no page explains better.
func (v visit) refused(doing string, err error) {
	switch r := RefusalOf(err); {
	case r.RetryAfter > 0:
		v.RetryAfter(r.RetryAfter)
		v.explain(http.StatusTooManyRequests, v.w.DownTitle, v.w.TooMany)
	default:
		v.unavailable(doing, err)
	}
}

// showSignIn answers with the first page.
func (v visit) showSignIn(status int, typed, fault, keep string) {
	out := v.view(v.w.SignInTitle, "", "")
	out.Keep = keep
	out.Typed[fieldAddress] = typed
	v.usesPasskeys(out)
	if fault != "" {
		field := fieldAddress
		if fault == v.w.SignedOut || fault == v.w.SignInAgain {
			field = ""
		}
		out.Fault(field, fault, typed)
		out.Typed[fieldAddress] = typed
	}
	v.Write(status, "signin", out)
}

// address reads the phone number or the e-mail address of a form.
func (v visit) address() (to contact.Address, typed string, err error) {
	typed = v.Form.Get(fieldAddress)
	if strings.Contains(typed, "@") {
		to, err = contact.ParseEmail(typed)
	} else {
		to, err = contact.ParsePhone(typed)
	}
	return to, typed, err
}

// askCode is POST /portal/sign-in. It answers with the page of the code, because no address
// may carry a phone number. Sent again, it sends another code at most after the wait.
func (v visit) askCode() {
	to, typed, err := v.address()
	if err != nil {
		v.showSignIn(http.StatusUnprocessableEntity, typed, v.w.AddressFault, v.Form.Get(fieldKeep))
		return
	}
	browser := v.p.service.RememberBrowser(v.W, v.R, v.Lang)
	err = v.p.service.SignIn(v.R.Context(), SignInRequest{Address: to, Browser: browser.Secret, Client: web.Client(v.R), Locale: v.Lang, Known: v.p.service.KnownOf(v.R)})
	switch r := RefusalOf(err); {
	case err == nil:
		v.showCode(http.StatusOK, "")
	case r.Code == CodeMailLimited:
		v.RetryAfter(r.RetryAfter)
		v.showSignIn(http.StatusTooManyRequests, typed, v.w.MailLimited, v.Form.Get(fieldKeep))
	default:
		v.refused("sending a code", err)
	}
}

func (v visit) showCode(status int, fault string) {
	out := v.view(v.w.CodeTitle, "", "")
	out.Address, out.Keep = v.Form.Get(fieldAddress), v.Form.Get(fieldKeep)
	// The number has no places where a line may break.
	shown := strings.ReplaceAll(out.Address, " ", "\u00a0")
	out.Text = v.w.Say(v.w.CodeTextPhone, shown)
	if strings.Contains(shown, "@") {
		out.Text = v.w.Say(v.w.CodeText, shown)
	}
	if fault != "" {
		out.Fault(fieldCode, fault, "")
	}
	v.Write(status, "code", out)
}

// enterCode is POST /portal/verify.
func (v visit) enterCode() {
	to, typed, err := v.address()
	if err != nil {
		v.showSignIn(http.StatusUnprocessableEntity, typed, v.w.AddressFault, v.Form.Get(fieldKeep))
		return
	}
	code := strings.Join(strings.Fields(v.Form.Get(fieldCode)), "")
	if code == "" {
		v.showCode(http.StatusUnprocessableEntity, v.w.CodeMissing)
		return
	}
	browser := v.p.service.BrowserOf(v.R)
	session, who, err := v.p.service.Verify(v.R.Context(), VerifyRequest{
		Address: to, Browser: browser.Secret, Code: code, Locale: v.Lang, Previous: v.p.service.SessionOf(v.R),
	})
	switch {
	case err == nil:
		v.p.service.BeginSession(v.W, session)
		v.p.service.RememberSignIn(v.W, v.R, who, to)
		v.afterSignIn(session, who.First)
	case RefusalOf(err).Code == CodeInvalid:
		v.showCode(http.StatusUnprocessableEntity, v.w.CodeFault)
	default:
		v.refused("signing in", err)
	}
}

// afterSignIn shows the dues, or the form that the person was filling in when the session
// ended.
func (v visit) afterSignIn(session secret.Text, first bool) {
	keep, err := url.ParseQuery(v.Form.Get(fieldKeep))
	if err != nil || len(keep) == 0 {
		if first {
			v.See("references")
			return
		}
		v.See("")
		return
	}
	if v.who, err = v.p.service.Session(v.R.Context(), session); err != nil {
		v.unavailable("reading a citizen's session", err)
		return
	}
	switch keep.Encode() {
	case backToSecurity:
		v.See("security")
		return
	case backToReminders:
		v.See("reminders")
		return
	}
	if keep.Get(fieldPerson) != v.person() {
		v.See("")
		return
	}
	v.Form = keep
	if keep.Has(fieldDue) {
		v.openCart()
		return
	}
	v.showReferences(http.StatusOK, nil)
}

// signOut is POST /portal/sign-out.
func (v visit) signOut() {
	if err := v.p.service.SignOut(v.R.Context(), v.p.service.SessionOf(v.R)); err != nil {
		v.unavailable("signing out", err)
		return
	}
	v.p.service.EndSession(v.W)
	v.See("", queryDone, doneSignedOut)
}

// portals returns the agencies with an active portal, by their names.
func (s *Service) portals() (out []agencyView) {
	for _, agency := range s.cfg.Registry.Agencies() {
		if portal, ok := s.cfg.Registry.PortalOf(agency.ID); ok && portal.Active {
			out = append(out, agencyView{ID: agency.ID, Name: agency.Name})
		}
	}
	slices.SortFunc(out, func(a, b agencyView) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (v visit) format(currency string, minor int64) string {
	c, ok := money.Lookup(currency)
	if !ok {
		return currency
	}
	return c.Format(v.Lang, minor)
}
