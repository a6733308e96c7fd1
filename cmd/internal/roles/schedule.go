package roles

import (
	"slices"

	"quittance/internal/deliveries"
	"quittance/schemas"
	"quittance/sinks/schedule"
)

func scheduleRole() Role {
	notifications, sent, groups := deliveryTopics()
	return Role{
		Kind: KindSink, Name: "schedule", Short: "makes deliveries due again", Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry}, Keys: outcomeKeys(),
		Access: Access{
			Groups: []Group{{schedule.Group, []string{schemas.TopicAttempts}}}, Reads: slices.Concat(notifications, sent),
			Writes: append(sent, schemas.TopicPoisonDeliveries), Describes: groups,
		},
		Databases: Databases{Rows: rows(registryRead, deliveriesRead, deliveriesMade,
			may("insert", "delivery_attempts"), may("insert update", "delivery_positions"), may("select", "cases"),
			may("select update", "delivery_recoveries"), may("select insert update(accepted_at)", "erp_confirmations"),
			may("execute", "drop_delivery_day(date)"))},
		Run: (*Base).schedule,
	}
}

func (b *Base) schedule() error {
	outcomes, err := AllOutcomes(b.Keys, b.AcceptUnprovenBodies)
	if err != nil {
		return err
	}
	return add(b, "schedule", schedule.New, schedule.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Deliveries: deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry)), Outcomes: outcomes,
		Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}
