package runtime

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/processors/runtime/store"
)

const (
	// A record goes to the poison topic after sameFailures failures with the same error,
	// or after allFailures failures in total.
	sameFailures = 3
	allFailures  = 10
	// bareFailures is the number of failed attempts to produce a record, or its poison
	// record, after which the poison record omits the value.
	bareFailures = 2 * sameFailures
	// stuckAfter is the time between the time-out of a transaction and the moment when
	// the membership gives it up.
	stuckAfter = 2 * time.Second
	// poisonTickAgain is when a tick that went to the poison topic is tried again, in the
	// time of the domain.
	poisonTickAgain = time.Hour
)

var (
	errDied  = errors.New("died in a test")
	errStuck = errors.New("the transaction did not end in time")
)

// transaction is a set of records, or of ticks, that are decided and committed together.
// They may belong to several partitions. A membership reuses one transaction.
type transaction struct {
	parts []*touched
	byID  map[int32]*touched
	out   []*kgo.Record
	own   layer

	records, skipped, ticks, poison int

	// The last record or tick. If it is the only one, it is the cause of a failed produce.
	last   *touched
	offset int64
	key    string
}

// touched is a partition in a transaction.
type touched struct {
	part  *partition
	over  overlay
	later []later        // entries whose tick went to the poison topic
	lead  store.Deadline // earliest deadline that the transaction sets
}

// later is an entry with the deadline of its next tick. The local store has this deadline
// in place of the one that the value asks for. The changelog does not have it: after a full
// restore the entry is due at once.
type later struct {
	key string
	at  store.Deadline
}

// begin empties the membership's transaction and returns it.
func (m *membership) begin() *transaction {
	if m.txn == nil {
		m.txn = &transaction{byID: map[int32]*touched{}, own: layer{writes: map[string]entry{}}}
	}
	t := m.txn
	clear(t.byID)
	clear(t.parts)
	clear(t.out)
	*t = transaction{parts: t.parts[:0], byID: t.byID, out: t.out[:0], own: t.own}
	t.own.reset()
	return t
}

// touch returns what t changes in p.
func (t *transaction) touch(p *partition) *touched {
	if tp := t.byID[p.id]; tp != nil {
		return tp
	}
	tp := &touched{part: p, over: overlay{cells: make(map[string]*cell, 64)}}
	t.byID[p.id] = tp
	t.parts = append(t.parts, tp)
	return tp
}

// decide handles the records of one poll in one transaction.
func (m *membership) decide(fs kgo.Fetches) error {
	began := time.Now()
	t := m.begin()
	var failed error
	fs.EachPartition(func(ftp kgo.FetchTopicPartition) {
		if failed != nil || len(ftp.Records) == 0 {
			return
		}
		p := m.activePartition(ftp.Partition)
		if p == nil {
			// The commit would include the offsets of these records.
			failed = fmt.Errorf("received records of partition %d before it is restored", ftp.Partition)
			return
		}
		tp := t.touch(p)
		input := p.store.Position().Input
		for _, rec := range ftp.Records {
			if rec.Offset <= input {
				t.skipped++
				continue
			}
			if failed = m.decideRecord(t, tp, rec); failed != nil {
				return
			}
			tp.over.input, tp.over.hasInput = rec.Offset, true
			t.records++
			t.last, t.offset, t.key = tp, rec.Offset, ""
		}
		m.met.lag.WithLabelValues(strconv.Itoa(int(p.id))).Set(float64(max(0, ftp.HighWatermark-1-ftp.Records[len(ftp.Records)-1].Offset)))
	})
	if failed != nil {
		return failed
	}
	return m.commit(t, began)
}

// decideRecord has the processor decide one record and adds the result to t.
func (m *membership) decideRecord(t *transaction, tp *touched, rec *kgo.Record) error {
	f := &tp.part.fault
	if f.of(rec.Offset, "") && f.hopeless() {
		m.toPoison(t, rec, poisonRecord, f.err, f.all)
		return nil
	}
	tx := Tx{part: tp.part, over: &tp.over, own: &t.own, cfg: m.cfg}
	attempts, err, fatal := m.call(&t.own, func() error { return m.cfg.Processor.Process(&tx, rec) })
	if fatal != nil {
		return fatal
	}
	if err != nil {
		m.toPoison(t, rec, poisonRecord, err, attempts)
		return nil
	}
	tp.over.merge(&t.own)
	t.out = append(t.out, t.own.emits...)
	return nil
}

