// Package listen reads the events of an installation from its broker, for a developer who
// runs it.
package listen

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
)

const (
	// quiet is the time without an event after which the listener asks whether the broker
	// is available.
	quiet     = 5 * time.Second
	askWithin = 10 * time.Second
)

// Listener reads the events of an installation. It stores nothing and commits no offsets.
type Listener struct {
	// Kafka, Codec, Log and Hear are required.
	Kafka kafka.Config
	Codec *schemas.Codec
	Log   *slog.Logger
	// ApplicationID of the only application to listen to; empty for all.
	ApplicationID string
	// Events are the only events to listen to; empty for all.
	Events []string
	// Test and Live are the modes to listen to.
	Test, Live bool
	// Since is how far back to begin; 0 begins now.
	Since time.Duration
	// Started is called once, when the listener reads every later event.
	Started func()
	// Hear is called for each event, one at a time, in the order of its application.
	// An error ends Run.
	Hear func(context.Context, *record.Notification) error
}

// Run listens until ctx ends, then returns nil.
func (l *Listener) Run(ctx context.Context) error {
	topic := l.Kafka.Prefix + schemas.TopicWebhooks
	cl, err := l.Kafka.Client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	from, err := l.begin(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return err
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	if l.Started != nil {
		l.Started()
	}
	for gone := false; ; {
		poll, cancel := context.WithTimeout(ctx, quiet)
		fetches := cl.PollFetches(poll)
		silent := poll.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		for i := fetches.RecordIter(); !i.Done(); {
			if err := l.hear(ctx, i.Next()); err != nil || ctx.Err() != nil {
				return err
			}
		}
		// The client waits for an unavailable broker without an error.
		if silent {
			ping, cancel := context.WithTimeout(ctx, quiet)
			err := cl.Ping(ping)
			cancel()
			if away := err != nil && ctx.Err() == nil; away != gone {
				gone = away
				if gone {
					l.Log.LogAttrs(ctx, slog.LevelWarn, "the broker does not answer, waiting for it")
				} else {
					l.Log.LogAttrs(ctx, slog.LevelInfo, "the broker is back")
				}
			}
		}
	}
}

// begin returns where to start reading in each partition. Records of a transaction
// that is not committed yet come after these positions.
func (l *Listener) begin(ctx context.Context, adm *kadm.Client, topic string) (map[int32]kgo.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	offsets, err := adm.ListCommittedOffsets(ctx, topic)
	if l.Since > 0 && err == nil {
		offsets, err = adm.ListOffsetsAfterMilli(ctx, time.Now().Add(-l.Since).UnixMilli(), topic)
	}
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the position in %s: %w", topic, err)
	}
	out := map[int32]kgo.Offset{}
	offsets.Each(func(o kadm.ListedOffset) { out[o.Partition] = kgo.NewOffset().At(o.Offset) })
	return out, nil
}

func (l *Listener) hear(ctx context.Context, r *kgo.Record) error {
	var n record.Notification
	if err := l.Codec.Decode(r.Value, &n); err != nil {
		l.Log.LogAttrs(ctx, slog.LevelWarn, "an event cannot be decoded", slog.Int("partition", int(r.Partition)), slog.Int64("offset", r.Offset), slog.Any("error", err))
		return nil
	}
	if !l.wants(&n) {
		return nil
	}
	return l.Hear(ctx, &n)
}

func (l *Listener) wants(n *record.Notification) bool {
	return (l.ApplicationID == "" || n.ApplicationID == l.ApplicationID) &&
		(len(l.Events) == 0 || slices.Contains(l.Events, n.Event)) &&
		(n.Livemode && l.Live || !n.Livemode && l.Test)
}
