package deliveries

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/internal/comparison"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// historyKept is for how long Kafka surely keeps outcomes.
const historyKept = 89 * 24 * time.Hour

// heldTooLong is the reason of a delivery that the schedule has exhausted because its destination was suspended.
const heldTooLong = "held_too_long"

// told is what outcomes say of a delivery.
type told struct {
	// identity is what never changes of a delivery.
	identity comparison.Made
	on       time.Time // the day of its table
	// ends are the outcomes after which a delivery does not wait, and delivered says that one of them is Delivered.
	ends      []ended
	delivered bool
	attempts  int64
	last      time.Time
	body      [sha256.Size]byte
	// unproven says that nothing proves who wrote an outcome, as of a release whose workers proved nothing.
	unproven bool
	known    bool
}

// ended is an outcome after which a delivery does not wait.
type ended struct {
	state string
	made  comparison.Made // of what the row says of it
}

// identified are the columns of told.identity, and endedBy those of ended.made.
var (
	identified = []string{"delivery_id", "occurred_on", "kind", "destination_id", "event_id", "event", "application_id", "tenant_id", "session_id", "livemode", "occurred_at", "url"}
	endedBy    = []string{"last_outcome_at", "http_status", "reason"}
)

// Comparison returns the comparison of the table of deliveries with the outcomes in deliveries.attempts: whose a delivery is,
// its body, and its state where an outcome decides it. When a delivery is due again and in which round, the schedule and
// people decide, and nothing is compared. Outcomes whose worker nothing proves are no proof (outcomes). A delivery without
// an outcome may wait, as one that a replay has made. now is the service's time.
func (s *Store) Comparison(codec *schemas.Codec, outcomes origin.Outcomes, now time.Time) *comparison.Table[told] {
	outcomes.AcceptUnproven, outcomes.Refused, outcomes.Unproven = false, nil, nil
	return &comparison.Table[told]{
		Name: "deliveries",
		Query: `SELECT ` + strings.Join(identified, ", ") + `, last_outcome_at, http_status, reason, state, attempts, sha256(body),
			state = 'superseded' AND ` + s.finalAccepted() + ` FROM deliveries d`,
		Topics:    []string{schemas.TopicAttempts},
		Positions: positions,
		Take: func(r comparison.Record, of func(string) *told) error {
			var a record.Attempt
			if err := codec.Decode(r.Value, &a); err != nil {
				return err
			}
			if !Outcome(a.Outcome).Known() {
				return schemas.ErrUndecodable
			}
			err := outcomes.Verify(r.Record, &a)
			if errors.Is(err, origin.ErrForged) {
				return err
			}
			if t := of(a.Delivery.DeliveryID); t != nil {
				t.unproven = t.unproven || err != nil
				t.take(r, &a)
			}
			return nil
		},
		Check: func(t *told, row []any) comparison.Verdict { return t.check(row, now) },
		Missing: func(t *told) *comparison.Made {
			if t.unproven || t.on.Before(day(now.AddDate(0, 0, 1-KeepDays))) { // tables of days before are dropped
				return nil
			}
			return &t.identity
		},
	}
}

// finalAccepted is the condition that the event of a delivery's session after which no other one is sent was accepted.
func (s *Store) finalAccepted() string {
	var kinds []string
	for _, k := range s.kinds {
		if k.Final != "" {
			kinds = append(kinds, fmt.Sprintf("('%s', '%s')", k.Kind, k.Final))
		}
	}
	if len(kinds) == 0 {
		return "false"
	}
	return `EXISTS (SELECT FROM (VALUES ` + strings.Join(kinds, ", ") + `) AS f (kind, final), deliveries n
		WHERE f.kind = d.kind AND n.kind = d.kind AND n.session_id = d.session_id AND n.event = f.final AND n.state = 'delivered')`
}

// take takes an outcome.
func (t *told) take(r comparison.Record, a *record.Attempt) {
	row := rowOf(a)
	if !t.known {
		d := &a.Delivery
		t.known, t.on = true, day(d.OccurredAt)
		t.identity = r.Make(d.DeliveryID, t.on, d.Kind, d.DestinationID, d.EventID, d.Event, d.ApplicationID, d.TenantID, d.SessionID, d.Livemode, d.OccurredAt, orNil(d.URL))
	}
	attempts := int64(a.Delivery.Attempt)
	if Outcome(a.Outcome) == OutcomeDeferred {
		attempts--
	}
	t.attempts = max(t.attempts, attempts)
	if a.At.After(t.last) {
		t.last = a.At
	}
	if body, _ := row[19].([]byte); len(body) > 0 {
		t.body = sha256.Sum256(body)
	}
	if state := stateOf[Outcome(a.Outcome)]; state != StateWaiting {
		t.delivered = t.delivered || state == StateDelivered
		t.ends = append(t.ends, ended{state, r.Make(a.At, orNil(int64(a.HTTPStatus)), orNil(a.Reason))})
	}
}

func orNil[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// check compares a row.
func (t *told) check(row []any, now time.Time) (v comparison.Verdict) {
	n := len(identified)
	own, end := row[:n], row[n:n+len(endedBy)]
	rest := row[n+len(endedBy):]
	state, _ := rest[0].(string)
	attempts, _ := rest[1].(int32)
	body, _ := rest[2].([]byte)
	superseded, _ := rest[3].(bool)
	last, _ := end[0].(time.Time)
	reason, _ := end[2].(string)
	v.At, _ = own[10].(time.Time)
	if t == nil || !t.known {
		// A replay makes a delivery that waits, or it was superseded or held too long since.
		waits := state == StateWaiting || state == StateQueued || superseded || reason == heldTooLong && now.Sub(last) > holdFor
		if (waits && attempts == 0) || now.Sub(last) > historyKept {
			v.Older = !waits || attempts != 0
			return v
		}
		v.Fault = comparison.FaultAdded
		return v
	}
	if t.unproven {
		v.Older = true
		return v
	}
	v.By = &t.identity
	differs := func(columns ...comparison.Column) {
		v.Fault, v.Columns = comparison.FaultDifferent, append(v.Columns, columns...)
	}
	if !t.identity.Makes(own) {
		differs(t.identity.Columns(identified, own)...)
	}
	if len(body) > 0 && string(body) != string(t.body[:]) {
		differs(comparison.Column{Name: "body", Postgres: fmt.Sprintf("SHA-256 %x", body)[:20], Kafka: fmt.Sprintf("SHA-256 %x", t.body)[:20]})
	}
	if int64(attempts) > t.attempts {
		differs(comparison.Column{Name: "attempts", Postgres: comparison.Text(attempts), Kafka: comparison.Text(t.attempts)})
	}
	of := slices.DeleteFunc(slices.Clone(t.ends), func(e ended) bool { return e.state != state })
	switch {
	case t.delivered && state != StateDelivered: // nothing changes a delivery that was accepted
		v.By = &t.ends[slices.IndexFunc(t.ends, func(e ended) bool { return e.state == StateDelivered })].made
		differs(comparison.Column{Name: "state", Postgres: state, Kafka: StateDelivered})
	case state == StateWaiting, state == StateQueued, superseded, state == StateExhausted && reason == heldTooLong && now.Sub(t.last) > holdFor:
	case len(of) == 0:
		differs(comparison.Column{Name: "state", Postgres: state, Kafka: StateWaiting})
	case !slices.ContainsFunc(of, func(e ended) bool { return e.made.Makes(end) }):
		v.By = &of[0].made
		differs(of[0].made.Columns(endedBy, end)...)
	}
	return v
}
