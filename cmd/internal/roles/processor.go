package roles

import (
	"cmp"
	"errors"
	"path/filepath"

	"quittance/processors/runtime"
	"quittance/processors/session"
	"quittance/schemas"
)

func (b *Base) checkout() error {
	return b.process(schemas.Checkout, session.New(b.Codec, b.Topology))
}

// process runs a processor over the topics of its family. The group and the store of
// checkout keep the names that they had when it was the only processor.
func (b *Base) process(f schemas.Family, p runtime.Processor) error {
	group, store := "processor-"+f.Processor, "store-"+f.Processor+"-"+b.Instance
	if f == schemas.Checkout {
		group, store = "processor", "store-"+b.Instance
	}
	r, err := runtime.New(runtime.Config{
		Name: f.Processor, Brokers: b.KafkaConfig().Brokers, Group: b.TopicPrefix + group, TransactionalID: b.TopicPrefix + f.Processor + "-" + b.Instance + b.Nonce,
		InputTopic: b.Topology.Name(f.Commands), StateTopic: b.Topology.Name(f.State), PoisonTopic: b.Topology.Name(f.Poison),
		StoreDir: cmp.Or(b.Store, filepath.Join(b.Data, store)), Processor: p, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	name := "processor " + f.Processor
	b.readyWhen(name, func() error {
		if !r.Ready() {
			return errors.New("partitions are being assigned or restored")
		}
		return nil
	})
	b.Run(name, r.Run)
	return nil
}
