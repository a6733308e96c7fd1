package ministry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/document"
	"quittance/ingress/ministry/internal/api"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/commands"
	"quittance/internal/deliveries"
	"quittance/internal/drafts"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/papers"
	"quittance/internal/quota"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/schemas/origin"
)

// Asker sends a command and awaits its answer: internal/commands.
type Asker interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Registry is the configuration: internal/registry. It answers from memory.
type Registry interface {
	Application(id string) (registry.Application, bool)
	IntegratorOf(agencyID string) (registry.Application, bool)
	Service(agencyID, code string) (registry.Service, bool)
	Takes(agencyID string, live bool, offer, currency string) bool
	// HasChannel reports whether an offer of the agency can be paid in a mode and a
	// currency: the agency has an account, or for cash a clerk.
	HasChannel(agencyID string, live bool, offer, currency string) bool
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
	Fee(agencyID string, channel checkout.Channel, currency string) (money.Schedule, bool)
	Platform() registry.Platform
	// Endpoints returns the endpoints that subscribe to an event: those of the application,
	// and the platform's if platform is true.
	Endpoints(applicationID string, platform, live bool, event string) []registry.WebhookEndpoint
	// Endpoint finds an endpoint by its id.
	Endpoint(id string) (registry.WebhookEndpoint, bool)
}

// Identities knows the callers: internal/identity. It answers from memory.
type Identities interface {
	AuthenticateKey(secret string) (identity.Principal, error)
}

// Sessions reads the read model behind its barrier: internal/sessions. Its errors are
// sessions.ErrNotFound and sessions.ErrBehind.
type Sessions interface {
	Session(ctx context.Context, q sessions.Query) (checkout.Session, error)
	List(ctx context.Context, f sessions.Filter) ([]checkout.Session, int64, error)
	Events(ctx context.Context, q sessions.Query) (checkout.Session, []sessions.Event, error)
	Recent(ctx context.Context, applicationIDs []string, from time.Time, except []string) ([]sessions.Told, error)
}

// Deliveries shows deliveries and makes further ones: deliveries.Store.
type Deliveries interface {
	OfEvents(ctx context.Context, kind deliveries.Kind, events ...deliveries.EventRef) ([]deliveries.Delivery, error)
	Redeliver(ctx context.Context, actor operation.Actor, r deliveries.Redelivery, now time.Time) error
}

// Reads counts the calls of a minute, of a key or of something else, over all instances:
// internal/quota.
type Reads interface {
	Admit(ctx context.Context, of string, limit int) (quota.Allowance, bool, error)
}

// Papers makes the papers of sessions: papers.Maker.
type Papers interface {
	// Notice returns the notice of an open session. Errors are those of document.NewNotice.
	Notice(ctx context.Context, lang money.Language, s checkout.Session) (document.Notice, error)
	// Receipt returns the receipt of a paid due. The error wraps document.ErrUnpaid if there is
	// none.
	Receipt(ctx context.Context, q papers.Request) (papers.Receipt, error)
	// Token returns the token of a paid due and the address that verifies it.
	Token(ctx context.Context, s checkout.Session, due checkout.Item) (token, address string, err error)
}

// Config of the API. All fields are required.
type Config struct {
	Commands   Asker
	Registry   Registry
	Identities Identities
	Sessions   Sessions
	Reads      Reads
	Drafts     *drafts.Maker
	Papers     Papers
	Deliveries Deliveries
	// Webhooks is the kind of the deliveries of webhooks.
	Webhooks deliveries.Kind
	// Bodies proves the bodies of webhooks that are sent once more.
	Bodies origin.MACs
	// IDs recognise the ids of sessions, and make the completion tokens.
	IDs checkout.IDs
	// Gate admits the calls of embedded pages.
	Gate *web.Gate
	// Partition is the partition of an agency's commands, which its session ids carry.
	Partition func(tenantID string) int32
	// CheckoutURL is the address where citizens pay, without a slash at its end.
	CheckoutURL string
	// ListenSecret signs what a developer's machine hears, by its owner (secret.ListenSecret).
	ListenSecret func(owner string) secret.Text
	// Done is closed when streams must end.
	Done <-chan struct{}
	Now  func() time.Time
	Log  *slog.Logger
}

// API answers the ministry surface. Safe for concurrent use.
type API struct {
	cfg        Config
	flood      *flood
	listeners  listeners
	operations map[string]described
}

var _ api.StrictServerInterface = (*API)(nil)

// New makes the API. The error is a fault of openapi.yaml.
func New(cfg Config) (*API, error) {
	ops, err := operations()
	return &API{cfg: cfg, flood: newFlood(), listeners: listeners{of: map[string]int{}}, operations: ops}, err
}

// Prefix is the path of the API, except the path of the completion token. Paths below
// it that do not exist are answered with problem documents.
const Prefix = "/api/v1"