// call runs fn, a call of the processor, until it succeeds or its attempts are used up.
// err is then the last error. fatal is an error that the processor did not cause.
func (m *membership) call(own *layer, fn func() error) (attempts int, err, fatal error) {
	var f fault
	for {
		own.reset()
		err := m.guard(fn)
		if own.store != nil {
			return 0, nil, own.store
		}
		if err == nil {
			err = own.err
		}
		if err == nil {
			return 0, nil, nil
		}
		f.count(0, "", err)
		if errors.Is(err, ErrPoison) || f.hopeless() {
			return f.all, err, nil
		}
		m.met.retries.Inc()
	}
}

// guard turns a panic of the processor into an error. One record or tick causes the
// panic. If the process exited, it would read the same record after its next start.
func (m *membership) guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			m.log.Error("the processor panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
		}
	}()
	return fn()
}

// deadline returns the deadline of a restored entry. After a panic of the processor the
// entry has none.
func (m *membership) deadline(key, value []byte) (d store.Deadline) {
	_ = m.guard(func() error { // logs the panic
		d = storeDeadline(m.cfg.Processor.Deadline(key, value))
		return nil
	})
	return d
}

// storeDeadline converts t for the store. The zero time is no deadline.
func storeDeadline(t time.Time) store.Deadline {
	if t.IsZero() {
		return 0
	}
	return store.DeadlineAt(t)
}

// tick runs the due ticks of all active partitions in one transaction.
func (m *membership) tick() error {
	now := m.cfg.Now()
	left := m.cfg.MaxTicks
	if m.single > 0 {
		left = 1
	}
	m.moreTicks = false
	parts := m.actives()
	if len(parts) == 0 {
		return nil
	}
	began := time.Now()
	owned := m.owned()
	var t *transaction
	m.tickFirst++
	for i := range parts {
		p := parts[(i+m.tickFirst)%len(parts)]
		if left == 0 {
			m.moreTicks = true
			break
		}
		if p.nextDue.After(now) || p.behind() {
			continue
		}
		if _, ok := owned[p.id]; !ok {
			continue // revoked without a callback; see adopt
		}
		due, next, err := p.store.Due(now, left)
		if err != nil {
			return err
		}
		if len(due) == 0 {
			if p.nextDue = next; next.IsZero() {
				p.nextDue = store.Deadline(math.MaxInt64).Time()
			}
			continue
		}
		left -= len(due)
		if t == nil {
			t = m.begin()
		}
		for _, timer := range due {
			if err := m.tickOne(t, t.touch(p), timer, now); err != nil {
				return err
			}
		}
	}
	if t == nil || t.ticks == 0 {
		return nil
	}
	if t.poison > 0 {
		m.waitingCheck = time.Time{}
	}
	// If the ticks changed nothing, the same entries are due again: wait for the next
	// check instead of looping at once.
	moved := len(t.out) > 0
	for _, tp := range t.parts {
		moved = moved || len(tp.over.dirty) > 0
	}
	m.moreTicks = (m.moreTicks || left == 0) && moved
	return m.commit(t, began)
}

// tickOne has the processor decide the tick of one entry and adds the result to t.
func (m *membership) tickOne(t *transaction, tp *touched, timer store.Timer, now time.Time) error {
	tx := Tx{part: tp.part, over: &tp.over, own: &t.own, cfg: m.cfg}
	t.own.reset()
	c, err := tx.look(timer.Key)
	if err != nil {
		return err
	}
	if c.dirty && (c.value == nil || c.deadline == 0 || c.deadline.Time().After(now)) {
		return nil // an earlier tick of this transaction has deleted the entry or moved its deadline
	}
	t.ticks++
	t.last, t.offset, t.key = tp, -1, string(timer.Key)
	value := c.value
	f := &tp.part.fault
	attempts := 0
	if f.of(-1, t.key) && f.hopeless() {
		err, attempts = f.err, f.all
	} else {
		var fatal error
		attempts, err, fatal = m.call(&t.own, func() error { return m.cfg.Processor.Tick(&tx, timer.Key, now) })
		if fatal != nil {
			return fatal
		}
	}
	if err != nil {
		c.deadline = store.DeadlineAt(now.Add(poisonTickAgain))
		tp.later = append(tp.later, later{t.key, c.deadline})
		m.toPoison(t, &kgo.Record{
			Topic: m.cfg.StateTopic, Partition: tp.part.id, Offset: -1, Key: timer.Key, Value: value,
		}, poisonTick, err, attempts)
		return nil
	}
	tp.over.merge(&t.own)
	t.out = append(t.out, t.own.emits...)
	return nil
}

