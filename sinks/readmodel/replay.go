package readmodel

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/schemas"
)

// Replayed says what a replay found.
type Replayed struct {
	// Events that were applied again; in a dry run, that would be.
	Events int64
	// Unreadable records cannot be decoded.
	Unreadable int64
}

// Replay applies the events again that were written to a topic from since to
// until, not including, by the broker's clock. A session that stands at a later
// event stays as it is, so that a replay only ever adds what is missing. topic,
// without the prefix, is checkout.events or this sink's poison topic. Positions
// stay. The sink need not run; progress may be nil.
func (r *ReadModel) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress func(done, total int64)) (Replayed, error) {
	cl, err := r.cfg.Kafka.Client()
	if err != nil {
		return Replayed{}, err
	}
	defer cl.Close()
	name := r.cfg.Space.Name(topic)
	spans, err := kafka.Between(ctx, kadm.NewClient(cl), name, since, until)
	if err != nil {
		return Replayed{}, err
	}
	var out Replayed
	var sessions []checkout.Session
	flush := func() error {
		defer func() { sessions = sessions[:0] }()
		if dryRun || len(sessions) == 0 {
			return nil
		}
		return r.store.Apply(ctx, r.topic, sessions, nil)
	}
	total, done := kafka.Length(spans), int64(0)
	err = r.cfg.Kafka.Read(ctx, name, spans, func(rec *kgo.Record) (bool, error) {
		if done++; done%1000 == 0 && progress != nil {
			progress(done, total)
		}
		e, err := r.decode(rec)
		switch {
		case errors.Is(err, schemas.ErrUndecodable):
			out.Unreadable++
			return true, nil
		case err != nil:
			return false, err
		case e == nil || e.session == nil:
			return true, nil
		}
		out.Events++
		if sessions = append(sessions, *e.session); len(sessions) < batch {
			return true, nil
		}
		return true, flush()
	})
	if err == nil {
		err = flush()
	}
	return out, err
}
