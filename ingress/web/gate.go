package web

import (
	"errors"
	"hash/maphash"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"quittance/checkout"
	"quittance/ingress/problem"
)

// Clients limits the calls of each client (Client) to a rate. Safe for concurrent use.
//
// A client is one of a fixed number of buckets by its hash, so that a flood of addresses
// takes no memory. Clients in one bucket share its rate.
type Clients struct {
	seed    maphash.Seed
	buckets [4096]*rate.Limiter
}

// NewClients makes a limit of calls a second. A client that was silent may make the calls of
// burst at once.
func NewClients(perSecond float64, burst time.Duration) *Clients {
	c := &Clients{seed: maphash.MakeSeed()}
	for i := range c.buckets {
		c.buckets[i] = NewRate(perSecond, burst)
	}
	return c
}

// Allow counts a call of a client and reports whether it is within the limit.
func (c *Clients) Allow(r *http.Request) bool {
	return c.buckets[maphash.String(c.seed, Client(r))%uint64(len(c.buckets))].Allow()
}

// NewRate makes a limit of calls a second, with the calls of burst at once, at least one.
func NewRate(perSecond float64, burst time.Duration) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), int(math.Max(1, math.Ceil(perSecond*burst.Seconds()))))
}

// ClientBurst is the burst of Clients that lets many phones, or programs, behind one address call together.
const ClientBurst = 10 * time.Second

const (
	// instanceBurst is short: what it lets through waits for Kafka and Postgres.
	instanceBurst = 2 * time.Second
	// unprovenShare is the part of an instance's rate for ids without a MAC, so that made-up
	// ones of the old form do not take the rate of those that we made.
	unprovenShare = 4
)

// GateConfig of a Gate. All fields are required.
type GateConfig struct {
	// IDs recognise the session ids that we made.
	IDs checkout.IDs
	// PerClient and PerInstance are calls a second.
	PerClient, PerInstance float64
	Metrics                prometheus.Registerer
}

// Gate admits the calls without a key: those of citizens' pages and of operators. It refuses
// made-up session ids before they cost a query or a command, and limits the others for each
// client and for the instance. Its router must have the middleware ClientAddress. Safe for
// concurrent use.
type Gate struct {
	ids                checkout.IDs
	clients            *Clients
	instance, unproven *rate.Limiter
	refused            *prometheus.CounterVec
	after              time.Duration
}

// Causes of a refusal, as labels.
const (
	refusedMadeUp   = "made_up"
	refusedClient   = "client"
	refusedInstance = "instance"
	refusedUnproven = "unproven"
)

// NewGate makes a Gate.
func NewGate(cfg GateConfig) (*Gate, error) {
	if !(cfg.PerClient > 0) || !(cfg.PerInstance > 0) {
		return nil, errors.New("calls without a key: a client and an instance must be allowed more than 0 a second")
	}
	g := &Gate{
		ids: cfg.IDs, clients: NewClients(cfg.PerClient, ClientBurst), instance: NewRate(cfg.PerInstance, instanceBurst),
		unproven: NewRate(cfg.PerInstance/unprovenShare, instanceBurst),
		after:    time.Duration(float64(time.Second) / min(cfg.PerClient, cfg.PerInstance/unprovenShare, 1)),
		refused: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_ingress_keyless_refused_total",
			Help: "Calls without a key that were refused, by cause: made_up (nobody made the session id), client (limit of an address), instance (limit of this instance), unproven (limit of this instance for ids without a MAC).",
		}, []string{"cause"}),
	}
	for _, cause := range []string{refusedMadeUp, refusedClient, refusedInstance, refusedUnproven} {
		g.refused.WithLabelValues(cause)
	}
	return g, nil
}

// Session admits a call about a session. The error wraps checkout.ErrMalformedID if nobody
// made the id, and is a *problem.Problem with 429 if there are too many calls.
//
// Made-up ids count against their client alone: a flood of them must not take the rate of
// the citizens.
func (g *Gate) Session(r *http.Request, id string) error {
	if !g.clients.Allow(r) {
		return g.limited(refusedClient, "This address sends too many requests.")
	}
	_, proven, err := g.ids.CheckSession(id)
	switch {
	case err != nil:
		g.refused.WithLabelValues(refusedMadeUp).Inc()
		return err
	case !proven && !g.unproven.Allow():
		return g.limited(refusedUnproven, "Too many requests for sessions of an earlier release.")
	case !g.instance.Allow():
		return g.limited(refusedInstance, "The service gets too many requests.")
	}
	return nil
}

// Call admits a call that names no session id. The error is a *problem.Problem with 429 if there
// are too many calls.
func (g *Gate) Call(r *http.Request) error {
	switch {
	case !g.clients.Allow(r):
		return g.limited(refusedClient, "This address sends too many requests.")
	case !g.instance.Allow():
		return g.limited(refusedInstance, "The service gets too many requests.")
	}
	return nil
}

func (g *Gate) limited(cause, detail string) error {
	g.refused.WithLabelValues(cause).Inc()
	p := problem.New(checkout.CodeRateLimited).Saying("%s Retry-After says when to send it again.", detail)
	p.RetryAfter = max(p.RetryAfter, g.after)
	return p
}
