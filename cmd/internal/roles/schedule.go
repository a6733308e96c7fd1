package roles

import (
	"quittance/internal/deliveries"
	"quittance/sinks/schedule"
)

func (b *Base) schedule() error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	s, err := schedule.New(schedule.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Deliveries: deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry)), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	b.Run("schedule", s.Run)
	return nil
}
