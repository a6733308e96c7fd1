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
	"quittance/internal/erp"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/quota"
	"quittance/internal/secret"
	"quittance/internal/sessions"
)

// Window is how long a reservation keeps a session for its clerk.
const Window = 10 * time.Minute

// perMinute is the quota of a key: that many look-ups and that many entries in a
// minute. A clerk needs fewer.
const perMinute = 60

// Asker sends a command and awaits its answer: internal/commands.
type Asker interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Sessions reads sessions: internal/sessions. An error means that it cannot show
// everything that was answered before.
type Sessions interface {
	List(ctx context.Context, f sessions.Filter) ([]checkout.Session, int64, error)
	// Cash returns what a clerk took and gave back on a day.
	Cash(ctx context.Context, f sessions.CashFilter) (sessions.CashDay, error)
}

// Dues asks the agencies' ERPs again for what a portal session pays: erp.Dues.
type Dues interface {
	Recheck(ctx context.Context, s checkout.Session) erp.Recheck
}

// Registry knows the agencies: internal/registry. It answers from memory.
type Registry interface {
	ApplicationsOf(agencyID string) []string
}

// Identities know the clerks and their sessions: internal/identity. An error that is no
// identity.ErrUnauthorized means that they cannot answer now.
type Identities interface {
	// AuthenticateClerk answers from memory.
	AuthenticateClerk(key string) (identity.ClerkPrincipal, error)
	// Clerk answers from memory.
	Clerk(agencyID, code string) (identity.Clerk, bool)
	BeginClerkSession(ctx context.Context, keyID string) (id string, err error)
	ClerkSession(ctx context.Context, id string) (identity.ClerkPrincipal, error)
	EndClerkSession(ctx context.Context, id string) error
	SignInWithPIN(ctx context.Context, deviceID, code, pin string) (session string, err error)
	RememberDevice(ctx context.Context, actor operation.Actor, clerk identity.ClerkPrincipal, session, deviceID, pin string) (string, error)
	ForgetDevice(ctx context.Context, actor operation.Actor, clerk identity.ClerkPrincipal) error
}

// Reads counts the requests of a key over all instances: internal/quota.
type Reads interface {
	Admit(ctx context.Context, keyID string, limit int) (quota.Allowance, bool, error)
}

// Unknown counts the unknown references that a key looked up: internal/quota.
type Unknown interface {
	Exhausted(ctx context.Context, keyID string) (until time.Duration, exhausted bool, err error)
	Note(ctx context.Context, keyID string) error
}

// MaxUnknown is how many unknown references a key may look up in an hour. A clerk who
// mistypes a reference hardly ever writes another valid one, because of its check digits.
// So unknown references are those of other agencies, or guesses.
const MaxUnknown = 20

// Labels of the cookies of the page (internal/secret).
const (
	LabelSessions = "counter sessions"
	LabelDevices  = "counter devices"
)

// Config of a Counter. All fields are required.
type Config struct {
	Commands   Asker
	Sessions   Sessions
	Dues       Dues
	Registry   Registry
	Identities Identities
	Tills      Tills
	Papers     Papers
	Reads      Reads
	// Unknown has the limit MaxUnknown.
	Unknown Unknown
	// Limits are those of the calls of the page, by network, session or device.
	Limits web.Limits
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
	// devices remembers in a cookie of its own on which device the browser runs.
	devices *web.SignIn
	calls   *web.Clients // of the page
	wrong   *web.Clients // keys that were refused

	entries   *prometheus.CounterVec
	signIns   *prometheus.CounterVec
	ambiguous prometheus.Counter
	unknown   *prometheus.CounterVec
}

// New makes a Counter.
func New(cfg Config) (*Counter, error) {
	if cfg.Commands == nil || cfg.Sessions == nil || cfg.Dues == nil || cfg.Registry == nil || cfg.Identities == nil || cfg.Tills == nil || cfg.Papers == nil || cfg.Reads == nil || cfg.Unknown == nil || cfg.Keys == nil ||
		cfg.Limits == (web.Limits{}) || cfg.PublicURL == "" || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("counter: every field of the configuration is required")
	}
	c := &Counter{cfg: cfg}
	c.limits()
	var err error
	if c.site, err = web.New(web.Config{Prefix: pagePrefix, Files: templates, PublicURL: cfg.PublicURL, Log: cfg.Log, Script: printing, Wide: true}); err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	c.signIn = &web.SignIn{
		Cookie: "quittance_counter", Label: LabelSessions, Keys: cfg.Keys, PublicURL: cfg.PublicURL,
		Whole: identity.ClerkSessionLifetime, Now: c.now,
	}
	c.devices = &web.SignIn{
		Cookie: "quittance_counter_device", Label: LabelDevices, Keys: cfg.Keys, PublicURL: cfg.PublicURL,
		Whole: identity.DeviceLifetime, Keep: true, Now: c.now,
	}
	factory := promauto.With(cfg.Metrics)
	c.entries = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_counter_entries_total", Help: "What clerks did, by kind and outcome: an answer's code, or unavailable.",
	}, []string{"entry", "outcome"})
	for _, entry := range []string{entryReserve, entryTake, entryRelease, entryReverse, entryCancel} {
		for _, outcome := range []string{string(checkout.CodeOK), codeUnavailable} {
			c.entries.WithLabelValues(entry, outcome)
		}
	}
	c.ambiguous = factory.NewCounter(prometheus.CounterOpts{
		Name: "quittance_counter_ambiguous_references_total", Help: "Look-ups of a payment_ref that belongs to more than one session.",
	})
	c.unknown = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_counter_unknown_references_total", Help: "Look-ups by keys of clerks, by outcome: unknown, the agency has no such payment; refused, the key tried too many unknown references in this hour.",
	}, []string{"outcome"})
	for _, outcome := range []string{"unknown", "refused"} {
		c.unknown.WithLabelValues(outcome)
	}
	c.signIns = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_counter_sign_ins_total", Help: "Clerks who signed in to the page, by outcome: ok, refused (with a key); pin, pin_wrong, pin_used_up (with a PIN); limited (calls of the page, and refused keys, beyond the limits of a network).",
	}, []string{"outcome"})
	for _, outcome := range []string{"ok", "refused", "pin", "pin_wrong", "pin_used_up", outcomeLimited} {
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
