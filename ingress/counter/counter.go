package counter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/quota"
	"quittance/internal/secret"
	"quittance/internal/sessions"
)

// Window is how long a reservation keeps a session for its clerk.
const Window = 10 * time.Minute

// perMinute is the quota of a key: that many look-ups and that many entries in a
// minute. A clerk needs fewer, and nobody finds a reference by guessing at that rate.
const perMinute = 60

// Asker sends a command and awaits its answer: internal/commands.
type Asker interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Sessions reads sessions: internal/sessions. An error means that it cannot show
// everything that was answered before.
type Sessions interface {
	List(ctx context.Context, f sessions.Filter) ([]checkout.Session, int64, error)
}

// Registry knows the agencies: internal/registry. It answers from memory.
type Registry interface {
	ApplicationsOf(agencyID string) []string
}

// Identities know the clerks: internal/identity. They answer from memory.
type Identities interface {
	AuthenticateClerk(key string) (identity.ClerkPrincipal, error)
	ClerkByKey(keyID string) (identity.ClerkPrincipal, error)
}

// Reads counts the requests of a key over all instances: internal/quota.
type Reads interface {
	Admit(ctx context.Context, keyID string, limit int) (quota.Allowance, bool, error)
}

// Config of a Counter. All fields are required.
type Config struct {
	Commands   Asker
	Sessions   Sessions
	Registry   Registry
	Identities Identities
	Reads      Reads
	// Keys seal the cookie of the page.
	Keys *secret.Keys
	// PublicURL is where clerks reach the page; with https its cookie is Secure.
	PublicURL string
	// Now is the service's clock, UTC.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Counter serves the API and the page. Safe for concurrent use.
type Counter struct {
	cfg    Config
	site   *web.Site
	signIn *web.SignIn

	entries   *prometheus.CounterVec
	signIns   *prometheus.CounterVec
	ambiguous prometheus.Counter
}

// How long a clerk stays signed in: after signing in, and after the last request.
const (
	signedInFor  = 12 * time.Hour
	signedInIdle = 30 * time.Minute
)

// New makes a Counter.
func New(cfg Config) (*Counter, error) {
	if cfg.Commands == nil || cfg.Sessions == nil || cfg.Registry == nil || cfg.Identities == nil || cfg.Reads == nil || cfg.Keys == nil ||
		cfg.PublicURL == "" || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("counter: every field of the configuration is required")
	}
	c := &Counter{cfg: cfg}
	var err error
	if c.site, err = web.New(web.Config{Prefix: pagePrefix, Files: templates, PublicURL: cfg.PublicURL, Log: cfg.Log}); err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	c.signIn = &web.SignIn{
		Cookie: "quittance_counter", Label: "counter sessions", Keys: cfg.Keys, PublicURL: cfg.PublicURL,
		Whole: signedInFor, Idle: signedInIdle, Now: c.now,
	}
	factory := promauto.With(cfg.Metrics)
	c.entries = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_counter_entries_total", Help: "What clerks did, by kind and outcome: an answer's code, or unavailable.",
	}, []string{"entry", "outcome"})
	for _, entry := range []string{entryReserve, entryTake, entryRelease, entryReverse} {
		for _, outcome := range []string{string(checkout.CodeOK), codeUnavailable} {
			c.entries.WithLabelValues(entry, outcome)
		}
	}
	c.ambiguous = factory.NewCounter(prometheus.CounterOpts{
		Name: "quittance_counter_ambiguous_references_total", Help: "Look-ups of a payment_ref that belongs to more than one session.",
	})
	c.signIns = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_counter_sign_ins_total", Help: "Clerks who signed in to the page, by outcome.",
	}, []string{"outcome"})
	for _, outcome := range []string{"ok", "refused"} {
		c.signIns.WithLabelValues(outcome)
	}
	return c, nil
}

// Routes adds the API and the page to the router of the whole edge.
func (c *Counter) Routes(r chi.Router) {
	api := c.api()
	r.Handle(Prefix, api)
	r.Handle(Prefix+"/*", api)
	c.site.Routes(r, c.pages, c.forms)
}

// now is the time of a command: records hold milliseconds.
func (c *Counter) now() time.Time { return c.cfg.Now().UTC().Truncate(time.Millisecond) }
