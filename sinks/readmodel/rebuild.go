package readmodel

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	"quittance/internal/sessions"
	"quittance/internal/tally"
	"quittance/schemas"
)

const (
	rebuildAtOnce = 1000
	// yieldFor is how long a rebuild waits for another writer that has moved a position.
	yieldFor = 500 * time.Millisecond
)

// Rebuilt has the result of a rebuild.
type Rebuilt struct {
	// Events is the number of events that the rebuild has applied. The sink applies the
	// others if it runs.
	Events int64
	// Removed is the number of rows of erp_confirmations that no event makes, which were removed.
	Removed int64
	// Unreadable is the number of records that cannot be decoded or stored.
	Unreadable int64
	// Lines compare the last states of all sessions in Kafka with the read model, at the
	// positions of the read model.
	Lines []tally.Line
}

// Rebuild empties the read model, applies all events to it, and compares the sums of both.
// Reads answer 503 from the beginning to the end.
//
// The sink may run at the same time. Both move the same positions, each batch in one
// transaction, so one of them applies a batch and the other goes on behind it. After an
// interruption the sink finishes the rebuild, or another Rebuild begins again. now is the
// service's time.
func (r *ReadModel) Rebuild(ctx context.Context, actor operation.Actor, now time.Time, progress kafka.Progress) (out Rebuilt, err error) {
	cl, err := r.cfg.Kafka.Client()
	if err != nil {
		return out, err
	}
	defer cl.Close()
	topic := r.cfg.Kafka.Prefix + schemas.TopicEvents
	spans, err := kafka.Bounds(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return out, err
	}
	first := map[int32]int64{}
	b := &rebuild{ReadModel: r, topic: topic, out: &out, progress: progress}
	for p, span := range spans {
		first[p] = span.From
		b.total += max(0, span.To-span.From)
	}
	if err := r.cfg.Store.Empty(ctx, actor, now, topic, first); err != nil {
		return out, err
	}
	for p, span := range spans {
		if err := b.fill(ctx, p, span.To); err != nil {
			return out, err
		}
	}
	if out.Removed, err = r.cfg.Store.Sweep(ctx, sessions.VerifyConfig{Kafka: r.cfg.Kafka, Codec: r.cfg.Codec, AllRecords: true}); err != nil {
		return out, err
	}
	copied, at, err := r.cfg.Store.Tally(ctx, r.cfg.Codec, topic)
	if err != nil {
		return out, err
	}
	source, err := r.tally(ctx, topic, first, at)
	out.Lines = tally.Compare(source, copied)
	return out, err
}

// rebuild is a running Rebuild.
type rebuild struct {
	*ReadModel
	topic    string
	out      *Rebuilt
	progress kafka.Progress
	total    int64
}

// fill applies the events of a partition up to an offset.
func (b *rebuild) fill(ctx context.Context, partition int32, to int64) error {
	last := int64(-1)
	for {
		at, err := b.cfg.Store.Positions(ctx, b.topic)
		if err != nil {
			return err
		}
		from := at[partition]
		if from >= to {
			return nil
		}
		if last >= 0 && from > last { // the sink is at work
			if last = from; !consume.Sleep(ctx, yieldFor) {
				return ctx.Err()
			}
			continue
		}
		err = b.write(ctx, partition, from, to)
		if err != nil && !errors.Is(err, sessions.ErrMoved) {
			return err
		}
		last = from
	}
}

// write applies the events of a range of a partition in batches. It returns ErrMoved if
// another writer has moved the position.
func (b *rebuild) write(ctx context.Context, partition int32, from, to int64) error {
	var batch []sessions.Snapshot
	flush := func(next int64) error {
		moves := []consume.Move{{Topic: b.topic, Partition: partition, From: from, To: next}}
		err := b.cfg.Store.Apply(ctx, batch, moves)
		if errors.Is(err, sessions.ErrRefused) {
			err = b.writeEach(ctx, batch, moves)
		}
		if err != nil {
			return err
		}
		b.out.Events += int64(len(batch))
		batch, from = batch[:0], next
		if b.progress != nil {
			b.progress(b.out.Events, b.total)
		}
		return ctx.Err()
	}
	err := b.cfg.Kafka.Read(ctx, b.topic, map[int32]kafka.Span{partition: {From: from, To: to}}, nil, func(rec *kgo.Record) (bool, error) {
		e, err := b.decode(rec)
		switch {
		case errors.Is(err, schemas.ErrUndecodable):
			b.out.Unreadable++
			return true, nil
		case err != nil:
			return false, err
		case e.snapshot != nil:
			batch = append(batch, *e.snapshot)
		}
		if len(batch) < rebuildAtOnce {
			return true, nil
		}
		return true, flush(rec.Offset + 1)
	})
	if err != nil {
		return err
	}
	return flush(to) // past the last control records
}

// writeEach applies the events of a batch one by one, without those that Postgres refuses,
// and then moves the position.
func (b *rebuild) writeEach(ctx context.Context, batch []sessions.Snapshot, moves []consume.Move) error {
	for i := range batch {
		err := b.cfg.Store.Apply(ctx, batch[i:i+1], nil)
		switch {
		case errors.Is(err, sessions.ErrRefused):
			b.out.Unreadable++
		case err != nil:
			return err
		}
	}
	return b.cfg.Store.Apply(ctx, nil, moves)
}

// tally sums the last states of all sessions in Kafka, from the first offsets up to those
// of at. All events of a session are in one partition, so only one partition's sessions
// are in memory.
func (r *ReadModel) tally(ctx context.Context, topic string, first, at map[int32]int64) (tally.Tally, error) {
	sums := tally.Tally{}
	for p, from := range first {
		latest := sessions.Latest{}
		err := r.cfg.Kafka.Read(ctx, topic, map[int32]kafka.Span{p: {From: from, To: at[p]}}, nil, func(rec *kgo.Record) (bool, error) {
			e, err := r.decode(rec)
			switch {
			case errors.Is(err, schemas.ErrUndecodable):
				return true, nil
			case err != nil:
				return false, err
			case e.snapshot != nil:
				latest.Add(e.snapshot)
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		latest.Sum(sums)
	}
	return sums, nil
}
