package roles

import (
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/sinks/readmodel"
)

func readmodelRole() Role {
	return Role{
		Kind: KindSink, Name: "readmodel", Short: "writes sessions to Postgres", Needs: []Need{NeedPostgres},
		Access:    Access{Groups: []Group{{readmodel.Group, []string{schemas.TopicEvents}}}, Writes: []string{schemas.TopicPoisonReadmodel}},
		Databases: Databases{Rows: sessionsWritten},
		Run:       (*Base).readmodel,
	}
}

func (b *Base) readmodel() error {
	return add(b, "readmodel", readmodel.New, readmodel.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log, Metrics: b.Metrics,
	})
}
