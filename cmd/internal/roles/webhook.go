package roles

import (
	"time"

	"quittance/sinks/webhook"
)

func (b *Base) webhook() error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	history, err := b.history()
	if err != nil {
		return err
	}
	cfg := webhook.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Endpoints: b.Registry, History: history, Now: b.Now, Timestamp: time.Now, Developer: b.Loopback, Log: b.Log, Metrics: b.Metrics,
	}
	planner, err := webhook.NewPlanner(cfg)
	if err != nil {
		return err
	}
	worker, err := webhook.NewWorker(cfg)
	if err != nil {
		return err
	}
	b.Run("webhook planner", planner.Run)
	b.Run("webhook worker", worker.Run)
	return nil
}
