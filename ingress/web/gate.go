package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/network"
)

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
	refusedNetwork  = "network"
	refusedInstance = "instance"
	refusedUnproven = "unproven"
)

// NewGate makes a Gate.
func NewGate(cfg GateConfig) (*Gate, error) {
	if !(cfg.PerClient > 0) || !(cfg.PerInstance > 0) {
		return nil, errors.New("calls without a key: a client and an instance must be allowed more than 0 a second")
	}
	g := &Gate{
		ids: cfg.IDs, clients: NewClients(Shares(cfg.PerClient, cfg.PerInstance), ClientBurst), instance: NewRate(cfg.PerInstance, instanceBurst),
		unproven: NewRate(cfg.PerInstance/unprovenShare, instanceBurst),
		after:    time.Duration(float64(time.Second) / min(cfg.PerClient, cfg.PerInstance/unprovenShare, 1)),
		refused: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_ingress_keyless_refused_total",
			Help: "Calls without a key that were refused, by cause: made_up (nobody made the session id), client (limit of an address), network (limit of a /24 or /16, or of a /48 or /32 of IPv6), instance (limit of this instance), unproven (limit of this instance for ids without a MAC).",
		}, []string{"cause"}),
	}
	for _, cause := range []string{refusedMadeUp, refusedClient, refusedNetwork, refusedInstance, refusedUnproven} {
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
	if err := g.client(r); err != nil {
		return err
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
	if err := g.client(r); err != nil {
		return err
	}
	if !g.instance.Allow() {
		return g.limited(refusedInstance, "The service gets too many requests.")
	}
	return nil
}

// client counts a call against the limits of its client's networks.
func (g *Gate) client(r *http.Request) error {
	switch reached, ok := g.clients.allow(Client(r)); {
	case ok:
		return nil
	case reached == network.Subscriber:
		return g.limited(refusedClient, "This address sends too many requests.")
	default:
		return g.limited(refusedNetwork, "The network of this address sends too many requests.")
	}
}

func (g *Gate) limited(cause, detail string) error {
	g.refused.WithLabelValues(cause).Inc()
	p := problem.New(checkout.CodeRateLimited).Saying("%s Retry-After says when to send it again.", detail)
	p.RetryAfter = max(p.RetryAfter, g.after)
	return p
}
