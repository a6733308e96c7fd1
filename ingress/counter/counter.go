package counter

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/internal/identity"
	"quittance/internal/quota"
	"quittance/internal/secret"
	"quittance/internal/sessions"
)

// Window is how long a look-up keeps a session for its clerk.
const Window = 10 * time.Minute

// perMinute is how many look-ups a key has, and how many entries: no clerk is so
// quick, and nobody finds a reference by trying at that pace.
const perMinute = 60

// Asker sends a command and awaits its answer: internal/commands.
type Asker interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Sessions is the read model behind its barrier: internal/sessions. Its error is
// readmodel.ErrBehind.
type Sessions interface {
	List(ctx context.Context, f sessions.Filter) ([]checkout.Session, int64, error)
}

// Registry knows the agencies: internal/registry. It never waits for a database.
type Registry interface {
	ApplicationsOf(agencyID string) []string
}

// Identities know the clerks: internal/identity. They never wait for a database.
type Identities interface {
	AuthenticateClerk(key string) (identity.ClerkPrincipal, error)
	ClerkByKey(keyID string) (identity.ClerkPrincipal, error)
}

// Reads counts what a key asks over all instances: internal/quota.
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
	cfg       Config
	templates map[string]*template.Template
	style     asset
	sameSite  *http.CrossOriginProtection
	secure    bool

	entries *prometheus.CounterVec
	signIns *prometheus.CounterVec
}

// New makes a Counter.
func New(cfg Config) (*Counter, error) {
	if cfg.Commands == nil || cfg.Sessions == nil || cfg.Registry == nil || cfg.Identities == nil || cfg.Reads == nil || cfg.Keys == nil ||
		cfg.PublicURL == "" || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("counter: every field of the configuration is required")
	}
	c := &Counter{cfg: cfg, sameSite: http.NewCrossOriginProtection(), secure: strings.HasPrefix(cfg.PublicURL, "https://")}
	if err := c.sameSite.AddTrustedOrigin(originOf(cfg.PublicURL)); err != nil {
		return nil, errors.New("counter: PublicURL is no absolute URL")
	}
	var err error
	if c.templates, err = loadTemplates(); err != nil {
		return nil, err
	}
	c.style = loadStyle()
	factory := promauto.With(cfg.Metrics)
	c.entries = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_counter_entries_total", Help: "What clerks did, by kind and outcome: an answer's code, or unavailable.",
	}, []string{"entry", "outcome"})
	for _, entry := range []string{entryReserve, entryTake, entryRelease, entryReverse} {
		for _, outcome := range []string{string(checkout.CodeOK), codeUnavailable} {
			c.entries.WithLabelValues(entry, outcome)
		}
	}
	c.signIns = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_counter_sign_ins_total", Help: "Clerks who signed in to the page, by outcome.",
	}, []string{"outcome"})
	for _, outcome := range []string{"ok", "refused"} {
		c.signIns.WithLabelValues(outcome)
	}
	return c, nil
}

// originOf is scheme and host of an address.
func originOf(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// Routes mounts the API and the page; each path is whole.
func (c *Counter) Routes(r chi.Router) {
	r.Handle(Prefix, c.api())
	r.Handle(Prefix+"/*", c.api())
	r.Mount(pagePrefix, c.pages())
}

// now is the stamp of a command: milliseconds, as records have it.
func (c *Counter) now() time.Time { return c.cfg.Now().UTC().Truncate(time.Millisecond) }
