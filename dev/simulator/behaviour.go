package simulator

import (
	"sync"
	"time"
)

// behaviour is how a system misbehaves until told otherwise: a status instead of
// an answer, a delay before one. Safe for concurrent use; the zero value answers normally.
type behaviour struct {
	mu sync.Mutex
	conduct
}

// conduct is what one request meets. Which fields count depends on the surface.
type conduct struct {
	status     int           // 0: the normal answer
	delay      time.Duration // before the answer
	times      int           // further requests this holds for; 0: until changed
	hang       bool          // no answer until the caller gives up
	drip       bool          // an answer that never ends, a byte a second
	redirect   string        // Location of the answer
	retryAfter string        // Retry-After of the answer
	refuse     int           // status for confirmations alone
	refuseCode string
}

// set replaces the conduct.
func (b *behaviour) set(c conduct) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conduct = c
}

// next returns the conduct for the next request and counts it against times.
func (b *behaviour) next() conduct {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.conduct
	if c.times > 0 {
		b.times--
		if b.times == 0 {
			b.conduct = conduct{}
		}
	}
	return c
}
