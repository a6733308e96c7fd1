package checkout

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/processors/runtime"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Topology gives the destination of records. *kafka.Topology of internal/kafka implements
// it.
type Topology interface {
	// Name returns a topic's name on the broker.
	Name(topic string) string
	// Partition returns the partition of a topic's records with the key.
	Partition(topic, key string) int32
}

// Processor decides commands. It has no state and may decide for any number of partitions
// at the same time.
type Processor struct {
	codec    *schemas.Codec
	topology Topology
}

var _ runtime.Processor = (*Processor)(nil)

// New creates a processor that writes to the topics of the installation.
func New(codec *schemas.Codec, topology Topology) *Processor { return &Processor{codec, topology} }

// Process decides one record of checkout.commands. A record that cannot be decoded, or an
// unknown command, is poison.
func (p *Processor) Process(tx *runtime.Tx, rec *kgo.Record) error {
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
	return p.decide(tx, cmd)
}

// transaction is the part of runtime.Tx that a decision needs.
type transaction interface {
	Partition() int32
	Get(key []byte) ([]byte, error)
	Put(key, value []byte, deadline time.Time)
	Delete(key []byte)
	Emit(r *kgo.Record)
}

func (p *Processor) decide(tx transaction, cmd checkout.Command) error {
	v := &view{tx: tx, codec: p.codec}
	d, err := checkout.Decide(v, cmd)
	if err != nil {
		return runtime.Poison(err)
	}
	if v.err != nil {
		return v.err
	}
	w := &writer{p: p, tx: tx}
	w.entries(d)
	for _, e := range d.Events {
		w.event(e)
	}
	for _, q := range d.Collections {
		w.emit(schemas.TopicCollections, q.Session.Collection.ID, mapping.FromRequest(q))
	}
	if d.Answer != nil {
		if _, ok := cmd.Do.(checkout.Create); ok && d.Answer.Code == checkout.CodeOK && !d.Answer.Replayed {
			d.Answer.Session = nil // the sender has it already
		}
		w.emitTo(schemas.TopicReplies, cmd.ReplyTo.Partition, cmd.ReplyTo.CorrelationID, mapping.FromAnswer(*cmd.ReplyTo, *d.Answer))
	}
	return w.err
}

// Deadline returns when an entry of the state needs a tick. writer.entries passes the same
// times to the transaction.
func (p *Processor) Deadline(key, value []byte) time.Time {
	switch kindOf(key) {
	case kindSession:
		var r record.Session
		if p.codec.Decode(value, &r) != nil {
			return time.Unix(0, 0) // the immediate tick reports the error
		}
		at, _ := mapping.ToSession(&r).Deadline()
		return at
	case kindIdempotency:
		var r record.Idempotency
		if p.codec.Decode(value, &r) == nil {
			return r.ForgetAt
		}
	case kindToken:
		var r record.Token
		if p.codec.Decode(value, &r) == nil {
			return r.ForgetAt
		}
	case kindTokenList:
		var r record.TokenList
		if p.codec.Decode(value, &r) == nil {
			return r.ForgetAt
		}
	case kindClaim:
		var r record.Claim
		if p.codec.Decode(value, &r) == nil {
			return checkout.Claim(r).ForgetAt()
		}
	case kindOrder, kindQuota, kindTill, kindMonth, kindNumber, kindExternal:
		// Never removed: paid orders and the numbers of payments are kept, and an application
		// or a clerk has one entry.
	}
	return time.Time{}
}

// Tick decides a session at the time now. It deletes expired idempotency keys, tokens and
// lists of tokens.
func (p *Processor) Tick(tx *runtime.Tx, key []byte, now time.Time) error {
	switch kindOf(key) {
	case kindSession:
		return p.decide(tx, checkout.Command{At: now.UTC().Truncate(time.Millisecond), SessionID: sessionOf(key), Do: checkout.Tick{}})
	case kindIdempotency, kindToken, kindTokenList, kindClaim:
		tx.Delete(key)
	case kindOrder, kindQuota, kindTill, kindMonth, kindNumber, kindExternal:
	}
	return nil
}

// writer writes a decision as records. It keeps the first error.
type writer struct {
	p   *Processor
	tx  transaction
	err error
}

func (w *writer) encode(r record.Record) []byte {
	b, err := w.p.codec.Encode(r)
	w.fail(err)
	return b
}

