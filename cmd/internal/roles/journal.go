package roles

import "quittance/sinks/journal"

func (b *Base) journal() error {
	conn, err := b.OpenClickHouse()
	if err != nil {
		return err
	}
	j, err := journal.New(journal.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, ClickHouse: conn, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	b.Run("journal", j.Run)
	return nil
}
