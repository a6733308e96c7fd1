package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime/store"
)

// phase is the progress of an assigned partition.
type phase int

const (
	restoring phase = iota // the restoring goroutine owns it
	restored               // waits for adopt
	active                 // the loop owns it
)

// partition is an assigned partition. It lives from its assignment to its revocation or
// its next assignment.
type partition struct {
	id     int32
	since  time.Time          // real time of the assignment
	cancel context.CancelFunc // ends the restore
	idle   chan struct{}      // closed when the restore has ended
	phase  phase              // guarded by membership.mu

	// The restoring goroutine uses these first, then the loop.
	store *store.Store
	start int64 // next input offset; negative: the group's offset
	// caughtUp is the end of the input at the restore, or 0 once the loop has reached it.
	// Ticks wait until then.
	caughtUp int64

	// Only the loop uses these.
	nextDue time.Time // no deadline is due before this time; zero when unknown
	touched time.Time // real time of the last store.Live
	seen    int64     // input position at the last check that found a new one
	moved   time.Time // real time of that check
	fault   fault
}

// fault counts the failures of one record or tick.
type fault struct {
	offset int64  // offset of the record, -1 for a tick
	key    string // key of the tick
	text   string // text of the last error
	err    error
	n      int // consecutive failures with this text
	all    int // failures in total
}

// of reports whether f counts failures of this record or tick.
func (f *fault) of(offset int64, key string) bool {
	return f.n > 0 && f.offset == offset && f.key == key
}

// count adds a failure.
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

// hopeless reports whether the attempts are used up.
func (f *fault) hopeless() bool { return f.n >= sameFailures || f.all >= allFailures }

// onAssigned pauses the assigned partitions and starts their restores. It must not wait
// for them: a callback that waits delays the whole group.
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
			// GroupTransactSession skipped the callback of the revocation. Another instance
			// may have changed the state since.
			m.drop(old)
		}
		p := &partition{id: id, since: time.Now(), start: -1}
		m.parts[id] = p
		m.restoreLocked(p, m.closing[id])
	}
	m.gauges()
	m.log.Info("partitions assigned", slog.Any("partitions", ids))
}

// onRevoked drops revoked partitions. It never runs during a transaction, because
// rebalances are blocked from poll to AllowRebalance.
func (m *membership) onRevoked(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := revoked[m.cfg.InputTopic]
	for _, id := range ids {
		if p := m.parts[id]; p != nil {
			m.drop(p)
		}
		delete(m.committed, id)
	}
	m.gauges()
	m.log.Info("partitions revoked", slog.Any("partitions", ids))
}

// restoreLocked starts the restore of p. The restore first waits until before is closed,
// that is until the previous store in the same folder is closed. The caller holds m.mu.
func (m *membership) restoreLocked(p *partition, before <-chan struct{}) {
	ctx, cancel := context.WithCancel(m.work)
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

// drop removes p and starts a goroutine that closes its store. The caller holds m.mu.
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
			<-before // the restore of p may have ended without waiting for it
		}
		if p.store == nil {
			return
		}
		end := p.store.Close
		if abandon {
			end = p.store.Abandon
		}
		if err := end(); err != nil {
			m.log.Error("closing a local store", slog.Int("partition", int(p.id)), slog.Any("error", err))
		}
	})
	m.met.lag.DeleteLabelValues(strconv.Itoa(int(p.id)))
}

// behindPatience is how long ticks wait for an input position that does not change. The
// end of the input may consist of offsets that a consumer never receives, for instance
// those of an aborted transaction.
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

// reload restores an active partition again, from the position of its store. The loop
// calls it after a transaction with an unknown outcome, and when the next offset does not
// exist in the input.
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

// adopt makes restored partitions active, and drops those that the client has lost without a callback. The caller blocks
// rebalances. It returns an error when the client does not learn the offsets of the group.
func (m *membership) adopt() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.gauges()
	owned := m.owned()
	for _, p := range m.parts {
		switch {
		case p.phase == restoring:
		case !m.consumes(p, owned):
			m.log.Info("the client lost a partition without a callback", slog.Int("partition", int(p.id)))
			m.drop(p)
			delete(m.committed, p.id)
		case p.phase == active:
		case m.seek(p, owned):
			p.phase = active
			p.touched = time.Now()
			m.cl.ResumeFetchPartitions(map[string][]int32{m.cfg.InputTopic: {p.id}})
		case m.offsetless(p):
			return fmt.Errorf("the client has not learned the group's offset of partition %d in %s", p.id, time.Since(p.since).Round(time.Second))
		}
	}
	return nil
}

