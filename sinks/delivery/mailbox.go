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

// lane is a set of call slots. Destinations that answer slowly have one of
// their own, so that no number of them takes the slots of the quick ones.
type lane struct {
	name    string
	slots   int
	used    int
	waiting []*mailbox // want a slot, in order of asking
}

// position is where a delivery stands on its topic, in one generation.
type position struct {
	tracker *consume.Watermark
	offset  int64
}

// job is one delivery in hand. It may stand at several positions: read again
// after a rebalance while its call is under way, it is not sent twice.
type job struct {
	delivery  *record.Delivery
	positions []position
	lane      *lane // that holds its slot, nil when not under way
	concluded bool  // its outcome is on its way to Kafka
}

// mailbox is what one destination has waiting and under way. The worker's lock
// covers it.
type mailbox struct {
	id       string
	queue    []*job
	inFlight int
	slow     bool // starts its calls in the slow lane
	inLine   bool // stands in a lane's waiting list
	paced    bool // waits for its rate
	pace     pace
	breaker  breaker
	shown    breakerState // as counted in the gauge
	// gone: it answered that it wants no more; true until Postgres has had time
	// to say the same.
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
