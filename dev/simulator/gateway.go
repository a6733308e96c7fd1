package simulator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"
)

// gateway is the state of one operator's gateway apart from the book. Safe for
// concurrent use.
type gateway struct {
	behaviour behaviour

	mu     sync.Mutex
	tokens map[string]grant
	// failed are ids that had their 500 (magic number 11) and are expected again.
	failed      map[string]struct{}
	failedOrder history[string]
}

// grant is what an access token stands for.
type grant struct {
	account   string // the merchant
	key       string // what else a request must bring, at operators that want more
	expiresAt time.Time
}

func newGateway() *gateway {
	return &gateway{tokens: map[string]grant{}, failed: map[string]struct{}{}, failedOrder: newHistory[string](10_000)}
}

// grant makes a token and forgets expired ones.
func (g *gateway) grant(to grant, now time.Time) (token string) {
	token = rand.Text()
	g.mu.Lock()
	defer g.mu.Unlock()
	for old, t := range g.tokens {
		if !now.Before(t.expiresAt) {
			delete(g.tokens, old)
		}
	}
	g.tokens[token] = to
	return token
}

// granted is what a token stands for; false if it is unknown or expired.
func (g *gateway) granted(token string, now time.Time) (grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, known := g.tokens[token]
	return t, known && now.Before(t.expiresAt)
}

// failsFirst says whether this is the first request of a payment that gets a 500.
func (g *gateway) failsFirst(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, seen := g.failed[id]; seen {
		return false
	}
	g.failed[id] = struct{}{}
	for _, old := range g.failedOrder.add(id) {
		delete(g.failed, old)
	}
	return true
}

// misbehave plays the outages that /control asks for. refuse answers in the
// operator's words.
func (s *Simulator) misbehave(operator string, refuse func(w http.ResponseWriter, status int)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := s.gateways[operator].behaviour.next()
			if now.status != 0 {
				if s.pause(w, r, now.delay) {
					refuse(w, now.status)
				}
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), delayKey{}, now.delay)))
		})
	}
}

// delayKey is the context key of how long an answer is held back. The work is done
// before: a silent operator has accepted the request.
type delayKey struct{}

func delayOf(r *http.Request) time.Duration {
	d, _ := r.Context().Value(delayKey{}).(time.Duration)
	return d
}

func (s *Simulator) holdBack(w http.ResponseWriter, r *http.Request) bool {
	return s.pause(w, r, delayOf(r))
}

// accept answers a request for a collection that has been submitted, and lets
// its script run.
func (s *Simulator) accept(w http.ResponseWriter, r *http.Request, c collection, answer func()) {
	if delayOf(r) > 0 {
		// A slow gateway: the payer may decide, and the merchant be called back,
		// before the merchant has its answer.
		s.schedule(c)
		if s.holdBack(w, r) {
			answer()
		}
		return
	}
	answer()
	// The answer leaves before the payer can decide. A writer that cannot flush
	// sends it at the end of the handler, microseconds later.
	_ = http.NewResponseController(w).Flush()
	s.schedule(c)
}

// isJSON says whether the body of a request is declared as JSON.
func isJSON(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media == "application/json"
}

func isAbsoluteURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// fifteenDigits derives an operator's own number of a payment from the
// merchant's: the same after a restart, different for different payments.
func fifteenDigits(reference uuid.UUID) uint64 {
	sum := sha256.Sum256(reference[:])
	const least = 1e14
	return least + binary.BigEndian.Uint64(sum[:8])%(9*least)
}
