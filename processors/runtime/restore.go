package runtime

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/processors/runtime/store"
)

const (
	// restoreBatch is how many changelog records are written to the store in one batch.
	restoreBatch = 2000
	// restoreQuiet is how long a restore waits for the next changelog record before it
	// asks the broker whether one exists.
	restoreQuiet = 500 * time.Millisecond

	discardedAhead   = "ahead"
	discardedTrimmed = "trimmed"
	// discardedHistory is a store with a record that the changelog does not have.
	discardedHistory = "history"

	// headerTransaction is the header of the last record of a transaction in each partition of the changelog: random
	// bytes that no other transaction has.
	headerTransaction = "transaction"
)

// restore reads the changelog of p into its store and determines the next input offset.
// It tries until it succeeds. It returns false if ctx ends first.
func (m *membership) restore(ctx context.Context, p *partition) bool {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := m.restoreOnce(ctx, p)
		switch {
		case ctx.Err() != nil:
			m.met.restores.WithLabelValues("cancelled").Inc()
			return false
		case err == nil:
			m.met.restores.WithLabelValues("done").Inc()
			m.met.restoreSeconds.Observe(time.Since(p.since).Seconds())
			return true
		}
		m.met.restores.WithLabelValues("failed").Inc()
		m.log.Warn("restoring a partition failed; trying again", slog.Int("partition", int(p.id)), slog.Any("error", err))
		if !sleep(ctx, wait) {
			return false
		}
	}
}

// restoreOnce makes one attempt of restore. At most maxRestores run at the same time.
func (m *membership) restoreOnce(ctx context.Context, p *partition) error {
	select {
	case m.restores <- struct{}{}:
		defer func() { <-m.restores }()
	case <-ctx.Done():
		return ctx.Err()
	}
	log := m.log.With(slog.Int("partition", int(p.id)))
	if p.store == nil {
		st, reason, err := store.Open(m.storeConfig(p.id))
		if err != nil {
			return err
		}
		if reason != "" {
			m.met.discarded.WithLabelValues(reason).Inc()
			log.Error("the local store is discarded; restoring in full", slog.String("reason", reason))
		}
		p.store = st
	}
	// The high watermark, not the last stable offset: the restore must wait for the
	// outcome of every transaction that was open when the partition was assigned.
	start, end, err := m.ends(ctx, m.cfg.StateTopic, p.id)
	if err != nil {
		return fmt.Errorf("asking for the ends of the changelog: %w", err)
	}
	reason := ""
	switch pos := p.store.Position(); {
	case pos.Changelog > end:
		reason = discardedAhead
	case pos.Changelog > 0 && pos.Changelog < start:
		reason = discardedTrimmed
	default:
		same, err := m.sameHistory(ctx, p.id, pos.Mark, start, end)
		if err != nil {
			return err
		}
		if !same {
			reason = discardedHistory
		}
	}
	if reason != "" {
		m.met.discarded.WithLabelValues(reason).Inc()
		log.Error("the local store is discarded, because its position is not in the changelog; restoring in full",
			slog.String("reason", reason), slog.Int64("position", p.store.Position().Changelog),
			slog.Int64("start", start), slog.Int64("end", end))
		fresh, err := p.store.Discard()
		if err != nil {
			return err
		}
		p.store = fresh
	}
	from := p.store.Position().Changelog
	if err := m.replay(ctx, p, max(from, start), end); err != nil {
		return err
	}
	if err := m.findInput(ctx, p, log); err != nil {
		return err
	}
	if err := p.store.Live(); err != nil {
		return err
	}
	log.Info("partition restored", slog.Int64("from", from), slog.Int64("to", end),
		slog.Int64("input", p.store.Position().Input), slog.Duration("took", time.Since(p.since)))
	return nil
}

// storeConfig returns the configuration of the store of partition id.
func (m *membership) storeConfig(id int32) store.Config {
	c := store.Config{
		Stamp:  fmt.Sprintf("%x|%d|", m.stateID, id),
		MaxAge: storeMaxAge,
		Cache:  m.cache,
		Log:    m.log.With(slog.Int("partition", int(id))),
	}
	if m.cfg.StoreDir != "" {
		c.Dir = filepath.Join(m.cfg.StoreDir, fmt.Sprintf("partition-%04d", id))
	}
	return c
}

