package citizen

import (
	_ "embed" // openapi.yaml
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/erp"
	"quittance/internal/form"
	"quittance/internal/network"
	"quittance/money"
)

// Prefix is the path of the API. Paths below it that do not exist are answered with problem
// documents.
const Prefix = "/api/v1/citizen"

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the description of the API, OpenAPI 3.1 in YAML.
func OpenAPI() []byte { return openAPI }

// API answers the citizen API. Its router must have the middleware web.ClientAddress. Safe
// for concurrent use.
type API struct {
	service *Service
	clients *web.Clients
}

// NewAPI makes the API of a Service, within limits of calls a second.
func NewAPI(s *Service, limits web.Limits) (*API, error) {
	if !(limits[network.Subscriber] > 0) {
		return nil, errors.New("citizen: a client must be allowed more than 0 calls a second")
	}
	return &API{service: s, clients: web.NewClients(limits, web.ClientBurst)}, nil
}

// call is a request to an operation. who is zero where nobody needs to be signed in.
type call struct {
	*Service
	w    http.ResponseWriter
	r    *http.Request
	who  Visitor
	form *form.Form // of a request with a body
}

// operation answers a call. The answer is written as JSON; nil has no body. The error is a
// *Refusal, a *problem.Problem or an error of package form.
type operation struct {
	method, path string
	// open needs nobody to be signed in.
	open bool
	// body says that the request has a JSON object.
	body bool
	do   func(c *call) (status int, answer any, err error)
}

func operations() []operation {
	return []operation{
		{method: http.MethodPost, path: "/sign-in", open: true, body: true, do: signIn},
		{method: http.MethodPost, path: "/sign-in/verify", open: true, body: true, do: verify},
		{method: http.MethodPost, path: "/sign-in/passkey/begin", open: true, do: beginPasskeySignIn},
		{method: http.MethodPost, path: "/sign-in/passkey/finish", open: true, do: finishPasskeySignIn},
		{method: http.MethodPost, path: "/sign-out", open: true, do: signOut},
		{method: http.MethodGet, path: "/me", do: me},
		{method: http.MethodGet, path: "/passkeys", do: listPasskeys},
		{method: http.MethodPost, path: "/passkeys/begin", do: beginPasskey},
		{method: http.MethodPost, path: "/passkeys/finish", do: finishPasskey},
		{method: http.MethodDelete, path: "/passkeys/{id}", do: removePasskey},
		{method: http.MethodPost, path: "/links", body: true, do: addLink},
		{method: http.MethodDelete, path: "/links/{id}", do: removeLink},
		{method: http.MethodGet, path: "/dues", do: dues},
		{method: http.MethodPost, path: "/checkout", body: true, do: pay},
		{method: http.MethodGet, path: "/payments", do: payments},
	}
}

// Routes adds the API to the router of the whole edge.
func (a *API) Routes(r chi.Router) {
	h := a.router()
	r.Handle(Prefix, h)
	r.Handle(Prefix+"/*", h)
}

func (a *API) router() *chi.Mux {
	h := chi.NewRouter()
	h.Use(a.guard)
	problem.Unrouted(h, nil)
	h.Get(Prefix+"/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	for _, o := range operations() {
		h.Method(o.method, Prefix+o.path, a.answer(o))
	}
	return h
}

// guard is middleware of all routes. It limits clients, and refuses what is not of our own
// pages unless it only reads.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case !a.clients.Allow(r):
			a.fail(w, r, limited(time.Second))
		case !reads && !a.service.OwnOrigin(r):
			a.fail(w, r, refused(CodeForeignOrigin))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// answer runs an operation for the citizen of the request's session.
func (a *API) answer(o operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Service: a.service, w: w, r: r}
		if err := a.prepare(c, o); err != nil {
			a.fail(w, r, err)
			return
		}
		status, out, err := o.do(c)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if out == nil {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out) // fails only when the caller is gone
	}
}

// prepare finds who calls, and reads the body.
func (a *API) prepare(c *call, o operation) (err error) {
	if !o.open {
		session := a.service.SessionOf(c.r)
		if c.who, err = a.service.Session(c.r.Context(), session); err != nil {
			if !session.Empty() && RefusalOf(err).Code == CodeSignedOut {
				a.service.EndSession(c.w)
			}
			return err
		}
	}
	if o.body {
		text, err := problem.ReadBody(c.w, c.r)
		if err != nil {
			return err
		}
		c.form, err = form.Read(text)
		return err
	}
	return nil
}

// fail answers with the problem that an error is.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if p := problem.From(err); p != nil {
		problem.Write(w, r, p)
		return
	}
	refusal := RefusalOf(err)
	if refusal.Code == codeUnavailable {
		a.service.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "answering a citizen", slog.String("path", pattern(r)),
			slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
	}
	p := refusal.problem()
	if refusal.Dues != nil {
		list := []dueJSON{}
		for _, d := range refusal.Dues {
			list = append(list, a.service.toDueJSON(d))
		}
		p.Dues = list
	}
	problem.Write(w, r, p)
}