// changelog appends the records that update the changelog with the changes of t.
func (m *membership) changelog(t *transaction) {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	for _, tp := range t.parts {
		for _, k := range tp.over.dirty {
			t.out = append(t.out, &kgo.Record{Topic: m.cfg.StateTopic, Partition: tp.part.id, Key: []byte(k), Value: tp.over.cells[k].value})
		}
		if tp.over.hasInput {
			t.out = append(t.out, &kgo.Record{
				Topic: m.cfg.StateTopic, Partition: tp.part.id, Key: reservedKey,
				Value: binary.BigEndian.AppendUint64(nil, uint64(tp.over.input)), //nolint:gosec // read back as int64
			})
		}
		// One producer writes this partition in order: the last record has the highest offset.
		if tp.over.hasInput || len(tp.over.dirty) > 0 {
			tp.over.changelog = t.out[len(t.out)-1]
			tp.over.changelog.Headers = []kgo.RecordHeader{{Key: headerTransaction, Value: id}}
		}
	}
}

// commit produces the records of t and ends the Kafka transaction. It merges t into the
// stores if, and only if, the transaction is committed.
func (m *membership) commit(t *transaction, began time.Time) error {
	m.changelog(t)
	if len(t.out) == 0 && t.ticks > 0 {
		// The ticks had no effect; only the local index changes.
		return m.merge(t)
	}
	// A client can wait for ever after a restart of the broker. When the limit has
	// passed, the broker has aborted the transaction or knows its outcome.
	limit := m.cfg.TransactionTimeout + stuckAfter
	watch := time.AfterFunc(limit, func() {
		m.log.Error("the transaction does not end; closing the client", slog.Duration("after", limit))
		m.gts.CloseAllowingRebalance()
	})
	defer watch.Stop()
	if err := m.gts.Begin(); err != nil {
		return m.ended(t, began, fmt.Errorf("beginning a transaction: %w", err))
	}
	first := kgo.AbortingFirstErrPromise(m.cl)
	for _, r := range t.out {
		m.gts.Produce(m.work, r, first.Promise())
	}
	refused := first.Err()
	end := kgo.TransactionEndTry(refused == nil)
	if hook := m.hooks.beforeEnd; hook != nil {
		v, err := hook(m.work, m, t)
		if err != nil {
			return err
		}
		switch v {
		case verdictAbort:
			end = kgo.TryAbort
		case verdictDie:
			m.mu.Lock()
			m.died = true
			m.mu.Unlock()
			return errDied
		case verdictGoOn:
		}
	}
	committed, err := m.gts.End(kgo.PreTxnCommitFnContext(m.work, m.fence(t)), end)
	if !watch.Stop() {
		// The watch closes the client, and the revocation callbacks close the stores. If
		// the transaction was committed, the next restore reads it from the changelog.
		return m.ended(t, time.Time{}, errors.Join(errStuck, err, refused))
	}
	if err != nil {
		return m.ended(t, began, errors.Join(fmt.Errorf("ending a transaction: %w", err), refused))
	}
	if committed {
		if err := m.merge(t); err != nil {
			return err
		}
		m.observe(t, began)
		m.single = max(0, m.single-t.records-t.ticks-t.skipped)
		return nil
	}
	m.rewind()
	if refused != nil {
		return m.refusedProduce(t, began, refused)
	}
	m.met.transactions.WithLabelValues(outcomeAborted).Inc()
	if end == kgo.TryAbort {
		return nil
	}
	// We did not request this abort. Usually the group has rebalanced. But End reports an
	// abort, too, if the broker answers with an unknown error, and the transaction may
	// then be committed. A restore from the changelog is correct in both cases.
	for _, tp := range t.parts {
		m.reload(tp.part)
	}
	return nil
}

// fence makes a transaction of ticks commit the offset of each partition that it
// touches. A transaction of polled records commits their offsets anyway. Without an
// offset the group does not check that the partition still belongs to this instance, and
// the next owner does not wait for the outcome of the transaction.
func (m *membership) fence(t *transaction) func(*kmsg.TxnOffsetCommitRequest) error {
	return func(req *kmsg.TxnOffsetCommitRequest) error {
		if t.ticks == 0 {
			return nil
		}
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic = m.cfg.InputTopic
		has := map[int32]bool{} // the client adds the partitions whose offset was set and not committed
		for _, t := range req.Topics {
			for _, p := range t.Partitions {
				has[p.Partition] = true // the input is the only topic
			}
		}
		for _, tp := range t.parts {
			input := tp.part.store.Position().Input
			if has[tp.part.id] || input == store.NoInput {
				continue // a partition without input has no state and no ticks
			}
			rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = tp.part.id, input+1, -1
			rp.Metadata = &req.MemberID
			rt.Partitions = append(rt.Partitions, rp)
		}
		if len(rt.Partitions) > 0 {
			req.Topics = append(req.Topics, rt)
		}
		return nil
	}
}