// ends returns the first offset and the high watermark of a partition.
func (m *membership) ends(ctx context.Context, topic string, id int32) (start, end int64, err error) {
	one := func(list func(context.Context, ...string) (kadm.ListedOffsets, error)) (int64, error) {
		l, err := list(ctx, topic)
		if err != nil {
			return 0, err
		}
		o, ok := l.Lookup(topic, id)
		if !ok {
			return 0, fmt.Errorf("%s has no partition %d", topic, id)
		}
		return o.Offset, o.Err
	}
	if start, err = one(m.adm.ListStartOffsets); err != nil {
		return 0, 0, err
	}
	end, err = one(m.adm.ListEndOffsets)
	return start, end, err
}

// reader returns a client that reads a partition of the changelog from an offset. It is a separate one, because the
// membership's client consumes as a group member. Control records are kept because the changelog usually ends with one.
func (m *membership) reader(id int32, from int64) (*kgo.Client, error) {
	rc, err := kgo.NewClient(m.cfg.opts(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{m.cfg.StateTopic: {id: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(8<<20),
	)...)
	if err != nil {
		return nil, fmt.Errorf("creating the client of a restore: %w", err)
	}
	return rc, nil
}

// nextOf returns the next records of the changelog; none if they do not come within restoreQuiet.
func (m *membership) nextOf(ctx context.Context, rc *kgo.Client) (kgo.Fetches, error) {
	pctx, cancel := context.WithTimeout(ctx, restoreQuiet)
	defer cancel()
	fs := rc.PollRecords(pctx, restoreBatch)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, e := range fs.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("reading the changelog: %w", e.Err)
		}
	}
	return fs, nil
}

// replay reads the changelog from offset from up to offset to into the store.
func (m *membership) replay(ctx context.Context, p *partition, from, to int64) error {
	if from >= to {
		return nil
	}
	rc, err := m.reader(p.id, from)
	if err != nil {
		return err
	}
	defer rc.Close()

	for next := from; next < to; {
		fs, err := m.nextOf(ctx, rc)
		if err != nil {
			return err
		}
		if fs.NumRecords() == 0 {
			if next, err = m.skipEmpty(ctx, rc, p.id, next); err != nil {
				return err
			}
			continue
		}
		pos, b := p.store.Position(), p.store.NewBatch()
		n := 0
		for it := fs.RecordIter(); !it.Done(); {
			r := it.Next()
			next = r.Offset + 1
			if r.Attrs.IsControl() {
				continue
			}
			n++
			if mark := markOf(r); mark != (store.Mark{}) {
				pos.Mark = mark
			}
			if err := m.replayRecord(b, &pos, r); err != nil {
				b.Close()
				return err
			}
		}
		pos.Changelog = next
		if err := p.store.Apply(b, pos); err != nil {
			return err
		}
		m.met.restoreRecords.Add(float64(n))
	}
	return nil
}

// markOf returns the mark of the last record of a transaction; of other records, and of those of earlier releases, none.
func markOf(r *kgo.Record) store.Mark {
	for _, h := range r.Headers {
		if h.Key == headerTransaction {
			return store.Mark{Offset: r.Offset, Transaction: string(h.Value)}
		}
	}
	return store.Mark{}
}

// sameHistory reports whether the changelog has the record that a mark names. It does not if the broker was restored
// from an older backup and another instance has written past the position of this one's store, which has then
// decisions that are lost. A record that the cleaner has removed proves nothing either: the store is not worth the
// risk, since a full restore is always right.
func (m *membership) sameHistory(ctx context.Context, id int32, mark store.Mark, start, end int64) (bool, error) {
	if mark == (store.Mark{}) {
		return true, nil // new, or of an earlier release
	}
	if mark.Offset < start {
		return false, nil
	}
	rc, err := m.reader(id, mark.Offset)
	if err != nil {
		return false, err
	}
	defer rc.Close()
	for next := mark.Offset; next <= mark.Offset && next < end; {
		fs, err := m.nextOf(ctx, rc)
		if err != nil {
			return false, err
		}
		if it := fs.RecordIter(); !it.Done() {
			return markOf(it.Next()) == mark, nil
		}
		if next, err = m.skipEmpty(ctx, rc, id, next); err != nil {
			return false, err
		}
	}
	return false, nil
}

// replayRecord adds one changelog record to b, or to pos if it holds the position.
func (m *membership) replayRecord(b *store.Batch, pos *store.Position, r *kgo.Record) error {
	switch {
	case len(r.Key) > 0 && r.Key[0] == reservedKey[0]:
		if !slices.Equal(r.Key, reservedKey) || len(r.Value) != 8 {
			return fmt.Errorf("unknown reserved key in the changelog at partition %d, offset %d", r.Partition, r.Offset)
		}
		pos.Input = int64(binary.BigEndian.Uint64(r.Value)) //nolint:gosec // written as int64
		return nil
	case r.Value == nil:
		return b.Delete(r.Key, 0)
	}
	return b.Set(r.Key, store.Entry{Value: r.Value, Deadline: m.deadline(r.Key, r.Value)}, 0)
}

