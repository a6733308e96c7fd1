package staff

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/money"
)

//go:embed templates
var templates embed.FS

// script is the only script of the portals.
//
//go:embed assets/staff.js
var script []byte

//go:embed assets/staff.css
var style []byte

// Desk signs people in with their passkeys: identity.Desk.
type Desk interface {
	BeginSignIn(ctx context.Context, browser secret.Text) (json.RawMessage, error)
	SignIn(ctx context.Context, browser secret.Text, response []byte, next, origin string) (identity.SignedIn, error)
	// Depart, Arrive and LogOut are about the identity provider of the person's group.
	Depart(ctx context.Context, turn secret.Text) (identity.Departure, error)
	Arrive(ctx context.Context, turn secret.Text, issuerID string, answer url.Values, origin string) (identity.Arrived, error)
	LogOut(ctx context.Context, issuerID, token, origin string) error
	InvitedTurn(ctx context.Context, browser secret.Text, next string) (turn secret.Text, err error)
	Session(ctx context.Context, session secret.Text, asks bool, origin string) (identity.Acting, error)
	SignOut(ctx context.Context, session secret.Text) error
	Sessions(ctx context.Context, a identity.Acting) ([]identity.StaffSession, error)
	SignOutOthers(ctx context.Context, a identity.Acting) error
}

// Agencies name the agencies: internal/registry. They answer from memory.
type Agencies interface {
	Agency(id string) (registry.Agency, bool)
}

// Demo are people with passkeys in software: dev/staff, in developer mode. Their answers are verified like those of any
// passkey.
type Demo interface {
	// Names are those of the people.
	Names() []string
	// Answer answers options with the passkey of a person, by name.
	Answer(ctx context.Context, name string, options json.RawMessage) ([]byte, error)
}

// Recorder adds a row to the audit table.
type Recorder func(ctx context.Context, actor operation.Actor, at time.Time, e operation.Entry) error

// Config of a Site. All fields but Demo are required.
type Config struct {
	Desk     Desk
	Joining  Joining
	Agencies Agencies
	Record   Recorder
	// Demo is nil in production.
	Demo Demo
	// Limits are those of requests without a session, by network.
	Limits web.Limits
	// URL is where staff reach the pages. With https the cookies are Secure. Its host is that of the passkeys.
	URL string
	// Now is the service's clock, UTC.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Part is a set of pages of a portal.
type Part struct {
	// Files has the templates of the pages, templates/NAME.html. Their names are not those of another part's.
	Files fs.FS
	// Nav are its links in the navigation, in their order.
	Nav    []Link
	Routes []Route
	// SearchPaths are where the search box of the frame sends its form: to the first one whose route the person may see.
	// A part that does not search has none.
	SearchPaths []string
}

// Link is a link of the navigation. Whoever may not see the page of its path does not see the link.
type Link struct {
	Path   string
	Labels map[money.Language]string
}

// Route is a page, or a form.
type Route struct {
	// Method is GET for a page, POST for a form. Path is a pattern of chi.
	Method, Path string
	// May is the permission that the frame asks for before it calls Do; empty for whoever is signed in.
	May identity.Permission
	// Service refuses an agency's people, Agency refuses the service's.
	Service, Agency bool
	// Upload is the most bytes of a form with a file (multipart/form-data), which Do reads; 0 for other forms.
	Upload int64
	Do     func(*Visit)
}

// permits returns why a person may not use the route, or nil.
func (r Route) permits(a identity.Acting) error {
	if r.Service && !a.Service() || r.Agency && a.Service() {
		return operation.Refuse(codeNotPermitted, "", operation.Args{"permission": r.group()})
	}
	if r.May == "" {
		return nil
	}
	return a.May(r.May, "")
}

// group names whom the route is for: service, agency, or empty for both.
func (r Route) group() string {
	switch {
	case r.Service:
		return "service"
	case r.Agency:
		return "agency"
	}
	return ""
}

// Site is the frame of the portals. Safe for concurrent use after the first request.
type Site struct {
	cfg      Config
	host     string // of the passkeys
	site     *web.Site
	parts    []Part
	routes   []Route
	calls    *web.Clients // without a session
	searches *web.Clients // of a person

	signIns *prometheus.CounterVec
	refused *prometheus.CounterVec
}

// Outcomes of sign-ins, as labels.
const (
	signedIn      = "ok"
	signInRefused = "refused"
	signInLimited = "limited"
)

// searchesPerMinute is the number of searches of a person in a minute.
const searchesPerMinute = 30

// New makes a frame with its parts.
func New(cfg Config, parts ...Part) (*Site, error) {
	if cfg.Desk == nil || cfg.Joining == nil || cfg.Agencies == nil || cfg.Record == nil || cfg.Limits == (web.Limits{}) || cfg.URL == "" || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("staff: every field of the configuration is required")
	}
	s := &Site{cfg: cfg, parts: parts, calls: web.NewClients(cfg.Limits, web.ClientBurst), searches: web.NewClients(web.Multiples(searchesPerMinute/time.Minute.Seconds()), time.Minute)}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("staff: URL is not an absolute address")
	}
	s.host = u.Hostname()
	if s.site, err = web.New(web.Config{
		Files: templates, PublicURL: cfg.URL, Log: cfg.Log, Script: script, Style: style,
		// The script makes markup of what our own pages answer, in one place.
		Policy: "require-trusted-types-for 'script'; trusted-types region",
	}); err != nil {
		return nil, fmt.Errorf("staff: %w", err)
	}
	s.routes = s.own()
	for _, p := range parts {
		if err := s.site.Add(p.Files); err != nil {
			return nil, fmt.Errorf("staff: %w", err)
		}
		s.routes = append(s.routes, p.Routes...)
	}
	with := promauto.With(cfg.Metrics)
	s.signIns = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_staff_sign_ins_total", Help: "Sign-ins of staff, by outcome: ok; refused, the passkey is not one of a person who may sign in; limited, too many requests of a network.",
	}, []string{"outcome"})
	for _, outcome := range []string{signedIn, signInRefused, signInLimited} {
		s.signIns.WithLabelValues(outcome)
	}
	s.refused = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_staff_refused_total", Help: "Requests of people who are signed in that their roles do not allow, by the permission that they lack; service or agency, for a page of the service's or of an agency's people.",
	}, []string{"permission"})
	for _, r := range s.routes {
		if r.May != "" {
			s.refused.WithLabelValues(string(r.May))
		}
	}
	s.refused.WithLabelValues("service")
	s.refused.WithLabelValues("agency")
	return s, nil
}

