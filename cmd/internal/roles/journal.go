package roles

import (
	"quittance/internal/journal"
	sinkjournal "quittance/sinks/journal"
)

func (b *Base) journal() error {
	conn, err := b.OpenClickHouse()
	if err != nil {
		return err
	}
	j, err := sinkjournal.New(sinkjournal.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Store: journal.NewStore(conn), Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	b.Run("journal", j.Run)
	return nil
}