// skipEmpty returns the next offset behind batches that the cleaner has emptied. A
// client never returns such batches, so a restore would wait for ever at the end of a
// changelog that ends with them. skipEmpty returns next if it has nothing to skip, for
// instance because a transaction is still open there.
func (m *membership) skipEmpty(ctx context.Context, rc *kgo.Client, id int32, next int64) (int64, error) {
	md, err := kadm.NewClient(rc).Metadata(ctx, m.cfg.StateTopic)
	if err != nil {
		return 0, fmt.Errorf("asking for the leader of the changelog: %w", err)
	}
	t := md.Topics[m.cfg.StateTopic]
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = 10, 0, 1<<20, 1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = m.cfg.StateTopic, t.ID
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = id, next, 1<<20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := rc.Broker(int(t.Partitions[id].Leader)).RetriableRequest(ctx, req)
	if err != nil {
		return 0, fmt.Errorf("looking for the next changelog record: %w", err)
	}
	f, ok := resp.(*kmsg.FetchResponse)
	if !ok || len(f.Topics) != 1 || len(f.Topics[0].Partitions) != 1 {
		return next, nil // the next poll tries again
	}
	part := &f.Topics[0].Partitions[0]
	if err := errors.Join(kerr.ErrorForCode(f.ErrorCode), kerr.ErrorForCode(part.ErrorCode)); err != nil {
		return 0, fmt.Errorf("looking for the next changelog record: %w", err)
	}
	got, after := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		KeepControlRecords: true, Topic: m.cfg.StateTopic, Partition: id, Offset: next, IsolationLevel: kgo.ReadCommitted(),
	}, part, kgo.DefaultDecompressor(), nil)
	if len(got.Records) > 0 || after <= next {
		return next, nil
	}
	return after, nil
}

// findInput determines the next input offset.
func (m *membership) findInput(ctx context.Context, p *partition, log *slog.Logger) error {
	p.start, p.moved = -1, time.Time{}
	pos := p.store.Position()
	start, end, err := m.ends(ctx, m.cfg.InputTopic, p.id)
	if err != nil {
		return fmt.Errorf("asking for the ends of the input: %w", err)
	}
	p.caughtUp = 0
	if max(pos.Input+1, start) < end {
		p.caughtUp = end
	}
	if pos.Input == store.NoInput {
		return nil // adjust sets the beginning of the input
	}
	p.start = pos.Input + 1
	switch {
	case p.start < start:
		m.met.anomalies.WithLabelValues("trimmed").Inc()
		log.Error("input records expired before they were decided; continuing at the beginning of the input",
			slog.Int64("decided", pos.Input), slog.Int64("start", start))
		p.start = start
	case p.start > end:
		// The input lost records that were decided, or the topic was created again. New
		// records will have offsets at or below the position and must not be skipped.
		m.met.anomalies.WithLabelValues("lost").Inc()
		log.Error("the input ends before the last decided record: it lost records or was created again; continuing at its end",
			slog.Int64("decided", pos.Input), slog.Int64("end", end))
		p.start, p.caughtUp = end, 0
		pos.Input = end - 1
		return p.store.Apply(p.store.NewBatch(), pos)
	}
	return nil
}

// adjust sets the start offset of partitions without a committed offset to the exact
// beginning of the input. By default the client begins there, too, but returns to offset
// 0 after an abort of the first transaction, and that record may have expired.
func (m *membership) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	parts := offsets[m.cfg.InputTopic]
	var starts kadm.ListedOffsets
	for id, o := range parts {
		at := o.EpochOffset().Offset
		m.mu.Lock()
		m.committed[id] = at
		m.mu.Unlock()
		if at >= 0 {
			continue
		}
		if starts == nil {
			var err error
			if starts, err = m.adm.ListStartOffsets(ctx, m.cfg.InputTopic); err != nil {
				return nil, fmt.Errorf("asking for the beginning of the input: %w", err)
			}
		}
		l, ok := starts.Lookup(m.cfg.InputTopic, id)
		if !ok || l.Err != nil {
			return nil, fmt.Errorf("asking for the beginning of the input, partition %d: %w", id, cmp.Or(l.Err, error(kerr.UnknownTopicOrPartition)))
		}
		parts[id] = kgo.NewOffset().At(l.Offset)
	}
	return offsets, nil
}