// otherVersion is a version of the API that does not exist.
const otherVersion = "/api/v{version:[0-9]+}"

// Paths that need more than the generated routes.
const (
	pathVerify = Prefix + "/checkout/sessions/verify-completion"
	pathToken  = "/embed/{session_id}/completion-token" //nolint:gosec // a path
)

// Routes adds the API to the router of the whole edge. Its paths are those of
// openapi.yaml.
func (a *API) Routes(r chi.Router) {
	h := chi.NewRouter()
	methodNotAllowed := problem.Unrouted(h, func(method, pattern string) bool {
		_, ok := a.operations[method+" "+pattern]
		return ok || method == http.MethodGet && pattern == pathListen
	})
	api.HandlerWithOptions(
		api.NewStrictHandlerWithOptions(a, nil, api.StrictHTTPServerOptions{RequestErrorHandlerFunc: a.fail, ResponseErrorHandlerFunc: a.fail}),
		api.ChiServerOptions{BaseRouter: h.With(a.guard), ErrorHandlerFunc: a.fail},
	)
	h.Get(pathListen, a.listen)
	h.Get(pathVerify, methodNotAllowed) // otherwise the last part would be a session's id
	r.Handle(Prefix, h)                 // else the deprecated surface would answer it
	r.Handle(Prefix+"/*", h)
	r.Handle(otherVersion, h) // which has no route there
	r.Handle(otherVersion+"/*", h)
	r.Handle(pathToken, h)
}

// route returns the request's path in openapi.yaml. (r.Pattern also has the pattern of
// the outer router.)
func route(r *http.Request) string {
	patterns := chi.RouteContext(r.Context()).RoutePatterns
	return patterns[len(patterns)-1]
}

// caller is the sender of a request: a key, or a page with its client_secret.
type caller struct {
	identity.Principal
	clientSecret string
	quota        *problem.Quota
	body         body
	// pdf is true for a caller that accepts a PDF.
	pdf bool
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// guard is middleware. It passes on a request whose sender is known, that is within
// its quota, and whose query and body its operation accepts.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		op, ok := a.operations[r.Method+" "+route(r)]
		if !ok {
			a.fail(w, r, errors.New("the route is not in openapi.yaml"))
			return
		}
		c, err := a.admit(r, op)
		c.pdf = strings.Contains(r.Header.Get("Accept"), papers.ContentType)
		if err == nil {
			err = op.checkQuery(r)
		}
		if err == nil && op.hasBody() {
			c.body, err = keepBody(w, r)
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// keepBody reads the whole body, once. The generated code, which would read it twice and
// ignore what follows the first JSON value, gets an empty one. The error is a
// *problem.Problem.
func keepBody(w http.ResponseWriter, r *http.Request) (body, error) {
	text, err := problem.ReadBody(w, r)
	if err != nil {
		return body{}, err
	}
	b := readBody(text)
	if b.err != nil && !json.Valid(text) {
		return body{}, problem.Malformed(b.err)
	}
	r.Body = io.NopCloser(strings.NewReader("{}"))
	return b, nil
}

func (a *API) admit(r *http.Request, op described) (caller, error) {
	token := problem.Bearer(r)
	switch {
	case op.clientSecret() && token == "":
		return caller{}, secretRefused()
	case op.clientSecret():
		err := a.cfg.Gate.Session(r, chi.URLParam(r, "session_id"))
		if errors.Is(err, checkout.ErrMalformedID) {
			err = notFound()
		}
		return caller{clientSecret: token}, err
	}
	p, err := a.cfg.Identities.AuthenticateKey(token)
	switch {
	case errors.Is(err, identity.ErrStale):
		return caller{}, problem.Stale()
	case err != nil:
		return caller{}, problem.UnknownKey(unauthorized(), token)
	}
	c := caller{Principal: p}
	if reads(r) {
		c.quota, err = a.countRead(r.Context(), p)
	}
	return c, err
}

// fail answers with the problem that an error is. An error of the generated code
// means that it could not read the Idempotency-Key; any other error that is no
// problem means that the service cannot answer.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	response := problem.From(err)
	var missing *api.RequiredHeaderError
	var repeated *api.TooManyValuesForParamError
	var malformed *api.InvalidParamFormatError
	switch {
	case response != nil:
	case errors.As(err, &missing):
		response = problem.New("idempotency.key_required")
	case errors.As(err, &repeated), errors.As(err, &malformed):
		// Only the header is left: the path is text, and the query has been checked.
		response = problem.New("idempotency.key_invalid")
	default:
		level := slog.LevelError
		if errors.Is(err, commands.ErrUnavailable) || errors.Is(err, sessions.ErrBehind) {
			level = slog.LevelWarn // Kafka or the read model is late
		}
		a.cfg.Log.LogAttrs(r.Context(), level, "answering a request", slog.String("path", route(r)),
			slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
		response = problem.New("generic.unavailable")
	}
	problem.Write(w, r, response)
}
