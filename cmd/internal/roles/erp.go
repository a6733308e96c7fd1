package roles

import (
	"quittance/internal/disbursements"
	client "quittance/internal/erp"
	"quittance/internal/erpquery"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/erp"
)

func erpRole() Role {
	return deliveryRole(erp.Kind, Role{
		Short: "calls the agencies' ERPs: confirms payments, asks for dues, and whether batches are as they were", Needs: []Need{NeedERPs},
		Keys: append(seals(registry.LabelERP, erpquery.Label), macs(disbursements.LabelERPLines)...),
		Access: Access{
			Groups: []Group{
				{erp.ReporterGroup, []string{schemas.TopicAttempts}},
				{erp.AnswererGroup, []string{schemas.TopicERPQueries}},
				{erp.ComparerGroup, []string{schemas.Disbursement.Events}},
			},
			Reads: []string{schemas.TopicReplies, schemas.Disbursement.Replies}, Writes: []string{schemas.TopicCommands, schemas.Disbursement.Commands, schemas.TopicERPAnswers},
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
	if err := b.answerForERPs(calls); err != nil {
		return err
	}
	if err := b.compareWithERPs(calls); err != nil {
		return err
	}
	processor, err := b.commands(erpRole())
	if err != nil {
		return err
	}
	outcomes, err := Outcomes(b.Keys, b.AcceptUnprovenBodies, erp.Kind)
	if err != nil {
		return err
	}
	err = add(b, "erp reporter", erp.NewReporter, erp.ReporterConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Processor: processor, Outcomes: outcomes, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	return b.deliver(erp.Kind, erp.NewPolicy(b.Registry, calls))
}

// answerForERPs asks the ERPs what other roles want to know.
func (b *Base) answerForERPs(calls *client.Client) error {
	return add(b, "erp answerer", erp.NewAnswerer, erp.AnswererConfig{
		Kafka: b.KafkaConfig(), Protocol: b.erpQueries(), ERPs: b.Registry, Client: calls, Log: b.Log, Metrics: b.Metrics,
	})
}

// compareWithERPs asks the ERPs whether batches that wait for their release are as they were.
func (b *Base) compareWithERPs(calls *client.Client) error {
	processor, err := b.disbursements(erpRole())
	if err != nil {
		return err
	}
	macs, err := b.Keys.MACs(disbursements.LabelERPLines)
	if err != nil {
		return err
	}
	return add(b, "erp comparer", erp.NewComparer, erp.ComparerConfig{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Processor: processor, ERPs: b.Registry, Client: calls, MACs: macs, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// ERPs returns a client of the agencies' ERPs, for `sink erp` and for operators.
func (b *Base) ERPs() *client.Client { return client.New(client.Config{Loopback: b.Loopback}) }

// erpQueries is the protocol between those who ask ERPs and `sink erp`. It needs the registry.
func (b *Base) erpQueries() erpquery.Protocol {
	return erpquery.Protocol{Codec: b.Codec, Topology: b.Topology, Keys: b.Keys}
}

// AskERPs returns the client by which roles without the ERPs' credentials have `sink erp` ask them, which all roles of the
// process share. It needs the registry.
func (b *Base) AskERPs() (*erpquery.Client, error) {
	return b.opened.queries.open(func() (*erpquery.Client, error) {
		c, err := erpquery.New(b.ctx, erpquery.Config{Kafka: b.KafkaConfig(), Protocol: b.erpQueries(), Log: b.Log, Metrics: b.Metrics})
		if err == nil {
			b.Run("questions to ERPs", c.Run)
		}
		return c, err
	})
}

// asksERPs adds what AskERPs needs at Kafka.
func (a Access) asksERPs() Access {
	a.Reads, a.Writes = append(a.Reads, schemas.TopicERPAnswers), append(a.Writes, schemas.TopicERPQueries)
	return a
}

// Dues returns the reader of what the agencies' ERPs say that citizens owe, which all roles of
// the process share. It needs the registry.
func (b *Base) Dues() (*client.Dues, error) {
	return b.opened.dues.open(func() (*client.Dues, error) {
		asker, err := b.AskERPs()
		if err != nil {
			return nil, err
		}
		return client.NewDues(client.DuesConfig{Client: asker, Registry: b.Registry, Now: b.Now, Metrics: b.Metrics})
	})
}
