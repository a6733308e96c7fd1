package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
)

// Write applies the items and the moves of the positions in one transaction. Both may be
// empty. After an error, Batch calls it again with the same items.
type Write[T any] func(ctx context.Context, items []T, moves []Move) error

// Batch reads batches and passes them to write until ctx ends. It lets a running write
// finish and returns nil. It returns an error only if it could not start.
func Batch[T any](ctx context.Context, c *Consumer, decode func(*kgo.Record) (T, error), write Write[T]) error {
	b := &batches[T]{Consumer: c, decode: decode, write: write, aside: map[partition]int64{}}
	var options []kgo.Opt
	if c.cfg.Positions != nil {
		options = append(options, kgo.AdjustFetchOffsetsFn(b.begin))
	}
	if err := c.open(ctx, options...); err != nil {
		return err
	}
	defer c.close(ctx)
	for tries := 0; ; tries++ {
		c.loop.Turn()
		records := b.collect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if len(records) == 0 {
			// The poll failed or was interrupted. It must not change the pause of a batch that
			// is repeated.
			c.client.AllowRebalance()
			tries--
			continue
		}
		err := b.apply(ctx, records)
		if err != nil {
			b.rewind(ctx, records, err)
		} else {
			c.oldest.Store(0)
		}
		c.client.AllowRebalance()
		if err == nil {
			tries = -1
			for _, r := range records {
				delete(b.aside, partition{r.Topic, r.Partition})
			}
		} else if !Sleep(ctx, c.backoff(tries)) {
			return nil
		}
	}
}

type batches[T any] struct {
	*Consumer
	decode func(*kgo.Record) (T, error)
	write  Write[T]
	// aside holds, by partition, the offset of the last undecodable record that was set
	// aside since the last successful batch. A repeated batch does not set it aside again.
	aside map[partition]int64
}

// entry is a record with its decoded item. It is empty if the record is a control record
// or was set aside.
type entry[T any] struct {
	record *kgo.Record
	item   T
	empty  bool
}

// collect polls until a batch is full, Config.Wait has passed since its first record, or
// ctx ends.
func (b *batches[T]) collect(ctx context.Context) []*kgo.Record {
	records := b.poll(ctx, b.cfg.AtOnce)
	if len(records) > 0 && b.cfg.Wait > 0 {
		waiting, cancel := context.WithTimeout(ctx, b.cfg.Wait)
		defer cancel()
		for len(records) < b.cfg.AtOnce && waiting.Err() == nil {
			records = append(records, b.poll(waiting, b.cfg.AtOnce-len(records))...)
		}
	}
	return records
}

// apply decodes the records and writes their items.
func (b *batches[T]) apply(ctx context.Context, records []*kgo.Record) error {
	b.inHand(records)
	entries := make([]entry[T], 0, len(records))
	for _, r := range records {
		e := entry[T]{record: r, empty: r.Attrs.IsControl()}
		if !e.empty {
			item, err := b.decode(r)
			switch {
			case poisonous(err):
				e.empty = true
				if err := b.setAsideOnce(ctx, r, err); err != nil {
					return err
				}
			case err != nil:
				return err
			}
			e.item = item
		}
		entries = append(entries, e)
	}
	return b.writeAll(ctx, entries)
}

// setAsideOnce sets an undecodable record aside, but not again when a batch is repeated.
func (b *batches[T]) setAsideOnce(ctx context.Context, r *kgo.Record, cause error) error {
	p := partition{r.Topic, r.Partition}
	if last, ok := b.aside[p]; ok && r.Offset <= last {
		return nil
	}
	if err := b.setAside(ctx, r, cause); err != nil {
		return err
	}
	b.aside[p] = r.Offset
	return nil
}

// writeAll writes the entries in one call. If they are refused, it writes each half
// separately, until it finds the single record that is refused. It sets that one aside.
func (b *batches[T]) writeAll(ctx context.Context, entries []entry[T]) error {
	items := make([]T, 0, len(entries))
	for _, e := range entries {
		if !e.empty {
			items = append(items, e.item)
		}
	}
	moves := b.moves(entries)
	bounded, cancel := b.begun(ctx)
	defer cancel()
	err := b.write(bounded, items, moves)
	switch {
	case err == nil:
		b.passed(moves, entries)
		return nil
	case !errors.Is(err, ErrRefused) || len(items) == 0:
		return err
	case len(entries) > 1:
		half := len(entries) / 2
		if err := b.writeAll(ctx, entries[:half]); err != nil {
			return err
		}
		return b.writeAll(ctx, entries[half:])
	}
	if err := b.setAside(ctx, entries[0].record, err); err != nil {
		return err
	}
	entries[0].empty = true
	return b.writeAll(ctx, entries)
}

// begun returns the context of a write. It ends after Config.Timeout, or Config.Drain after
// the end of ctx: a write that has begun may finish.
func (c *Consumer) begun(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(c.cfg.Drain, cancel) })
	return bounded, func() { stop(); cancel() }
}

