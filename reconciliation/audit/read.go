package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/reconciliation/chain"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/statement"
)

// Source is where a Book is read from. All fields are required.
type Source struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
}

// ErrDeleted says that Kafka has not all records any more from which a close can be computed.
var ErrDeleted = errors.New("records were deleted from the topic: its closes cannot be computed again")

// entry is expected money.
type entry struct {
	chain.Entry
	row, day string
	// money is whose it is, as MatchRun.MoneyOf.
	money          string
	order, payment string
	collection     string
	notices        []string
	withdrawn      bool // at the end of the topic
}

// line is a line of a statement.
type line struct{ row, day, account string }

// fact is what a record changes. Beside the offset one field is set.
type fact struct {
	offset    int64
	entry     *entry
	withdrawn *entry
	line      *line
	unline    *line // a line that was withdrawn
	finding   *record.Finding
	confirmed *confirmed
}

type confirmed struct{ transaction, event string }

// Book is what Kafka knows of an agency's money, statements and closes in one mode.
type Book struct {
	tenant string
	live   bool
	// facts are in the order of their offsets, by topic/partition.
	facts   map[string][]fact
	entries map[string]*entry // by the row as findings name it
	closes  []*journal.Close  // in the order of their offsets
	// Keys verify the signatures of closes. Without any they are not checked.
	Keys []secret.PublicKey
	// Unreadable is how many records could not be decoded. The sink journal could not either.
	Unreadable int
}

