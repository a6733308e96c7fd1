package journal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// Topics returns the topics whose records make rows.
func Topics() []string {
	return []string{schemas.TopicEvents, schemas.TopicCases, schemas.TopicAttempts, schemas.TopicCalls, schemas.TopicStatements, schemas.TopicReconciliation, schemas.Disbursement.Events}
}

// Decoder makes rows of records. The same record makes the same rows each time.
type Decoder struct {
	// Codec decodes records; required.
	Codec *schemas.Codec
	// Prefix is that of the installation's topics.
	Prefix string
	// Outcomes says who is believed about deliveries. The zero value believes nobody: attempts make no rows then.
	Outcomes origin.Outcomes
	// Cases says who is believed in cases.events. Without it nobody is.
	Cases *origin.History
	// DateDropped, which may be nil, is called for each event of money whose operator's date is not plausible.
	DateDropped func()
}

// Rows returns the rows of a record: an entry with its receipts and expected money after it, or one row of
// another kind. A statement makes none, because its lines say all that the journal keeps. The errors
// schemas.ErrUndecodable, which is also that of an outcome that nothing proves, and ErrInvalidEntry are permanent.
func (d Decoder) Rows(r *kgo.Record) ([]Row, error) {
	out, err := d.rows(r)
	if err != nil {
		return nil, err
	}
	for _, row := range out {
		if err := row.Validate(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d Decoder) rows(r *kgo.Record) ([]Row, error) {
	switch topic := strings.TrimPrefix(r.Topic, d.Prefix); topic {
	case schemas.TopicCases:
		if d.Cases == nil {
			return nil, fmt.Errorf("nobody is believed in %s: %w", topic, schemas.ErrUndecodable)
		}
		if err := d.Cases.Verify(r); err != nil {
			return nil, err
		}
		return d.ofEvent(topic, r)
	case schemas.TopicEvents:
		return d.ofEvent(topic, r)
	case schemas.TopicCalls:
		var c record.Call
		if err := d.Codec.Decode(r.Value, &c); err != nil {
			return nil, err
		}
		return []Row{new(fromCall(&c))}, nil
	case schemas.Disbursement.Events:
		return d.ofBatch(topic, r)
	case schemas.TopicStatements:
		return d.ofStatement(r)
	case schemas.TopicReconciliation:
		return d.ofReconciliation(r)
	default:
		var a record.Attempt
		if err := d.Codec.Decode(r.Value, &a); err != nil {
			return nil, err
		}
		if err := d.Outcomes.Verify(r, &a); err != nil {
			return nil, err
		}
		return []Row{new(fromAttempt(&a))}, nil
	}
}

// ofEvent returns the entry of an event, and the receipts and the expected money of its money.
func (d Decoder) ofEvent(topic string, r *kgo.Record) ([]Row, error) {
	var e record.Event
	if err := d.Codec.Decode(r.Value, &e); err != nil {
		return nil, err
	}
	entry := fromEvent(&e)
	if topic == schemas.TopicEvents { // an event of cases.events may be written twice
		entry.SourcePartition, entry.SourceOffset = r.Partition, r.Offset
	}
	receipts, err := ReceiptsOf(&e)
	if err != nil {
		return nil, err
	}
	expected, err := ExpectedOf(&e)
	if err != nil {
		return nil, err
	}
	if d.DateDropped != nil && DateDropped(&e) {
		d.DateDropped()
	}
	return slices.Concat([]Row{&entry}, Rows(receipts), Rows(placed(expected, topic, r))), nil
}

// placed sets where the record stands that expected money was made of.
func placed(expected []Expected, topic string, r *kgo.Record) []Expected {
	for i := range expected {
		x := &expected[i]
		x.SourceTopic, x.SourcePartition, x.SourceOffset, x.Version = topic, r.Partition, r.Offset, ExpectedVersion(r.Offset)
	}
	return expected
}

// ofBatch returns the money of lines of batches. Their events are no entries of the journal: the read model has them.
func (d Decoder) ofBatch(topic string, r *kgo.Record) ([]Row, error) {
	var e record.DisbursementEvent
	if err := d.Codec.Decode(r.Value, &e); err != nil {
		return nil, err
	}
	expected, err := PayoutsOf(&e)
	return Rows(placed(expected, topic, r)), err
}

// ofStatement returns the line of a record of reconciliation.statements.
func (d Decoder) ofStatement(r *kgo.Record) ([]Row, error) {
	name, err := d.Codec.NameOf(r.Value)
	if err != nil {
		return nil, err
	}
	if name == (*record.Statement)(nil).Name() {
		var s record.Statement
		return nil, d.Codec.Decode(r.Value, &s)
	}
	return rowOf(d, r, LineOf)
}

// ofReconciliation returns the row of a record of reconciliation.events.
func (d Decoder) ofReconciliation(r *kgo.Record) ([]Row, error) {
	name, err := d.Codec.NameOf(r.Value)
	if err != nil {
		return nil, err
	}
	switch name {
	case (*record.DayTotal)(nil).Name():
		return rowOf(d, r, DayTotalOf)
	case (*record.MatchRun)(nil).Name():
		return rowOf(d, r, MatchRunOf)
	case (*record.Close)(nil).Name():
		return rowOf(d, r, CloseOf)
	default:
		return rowOf(d, r, FindingOf)
	}
}

// rowOf decodes a record and returns the row that of makes of it and of where it stands.
func rowOf[R any, P interface {
	*R
	record.Record
}, T Row](d Decoder, r *kgo.Record, of func(P, int32, int64) (T, error)) ([]Row, error) {
	var value R
	if err := d.Codec.Decode(r.Value, P(&value)); err != nil {
		return nil, err
	}
	partition, offset, err := sourceOf(r)
	if err != nil {
		return nil, err
	}
	row, err := of(&value, partition, offset)
	return []Row{row}, err
}

// sourceOf returns where a record stands in its topic. A poison record names the original.
func sourceOf(r *kgo.Record) (partition int32, offset int64, err error) {
	partition, offset = r.Partition, r.Offset
	for _, h := range r.Headers {
		switch h.Key {
		case schemas.HeaderOffset:
			var failed error
			offset, failed = strconv.ParseInt(string(h.Value), 10, 64)
			err = errors.Join(err, failed)
		case schemas.HeaderPartition:
			n, failed := strconv.ParseInt(string(h.Value), 10, 32)
			partition, err = int32(n), errors.Join(err, failed)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: its source: %w", ErrInvalidEntry, err)
	}
	return partition, offset, nil
}