// inHand stores the time of the oldest record. If the group holds the positions, it also
// stores the first offset of each partition as its position.
func (c *Consumer) inHand(records []*kgo.Record) {
	oldest := slices.MinFunc(records, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	c.oldest.Store(oldest.Timestamp.UnixMilli())
	if c.cfg.Positions != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range slices.Backward(records) {
		c.positions[partition{r.Topic, r.Partition}] = r.Offset
	}
}

// moves returns the moves of the positions past the entries.
func (b *batches[T]) moves(entries []entry[T]) []Move {
	b.mu.Lock()
	defer b.mu.Unlock()
	var moves []Move
	for _, e := range slices.Backward(entries) {
		r := e.record
		if slices.ContainsFunc(moves, func(m Move) bool { return m.Partition == r.Partition && m.Topic == r.Topic }) {
			continue
		}
		moves = append(moves, Move{Topic: r.Topic, Partition: r.Partition, From: b.positions[partition{r.Topic, r.Partition}], To: r.Offset + 1})
	}
	// Two writers that lock positions in the same order cannot deadlock.
	slices.SortFunc(moves, func(x, y Move) int { return int(x.Partition - y.Partition) })
	return moves
}

// passed records that the moves are written.
func (b *batches[T]) passed(moves []Move, entries []entry[T]) {
	for _, e := range entries {
		b.client.MarkCommitRecords(e.record)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range moves {
		b.positions[partition{m.Topic, m.Partition}] = m.To
	}
}

// rewind makes the client read the partitions of a failed batch again, from the stored
// position. If it cannot read the stored position, it uses the last known one. Rebalances
// are blocked, so no partition is revoked during the call.
func (b *batches[T]) rewind(ctx context.Context, records []*kgo.Record, cause error) {
	if b.cfg.Failures != nil {
		b.cfg.Failures.Inc()
	}
	b.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "applying a batch failed; it will be read again", slog.String("group", b.cfg.Group), slog.Int("records", len(records)), slog.Any("error", cause))
	bounded, cancel := b.begun(ctx)
	defer cancel()
	stored := map[string]map[int32]int64{}
	rewound := map[string]map[int32]kgo.EpochOffset{}
	for _, r := range records {
		if _, asked := stored[r.Topic]; !asked {
			rewound[r.Topic] = map[int32]kgo.EpochOffset{}
			stored[r.Topic] = nil
			if b.cfg.Positions != nil {
				stored[r.Topic], _ = b.cfg.Positions(bounded, r.Topic) // on an error the last known positions are used
			}
		}
		p := partition{r.Topic, r.Partition}
		b.mu.Lock()
		if at, ok := stored[r.Topic][r.Partition]; ok {
			b.positions[p] = at
		}
		rewound[r.Topic][r.Partition] = kgo.EpochOffset{Epoch: -1, Offset: b.positions[p]}
		b.mu.Unlock()
	}
	b.client.SetOffsets(rewound)
}

// begin sets the start of newly assigned partitions to their stored positions. It waits for
// the store and the broker. ctx ends with the assignment.
func (b *batches[T]) begin(ctx context.Context, assigned map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for topic := range assigned {
		if !b.until(ctx, "reading stored positions", func() error { return b.beginTopic(ctx, topic, assigned[topic]) }) {
			return nil, fmt.Errorf("reading stored positions: %w", ctx.Err())
		}
	}
	b.loop.Ready()
	return assigned, nil
}

func (b *batches[T]) beginTopic(ctx context.Context, topic string, assigned map[int32]kgo.Offset) error {
	bounded, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	stored, err := b.cfg.Positions(bounded, topic)
	if err != nil {
		return err
	}
	c := b.Consumer
	first, err := kafka.Offsets(kadm.NewClient(c.client).ListStartOffsets(bounded, topic))
	if err != nil {
		return err
	}
	ends, err := c.Ends(bounded, topic)
	if err != nil {
		return err
	}
	for p := range assigned {
		from, known := stored[p]
		low, ok := first[p]
		high, ok2 := ends[p]
		if !ok || !ok2 {
			return fmt.Errorf("listing offsets: partition %d is missing", p)
		}
		lost := known && (from < low || from > high)
		to := from
		if !known {
			from = None
		}
		if !known || lost {
			to = low
		}
		if lost {
			b.cfg.Log.LogAttrs(ctx, slog.LevelError, "the stored position is not in the topic: records were deleted before they were applied, the broker lost data, or it is another broker; continuing with the first record",
				slog.String("topic", topic), slog.Int("partition", int(p)), slog.Int64("position", from), slog.Int64("first", low), slog.Int64("end", high))
		}
		if from != to {
			// Store the position at once: barriers wait for it, and there may be no record to
			// read.
			if err := b.write(bounded, nil, []Move{{Topic: topic, Partition: p, From: from, To: to}}); err != nil {
				return err
			}
		}
		b.mu.Lock()
		b.positions[partition{topic, p}] = to
		b.mu.Unlock()
		assigned[p] = kgo.NewOffset().At(to).WithEpoch(-1)
	}
	return nil
}
