package intake

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Records are the records of accepted statements, reconciliation.statements.
type Records struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
}

// Unproved returns the first import of the coverage whose accepted statements are not in Kafka as its row has them, or that is
// withdrawn without the signatures of two people and not in Kafka; empty if all are, and none is withdrawn there. Whoever can write Postgres cannot write the topic: a row that was inserted, or that has other days,
// does not make a period whole.
func (c Coverage) Unproved(ctx context.Context, from Records) (importID string, err error) {
	if len(c.accepted)+len(c.withdrawn) == 0 {
		return "", nil
	}
	cl, err := from.Kafka.Client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	topic := from.Topology.Name(schemas.TopicStatements)
	bounds, err := kafka.Bounds(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return "", err
	}
	missing := map[string][]Facts{} // by import
	for partition, all := range byPartition(slices.Concat(c.accepted, c.withdrawn)) {
		// Statements follow the lines of their file. To the end, because a later record may say that one was withdrawn.
		span := kafka.Span{From: bounds[partition].To, To: bounds[partition].To}
		for _, one := range all {
			missing[one.id] = slices.Clone(one.facts)
			if slices.ContainsFunc(c.withdrawn, func(w accepted) bool { return w.id == one.id }) {
				missing[one.id] = slices.Concat(one.facts, one.facts) // none is left once it is accepted, and one comes back when it is withdrawn
			}
			from := one.from
			for _, f := range one.facts {
				from += int64(f.Lines)
			}
			span.From = min(span.From, from)
		}
		if partition < 0 || span.From < bounds[partition].From || span.From == span.To {
			return all[0].id, nil
		}
		if err := from.Kafka.Read(ctx, topic, map[int32]kafka.Span{partition: span}, nil, func(r *kgo.Record) (bool, error) {
			return true, from.settle(missing, r, all)
		}); err != nil {
			return "", fmt.Errorf("reading accepted statements: %w", err)
		}
	}
	for _, one := range c.accepted {
		if len(missing[one.id]) > 0 {
			return one.id, nil
		}
	}
	for _, one := range c.withdrawn {
		if len(one.facts) == 0 || len(missing[one.id]) != len(one.facts) {
			return one.id, nil
		}
	}
	return "", nil
}

// byPartition groups imports by the partition in which their rows say that the records are.
func byPartition(all []accepted) map[int32][]accepted {
	out := map[int32][]accepted{}
	for _, one := range all {
		out[one.partition] = append(out[one.partition], one)
	}
	return out
}

// settle takes the statement that a record is of from those that an import misses, and puts one that was withdrawn back.
func (from Records) settle(missing map[string][]Facts, r *kgo.Record, all []accepted) error {
	name, err := from.Codec.NameOf(r.Value)
	if err != nil || name != (*record.Statement)(nil).Name() {
		return err
	}
	var s record.Statement
	if err := from.Codec.Decode(r.Value, &s); err != nil {
		return err
	}
	for _, of := range all {
		if s.TenantID != of.key.AgencyID || s.Livemode != of.key.Live || s.Account != of.key.Code || s.FileDigest != of.file {
			continue
		}
		for _, f := range of.facts {
			switch same := s.StatementID == f.ID && int(s.Page) == f.Page; {
			case !same:
			case s.Withdrawn:
				if !slices.Contains(missing[of.id], f) {
					missing[of.id] = append(missing[of.id], f)
				}
			case hasImport(r, of.id) && s.Last == f.Last && s.FromDay == f.From && s.ToDay == f.To && s.UndecidedFrom == f.Undecided &&
				s.Balanced == f.Balanced && s.Opening == f.Opening && s.Closing == f.Closing && s.Digest == f.Digest && s.Lines == int64(f.Lines):
				missing[of.id] = slices.DeleteFunc(missing[of.id], func(m Facts) bool { return m == f })
			}
		}
	}
	return nil
}