// Read reads what Kafka has of an agency, in one mode. Its memory grows with the agency's history: some
// kilobyte for each payment.
func Read(ctx context.Context, from Source, tenantID string, live bool) (*Book, error) {
	cl, err := from.Kafka.Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	b := &Book{tenant: tenantID, live: live, facts: map[string][]fact{}, entries: map[string]*entry{}}
	adm, home := kadm.NewClient(cl), from.Topology.Partition(schemas.TopicEvents, tenantID)
	for _, t := range []struct {
		topic string
		take  func(*kgo.Record) error
	}{
		{schemas.TopicEvents, func(r *kgo.Record) error { return b.event(from.Codec, schemas.TopicEvents, r) }},
		{schemas.TopicCases, func(r *kgo.Record) error { return b.event(from.Codec, schemas.TopicCases, r) }},
		{schemas.TopicStatements, func(r *kgo.Record) error { return b.statement(from.Codec, r) }},
		{schemas.TopicReconciliation, func(r *kgo.Record) error { return b.reconciliation(from.Codec, r) }},
	} {
		name := from.Topology.Name(t.topic)
		spans, err := kafka.Bounds(ctx, adm, name)
		if err != nil {
			return nil, err
		}
		for p, span := range spans {
			switch {
			case t.topic == schemas.TopicEvents && p != home:
				delete(spans, p)
			case span.From > 0:
				return nil, fmt.Errorf("%s, partition %d begins at %d: %w", name, p, span.From, ErrDeleted)
			}
		}
		if err := from.Kafka.Read(ctx, name, spans, nil, func(r *kgo.Record) (bool, error) {
			err := t.take(r)
			if errors.Is(err, schemas.ErrUndecodable) || errors.Is(err, journal.ErrInvalidEntry) {
				b.Unreadable++
				err = nil
			}
			return true, err
		}); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *Book) add(topic string, r *kgo.Record, f fact) {
	at := fmt.Sprintf("%s/%d", topic, r.Partition)
	f.offset = r.Offset
	b.facts[at] = append(b.facts[at], f)
}

// event takes a record of checkout.events or cases.events: expected money and confirmations.
func (b *Book) event(codec *schemas.Codec, topic string, r *kgo.Record) error {
	var e record.Event
	if err := codec.Decode(r.Value, &e); err != nil {
		return err
	}
	expected, err := journal.ExpectedOf(&e)
	if err != nil {
		return err
	}
	for i := range expected {
		b.expect(topic, r, &expected[i])
	}
	switch checkout.EventType(e.Type) {
	case checkout.EventConfirmationAccepted, checkout.EventConfirmationRecorded:
		if topic == schemas.TopicEvents && e.Session != nil && e.Session.TenantID == b.tenant && e.Session.Livemode == b.live {
			transaction := e.Detail[checkout.DetailTransactionID]
			if transaction == "" {
				transaction = e.Session.TransactionID
			}
			b.add(topic, r, fact{confirmed: &confirmed{transaction, e.EventID}})
		}
	default: // tells nothing of confirmations
	}
	return nil
}

// expect takes a row of expected money.
func (b *Book) expect(topic string, r *kgo.Record, x *journal.Expected) {
	if x.TenantID != b.tenant && x.TenantID != "" || x.Livemode != b.live || x.Kind == journal.ExpectedUndecided {
		return
	}
	id := x.Row()
	e := b.entries[id]
	if e == nil {
		e = &entry{
			Entry: chain.Entry{ID: x.ID.String(), Session: x.SessionID, OperatorRef: x.OperatorRef, Currency: x.Currency, Gross: x.Gross, DueRefs: x.DueRefs, Transactions: x.TransactionIDs, Amounts: x.Amounts},
			row:   id, day: x.LocalDate.Format(time.DateOnly), money: journal.MoneyOf(x.TenantID, x.Currency, x.OfferID, x.Account),
			order: x.OrderID, payment: x.PaymentRef, collection: x.CollectionID, notices: x.NoticeRefs,
		}
		b.entries[id] = e
		if !x.Withdrawn {
			b.add(topic, r, fact{entry: e})
		}
	}
	if x.Withdrawn && !e.withdrawn { // an event of cases.events may be written twice
		e.withdrawn = true
		b.add(topic, r, fact{withdrawn: e})
	}
}

// statement takes a record of reconciliation.statements.
func (b *Book) statement(codec *schemas.Codec, r *kgo.Record) error {
	name, err := codec.NameOf(r.Value)
	if err != nil {
		return err
	}
	var l record.StatementLine
	if name != l.Name() {
		return nil
	}
	if err := codec.Decode(r.Value, &l); err != nil {
		return err
	}
	row, err := journal.LineOf(&l, r.Partition, r.Offset)
	if err != nil {
		return err
	}
	if l.TenantID == b.tenant && l.Livemode == b.live && statement.Kind(l.Kind).Money() {
		at := &line{row: row.Row(), day: l.Day, account: l.Account}
		if l.Withdrawn {
			b.add(schemas.TopicStatements, r, fact{unline: at})
		} else {
			b.add(schemas.TopicStatements, r, fact{line: at})
		}
	}
	return nil
}

// reconciliation takes a record of reconciliation.events: parts of matches, and closes.
func (b *Book) reconciliation(codec *schemas.Codec, r *kgo.Record) error {
	name, err := codec.NameOf(r.Value)
	if err != nil {
		return err
	}
	switch name {
	case (*record.Finding)(nil).Name():
		f := new(record.Finding)
		if err := codec.Decode(r.Value, f); err != nil {
			return err
		}
		if f.Type == journal.FindingMatch && f.TenantID == b.tenant && f.Livemode == b.live {
			f.NotTaken = nil // the part that is not needed may be large
			b.add(schemas.TopicReconciliation, r, fact{finding: f})
		}
	case (*record.Close)(nil).Name():
		var c record.Close
		if err := codec.Decode(r.Value, &c); err != nil {
			return err
		}
		if c.TenantID == b.tenant && c.Livemode == b.live && c.State == journal.CloseClosed {
			row, err := journal.CloseOf(&c, r.Partition, r.Offset)
			if err != nil {
				return err
			}
			b.closes = append(b.closes, row)
		}
	default: // runs and sums of days
	}
	return nil
}