// merge writes the changes of t to the stores.
func (m *membership) merge(t *transaction) error {
	for _, tp := range t.parts {
		st := tp.part.store
		b := st.NewBatch()
		for _, k := range tp.over.dirty {
			key, c := []byte(k), tp.over.cells[k]
			var err error
			if c.value == nil {
				err = b.Delete(key, c.former)
			} else {
				if c.deadline != 0 {
					tp.lead = earlier(tp.lead, c.deadline)
				}
				err = b.Set(key, store.Entry{Value: c.value, Deadline: c.deadline}, c.former)
			}
			if err != nil {
				b.Close()
				return err
			}
		}
		for _, l := range tp.later {
			c := tp.over.cells[l.key]
			if c.deadline != l.at {
				continue // a later tick of this transaction has changed the entry
			}
			if err := b.Postpone([]byte(l.key), store.Entry{Value: c.value, Deadline: l.at}, c.former); err != nil {
				b.Close()
				return err
			}
		}
		pos := st.Position()
		if tp.over.hasInput {
			pos.Input = tp.over.input
		}
		if tp.over.changelog != nil {
			pos.Changelog, pos.Mark = tp.over.changelog.Offset+1, markOf(tp.over.changelog)
		}
		if err := st.Apply(b, pos); err != nil {
			return err
		}
		if t.ticks > 0 {
			tp.part.nextDue = time.Time{} // the first entries of the index have changed
		} else if tp.lead != 0 {
			if at := tp.lead.Time(); at.Before(tp.part.nextDue) {
				tp.part.nextDue = at
			}
		}
		tp.part.touched = time.Now()
		if f := &tp.part.fault; f.n > 0 && f.offset >= 0 && f.offset <= pos.Input || f.key != "" && t.ticks > 0 && f.key == t.key {
			*f = fault{}
		}
	}
	return nil
}

// earlier returns the earlier of two deadlines. Zero is no deadline.
func earlier(a, b store.Deadline) store.Deadline {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// observe counts a committed transaction.
func (m *membership) observe(t *transaction, began time.Time) {
	m.met.transactions.WithLabelValues(outcomeCommitted).Inc()
	m.met.records.Add(float64(t.records))
	m.met.skipped.Add(float64(t.skipped))
	m.met.ticks.Add(float64(t.ticks))
	m.met.poison.Add(float64(t.poison))
	m.met.size.Observe(float64(t.records + t.ticks))
	m.met.seconds.Observe(time.Since(began).Seconds())
}

// refusedProduce handles a transaction that was aborted because a record of it could not
// be produced. A broker refuses batches, so the record is unknown. The same input records
// or ticks are therefore decided again one by one. A failure of a single one is counted
// as its own.
func (m *membership) refusedProduce(t *transaction, began time.Time, refused error) error {
	m.met.transactions.WithLabelValues(outcomeRefused).Inc()
	if fenced(refused) {
		return m.ended(t, began, fmt.Errorf("producing: %w", refused))
	}
	n := t.records + t.ticks
	m.log.Warn("producing a record failed; the transaction is aborted and repeated", slog.Int("decided", n), slog.Any("error", refused))
	if !definite(refused) {
		sleep(m.work, 100*time.Millisecond)
		return nil
	}
	if n == 1 {
		f := &t.last.part.fault
		f.count(t.offset, t.key, fmt.Errorf("producing: %w", refused))
		if f.all > bareFailures {
			m.log.Error("producing a poison record failed; trying again", slog.Int64("offset", t.offset), slog.Any("error", refused))
			sleep(m.work, time.Second)
		}
	}
	m.single = max(m.single, n+t.skipped)
	return nil
}

// ended counts a failed transaction and returns the error that ends the membership.
func (m *membership) ended(t *transaction, began time.Time, err error) error {
	m.met.transactions.WithLabelValues(outcomeFailed).Inc()
	// The broker fences in two cases. Another producer has our id: this is fatal. Or the
	// transaction was open for too long: a new membership can continue.
	if fenced(err) && time.Since(began) < m.cfg.TransactionTimeout*3/4 {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return fmt.Errorf("transaction of %d records and %d ticks: %w", t.records, t.ticks, err)
}

// fenced reports whether the broker refused this producer in favour of another.
func fenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.FencedInstanceID)
}

// definite reports whether the record itself caused err, so that a retry cannot
// succeed. A missing topic is a temporary error: it affects every record until an
// operator creates the topic.
func definite(err error) bool {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return slices.Contains([]*kerr.Error{
			kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp,
			kerr.UnsupportedForMessageFormat, kerr.InvalidTopicException, kerr.PolicyViolation,
		}, ke)
	}
	var ne net.Error
	switch {
	case errors.As(err, &ne), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, kgo.ErrClientClosed), errors.Is(err, kgo.ErrAborting), errors.Is(err, kgo.ErrMaxBuffered),
		errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries):
		return false
	}
	// An error of the client, for instance a partition that the topic does not have.
	return true
}
