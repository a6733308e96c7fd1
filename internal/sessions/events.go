package sessions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Event is an event of a session that integrators can subscribe to.
type Event struct {
	ID         string // evt_
	Type       checkout.EventType
	Sequence   int64
	OccurredAt time.Time // UTC
	// Body is what is sent. It is nil once the data of the session are erased, 30 days after its
	// end: metadata may name people.
	Body []byte
}

// toldOf returns the event of a record if integrators can subscribe to it, otherwise nil. The
// body depends on the record only, and so is the one of the event's webhook.
func toldOf(e *record.Event) (*Event, error) {
	if !checkout.EventType(e.Type).Webhook() {
		return nil, nil
	}
	n, err := mapping.ToWebhook(mapping.ToEvent(e))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrUndecodable, err)
	}
	return &Event{ID: n.EventID, Type: checkout.EventType(e.Type), Sequence: e.Sequence, OccurredAt: e.OccurredAt, Body: n.Body}, nil
}

// writeEvents adds the statements for the events of snapshots and for the erasure of bodies.
// An event that comes once more after the erasure stays without its body. An event after it has
// no data of the session's any more, and keeps its own.
func writeEvents(batch *pgx.Batch, snapshots []Snapshot) {
	ordered := slices.SortedFunc(slices.Values(snapshots), func(a, b Snapshot) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, s := range ordered {
		if e := s.Told; e != nil {
			batch.Queue(insertEvent, eventRow(s, e).values...)
		}
		if s.Erased {
			batch.Queue(`UPDATE session_events SET body = NULL WHERE session_id = $1 AND sequence < $2 AND body IS NOT NULL`, s.ID, s.Sequence)
		}
	}
}

// Events returns a session that the caller may see and its events, the oldest first. It shows
// everything that was acknowledged, like Session. Errors are those of Session.
func (r *Reader) Events(ctx context.Context, q Query) (checkout.Session, []Event, error) {
	partition, err := checkout.SessionPartition(q.ID)
	if err != nil || partition >= r.cfg.Topology.Count(schemas.TopicEvents) {
		return checkout.Session{}, nil, ErrNotFound
	}
	var events []Event
	found, err := r.read(ctx, []int32{partition}, func(batch *pgx.Batch, values *[][]byte) {
		batch.Queue(`SELECT snapshot FROM sessions WHERE id = $1 AND application_id = ANY($2) AND livemode = $3`, q.ID, q.ApplicationIDs, q.Live).Query(collect(values))
		batch.Queue(`SELECT event_id, event, sequence, occurred_at, body FROM session_events WHERE session_id = $1 ORDER BY sequence`, q.ID).Query(func(rows pgx.Rows) (err error) {
			events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Event, err error) {
				err = row.Scan(&e.ID, &e.Type, &e.Sequence, &e.OccurredAt, &e.Body)
				e.OccurredAt = e.OccurredAt.UTC()
				return e, err
			})
			return err
		})
	})
	switch {
	case err != nil:
		return checkout.Session{}, nil, err
	case len(found) == 0:
		return checkout.Session{}, nil, ErrNotFound
	}
	return found[0], events, nil
}

// Told is an event with the session that it is about.
type Told struct {
	Event
	SessionID, ApplicationID string
}

// recentAtMost is the most events that Recent returns.
const recentAtMost = 200

// Recent returns events of test sessions of applications from a time on, the oldest first, at most 200
// and none of those with an id of except. Unlike Events it does not wait at the barrier: an event may come after a later one of
// another agency, and while the read model is rebuilt there are none. The error is ErrBehind, or that
// of ctx.
func (r *Reader) Recent(ctx context.Context, applicationIDs []string, from time.Time, except []string) (out []Told, err error) {
	err = r.query(ctx, func(ctx context.Context) error {
		rows, _ := r.cfg.Pool.Query(ctx, `
			SELECT event_id, event, sequence, occurred_at, body, session_id, application_id FROM session_events
			WHERE application_id = ANY($1) AND NOT livemode AND occurred_at >= $2 AND body IS NOT NULL AND event_id <> ALL($3)
			ORDER BY occurred_at, session_id, sequence LIMIT $4`, applicationIDs, from, except, recentAtMost) // the rows carry its error
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Told, err error) {
			err = row.Scan(&e.ID, &e.Type, &e.Sequence, &e.OccurredAt, &e.Body, &e.SessionID, &e.ApplicationID)
			e.OccurredAt = e.OccurredAt.UTC()
			return e, err
		})
		return err
	})
	return out, err
}
