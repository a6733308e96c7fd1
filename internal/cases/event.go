package cases

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// Opening returns the event that opens a case without a session. Like the events below, it
// is the same whenever it is made, so that it may be written again.
func (c Case) Opening() checkout.Event {
	detail := map[string]string{}
	if c.Reason != "" {
		detail[checkout.DetailReason] = c.Reason
	}
	return c.event(checkout.EventCaseOpened, "opened", c.OpenedAt, detail)
}

// Step returns the event of a step of a proposal about a case without a session. Its id has
// the time of the step: after a restore of Postgres, another proposal may have the same
// number.
func (c Case) Step(n Note) checkout.Event {
	note := n.proposal()
	t, _ := note.Event() // the store knows no other steps
	what := fmt.Sprintf("%d/%s/%d", n.Number, n.Step, n.At.UnixMilli())
	return c.event(t, what, n.At, note.Detail())
}

// Exit returns the event that closes a case without a session. A case has one.
func (c Case) Exit(a Approved) checkout.Event {
	return c.event(checkout.EventCaseResolved, "resolved", a.DecidedAt, a.resolution().Detail())
}

// Event returns the event that closes the case. It has the id of Exit.
func (e End) Event() checkout.Event {
	do := checkout.Resolve{Resolution: e.EndedAs, Reason: "a later run of the matcher has settled the rows", By: Matcher}
	switch {
	case e.EndedAs == ResolutionRefused:
		do.Reason = e.EndedReason
	case e.Agreed != nil && e.Refusal() == "":
		do = e.Agreed.resolution()
	case e.EndedAs == ResolutionMatchByHand:
		do.Reason = "matched by hand in the case of another break"
	}
	return e.event(checkout.EventCaseResolved, "resolved", e.EndedAt, do.Detail())
}

// event returns an event of a case without a session. It says everything that is known of
// the case, so that a reader needs no earlier event.
func (c Case) event(t checkout.EventType, what string, at time.Time, detail map[string]string) checkout.Event {
	maps.Copy(detail, c.Evidence)
	detail[checkout.DetailCaseID], detail[checkout.DetailCaseKind] = c.ID, string(c.Kind)
	detail[checkout.DetailOpenedAt] = c.OpenedAt.UTC().Format(time.RFC3339Nano)
	if c.Currency != "" {
		detail[checkout.DetailReportedAmount], detail[checkout.DetailReportedCurr] = strconv.FormatInt(c.Amount, 10), c.Currency
	}
	if c.Mode != "" {
		detail[checkout.DetailLive] = strconv.FormatBool(c.Mode == mode(true))
	}
	for name, value := range map[string]string{checkout.DetailCollectionID: c.CollectionID, checkout.DetailOperatorRef: c.OperatorRef} {
		if value != "" {
			detail[name] = value
		}
	}
	return checkout.Event{ID: checkout.CaseEventID(c.ID, what), Type: t, SessionID: c.SessionID, OccurredAt: at.UTC(), Detail: detail}
}

// ReadCaseEvent returns the case in a record of cases.events that opens or closes one; none
// for a step of a proposal. Errors are those of Codec.Decode.
func ReadCaseEvent(codec *schemas.Codec, value []byte) ([]Case, error) {
	var e record.Event
	if err := codec.Decode(value, &e); err != nil {
		return nil, err
	}
	list := withoutSession(&e)
	for i := range list {
		list[i].Recorded = true
		switch checkout.EventType(e.Type) {
		case checkout.EventCaseOpened:
		case checkout.EventCaseResolved:
			list[i].Sequence = 1
		default:
			return nil, nil
		}
	}
	return list, nil
}

// withoutSession returns the case in an event of a case without a session: of a report of
// no known session, to which earlier releases gave no case, or of cases.events.
func withoutSession(e *record.Event) []Case {
	if e.Detail[checkout.DetailCaseID] == "" {
		return nil
	}
	c := ofMoney(mapping.ToEvent(e).Case())
	c.SessionID, c.Clerks, c.Evidence = e.SessionID, []string{}, map[string]string{}
	known := Catalog().Evidence
	if live, err := strconv.ParseBool(e.Detail[checkout.DetailLive]); err == nil {
		c.Mode = mode(live)
	}
	if checkout.EventType(e.Type) == checkout.EventCollectionOrphaned {
		c.Evidence[checkout.DetailEventID] = e.EventID
	}
	for name, value := range e.Detail {
		if slices.Contains(known, name) {
			c.Evidence[name] = value
		}
	}
	c.Reason = cmp.Or(c.Evidence[EvidenceError], c.Evidence[EvidenceFound])
	c.AgencyID = c.Evidence[EvidenceTenant]
	// An operator's texts may hold what Postgres does not store.
	c.CollectionID, c.OperatorRef, c.SessionID = storable(c.CollectionID), storable(c.OperatorRef), storable(c.SessionID)
	return []Case{c}
}

// Events is the topic cases.events. It is safe for concurrent use.
type Events struct {
	client   *kgo.Client
	topology *kafka.Topology
	codec    *schemas.Codec
	kafka    kafka.Config
	macs     origin.MACs
	signer   *origin.Signer
}

// Writer is the name of whoever writes cases.events, which proves its records (origin.History).
const Writer = "cases"

// NewEvents makes Events, whose records macs prove (secret.LabelCaseEvents). It does not close the client, which is a
// kafka.Config.Producer.
func NewEvents(cfg kafka.Config, client *kgo.Client, topology *kafka.Topology, codec *schemas.Codec, macs origin.MACs) *Events {
	return &Events{client, topology, codec, cfg, macs, origin.NewSigner(Writer, macs)}
}

// Write writes events, in order. After an error any of them may have been written.
func (w *Events) Write(ctx context.Context, events ...checkout.Event) error {
	records := make([]*kgo.Record, len(events))
	for i, e := range events {
		value, err := w.codec.Encode(mapping.FromEvent(e))
		if err != nil {
			return fmt.Errorf("encoding %s: %w", e.Type, err)
		}
		key := e.Detail[checkout.DetailCaseID]
		records[i] = &kgo.Record{
			Topic: w.topology.Name(schemas.TopicCases), Partition: w.topology.Partition(schemas.TopicCases, key), Key: []byte(key), Value: value,
		}
		w.signer.SignKeyed(records[i])
	}
	if err := w.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("writing events of cases: %w", err)
	}
	return nil
}

// Proven reports whether the topic has a record that the keys of the writer prove.
func (w *Events) Proven(ctx context.Context) (bool, error) {
	ends, err := kafka.Offsets(kadm.NewClient(w.client).ListEndOffsets(ctx, w.topology.Name(schemas.TopicCases)))
	if err != nil {
		return false, fmt.Errorf("asking for the end of the events of cases: %w", err)
	}
	_, found, err := w.kafka.FirstProven(ctx, schemas.TopicCases, origin.Verifier{Writer: w.macs}, 0, ends[0])
	return found, err
}

// Ends returns the full name of the topic, and its end by partition.
func (w *Events) Ends(ctx context.Context) (topic string, ends map[int32]int64, err error) {
	topic = w.topology.Name(schemas.TopicCases)
	ends, err = kafka.Offsets(kadm.NewClient(w.client).ListEndOffsets(ctx, topic))
	return topic, ends, err
}
