package runtime

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime/store"
)

// phase of a partition that is assigned to us.
type phase int

const (
	restoring phase = iota // belongs to the goroutine that restores it
	restored               // waits for the loop to take it
	active                 // belongs to the loop
)

// partition is one that is assigned to us, from the assignment to the revocation
// or to the next assignment.
type partition struct {
	id     int32
	since  time.Time          // real time of the assignment
	cancel context.CancelFunc // ends what restores it
	idle   chan struct{}      // closed when nothing restores it
	phase  phase              // guarded by membership.mu

	// Of the restoring goroutine, then of the loop.
	store *store.Store
	start int64 // where the input goes on; below zero: as the group has it
	// caughtUp is the end that the input had when the partition was restored, 0
	// once it is reached: time does not pass before what lies in the log is decided.
	caughtUp int64

	// Of the loop.
	nextDue time.Time // nothing is due before; zero when not known
	touched time.Time // real time of the last store.Live
	seen    int64     // input position when it was last seen to move, at
	moved   time.Time // this real time
	fault   fault
}

// fault is what keeps a record, or a tick, from being produced.
type fault struct {
	offset int64  // of the record, -1 for a tick
	key    string // of the tick
	text   string
	err    error
	n      int // failures of the same text
	all    int // failures
}

func (f *fault) of(offset int64, key string) bool {
	return f.n > 0 && f.offset == offset && f.key == key
}

// count notes another failure.
func (f *fault) count(offset int64, key string, err error) {
	if !f.of(offset, key) {
		*f = fault{offset: offset, key: key}
	}
	if f.text != err.Error() {
		f.text, f.n = err.Error(), 0
	}
	f.err = err
	f.n++
	f.all++
}

// hopeless tells whether trying again is over.
func (f *fault) hopeless() bool { return f.n >= sameFailures || f.all >= allFailures }

// onAssigned only pauses what we were assigned and has it restored beside the
// loop: a callback that waits holds up the group.
func (m *membership) onAssigned(_ context.Context, cl *kgo.Client, assigned map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined = true
	ids := assigned[m.cfg.InputTopic]
	if len(ids) > 0 {
		cl.PauseFetchPartitions(map[string][]int32{m.cfg.InputTopic: ids})
	}
	for _, id := range ids {
		if old := m.parts[id]; old != nil {
			// The callback that should have revoked it was skipped, see
			// GroupTransactSession. Whoever had it meanwhile has changed it.
			m.drop(old)
		}
		p := &partition{id: id, since: time.Now(), start: -1, nextDue: time.Time{}}
		m.parts[id] = p
		m.restoreLocked(p, m.closing[id])
	}
	m.gauges()
	m.log.Info("partitions assigned", slog.Any("partitions", ids))
}

// onRevoked forgets what we no longer have. It never runs during a transaction:
// rebalances wait from poll to AllowRebalance.
func (m *membership) onRevoked(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := revoked[m.cfg.InputTopic]
	for _, id := range ids {
		if p := m.parts[id]; p != nil {
			m.drop(p)
		}
	}
	m.gauges()
	m.log.Info("partitions revoked", slog.Any("partitions", ids))
}

