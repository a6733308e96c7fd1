package roles

import (
	"quittance/sinks/schedule"
)

func (b *Base) schedule() error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	s, err := schedule.New(schedule.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Pool: b.Pool, MaxInFlight: maxInFlight(b.Registry), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	b.Run("schedule", s.Run)
	return nil
}

// history is what the schedule knows of deliveries that may have been sent.
func (b *Base) history() (*schedule.History, error) {
	cl, err := b.KafkaConfig().Client()
	if err != nil {
		return nil, err
	}
	b.close = append(b.close, cl.Close)
	return schedule.NewHistory(b.KafkaConfig(), cl, b.Pool), nil
}
