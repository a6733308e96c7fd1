package delivery

import (
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/kafka/consume"
	"quittance/schemas/record"
)

const (
	laneGood = "good"
	laneSlow = "slow"
)

// lane is a set of call slots. Slow destinations have a lane of their own, so that
// they never take the slots of quick ones, however many they are.
type lane struct {
	name    string
	slots   int
	used    int
	waiting []*mailbox // for a slot, first come first served
}

// position is the place of a delivery on its topic, in one generation.
type position struct {
	tracker *consume.Watermark
	offset  int64
}

// job is one delivery that the worker has accepted. It has several positions when
// its delivery was read again, for example after a rebalance while its call was
// under way: it is sent once.
type job struct {
	delivery  *record.Delivery
	positions []position
	lane      *lane // whose slot it has; nil when its call is not under way
	concluded bool  // its outcome is on its way to Kafka
}

// mailbox has the waiting jobs of one destination and the state of its calls. The
// worker's lock covers it.
type mailbox struct {
	id       string
	queue    []*job
	inFlight int
	slow     bool // starts its calls in the slow lane
	inLine   bool // is in a lane's waiting list
	paced    bool // waits for its rate
	pace     pace
	breaker  breaker
	shown    breakerState // as counted in the gauge
	// gone is when it answered 410, until Postgres has had time to suspend it.
	gone time.Time
}

func (m *mailbox) push(j *job) { m.queue = append(m.queue, j) }

func (m *mailbox) pop() *job {
	j := m.queue[0]
	m.queue[0] = nil
	m.queue = m.queue[1:]
	if len(m.queue) == 0 {
		m.queue = nil
	}
	return j
}

// capacity is how many calls may be under way at once: one while probing.
func (m *mailbox) capacity(d deliveries.Destination, state breakerState) int {
	if state == breakerProbing {
		return 1
	}
	return max(d.MaxInFlight, 1)
}