// restoreLocked has p restored, once what had its folder before is closed.
// m.mu is held.
func (m *membership) restoreLocked(p *partition, before <-chan struct{}) {
	ctx, cancel := context.WithCancel(m.background)
	p.cancel, p.phase, p.idle = cancel, restoring, make(chan struct{})
	idle := p.idle
	m.wg.Go(func() {
		defer close(idle)
		defer cancel()
		if before != nil {
			select {
			case <-before:
			case <-ctx.Done():
				return
			}
		}
		if !m.restore(ctx, p) {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.parts[p.id] == p {
			p.phase = restored
			m.wakeLocked()
		}
	})
}

// drop takes p out and closes its store beside the callback. m.mu is held.
func (m *membership) drop(p *partition) {
	delete(m.parts, p.id)
	p.cancel()
	closed := make(chan struct{})
	before, idle, abandon := m.closing[p.id], p.idle, m.died
	m.closing[p.id] = closed
	m.wg.Go(func() {
		defer close(closed)
		<-idle
		if before != nil {
			<-before // p may have been waiting for it, too
		}
		if p.store == nil {
			return
		}
		end := p.store.Close
		if abandon {
			end = p.store.Abandon
		}
		if err := end(); err != nil {
			m.log.Error("closing local store", slog.Int("partition", int(p.id)), slog.Any("error", err))
		}
	})
	m.met.lag.DeleteLabelValues(strconv.Itoa(int(p.id)))
}

// behindPatience is how long ticks wait for an input that does not move: its last
// records may be ones that consumers never receive.
const behindPatience = 10 * time.Second

// behind reports whether p still has to decide input that existed when p was restored.
// Ticks wait for it. After an outage, for instance, an approval that came in time may
// still be unread in the log, and a tick at the present time would let it expire.
func (p *partition) behind() bool {
	at := p.store.Position().Input
	if p.caughtUp == 0 || at+1 >= p.caughtUp {
		p.caughtUp = 0
		return false
	}
	if now := time.Now(); at != p.seen || p.moved.IsZero() {
		p.seen, p.moved = at, now
	} else if now.Sub(p.moved) > behindPatience {
		p.caughtUp = 0
		return false
	}
	return true
}

// reload restores an active partition again, from where its store is: after a
// transaction of which it is not certain that it did not commit, or when the
// input does not have the offset that we asked for. The loop calls it.
func (m *membership) reload(p *partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parts[p.id] != p || p.phase != active {
		return
	}
	m.cl.PauseFetchPartitions(map[string][]int32{m.cfg.InputTopic: {p.id}})
	p.since, p.nextDue = time.Now(), time.Time{}
	p.store.Lags()
	m.restoreLocked(p, nil)
	m.gauges()
}

// adopt takes restored partitions into the loop. A rebalance must not be able to
// run meanwhile.
func (m *membership) adopt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var owned map[int32]kgo.EpochOffset
	for _, p := range m.parts {
		if p.phase != restored {
			continue
		}
		if owned == nil {
			owned = m.owned()
		}
		committed, ok := owned[p.id]
		if !ok {
			continue // its offsets are still being asked for, for instance because a transaction has them pending
		}
		if real, ok := m.committed[p.id]; ok && real > 0 && p.store.Position().Input == store.NoInput {
			// The state of earlier decisions is missing. An operator has to decide
			// how to continue.
			if !m.refused[p.id] {
				m.refused[p.id] = true
				m.met.anomalies.WithLabelValues("stateless").Inc()
				m.log.Error("the group has offsets but the changelog has no state: refusing to decide; restore the changelog, or delete the offsets of the group to decide the input from its beginning",
					slog.Int("partition", int(p.id)), slog.Int64("committed", real), slog.String("group", m.cfg.Group))
			}
			continue
		}
		if p.start >= 0 && committed.Offset != p.start {
			// The position in the changelog is the one that counts: it was
			// committed with the state.
			m.log.Warn("group offset differs from the position of the state, which is taken",
				slog.Int("partition", int(p.id)), slog.Int64("committed", committed.Offset), slog.Int64("start", p.start))
			m.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{m.cfg.InputTopic: {p.id: {Epoch: -1, Offset: p.start}}})
		}
		p.phase = active
		p.touched = time.Now()
		m.cl.ResumeFetchPartitions(map[string][]int32{m.cfg.InputTopic: {p.id}})
	}
	m.gauges()
}

// owned are the partitions that the client consumes, with their committed
// offsets. Callbacks can be skipped, this is the client's own book.
func (m *membership) owned() map[int32]kgo.EpochOffset {
	return m.cl.CommittedOffsets()[m.cfg.InputTopic]
}

// actives returns the partitions that decide, by number.
func (m *membership) actives() []*partition {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*partition, 0, len(m.parts))
	for _, id := range slices.Sorted(maps.Keys(m.parts)) {
		if p := m.parts[id]; p.phase == active {
			out = append(out, p)
		}
	}
	return out
}

// active returns partition id if it decides.
func (m *membership) activePartition(id int32) *partition {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.parts[id]; p != nil && p.phase == active {
		return p
	}
	return nil
}

// gauges sets the metrics of partitions. m.mu is held.
func (m *membership) gauges() {
	n := 0
	for _, p := range m.parts {
		if p.phase == active {
			n++
		}
	}
	m.met.assigned.Set(float64(len(m.parts)))
	m.met.active.Set(float64(n))
}

// wakeLocked ends the poll in progress, if any. m.mu is held.
func (m *membership) wakeLocked() {
	m.wake = true
	if m.endPoll != nil {
		m.endPoll()
	}
}
