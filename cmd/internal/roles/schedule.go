package roles

import (
	"slices"

	"quittance/internal/deliveries"
	"quittance/internal/jobs"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/sinks/schedule"
)

func scheduleRole() Role {
	notifications, sent, groups := deliveryTopics()
	return Role{
		Kind: KindSink, Name: "schedule", Short: "makes deliveries due again, and carries out jobs of staff", Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry},
		Keys: slices.Concat(outcomeKeys(), verifies(secret.LabelDecisions, secret.LabelOfficeDecisions)),
		Access: Access{
			Groups: []Group{{schedule.Group, []string{schemas.TopicAttempts}}}, Reads: slices.Concat(notifications, sent),
			Writes: append(sent, schemas.TopicPoisonDeliveries), Describes: groups,
		},
		Databases: Databases{Rows: rows(registryRead, deliveriesRead, deliveriesMade,
			may("insert", "delivery_attempts"), may("insert update", "delivery_positions"), may("select", "cases"),
			may("select update", "delivery_recoveries"), may("select insert update(accepted_at)", "erp_confirmations"),
			may("execute", "drop_delivery_day(date)"),
			// Jobs: it says how far they are, and writes none.
			record, may("select", "decisions"), may("select delete update(args,code,done,finished_at,refused,state)", "jobs"), may("select update(args,code,done_at,state)", "job_rows"), may("execute", "lock_staff(uuid[])"))},
		Run: (*Base).schedule,
	}
}

func (b *Base) schedule() error {
	outcomes, err := AllOutcomes(b.Keys, b.AcceptUnprovenBodies)
	if err != nil {
		return err
	}
	store := deliveries.NewStore(b.Pool, DeliveryKinds(b.Registry))
	if err := add(b, "jobs", jobs.NewRunner, jobs.RunnerConfig{Pool: b.Pool, Keys: b.Keys, Deliveries: store, Service: "schedule", Now: b.Now, Log: b.Log, Metrics: b.Metrics}); err != nil {
		return err
	}
	return add(b, "schedule", schedule.New, schedule.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Deliveries: store, Outcomes: outcomes,
		Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}
