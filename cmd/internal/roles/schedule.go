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
		Kind: KindSink, Name: "schedule", Short: "makes deliveries due again", Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry},
		Access: Access{
			Groups: []Group{{schedule.Group, []string{schemas.TopicAttempts}}}, Reads: slices.Concat(notifications, sent),
			Writes: append(sent, schemas.TopicPoisonDeliveries), Describes: groups,
		},
		Run: (*Base).schedule,
	}
}

func (b *Base) schedule() error {
	return add(b, "schedule", schedule.New, schedule.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Deliveries: deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry)),
		Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}