// consumes reports whether the client still consumes p. GroupTransactSession skips the callback of a revocation that
// follows another without a transaction between them. The client ignores an offset of a partition that it does not
// consume. Without a position there is no offset to try, and p counts as consumed. The caller holds m.mu.
func (m *membership) consumes(p *partition, owned map[int32]kgo.EpochOffset) bool {
	if _, ok := owned[p.id]; ok {
		return true
	}
	next := p.next()
	if next < 0 {
		return true
	}
	m.setOffset(p.id, next)
	at, ok := m.owned()[p.id]
	if ok {
		owned[p.id] = at
	}
	return ok
}

// next returns the offset of the next input record of a restored partition; negative if only the group knows it.
func (p *partition) next() int64 {
	if at := p.store.Position().Input; at != store.NoInput {
		return max(p.start, at+1)
	}
	return p.start
}

// seek makes the client continue where the state of p ends. It reports whether p may become active: the client knows
// the offsets of the group. The caller holds m.mu and knows that the client consumes p.
func (m *membership) seek(p *partition, owned map[int32]kgo.EpochOffset) bool {
	committed, ok := m.committed[p.id]
	if !ok {
		return false // the client is still fetching its offsets, for instance because a transaction has them pending
	}
	if p.start < 0 {
		// No record is decided, so there are no ticks, and the client begins where adjust said. A client that has
		// lost p receives nothing of it.
		return !m.refuse(p, committed)
	}
	if at := owned[p.id].Offset; at != p.start {
		// The position in the changelog is correct: it was committed with the state.
		m.log.Warn("the group offset differs from the position of the state; continuing after the position",
			slog.Int("partition", int(p.id)), slog.Int64("at", at), slog.Int64("committed", committed), slog.Int64("start", p.start))
		m.setOffset(p.id, p.start)
	}
	return true
}

// offsetPatience is how many times the time-out of a transaction the client may take to learn the offsets of the group.
const offsetPatience = 10

// offsetless reports whether the client has not learned the group's offset of p for so long that it never will: a
// transaction that has the offset pending has ended by then. The next membership asks again. The caller holds m.mu.
func (m *membership) offsetless(p *partition) bool {
	_, ok := m.committed[p.id]
	return !ok && time.Since(p.since) > offsetPatience*m.cfg.TransactionTimeout
}

// refuse reports whether the state of earlier decisions of p is missing: the group has an offset and the changelog
// nothing. An operator has to decide how to continue.
func (m *membership) refuse(p *partition, committed int64) bool {
	if committed <= 0 {
		return false
	}
	if !m.refused[p.id] {
		m.refused[p.id] = true
		m.met.anomalies.WithLabelValues("stateless").Inc()
		m.log.Error("the group has offsets but the changelog has no state: the partition is not decided; restore the changelog, or delete the offsets of the group to decide the input from its beginning",
			slog.Int("partition", int(p.id)), slog.Int64("committed", committed), slog.String("group", m.cfg.Group))
	}
	return true
}

// rewind makes the client continue after the positions of the active partitions. After an abort the client returns to
// the offsets of the group, in all partitions. They may be ahead of the positions (see seek), and the commands between
// them would be lost. The caller blocks rebalances.
func (m *membership) rewind() {
	owned := m.owned()
	for _, p := range m.actives() {
		if at, ok := owned[p.id]; ok && p.next() >= 0 && at.Offset != p.next() {
			m.setOffset(p.id, p.next())
		}
	}
}

func (m *membership) setOffset(id int32, to int64) {
	m.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{m.cfg.InputTopic: {id: {Epoch: -1, Offset: to}}})
}

// owned returns the partitions that the client consumes and from which it has received a record, or for which it has
// an offset of the group or of SetOffsets; with the next offset. The client knows them even if it has skipped a
// callback. The committed offsets alone are not enough: they lack a partition for which the group has none.
func (m *membership) owned() map[int32]kgo.EpochOffset {
	owned := map[int32]kgo.EpochOffset{}
	maps.Copy(owned, m.cl.CommittedOffsets()[m.cfg.InputTopic])
	maps.Copy(owned, m.cl.UncommittedOffsets()[m.cfg.InputTopic])
	return owned
}

// actives returns the active partitions, ordered by number.
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

// activePartition returns partition id if it is active, otherwise nil.
func (m *membership) activePartition(id int32) *partition {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.parts[id]; p != nil && p.phase == active {
		return p
	}
	return nil
}

// gauges sets the metrics of partitions. The caller holds m.mu.
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

// wakeLocked ends the poll in progress, if any. The caller holds m.mu.
func (m *membership) wakeLocked() {
	m.wake = true
	if m.endPoll != nil {
		m.endPoll()
	}
}
