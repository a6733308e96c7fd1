package access

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/cmd/internal/cli"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	sinkjournal "quittance/sinks/journal"
)

// Whole returns the positions of ClickHouse, or journal.ErrRestored if it lacks rows that it once had. Without the
// address of Kafka, or while Kafka does not answer, it is compared with itself alone (compared is false): it then
// knows of a restore after the sink journal has run on it.
func Whole(ctx context.Context, m *cli.Meta, conn clickhouse.Conn) (positions []journal.Position, compared bool, err error) {
	committed, err := committed(ctx, m)
	compared = err == nil && committed != nil
	if positions, err = journal.NewStore(conn).Positions(ctx); err != nil {
		return nil, false, err
	}
	return positions, compared, journal.Whole(positions, committed)
}

// committed returns the offsets that the group of the sink journal has committed; nil without an address of Kafka.
func committed(ctx context.Context, m *cli.Meta) (kadm.OffsetResponses, error) {
	if m.Kafka == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	cl, err := m.KafkaConfig().Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return kafka.Committed(ctx, kadm.NewClient(cl), m.KafkaConfig().Prefix+sinkjournal.Group)
}
