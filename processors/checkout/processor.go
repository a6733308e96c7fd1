package checkout

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/processors/entry"
	"quittance/processors/output"
	"quittance/processors/runtime"
	"quittance/processors/sender"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// Config is what a Processor needs. All fields but AcceptUnsigned are required.
type Config struct {
	Codec    *schemas.Codec
	Topology output.Topology
	// Senders has the keys of those that Senders returns.
	Senders origin.Verifier
	// AcceptUnsigned accepts commands that do not say who sent them, as those of a release that did not
	// sign: whoever may write the topic can then send any command.
	AcceptUnsigned bool
	// Bodies proves the bodies of webhooks and confirmations.
	Bodies origin.MACs
	// Verify verifies the signatures of staff's steps.
	Verify  casework.Verify
	Metrics prometheus.Registerer
}

// Processor decides commands. It has no state and may decide for any number of partitions
// at the same time.
type Processor struct {
	codec    *schemas.Codec
	topology output.Topology
	guard    *sender.Guard[checkout.Action]
	bodies   origin.MACs
	judge    *judge
}

var _ runtime.Processor = (*Processor)(nil)

// New creates a processor that writes to the topics of the installation.
func New(cfg Config) (*Processor, error) {
	if cfg.Codec == nil || cfg.Topology == nil || cfg.Bodies == nil || cfg.Verify == nil || cfg.Metrics == nil {
		return nil, errors.New("processor of checkout: Codec, Topology, Bodies, Verify and Metrics are required")
	}
	guard, err := sender.New(sender.Config[checkout.Action]{
		Processor: schemas.Checkout.Processor, Keys: cfg.Senders, AcceptUnsigned: cfg.AcceptUnsigned, Allowed: sendersOf, Metrics: cfg.Metrics,
	}, Senders())
	if err != nil {
		return nil, err
	}
	return &Processor{cfg.Codec, cfg.Topology, guard, cfg.Bodies, newJudge(cfg.Verify, cfg.Metrics)}, nil
}

// Process decides one record of checkout.commands. A record that cannot be decoded, an
// unknown command, and a command of somebody who may not send it are poison.
func (p *Processor) Process(tx *runtime.Tx, rec *kgo.Record) error {
	from, err := p.guard.Sent(rec)
	if err != nil {
		return err
	}
	var r record.Command
	if err := p.codec.Decode(rec.Value, &r); err != nil {
		if errors.Is(err, schemas.ErrUndecodable) {
			return runtime.Poison(err)
		}
		return err
	}
	cmd, err := mapping.ToCommand(&r)
	if err != nil {
		return runtime.Poison(err)
	}
	if err := p.guard.Allows(from, cmd.Do); err != nil {
		return err
	}
	return p.decide(tx, cmd)
}

// transaction is the part of runtime.Tx that a decision needs.
type transaction interface {
	entry.Tx
	Partition() int32
	Emit(r *kgo.Record)
}

func (p *Processor) decide(tx transaction, cmd checkout.Command) error {
	state := entry.NewState(tx, p.codec)
	d := checkout.Decision{}
	a, refused := p.judge.refuses(view{state}, cmd)
	var err error
	if !refused {
		d, err = checkout.Decide(view{state}, cmd)
	} else if cmd.ReplyTo != nil {
		d.Answer = &a
	}
	if err != nil {
		return runtime.Poison(err)
	}
	if err := state.Err(); err != nil {
		return err
	}
	write(state, d)
	w := &writer{output.New(p.codec, p.topology, tx), p.bodies}
	w.Fail(state.Err())
	for _, e := range d.Events {
		w.event(e)
	}
	for _, q := range d.Collections {
		w.Emit(schemas.TopicCollections, q.Session.Collection.ID, mapping.FromRequest(q))
	}
	if d.Answer != nil {
		if _, ok := cmd.Do.(checkout.Create); ok && d.Answer.Code == checkout.CodeOK && !d.Answer.Replayed {
			d.Answer.Session = nil // the sender has it already
		}
		w.EmitTo(schemas.TopicReplies, cmd.ReplyTo.Partition, cmd.ReplyTo.CorrelationID, mapping.Reply(*cmd.ReplyTo, *d.Answer))
	}
	return w.Err()
}

// Deadline returns when an entry of the state needs a tick.
func (p *Processor) Deadline(key, value []byte) time.Time {
	return kinds.Deadline(p.codec, key, value)
}

// Tick decides a session at the time now, and deletes an entry that is forgotten.
func (p *Processor) Tick(tx *runtime.Tx, key []byte, now time.Time) error {
	return kinds.Tick(tx, key, func(_ byte, id string) error { // sessions alone wake
		return p.decide(tx, checkout.Command{At: now.UTC().Truncate(time.Millisecond), SessionID: id, Do: checkout.Tick{}})
	})
}

// writer writes the records of a decision.
type writer struct {
	*output.Writer
	bodies origin.MACs
}

// event writes the event and its notifications.
func (w *writer) event(e checkout.Event) {
	s := e.Session
	// The event goes to the partition of the command, which is the agency's partition. An
	// orphaned report goes there, too: its agency is unknown and its key is empty.
	w.EmitHere(schemas.TopicEvents, s.TenantID, mapping.FromEvent(e))
	if e.Type.Webhook() {
		w.notify(schemas.TopicWebhooks, s.ApplicationID, e, mapping.ToWebhook)
	}
	if _, ok := e.PartnerNotice(); ok {
		w.notify(schemas.TopicPartners, s.ApplicationID, e, mapping.ToPartner)
	}
	confirmations, err := mapping.ToConfirmations(e)
	w.Fail(err)
	for _, n := range confirmations {
		origin.SignBody(schemas.TopicConfirmations, n, w.bodies)
		w.Emit(schemas.TopicConfirmations, s.TenantID, n)
	}
}

func (w *writer) notify(topic, key string, e checkout.Event, notification func(checkout.Event) (*record.Notification, error)) {
	n, err := notification(e)
	if w.Fail(err); err == nil {
		origin.SignBody(topic, n, w.bodies)
		w.Emit(topic, key, n)
	}
}
