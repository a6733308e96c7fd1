package roles

import (
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/sinks/erp"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
)

// DeliveryKinds are the kinds of deliveries. reg may be nil for operations on
// rows, which ask for no destination.
func DeliveryKinds(reg *registry.Registry) deliveries.Kinds {
	return deliveries.Kinds{webhook.Registration(reg), erp.Registration(reg)}
}

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

// history is what the schedule knows of deliveries that may have been sent.
func (b *Base) history() (*deliveries.History, error) {
	cl, err := b.KafkaConfig().Client()
	if err != nil {
		return nil, err
	}
	b.close = append(b.close, cl.Close)
	return deliveries.NewHistory(b.KafkaConfig(), cl, deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry))), nil
}
