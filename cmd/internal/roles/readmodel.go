package roles

import (
	"quittance/internal/sessions"
	sinkreadmodel "quittance/sinks/readmodel"
)

func (b *Base) readmodel() error {
	if err := b.OpenPostgres(); err != nil {
		return err
	}
	r, err := sinkreadmodel.New(sinkreadmodel.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	b.Run("readmodel", r.Run)
	return nil
}
