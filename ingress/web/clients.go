package web

import (
	"hash/maphash"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate" // the token bucket that Go's authors keep

	"quittance/internal/network"
)

// Limits are the calls a second of networks, by their width.
type Limits [network.Widths]float64

const (
	// siteShare and providerShare are the parts of an instance's rate for a network of that
	// width, if a client may not have more. docs/design/limits.md has what was measured.
	siteShare     = 10
	providerShare = 4
)

// Shares returns the limits of an instance that admits perInstance calls a second.
func Shares(perClient, perInstance float64) Limits {
	return Limits{
		network.Subscriber: perClient,
		network.Site:       max(perClient, perInstance/siteShare),
		network.Provider:   max(perClient, perInstance/providerShare),
	}
}

// Multiples returns limits for calls that are few, of which no rate of an instance is shared out.
func Multiples(perClient float64) (l Limits) {
	for w, clients := range network.Multiples {
		l[w] = float64(clients) * perClient
	}
	return l
}

// ClientBurst is the burst of Clients that lets many phones, or programs, behind one address call together.
const ClientBurst = 10 * time.Second

// wideBurst is the burst of wide networks: that of the instance.
const wideBurst = instanceBurst

// Clients limits the calls of the networks of each client (network.Of) to rates. Safe for
// concurrent use.
//
// A network is one of a fixed number of buckets by its hash, so that a flood of addresses
// takes no memory. Networks in one bucket share its rate.
type Clients struct {
	seed    maphash.Seed
	buckets [network.Widths][buckets]*rate.Limiter
}

// buckets is the number of buckets of a width.
const buckets = 4096

// NewClients makes limits of calls a second. A client that was silent may make the calls of
// burst at once.
func NewClients(limits Limits, burst time.Duration) *Clients {
	c := &Clients{seed: maphash.MakeSeed()}
	atOnce := burstOf(limits[network.Subscriber], burst)
	for w, perSecond := range limits {
		atOnce = max(atOnce, burstOf(perSecond, min(burst, wideBurst))) // a wide network has at least what each of its clients may send
		for i := range c.buckets[w] {
			c.buckets[w][i] = rate.NewLimiter(rate.Limit(perSecond), atOnce)
		}
	}
	return c
}

// Allow counts a call of a client and reports whether it is within the limits of its networks.
func (c *Clients) Allow(r *http.Request) bool {
	_, ok := c.allow(Client(r))
	return ok
}

// AllowAs is Allow for a caller that is known by something better than its address, such as a sealed cookie.
// The name is that of no network: the caller shares its rate with nobody.
func (c *Clients) AllowAs(name string) bool {
	_, ok := c.allow(name)
	return ok
}

// allow counts a call of a client, unless one of its networks has reached its limit: the
// narrowest of these is reached then. A refused call takes nothing, so that a client beyond its
// own limit does not use up those of its neighbours.
func (c *Clients) allow(client string) (reached network.Width, ok bool) {
	var of [network.Widths]*rate.Limiter
	for w, name := range network.Of(client) {
		of[w] = c.buckets[w][maphash.String(c.seed, name)%buckets]
		if of[w].Tokens() < 1 {
			return network.Width(w), false
		}
	}
	for w, l := range of {
		if !l.Allow() { // another call took the last one meanwhile
			return network.Width(w), false
		}
	}
	return 0, true
}

// NewRate makes a limit of calls a second, with the calls of burst at once, at least one.
func NewRate(perSecond float64, burst time.Duration) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), burstOf(perSecond, burst))
}

func burstOf(perSecond float64, burst time.Duration) int {
	return int(math.Max(1, math.Ceil(perSecond*burst.Seconds())))
}
