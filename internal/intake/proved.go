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

// Unproved returns the first import of the coverage whose accepted statements are not in Kafka as its row has them;
// empty if all are. Whoever can write Postgres cannot write the topic: a row that was inserted, or that has other days,
// does not make a period whole.
func (c Coverage) Unproved(ctx context.Context, from Records) (importID string, err error) {
	if len(c.accepted) == 0 {
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
	for _, one := range c.accepted {
		// The statements of a file follow its lines.
		span := kafka.Span{From: one.from, To: bounds[one.partition].To}
		for _, f := range one.facts {
			span.From += int64(f.Lines)
		}
		missing := slices.Clone(one.facts)
		if one.partition >= 0 && span.From >= bounds[one.partition].From && span.From < span.To {
			err = from.Kafka.Read(ctx, topic, map[int32]kafka.Span{one.partition: span}, nil, func(r *kgo.Record) (bool, error) {
				missing, err = from.without(missing, r, one)
				return len(missing) > 0, err
			})
		}
		if err != nil {
			return "", fmt.Errorf("reading the statements of import %s: %w", one.id, err)
		}
		if len(missing) > 0 {
			return one.id, nil
		}
	}
	return "", nil
}

// without returns the statements without those that a record is of.
func (from Records) without(list []Facts, r *kgo.Record, of accepted) ([]Facts, error) {
	if !hasImport(r, of.id) {
		return list, nil
	}
	name, err := from.Codec.NameOf(r.Value)
	if err != nil || name != (*record.Statement)(nil).Name() {
		return list, err
	}
	var s record.Statement
	if err := from.Codec.Decode(r.Value, &s); err != nil {
		return list, err
	}
	return slices.DeleteFunc(list, func(f Facts) bool {
		return s.TenantID == of.key.AgencyID && s.Livemode == of.key.Live && s.Account == of.key.Code && s.FileDigest == of.file &&
			s.StatementID == f.ID && int(s.Page) == f.Page && s.Last == f.Last && s.FromDay == f.From && s.ToDay == f.To &&
			s.Balanced == f.Balanced && s.Opening == f.Opening && s.Closing == f.Closing && s.Digest == f.Digest && s.Lines == int64(f.Lines)
	}), nil
}
