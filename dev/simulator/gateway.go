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

// gateway is the state of one operator's gateway, without its payments. Safe for
// concurrent use.
type gateway struct {
	behaviour behaviour

	mu     sync.Mutex
	tokens map[string]grant
	// failed holds the ids whose first request got a 500 (magic number 11).
	failed      map[string]struct{}
	failedOrder history[string]
}

// grant holds the rights of an access token.
type grant struct {
	account   string // the merchant
	key       string // subscription key that a request must also have, at operators that require one
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

// granted returns the rights of a token; false if it is unknown or expired.
func (g *gateway) granted(token string, now time.Time) (grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, known := g.tokens[token]
	return t, known && now.Before(t.expiresAt)
}

// failsFirst reports whether this is the first request of an id, which gets a 500.
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

// misbehave plays the outages set by /control. refuse answers in the operator's words.
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

// delayKey is the context key of an answer's delay. The request is carried out before the
// delay, so a silent operator has accepted it.
type delayKey struct{}

func delayOf(r *http.Request) time.Duration {
	d, _ := r.Context().Value(delayKey{}).(time.Duration)
	return d
}

func (s *Simulator) holdBack(w http.ResponseWriter, r *http.Request) bool {
	return s.pause(w, r, delayOf(r))
}

// accept answers the request for a submitted collection and starts its script.
func (s *Simulator) accept(w http.ResponseWriter, r *http.Request, c collection, answer func()) {
	if delayOf(r) > 0 {
		// With a slow gateway the payer can decide, and the merchant can be called back,
		// before the merchant gets its answer.
		s.schedule(c)
		if s.holdBack(w, r) {
			answer()
		}
		return
	}
	answer()
	// The answer is sent before the payer can decide. A writer that cannot flush sends it
	// microseconds later, at the end of the handler.
	_ = http.NewResponseController(w).Flush()
	s.schedule(c)
}

// refuseCode answers with a refusal of MTN or of the card acquirer.
func refuseCode(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]string{"code": code, "message": message})
}

// isJSON reports whether the request declares its body as JSON.
func isJSON(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media == "application/json"
}

func isAbsoluteURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// fifteenDigits derives an operator's own number of a payment from the merchant's id. The
// number stays the same after a restart and differs between payments.
func fifteenDigits(reference uuid.UUID) uint64 {
	sum := sha256.Sum256(reference[:])
	const least = 1e14
	return least + binary.BigEndian.Uint64(sum[:8])%(9*least)
}
