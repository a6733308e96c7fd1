package roles

import (
	client "quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/erp"
)

func erpRole() Role {
	return deliveryRole(erp.Kind, Role{
		Short: "confirms payments to the agencies' ERPs", Needs: []Need{NeedERPs}, Keys: seals(registry.LabelERP),
		Access: Access{
			Groups: []Group{{erp.ReporterGroup, []string{schemas.TopicAttempts}}},
			Reads:  []string{schemas.TopicReplies}, Writes: []string{schemas.TopicCommands},
		},
		Run: (*Base).erp,
	})
}

func (b *Base) erp() error {
	calls := b.ERPs()
	err := add(b, "erp prober", erp.NewProber, erp.ProberConfig{Agencies: b.Registry, Client: calls, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	processor, err := b.commands(erpRole())
	if err != nil {
		return err
	}
	err = add(b, "erp reporter", erp.NewReporter, erp.ReporterConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Processor: processor, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	return b.deliver(erp.Kind, erp.NewPolicy(b.Registry, calls))
}

// ERPs returns a client of the agencies' ERPs.
func (b *Base) ERPs() *client.Client { return client.New(client.Config{Loopback: b.Loopback}) }

// Dues returns the reader of what the agencies' ERPs say that citizens owe, which all roles of
// the process share. It needs the registry.
func (b *Base) Dues() (*client.Dues, error) {
	return b.opened.dues.open(func() (*client.Dues, error) {
		return client.NewDues(client.DuesConfig{Client: b.ERPs(), Registry: b.Registry, Now: b.Now, Metrics: b.Metrics})
	})
}
