package web

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2" // bounded and exact: two sessions must not share a rate
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
	// reservedShare is the part of an instance's rate for people who are paying. Others never
	// take it.
	reservedShare = 2
	// unprovenShare is the part of an instance's rate for ids without a MAC, so that made-up
	// ones of the old form do not take the rate of those that we made.
	unprovenShare = 4
	// payerShare and the others are the parts of the reserve for the networks of people who are
	// paying. They are large: all phones of an operator may be behind one address, and each
	// session has its own limit.
	payerShare, payerSiteShare, payerProviderShare = 4, 2, 1
	// sessionRate is the least of a session in a second: a page that polls asks every two seconds
	// or less often, and a citizen has a few tabs. sessionShare is its part of a client's rate, if
	// that is more.
	sessionRate, sessionShare = 2, 50
	// maxSessions is the number of sessions whose rate is remembered, the last ones used: more
	// than an instance admits calls in a minute.
	maxSessions = 1 << 16
)

// GateConfig of a Gate. Fields are required, unless said otherwise.
type GateConfig struct {
	// IDs recognise the session ids that we made.
	IDs checkout.IDs
	// PerClient and PerInstance are calls a second.
	PerClient, PerInstance float64
	// PerSession are those about one session. 0 means 2, or a fiftieth of PerClient if that is
	// more.
	PerSession float64
	// Lifetime is how long after its id was made a session can be paid at most, by the clock
	// Now. Zero for no end.
	Lifetime time.Duration
	Now      func() time.Time // required with Lifetime
	Metrics  prometheus.Registerer
}

// Gate admits the calls without a key: those of citizens' pages and of operators. It refuses
// made-up session ids before they cost a query or a command, and limits the others for each
// client and for the instance. Its router must have the middleware ClientAddress. Safe for
// concurrent use.
//
// Half of the instance's rate is reserved for people who are paying: their calls name a session
// that we made. They are counted by their session, and in networks of their own, so that neither
// strangers nor neighbours behind the same address turn them away. docs/design/limits.md.
type Gate struct {
	cfg                        GateConfig
	clients, payers            *Clients
	sessions                   *lru.Cache[string, *rate.Limiter]
	reserve, strange, unproven *rate.Limiter
	refused                    *prometheus.CounterVec
	after, again               time.Duration // Retry-After of strangers and of payers
}

// Causes of a refusal, as labels.
const (
	refusedMadeUp   = "made_up"
	refusedSession  = "session"
	refusedClient   = "client"
	refusedNetwork  = "network"
	refusedInstance = "instance"
	refusedReserve  = "reserve"
	refusedUnproven = "unproven"
)

// NewGate makes a Gate.
func NewGate(cfg GateConfig) (*Gate, error) {
	if !(cfg.PerClient > 0) || !(cfg.PerInstance > 0) {
		return nil, errors.New("calls without a key: a client and an instance must be allowed more than 0 a second")
	}
	if cfg.Lifetime > 0 && cfg.Now == nil {
		return nil, errors.New("calls without a key: Now is required with Lifetime")
	}
	sessions, err := lru.New[string, *rate.Limiter](maxSessions)
	if err != nil {
		return nil, err
	}
	cfg.PerSession = cmp.Or(cfg.PerSession, max(sessionRate, cfg.PerClient/sessionShare))
	reserve := cfg.PerInstance / reservedShare
	strange := cfg.PerInstance - reserve
	g := &Gate{
		cfg: cfg, sessions: sessions,
		clients:  NewClients(Shares(cfg.PerClient, strange), ClientBurst),
		payers:   NewClients(payerLimits(cfg.PerClient, reserve), ClientBurst),
		reserve:  NewRate(reserve, instanceBurst),
		strange:  NewRate(strange, instanceBurst),
		unproven: NewRate(cfg.PerInstance/unprovenShare, instanceBurst),
		after:    retryAfter(min(cfg.PerClient, cfg.PerInstance/unprovenShare)),
		again:    retryAfter(min(cfg.PerSession, reserve)),
		refused: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_ingress_keyless_refused_total",
			Help: "Calls without a key that were refused, by cause: made_up (nobody made the session id), session (limit of a session), client (limit of an address), network (limit of a /24 or /16, or of a /48 or /32 of IPv6), instance (limit of this instance for strangers), reserve (limit of this instance for people who are paying), unproven (limit of this instance for ids without a MAC).",
		}, []string{"cause"}),
	}
	for _, cause := range []string{refusedMadeUp, refusedSession, refusedClient, refusedNetwork, refusedInstance, refusedReserve, refusedUnproven} {
		g.refused.WithLabelValues(cause)
	}
	return g, nil
}

