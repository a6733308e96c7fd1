package roles

import (
	"quittance/internal/cases"
	"quittance/schemas"
	sinkcases "quittance/sinks/cases"
)

func casesRole() Role {
	return Role{
		Kind: KindSink, Name: "cases", Short: "opens operator cases and carries out what staff agreed on", Needs: []Need{NeedPostgres},
		Access: Access{
			Groups: []Group{{sinkcases.Group, sinkcases.Topics()}}, Reads: []string{schemas.TopicReplies},
			Writes: []string{schemas.TopicCommands, schemas.TopicCases, schemas.TopicPoisonCases},
		},
		Databases: Databases{Rows: rows(record,
			may("select insert update", "case_positions", "cases"), may("select", "staff"),
			// It carries out what staff decided: it does not propose or decide.
			may("select update(finished_at,note_tried_at,noted,refusal,state,tried_at)", "case_proposals"),
			may("execute", "lock_staff(uuid[])"))},
		Run: (*Base).cases,
	}
}

func (b *Base) cases() error {
	processor, err := b.commands()
	if err != nil {
		return err
	}
	cl, err := b.KafkaConfig().Producer()
	if err != nil {
		return err
	}
	b.close = append(b.close, cl.Close)
	return add(b, "cases", sinkcases.New, sinkcases.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Store: cases.NewStore(b.Pool), Processor: processor,
		Events: cases.NewEvents(cl, b.Topology, b.Codec), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}
