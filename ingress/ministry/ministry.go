package ministry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/ingress/hub"
	"quittance/ingress/problem"
	"quittance/internal/readmodel"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// Asker sends a command and awaits its answer: ingress/hub.
type Asker interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Registry is the configuration: internal/registry. It never waits for a database.
type Registry interface {
	AuthenticateKey(secret string) (registry.Principal, error)
	Application(id string) (registry.Application, bool)
	IntegratorOf(agencyID string) (registry.Application, bool)
	Service(agencyID, code string) (registry.Service, bool)
	Fee(agencyID string, channel checkout.Channel, currency string) (money.Schedule, bool)
	Platform() registry.Platform
}

// Sessions is the read model behind its barrier: internal/readmodel. Its errors
// are readmodel.ErrNotFound and readmodel.ErrBehind.
type Sessions interface {
	Session(ctx context.Context, q readmodel.Query) (checkout.Session, error)
	List(ctx context.Context, f readmodel.Filter) ([]checkout.Session, int64, error)
}

// References hands out numbers that people read: internal/reference.
type References interface {
	PaymentRef() (string, error)
	NoticeRef() (string, error)
}

// Config of the API. All fields are required.
type Config struct {
	Hub        Asker
	Registry   Registry
	Sessions   Sessions
	References References
	Keys       *secret.Keys
	// Partition is the partition of an application's commands, which its session
	// ids carry.
	Partition func(applicationID string) int32
	// CheckoutURL is where citizens pay, without a slash at its end.
	CheckoutURL string
	Now         func() time.Time
	Log         *slog.Logger
}

// API answers the ministry surface. Safe for concurrent use.
type API struct {
	cfg   Config
	flood *flood
}

// New makes the API.
func New(cfg Config) *API { return &API{cfg: cfg, flood: newFlood()} }

// Routes mounts the API under the contract's {base_url}.
func (a *API) Routes(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.NotFound(func(w http.ResponseWriter, r *http.Request) { problem.Write(w, r, notFoundPath()) })
		r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
			allow(w, r)
			problem.Write(w, r, methodNotAllowed())
		})
		r.Post("/checkout/sessions", a.handle(a.create))
		r.Get("/checkout/sessions", a.handle(a.list))
		r.Get("/checkout/sessions/{id}", a.handle(a.get))
		r.Post("/checkout/sessions/{id}/cancel", a.handle(a.cancel))
	})
}

// handler answers an authenticated request; an error that is a *problem.Problem
// is told as it is.
type handler func(w http.ResponseWriter, r *http.Request, p registry.Principal) error

func (a *API) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		p, err := a.authenticate(r)
		if err == nil {
			err = h(w, r, p)
		}
		if err == nil {
			return
		}
		var told *problem.Problem
		switch {
		case errors.As(err, &told):
		case errors.Is(err, hub.ErrUnavailable), errors.Is(err, readmodel.ErrBehind):
			a.cfg.Log.Warn("cannot answer in time", slog.String("path", r.Pattern), slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
			told = unavailable()
		default:
			a.cfg.Log.Error("answering a request", slog.String("path", r.Pattern), slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
			told = unavailable()
		}
		problem.Write(w, r, told)
	}
}

// allow sets the Allow header that chi leaves to whoever answers 405 himself.
func allow(w http.ResponseWriter, r *http.Request) {
	routes := chi.RouteContext(r.Context())
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if routes.Routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
			w.Header().Add("Allow", method)
		}
	}
}