// pattern is the request's route. Its path may hold an id.
func pattern(r *http.Request) string {
	patterns := chi.RouteContext(r.Context()).RoutePatterns
	if len(patterns) == 0 {
		return ""
	}
	return patterns[len(patterns)-1]
}

// address reads phone or email of a form.
func address(f *form.Form) contact.Address {
	phone, email := f.Text("phone", false, 1, 64), f.Text("email", false, 1, 320)
	if f.Faulty("phone") || f.Faulty("email") {
		return contact.Address{}
	}
	var a contact.Address
	var err error
	switch {
	case phone != "" && email != "":
		f.Fault("email", "exclusive", "must be absent where phone is given: a code goes to one address")
	case email != "":
		if a, err = contact.ParseEmail(email); err != nil {
			f.Fault("email", "format", "must be an e-mail address such as name@example.org")
		}
	case phone != "":
		if a, err = contact.ParsePhone(phone); err != nil {
			f.Fault("phone", "format", "must be a Congolese mobile number such as +242 06 123 45 67; people with another number sign in with email")
		}
	default:
		f.Fault("phone", "required", "is required, or email instead")
	}
	return a
}

func signIn(c *call) (int, any, error) {
	to := address(c.form)
	locale := money.Language(c.form.Text("locale", false, 1, 10))
	switch locale {
	case money.French, money.English:
	case "":
		locale = web.Language(c.r, nil)
	default:
		c.form.Fault("locale", "enum", `must be "fr" or "en"`)
	}
	if err := c.form.Err(); err != nil {
		return 0, nil, err
	}
	browser := c.RememberBrowser(c.w, c.r, locale)
	err := c.SignIn(c.r.Context(), SignInRequest{Address: to, Browser: browser.Secret, Client: web.Client(c.r), Locale: locale, Known: c.KnownOf(c.r)})
	return http.StatusAccepted, nil, err
}

func verify(c *call) (int, any, error) {
	to := address(c.form)
	code := c.form.Text("code", true, 1, 32)
	if err := c.form.Err(); err != nil {
		return 0, nil, err
	}
	browser := c.BrowserOf(c.r)
	session, who, err := c.Verify(c.r.Context(), VerifyRequest{
		Address: to, Browser: browser.Secret, Code: code, Locale: browser.Locale, Previous: c.SessionOf(c.r),
	})
	if err != nil {
		return 0, nil, err
	}
	c.BeginSession(c.w, session)
	c.RememberSignIn(c.w, c.r, who, to)
	return http.StatusNoContent, nil, nil
}

func signOut(c *call) (int, any, error) {
	if err := c.SignOut(c.r.Context(), c.SessionOf(c.r)); err != nil {
		return 0, nil, err
	}
	c.EndSession(c.w)
	return http.StatusNoContent, nil, nil
}

// meJSON is the account of the caller.
type meJSON struct {
	Contacts []string   `json:"contacts"` // masked
	Locale   string     `json:"locale"`
	Links    []linkJSON `json:"links"`
}

type linkJSON struct {
	ID         string  `json:"id"`
	TenantID   string  `json:"tenant_id"`
	AgencyName *string `json:"agency_name"`
	SubjectRef string  `json:"subject_ref"`
	Proof      string  `json:"proof"`
	CreatedAt  string  `json:"created_at"`
}

func toLinkJSON(l Link) linkJSON {
	return linkJSON{
		ID: l.ID, TenantID: l.Agency.ID, AgencyName: text(l.Agency.Name), SubjectRef: l.SubjectRef, Proof: l.Proof, CreatedAt: timestamp(l.CreatedAt),
	}
}

func me(c *call) (int, any, error) {
	m, err := c.Me(c.r.Context(), c.who)
	if err != nil {
		return 0, nil, err
	}
	out := meJSON{Contacts: m.Addresses, Locale: string(m.Locale), Links: []linkJSON{}}
	for _, l := range m.Links {
		out.Links = append(out.Links, toLinkJSON(l))
	}
	return http.StatusOK, out, nil
}

func addLink(c *call) (int, any, error) {
	q := LinkRequest{TenantID: c.form.UUID("tenant_id", true), SubjectRef: subjectRef(c.form, true), Code: c.form.Text("link_code", true, 1, 64)}
	if err := c.form.Err(); err != nil {
		return 0, nil, err
	}
	l, made, err := c.AddLink(c.r.Context(), c.who, q)
	if err != nil {
		return 0, nil, err
	}
	if !made {
		return http.StatusOK, toLinkJSON(l), nil
	}
	return http.StatusCreated, toLinkJSON(l), nil
}

func removeLink(c *call) (int, any, error) {
	return http.StatusNoContent, nil, c.RemoveLink(c.r.Context(), c.who, chi.URLParam(c.r, "id"))
}

// subjectRef reads a reference that could be one of an ERP's.
func subjectRef(f *form.Form, required bool) string {
	ref := f.Text("subject_ref", required, 1, erp.MaxReference)
	if ref != "" && (!erp.IsReference(ref) || citizens.CheckSubjectRef(ref) != nil) {
		f.Fault("subject_ref", "format", "must be the reference as the agency writes it: at most 200 bytes, without spaces at its ends and without control characters")
	}
	return ref
}
