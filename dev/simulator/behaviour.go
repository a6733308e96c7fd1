package simulator

import (
	"sync"
	"time"
)

// behaviour is the misbehaviour of a system set by /control, such as a status or a delay.
// Safe for concurrent use; the zero value answers normally.
type behaviour struct {
	mu sync.Mutex
	conduct
}

// conduct is the behaviour towards one request. The surface determines which fields are
// used.
type conduct struct {
	status     int           // 0 for the normal answer
	delay      time.Duration // before the answer
	times      int           // number of further requests with this conduct; 0 for all
	hang       bool          // no answer until the caller disconnects
	drip       bool          // an endless answer, one byte a second
	redirect   string        // Location of the answer
	retryAfter string        // Retry-After of the answer
	refuse     int           // status for confirmations alone
	refuseCode string
	report     string   // which delivery reports follow an accepted SMS
	away       bool     // breaks the connection
	misbehave  []string // of an ERP: some of misbehaviours
	cut        int      // of an ERP: the lines of a batch after which the connection breaks; 0 for none
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
