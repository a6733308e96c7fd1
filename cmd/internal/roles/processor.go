package roles

import (
	"cmp"
	"errors"
	"path/filepath"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/processors/runtime"
	"quittance/schemas"
)

// part is a processor, as it runs in a role.
type part struct {
	Processor runtime.Processor
	// MaxPollRecords and MaxTicks bound a transaction; those of the runtime when zero.
	MaxPollRecords, MaxTicks int
}

// processorRole returns the role of a processor over the topics of its family. It takes the commands of senders, and writes
// no topics of effects.
func processorRole(f schemas.Family, short string, senders []string, processor func(*Base) (part, error)) Role {
	return Role{
		Kind: KindProcessor, Name: f.Processor, Short: short, Needs: []Need{NeedMasterKeys}, Senders: senders,
		Access: Access{
			Groups: []Group{{processorGroup(f), []string{f.Commands}}},
			Reads:  []string{f.State}, Writes: []string{f.State, f.Events, f.Replies, f.Poison}, Transacts: f.Processor + "-",
		},
		Run: func(b *Base) error {
			p, err := processor(b)
			if err != nil {
				return err
			}
			return b.process(f, p)
		},
	}
}

// StoreFolder returns the folder of the local stores of an instance of a processor.
func (s *Settings) StoreFolder(processor string) string {
	folder := "store-" + processor + "-" + s.Instance
	if processor == schemas.Checkout.Processor {
		folder = "store-" + s.Instance
	}
	return cmp.Or(s.Store, filepath.Join(s.Data, folder))
}

// RemoveStores removes the local stores of an instance of a processor. It is refused while
// the instance runs. removed is the number of partitions that had a store.
func (s *Settings) RemoveStores(processor string) (removed int, err error) {
	return runtime.RemoveStores(s.StoreFolder(processor))
}

// processorGroup returns the consumer group of a processor. That of checkout keeps the name
// that it had when it was the only processor.
func processorGroup(f schemas.Family) string {
	if f == schemas.Checkout {
		return "processor"
	}
	return "processor-" + f.Processor
}

// process runs a processor over the topics of its family. The store of checkout keeps the
// name that it had when it was the only processor.
func (b *Base) process(f schemas.Family, p part) error {
	if err := b.CheckInstance(); err != nil {
		return err
	}
	session := consume.SessionTimeout(b.ctx, b.KafkaConfig(), processorGroup(f), b.Log)
	r, err := runtime.New(runtime.Config{
		Name: f.Processor, Brokers: b.KafkaConfig().Brokers, Options: b.KafkaConfig().Security.Options(),
		Group: b.TopicPrefix + processorGroup(f), TransactionalID: b.TopicPrefix + f.Processor + "-" + b.Instance + b.Nonce,
		InputTopic: b.Topology.Name(f.Commands), StateTopic: b.Topology.Name(f.State), PoisonTopic: b.Topology.Name(f.Poison),
		StoreDir: b.StoreFolder(f.Processor), Processor: p.Processor, MaxPollRecords: p.MaxPollRecords, MaxTicks: p.MaxTicks, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		SessionTimeout: session, HeartbeatInterval: kafka.Heartbeat(session),
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
