package roles

import (
	client "quittance/internal/erp"
	"quittance/sinks/erp"
)

func (b *Base) erp() error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	history, err := b.history()
	if err != nil {
		return err
	}
	cfg := erp.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, ERPs: b.Registry, Client: b.ERPs(), History: history, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	}
	planner, err := erp.NewPlanner(cfg)
	if err != nil {
		return err
	}
	worker, err := erp.NewWorker(cfg)
	if err != nil {
		return err
	}
	prober, err := erp.NewProber(erp.ProberConfig{Agencies: b.Registry, Client: cfg.Client, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	b.Run("erp planner", planner.Run)
	b.Run("erp worker", worker.Run)
	b.Run("erp prober", prober.Run)
	return nil
}

// ERPs calls the agencies' ERPs.
func (b *Base) ERPs() *client.Client { return client.New(client.Config{Developer: b.Loopback}) }
