package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/reconciliation/chain"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	"quittance/statement"
)

// Source is where a Book is read from. All fields are required.
type Source struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	// Cases says who is believed in cases.events; nil for whoever has no keys: all records are believed then.
	Cases *origin.History
}

// ErrDeleted says that Kafka has not all records any more from which a close can be computed.
var ErrDeleted = errors.New("records were deleted from the topic: its closes cannot be computed again")

// entry is expected money.
type entry struct {
	chain.Entry
	Row, Day string
	// Money is whose it is, as MatchRun.MoneyOf.
	Money          string
	Order, Payment string
	Collection     string
	Notices        []string
	Withdrawn      bool // at the end of the topic
}

// line is a line of a statement.
type line struct{ Row, Day, Account string }

// fact is what a record changes. One field is set.
type fact struct {
	Entry     *known     `json:",omitempty"`
	Withdrawn string     `json:",omitempty"` // the row of an entry
	Line      *line      `json:",omitempty"`
	Unline    *line      `json:",omitempty"` // a line that was withdrawn
	Finding   *finding   `json:",omitempty"`
	Confirmed *confirmed `json:",omitempty"`
}

// known is an entry that came to be known.
type known struct{ Row, Day, Money string }

// finding is a part of a match, or its end.
type finding struct {
	ID, Account, State string
	Part               int32
	Sources, Lines     []string
}

type confirmed struct{ Transaction, Event string }

// Book is what Kafka knows of an agency's money, statements and closes in one mode. It keeps it in a temporary folder:
// its memory does not grow with the history. Close removes the folder. Not safe for concurrent use.
type Book struct {
	tenant string
	live   bool
	disk   *disk
	// facts are by factKey: in the order of their offsets within topic/partition.
	facts   table[fact]
	entries table[entry]         // by the row as findings name it
	closes  table[journal.Close] // by closeKey: in the order of their offsets within an account
	// accounts are those with closes.
	accounts map[string]bool
	added    uint64 // facts that were added
	// Keys verify the signatures of closes. Without any they are not checked.
	Keys []secret.PublicKey
	// Reports returns what the reports say of the days of a close now; nil where they are not compared.
	Reports func(c *journal.Close) ([]string, error)
	// Unread is why reports were not compared, after the closes were computed; nil if they were.
	Unread error
	// Unreadable is how many records could not be decoded. The sink journal could not either.
	Unreadable int
}

func newBook(tenantID string, live bool) (*Book, error) {
	d, err := newDisk()
	if err != nil {
		return nil, err
	}
	return &Book{
		tenant: tenantID, live: live, disk: d, facts: table[fact]{d, "facts|"}, entries: table[entry]{d, "entries|"}, closes: table[journal.Close]{d, "closes|"},
		accounts: map[string]bool{},
	}, nil
}

// Close removes what the Book keeps.
func (b *Book) Close() error { return b.disk.close() }

// factKey orders facts by topic/partition and offset, those of one record as they were added.
func factKey(at string, offset int64, n uint64) string {
	return fmt.Sprintf("%s|%016x%016x", at, offset, n)
}

func closeKey(account string, offset int64) string { return fmt.Sprintf("%s|%016x", account, offset) }

