package delivery

import (
	"slices"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/kafka/consume"
	"quittance/schemas/record"
)

const (
	laneGood = "good"
	laneSlow = "slow"
)

// lane is a set of call slots. Slow destinations have a lane of their own, so that they
// never take the slots of quick ones.
type lane struct {
	name    string
	slots   int
	used    int
	waiting []*mailbox // for a slot, in the order of their arrival
}

// position is the place of a delivery on its topic, in one generation.
type position struct {
	tracker *consume.Watermark
	offset  int64
}

// job is one delivery that the worker has accepted. A delivery that is read again, for
// example after a rebalance while its call is under way, gives the same job a further
// position. It is sent once.
type job struct {
	delivery  *record.Delivery
	positions []position
	lane      *lane // the lane whose slot it has; nil: no call is under way
	concluded bool  // its outcome is decided and on its way to Kafka
}

// mailbox has the waiting jobs of one destination and the state of its calls. The
// worker's lock protects it.
type mailbox struct {
	id       string
	queue    []*job
	inFlight int
	slow     bool // its calls start in the slow lane
	inLine   bool // it is in a lane's waiting list
	paced    bool // it waits for its rate
	pace     pace
	breaker  breaker
	shown    breakerState // the state that the gauge counts it in
	// gone is the time of a 410. It is cleared when Postgres has had time to suspend
	// the destination.
	gone     time.Time
	refusals refusals
	// busy are the sessions with a call under way, for a kind whose deliveries of a session
	// are sent one at a time.
	busy map[string]bool
}

// next returns the index of the first job that may be called now, -1 when there is none.
func (m *mailbox) next() int {
	return slices.IndexFunc(m.queue, func(j *job) bool { return !m.busy[j.delivery.SessionID] })
}

// take removes a job from the queue.
func (m *mailbox) take(i int) *job {
	j := m.queue[i]
	if i == 0 {
		m.queue[0] = nil
		m.queue = m.queue[1:]
	} else {
		m.queue = slices.Delete(m.queue, i, i+1)
	}
	if len(m.queue) == 0 {
		m.queue = nil
	}
	return j
}

// capacity returns the number of calls that may be under way at once: one while
// probing.
func (m *mailbox) capacity(d deliveries.Destination, state breakerState) int {
	if state == breakerProbing {
		return 1
	}
	return max(d.MaxInFlight, 1)
}
