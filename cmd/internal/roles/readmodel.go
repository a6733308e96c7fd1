package roles

import (
	"errors"

	"quittance/internal/disbursements"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/sinks/readmodel"
)

func readmodelRole() Role {
	return Role{
		Kind: KindSink, Name: "readmodel", Short: "writes sessions and disbursement batches to Postgres", Needs: []Need{NeedPostgres},
		Access: Access{
			Groups: []Group{{readmodel.Group, []string{schemas.TopicEvents}}, {readmodel.BatchesGroup, []string{schemas.Disbursement.Events}}},
			Writes: []string{schemas.TopicPoisonReadmodel, schemas.TopicPoisonBatches},
		},
		Databases: Databases{Rows: rows(sessionsWritten, batchesWritten)},
		Run:       (*Base).readmodel,
	}
}

func (b *Base) readmodel() error {
	return errors.Join(
		add(b, "readmodel", readmodel.New, readmodel.Config{
			Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log, Metrics: b.Metrics,
		}),
		add(b, "readmodel of batches", readmodel.NewBatches, readmodel.BatchesConfig{
			Kafka: b.KafkaConfig(), Store: disbursements.NewStore(b.Pool, b.Codec), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		}),
	)
}