// Read reads what Kafka has of an agency, in one mode, into a temporary folder of some kilobyte for each payment. The
// caller closes the Book.
func Read(ctx context.Context, from Source, tenantID string, live bool) (*Book, error) {
	b, err := newBook(tenantID, live)
	if err != nil {
		return nil, err
	}
	if err := b.read(ctx, from); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Book) read(ctx context.Context, from Source) error {
	cl, err := from.Kafka.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for _, t := range []struct {
		topic string
		take  func(*kgo.Record) error
	}{
		{schemas.TopicEvents, func(r *kgo.Record) error { return b.event(from.Codec, schemas.TopicEvents, r) }},
		{schemas.TopicCases, func(r *kgo.Record) error {
			if from.Cases != nil {
				if err := from.Cases.Verify(r); err != nil {
					return err
				}
			}
			return b.event(from.Codec, schemas.TopicCases, r)
		}},
		{schemas.Disbursement.Events, func(r *kgo.Record) error { return b.batch(from.Codec, r) }},
		{schemas.TopicStatements, func(r *kgo.Record) error { return b.statement(from.Codec, r) }},
		{schemas.TopicReconciliation, func(r *kgo.Record) error { return b.reconciliation(from.Codec, r) }},
	} {
		name := from.Topology.Name(t.topic)
		spans, err := kafka.Bounds(ctx, adm, name)
		if err != nil {
			return err
		}
		for p, span := range spans {
			switch {
			case slices.Contains(ofAgencies, t.topic) && p != from.Topology.Partition(t.topic, b.tenant):
				delete(spans, p)
			case span.From > 0:
				return fmt.Errorf("%s, partition %d begins at %d: %w", name, p, span.From, ErrDeleted)
			}
		}
		if err := from.Kafka.Read(ctx, name, spans, nil, func(r *kgo.Record) (bool, error) {
			err := t.take(r)
			if errors.Is(err, schemas.ErrUndecodable) || errors.Is(err, journal.ErrInvalidEntry) {
				b.Unreadable++
				err = nil
			}
			return true, errors.Join(err, b.disk.err)
		}); err != nil {
			return err
		}
	}
	return b.disk.err
}

func (b *Book) add(topic string, r *kgo.Record, f fact) {
	b.added++
	b.facts.put(factKey(fmt.Sprintf("%s/%d", topic, r.Partition), r.Offset, b.added), f)
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
			b.add(topic, r, fact{Confirmed: &confirmed{transaction, e.EventID}})
		}
	default: // tells nothing of confirmations
	}
	return nil
}

// ofAgencies are the topics that have all records of an agency in one partition.
var ofAgencies = []string{schemas.TopicEvents, schemas.Disbursement.Events}

// batch takes a record of disbursement.events: money that was paid to people.
func (b *Book) batch(codec *schemas.Codec, r *kgo.Record) error {
	var e record.DisbursementEvent
	if err := codec.Decode(r.Value, &e); err != nil {
		return err
	}
	expected, err := journal.PayoutsOf(&e)
	if err != nil {
		return err
	}
	for i := range expected {
		b.expect(schemas.Disbursement.Events, r, &expected[i])
	}
	return nil
}

// expect takes a row of expected money.
func (b *Book) expect(topic string, r *kgo.Record, x *journal.Expected) {
	if x.TenantID != b.tenant && x.TenantID != "" || x.Livemode != b.live || !journal.Counted(x.Kind) {
		return
	}
	id := x.Row()
	e, old := b.entries.get(id)
	if !old {
		e = entry{
			Entry: chain.Entry{ID: x.ID.String(), Session: x.SessionID, OperatorRef: x.OperatorRef, Currency: x.Currency, Gross: x.Gross, DueRefs: x.DueRefs, Transactions: x.TransactionIDs, Amounts: x.Amounts},
			Row:   id, Day: x.LocalDate.Format(time.DateOnly), Money: journal.MoneyOf(x.TenantID, x.Currency, x.OfferID, x.Account),
			Order: x.OrderID, Payment: x.PaymentRef, Collection: x.CollectionID, Notices: x.NoticeRefs,
		}
		if !x.Withdrawn {
			b.add(topic, r, fact{Entry: &known{id, e.Day, e.Money}})
		}
	}
	if x.Withdrawn && !e.Withdrawn { // an event of cases.events may be written twice
		e.Withdrawn = true
		b.add(topic, r, fact{Withdrawn: id})
	}
	b.entries.put(id, e)
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
		at := &line{row.Row(), l.Day, l.Account}
		if l.Withdrawn {
			b.add(schemas.TopicStatements, r, fact{Unline: at})
		} else {
			b.add(schemas.TopicStatements, r, fact{Line: at})
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
			b.add(schemas.TopicReconciliation, r, fact{Finding: &finding{f.FindingID, f.Account, f.State, f.Part, f.Sources, f.Lines}})
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
			b.addClose(row)
		}
	default: // runs and sums of days
	}
	return nil
}

func (b *Book) addClose(c *journal.Close) {
	b.accounts[c.Account] = true
	b.closes.put(closeKey(c.Account, c.SourceOffset), *c)
}
