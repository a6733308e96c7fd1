package cashin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/address"
	"quittance/internal/cashin"
	"quittance/internal/commands"
	"quittance/internal/drafts"
	"quittance/internal/network"
	"quittance/internal/quota"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/money"
)

// Asker sends a command and awaits its answer: internal/commands.
type Asker interface {
	AskWithin(ctx context.Context, cmd checkout.Command, patience time.Duration) (checkout.Answer, error)
}

// Expectation is an address at which an operator's word is awaited: commands.Expected.
type Expectation interface {
	Address() commands.ReplyTo
	Await(ctx context.Context) (answer checkout.Answer, ok bool)
	Close()
}

// Credentials knows pairs and tokens: cashin.Store. Its errors are cashin.ErrUnauthorized
// and those of a Postgres that is away.
type Credentials interface {
	Check(ctx context.Context, apiKey, secretKey string) (p cashin.Principal, right bool, err error)
	Generate(ctx context.Context, pairID string) (token secret.Text, expiresAt time.Time, err error)
	Authenticate(ctx context.Context, token string) (cashin.Principal, error)
	RevokeToken(ctx context.Context, token string) error
}

// Configuration is the registry as the surface needs it. It answers from memory.
type Configuration interface {
	Application(id string) (registry.Application, bool)
	Configured(tenantID string, live bool, offerID, currency string) bool
	AccountOf(tenantID string, live bool, offerID string) string
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
	Fee(agencyID string, channel checkout.Channel, currency string) (money.Schedule, bool)
}

// Quotas counts the calls of an access over all instances: internal/quota.
type Quotas interface {
	Admit(ctx context.Context, keyID string, limit int) (quota.Allowance, bool, error)
}

// Usage counts who calls: cashin.Usage.
type Usage interface {
	Count(p cashin.Principal, route string, status int, at time.Time)
}

// Personal seals payers' numbers and opens contact data: personal.Store.
type Personal interface {
	SealPayer(ctx context.Context, sessionID, payer string) ([]byte, error)
	Customer(ctx context.Context, sessionID string, sealed []byte) (checkout.Customer, error)
}

// Payer reads a number as an operator's connector wants it.
type Payer interface {
	Payer(input string) (string, error)
}

// Resolver resolves names; net.DefaultResolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config of an API. All fields are required.
type Config struct {
	Commands Asker
	// Expect makes an address for an operator's word.
	Expect        func() Expectation
	Credentials   Credentials
	Configuration Configuration
	Quotas        Quotas
	Usage         Usage
	Drafts        *drafts.Maker
	Personal      Personal
	// Payers are the mobile money connectors by offer.
	Payers map[string]Payer
	// Webhooks says which addresses webhooks may have. Test mode also allows http.
	Webhooks address.Rule
	Resolver Resolver
	// CheckoutURL is the address where citizens pay, without a slash at its end.
	CheckoutURL string
	// Stopping ends when the instance stops. Waits for operators end then.
	Stopping context.Context //nolint:containedctx // the life of the instance, not of a call
	// Limits are how many calls a second of a network are looked at, with credentials or without.
	Limits  web.Limits
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// API answers the surface. Safe for concurrent use.
type API struct {
	cfg     Config
	clients *web.Clients // all calls
	guesses *web.Clients // calls with wrong credentials
	words   *prometheus.CounterVec
	full    prometheus.Counter
}

// New makes an API.
func New(cfg Config) (*API, error) {
	switch {
	case cfg.Commands == nil || cfg.Credentials == nil || cfg.Configuration == nil || cfg.Quotas == nil || cfg.Usage == nil || cfg.Drafts == nil || cfg.Personal == nil:
		return nil, errors.New("cash-in: Commands, Credentials, Configuration, Quotas, Usage, Drafts and Personal are required")
	case cfg.Expect == nil || cfg.Payers == nil || cfg.Resolver == nil || cfg.CheckoutURL == "" || cfg.Stopping == nil || cfg.Limits[network.Subscriber] <= 0 || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil:
		return nil, errors.New("cash-in: Expect, Payers, Resolver, CheckoutURL, Stopping, Limits, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	a := &API{
		cfg: cfg, clients: web.NewClients(cfg.Limits, web.ClientBurst), guesses: web.NewClients(web.Multiples(fewCalls/time.Minute.Seconds()), time.Minute),
		words: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_cashin_words_total", Help: "What operators said in time about payments of partners/payments: accepted, refused, not_sent, none.",
		}, []string{"word"}),
		full: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_cashin_numbers_exhausted_total", Help: "Payments that were refused because their month has no number left.",
		}),
	}
	for _, word := range []string{wordAccepted, wordRefused, wordNotSent, wordNone} {
		a.words.WithLabelValues(word)
	}
	return a, nil
}

// Limits of calls in a minute, by access and route (contract, "Limits").
const (
	fewCalls  = 5
	manyCalls = 30
)