func (w *writer) put(key []byte, r record.Record, deadline time.Time) {
	if b := w.encode(r); b != nil {
		w.tx.Put(key, b, deadline)
	}
}

func (w *writer) emit(topic, key string, r record.Record) {
	w.emitTo(topic, w.p.topology.Partition(topic, key), key, r)
}

func (w *writer) emitTo(topic string, partition int32, key string, r record.Record) {
	if b := w.encode(r); b != nil {
		w.tx.Emit(&kgo.Record{Topic: w.p.topology.Name(topic), Partition: partition, Key: []byte(key), Value: b})
	}
}

func (w *writer) entries(d checkout.Decision) {
	for id, s := range d.Sessions {
		r := mapping.FromSession(s)
		at, _ := s.Deadline()
		w.put(sessionKey(id), &r, at)
	}
	for k, o := range d.Orders {
		w.put(orderKey(k), (*record.Order)(&o), time.Time{})
	}
	for k, i := range d.Idempotency {
		w.put(idempotencyKey(k), &record.Idempotency{
			BodyHash: i.BodyHash, Code: string(i.Code), SessionID: i.SessionID, Faults: mapping.FromFaults(i.Faults), ForgetAt: i.ForgetAt,
		}, i.ForgetAt)
	}
	for id, q := range d.Quotas {
		w.put(quotaKey(id), &record.Quota{
			Minute: q[0].Minute, Count: int32(q[0].Count), OtherMinute: q[1].Minute, OtherCount: int32(q[1].Count), //nolint:gosec // at most a quota
		}, time.Time{})
	}
	for hash, t := range d.Tokens {
		w.put(tokenKey(hash), (*record.Token)(&t), t.ForgetAt)
	}
	for id, l := range d.TokenLists {
		w.put(tokenListKey(id), (*record.TokenList)(&l), l.ForgetAt)
	}
	for k, t := range d.Tills {
		w.put(tillKey(k), (*record.Till)(&t), time.Time{})
	}
	w.payments(d)
	for _, hash := range d.ForgottenTokens {
		w.tx.Delete(tokenKey(hash))
	}
}

// payments writes the entries of the deprecated cash-in surface.
func (w *writer) payments(d checkout.Decision) {
	for k, last := range d.Months {
		w.put(monthKey(k), &record.MonthCounter{Last: int32(last)}, time.Time{}) //nolint:gosec // at most checkout.MaxNumber
	}
	for k, id := range d.Numbers {
		w.put(numberKey(k), &record.NumberedPayment{SessionID: id}, time.Time{})
	}
	for k, c := range d.Claims {
		if c.Empty() {
			w.tx.Delete(claimKey(k))
			continue
		}
		w.put(claimKey(k), (*record.Claim)(&c), c.ForgetAt())
	}
	for k, e := range d.Externals {
		w.put(externalKey(k), &record.ExternalNumber{
			InitSessionID: e.InitSessionID, Open: int32(e.Open), Paid: int32(e.Paid), Undecided: int32(e.Undecided), Late: int32(e.Late), Ask: e.Ask, //nolint:gosec // counts of payments
		}, time.Time{})
	}
}

// event writes the event and its notifications.
func (w *writer) event(e checkout.Event) {
	s := e.Session
	// The event goes to the partition of the command, which is the agency's partition. An
	// orphaned report goes there, too: its agency is unknown and its key is empty.
	w.emitTo(schemas.TopicEvents, w.tx.Partition(), s.TenantID, mapping.FromEvent(e))
	if e.Type.Webhook() {
		w.notify(schemas.TopicWebhooks, s.ApplicationID, e, mapping.ToWebhook)
	}
	if _, ok := e.PartnerNotice(); ok {
		w.notify(schemas.TopicPartners, s.ApplicationID, e, mapping.ToPartner)
	}
	confirmations, err := mapping.ToConfirmations(e)
	w.fail(err)
	for _, n := range confirmations {
		w.emit(schemas.TopicConfirmations, s.TenantID, n)
	}
}

func (w *writer) notify(topic, key string, e checkout.Event, notification func(checkout.Event) (*record.Notification, error)) {
	n, err := notification(e)
	if w.fail(err); err == nil {
		w.emit(topic, key, n)
	}
}

// fail remembers the first fault of the program. A retry gives the same result.
func (w *writer) fail(err error) {
	if err != nil && w.err == nil {
		w.err = runtime.Poison(err)
	}
}
