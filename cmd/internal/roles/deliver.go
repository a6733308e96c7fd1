package roles

import (
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/sinks/delivery"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
)

// DeliveryKinds are the kinds of deliveries. reg may be nil for operations on
// rows, which ask for no destination.
func DeliveryKinds(reg *registry.Registry) deliveries.Kinds {
	return deliveries.Kinds{webhook.Registration(reg), erp.Registration(reg)}
}

// deliver runs the planner and the worker of a kind of deliveries.
func (b *Base) deliver(name deliveries.Kind, policy delivery.Policy) error {
	kinds := DeliveryKinds(b.Registry)
	kind, err := kinds.Of(name)
	if err != nil {
		return err
	}
	cl, err := b.KafkaConfig().Client()
	if err != nil {
		return err
	}
	b.close = append(b.close, cl.Close)
	planner, err := delivery.NewPlanner(delivery.PlannerConfig{Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	worker, err := delivery.NewWorker(delivery.WorkerConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Policy: policy, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		History: deliveries.NewHistory(b.KafkaConfig(), cl, deliveries.NewStore(b.Pool, kinds)),
	})
	if err != nil {
		return err
	}
	b.Run(string(name)+" planner", planner.Run)
	b.Run(string(name)+" worker", worker.Run)
	return nil
}