// retryAfter is the time for one call at a rate, at least a second.
func retryAfter(perSecond float64) time.Duration {
	return time.Duration(float64(time.Second) / min(perSecond, 1))
}

// payerLimits are those of the networks of people who are paying.
func payerLimits(perClient, reserve float64) Limits {
	return Limits{
		network.Subscriber: max(perClient, reserve/payerShare), network.Site: max(perClient, reserve/payerSiteShare), network.Provider: max(perClient, reserve/payerProviderShare),
	}
}

// Session admits a call about a session. The error wraps checkout.ErrMalformedID if nobody
// made the id, and is a *problem.Problem with 429 if there are too many calls.
//
// Made-up ids count against their client alone: a flood of them must not take the rate of
// the citizens. An id that is too old to be paid counts as a stranger's call.
func (g *Gate) Session(r *http.Request, id string) error {
	_, proven, err := g.cfg.IDs.CheckSession(id)
	if err == nil && proven && g.young(id) {
		return g.Payer(r, id)
	}
	if limited := g.client(r); limited != nil {
		return limited
	}
	switch {
	case err != nil:
		g.refused.WithLabelValues(refusedMadeUp).Inc()
		return err
	case !proven && !g.unproven.Allow():
		return g.limited(refusedUnproven, g.after, "Too many requests for sessions of an earlier release.")
	}
	return g.stranger()
}

// young reports whether a session may still be in payment.
func (g *Gate) young(id string) bool {
	made, err := checkout.SessionMade(id)
	return err == nil && (g.cfg.Lifetime == 0 || g.cfg.Now().Sub(made) < g.cfg.Lifetime)
}

// Payer admits a call of somebody who has proven to be in the middle of a payment. The proof
// names it: a session id that we made, or what we sealed in a cookie. The error is a
// *problem.Problem with 429 if there are too many calls of it, of a network, or of all payers.
func (g *Gate) Payer(r *http.Request, proof string) error {
	if !g.session(proof).Allow() {
		return g.limited(refusedSession, g.again, "Too many requests are about this payment.")
	}
	if _, ok := g.payers.allow(Client(r)); !ok {
		return g.limited(refusedNetwork, g.again, "The network of this address sends too many requests.")
	}
	if !g.reserve.Allow() && !g.strange.Allow() {
		return g.limited(refusedReserve, g.again, "The service gets too many requests.")
	}
	return nil
}

// session returns the rate of a payment.
func (g *Gate) session(proof string) *rate.Limiter {
	if l, ok := g.sessions.Get(proof); ok {
		return l
	}
	l := NewRate(g.cfg.PerSession, ClientBurst)
	if before, found, _ := g.sessions.PeekOrAdd(proof, l); found {
		return before
	}
	return l
}

// Call admits a call of a stranger: it names no session id. The error is a *problem.Problem with
// 429 if there are too many calls.
func (g *Gate) Call(r *http.Request) error {
	if err := g.client(r); err != nil {
		return err
	}
	return g.stranger()
}

func (g *Gate) stranger() error {
	if !g.strange.Allow() {
		return g.limited(refusedInstance, g.after, "The service gets too many requests.")
	}
	return nil
}

// client counts a call against the limits of its client's networks.
func (g *Gate) client(r *http.Request) error {
	switch reached, ok := g.clients.allow(Client(r)); {
	case ok:
		return nil
	case reached == network.Subscriber:
		return g.limited(refusedClient, g.after, "This address sends too many requests.")
	default:
		return g.limited(refusedNetwork, g.after, "The network of this address sends too many requests.")
	}
}

func (g *Gate) limited(cause string, after time.Duration, detail string) error {
	g.refused.WithLabelValues(cause).Inc()
	p := problem.New(checkout.CodeRateLimited).Saying("%s Retry-After says when to send it again.", detail)
	p.RetryAfter = max(p.RetryAfter, after)
	return p
}