// AllRoutes returns the routes of the frame and of all parts that need a session.
func (s *Site) AllRoutes() []Route { return slices.Clone(s.routes) }

// Assets returns the addresses of the style and the script.
func (s *Site) Assets() []string { return s.site.Assets() }

// Routes adds the pages to the router of their host, which has no routes yet.
func (s *Site) Routes(r chi.Router) {
	r.Use(web.Compress())
	s.site.Routes(r, func(r chi.Router) {
		r.Get("/", s.open(func(v *Visit) { v.See("work") }))
		r.Get("/sign-in", s.open((*Visit).showSignIn))
		r.Get("/sign-in/issuer", s.open((*Visit).showIssuer))
		r.Get(identity.IssuerPath+"{issuer}", s.open((*Visit).arrive))
		r.Get("/join", s.open((*Visit).showJoin))
		s.mount(r, http.MethodGet)
	}, func(r chi.Router) {
		r.Post("/sign-in/begin", s.open((*Visit).beginSignIn))
		r.Post("/sign-in/finish", s.open((*Visit).finishSignIn))
		r.Post("/sign-out", s.open((*Visit).signOut))
		r.Post(identity.IssuerPath+"{issuer}"+identity.LogoutSuffix, s.open((*Visit).logOut))
		r.Post("/join/issuer", s.open((*Visit).joinIssuer))
		r.Post("/join/accept", s.open((*Visit).acceptInvitation))
		r.Post("/join/passkey/begin", s.open((*Visit).beginPasskey))
		r.Post("/join/passkey", s.open((*Visit).addPasskey))
		if s.cfg.Demo != nil {
			r.Post("/demo/sign-in", s.open((*Visit).signInDemo))
		}
		s.mount(r, http.MethodPost)
	})
}

// mount adds the routes of a method.
func (s *Site) mount(r chi.Router, method string) {
	for _, route := range s.routes {
		if route.Method == method {
			r.Method(method, route.Path, s.guarded(route))
		}
	}
}