// Paths of the routes, below both prefixes.
const (
	pathGenerate = "/generate-application-access-token"
	pathRevoke   = "/revoke-application-access-token"
	pathInit     = "/init-checkout"
	pathPay      = "/partners/payments"
	pathStatus   = "/transactions/{number}/check-status"
	pathGateways = "/partners/payment-gateways"
)

// Prefix is the prefix that belongs to this surface alone. The routes are also below the
// prefix of the ministry API.
const (
	Prefix         = "/api"
	prefixMinistry = "/api/v1"
)

// route is one of the six.
type route struct {
	path, method string
	limit        int
	handle       func(*API, call) error
}

// allowed is the value of Allow. web.Head answers HEAD as GET.
func (rt route) allowed() []string {
	if rt.method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{rt.method}
}

var routes = []route{
	{pathGenerate, http.MethodPost, fewCalls, (*API).generate},
	{pathRevoke, http.MethodPost, fewCalls, (*API).revoke},
	{pathInit, http.MethodPost, fewCalls, (*API).initCheckout},
	{pathPay, http.MethodPost, fewCalls, (*API).pay},
	{pathStatus, http.MethodGet, manyCalls, (*API).checkStatus},
	{pathGateways, http.MethodGet, manyCalls, (*API).gateways},
}

// Routes adds the surface to the router of the whole edge.
func (a *API) Routes(r chi.Router) {
	for _, prefix := range []string{Prefix, prefixMinistry} {
		for _, rt := range routes {
			r.Handle(prefix+rt.path, a.outermost(rt, func(c call) error {
				if c.r.Method != rt.method {
					c.w.Header()["Allow"] = rt.allowed()
					return refuse(http.StatusMethodNotAllowed, codeMethodNotAllowed, "This route takes "+rt.method+" only.")
				}
				return rt.handle(a, c)
			}))
		}
	}
	unknown := a.outermost(route{}, func(call) error {
		return refuse(http.StatusNotFound, codeRouteNotFound, "There is no such route.")
	})
	r.Get(pathSpec, serveSpec)
	r.Handle(Prefix, unknown)
	r.Handle(Prefix+"/*", unknown)
}

// call is one request.
type call struct {
	w     http.ResponseWriter
	r     *http.Request
	route route
	// arrived is when the request did.
	arrived time.Time
	// by is the access of the caller, as soon as it is known.
	by *cashin.Principal
}

// Headers of every answer (contract, "Versioning").
const (
	headerSunset = "Thu, 30 Sep 2027 00:00:00 GMT"
	headerLink   = `</api/v1/checkout/sessions>; rel="successor-version"`
)

// outermost sets the headers of every answer, answers errors and panics, and counts the call
// of a known caller.
func (a *API) outermost(rt route, do func(call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Deprecation", "true")
		h.Set("Sunset", headerSunset)
		h.Set("Link", headerLink)
		h.Set("Cache-Control", "no-store")
		c := call{w: w, r: r, route: rt, arrived: time.Now(), by: &cashin.Principal{}}
		status := http.StatusOK
		defer func() {
			if c.by.PairID != "" {
				a.cfg.Usage.Count(*c.by, rt.path, status, a.now())
			}
		}()
		defer func() {
			switch fault := recover(); {
			case fault == nil:
			case fault == http.ErrAbortHandler: //nolint:errorlint // net/http compares it so
				panic(fault)
			default:
				a.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "a request of the cash-in surface ended in a panic",
					slog.String("request_id", problem.RequestID(r.Context())), slog.Any("panic", fault))
				status = http.StatusInternalServerError
				write(w, status, internal())
			}
		}()
		err := error(tooMany(time.Second))
		if a.clients.Allow(r) { // before the call costs a query: also unknown tokens are looked up
			err = do(c)
		}
		if err != nil {
			status = a.fail(w, r, err)
		}
	}
}

// authenticate returns the application of the request's token.
func (a *API) authenticate(c call) (cashin.Principal, registry.Application, error) {
	p, err := a.cfg.Credentials.Authenticate(c.r.Context(), problem.Bearer(c.r))
	if errors.Is(err, cashin.ErrUnauthorized) {
		return p, registry.Application{}, unauthorized()
	}
	if err != nil {
		return p, registry.Application{}, err
	}
	*c.by = p
	app, ok := a.cfg.Configuration.Application(p.ApplicationID)
	if !ok || app.Cashin == nil {
		return p, registry.Application{}, errors.New("the application of a token is not in the registry yet")
	}
	return p, app, nil
}

// count counts the call against the quota of its access and route.
func (a *API) count(c call, pairID string) error {
	access, err := uuid.Parse(pairID)
	if err != nil {
		return err
	}
	allowance, ok, err := a.cfg.Quotas.Admit(c.r.Context(), uuid.NewSHA1(access, []byte(c.route.path)).String(), c.route.limit)
	if err != nil {
		return err
	}
	if !ok {
		return tooMany(allowance.Reset)
	}
	return nil
}

// now is the time of a command: records hold milliseconds.
func (a *API) now() time.Time { return a.cfg.Now().UTC().Truncate(time.Millisecond) }
