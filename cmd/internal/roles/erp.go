package roles

import (
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
		Kafka: b.KafkaConfig(), Codec: b.Codec, ERPs: b.Registry, History: history, Now: b.Now, Developer: b.Loopback, Log: b.Log, Metrics: b.Metrics,
	}
	planner, err := erp.NewPlanner(cfg)
	if err != nil {
		return err
	}
	worker, err := erp.NewWorker(cfg)
	if err != nil {
		return err
	}
	prober, err := b.ERPProber()
	if err != nil {
		return err
	}
	b.Run("erp planner", planner.Run)
	b.Run("erp worker", worker.Run)
	b.Run("erp prober", prober.Run)
	return nil
}

func (b *Base) ERPProber() (*erp.Prober, error) {
	policy, err := erp.NewPolicy(erp.Config{ERPs: b.Registry, Developer: b.Loopback})
	if err != nil {
		return nil, err
	}
	return erp.NewProber(erp.ProberConfig{Agencies: b.Registry, Policy: policy, Log: b.Log, Metrics: b.Metrics})
}
