package roles

import (
	"errors"
	"path/filepath"

	"quittance/processors/runtime"
	"quittance/processors/session"
	"quittance/schemas"
)

// Groups and transactional ids of an installation; its prefix comes before them.
const (
	groupProcessor = "processor"
	transactional  = "checkout-"
)

func (b *Base) processor() error {
	if b.Store == "" {
		b.Store = filepath.Join(b.Data, "store-"+b.Instance)
	}
	r, err := runtime.New(runtime.Config{
		Brokers: b.KafkaConfig().Brokers, Group: b.TopicPrefix + groupProcessor, TransactionalID: b.TopicPrefix + transactional + b.Instance,
		InputTopic: b.Topology.Name(schemas.TopicCommands), StateTopic: b.Topology.Name(schemas.TopicState), PoisonTopic: b.Topology.Name(schemas.TopicPoisonCommands),
		StoreDir: b.Store, Processor: session.New(b.Codec, b.Topology), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	b.readyWhen("processor", func() error {
		if !r.Ready() {
			return errors.New("partitions are being assigned or restored")
		}
		return nil
	})
	b.Run("processor", r.Run)
	return nil
}
