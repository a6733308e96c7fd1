package roles

import (
	"slices"

	"quittance/internal/audit"
	"quittance/internal/cases"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	sinkcases "quittance/sinks/cases"
)

func casesRole() Role {
	return Role{
		Kind: KindSink, Name: "cases", Short: "opens operator cases, carries out what staff agreed on, also about people, opens files for the pages, and records the audit table in Kafka", Needs: []Need{NeedPostgres, NeedMasterKeys},
		Keys: slices.Concat(verifies(secret.LabelDecisions, secret.LabelOfficeDecisions), seals(intake.LabelReading, intake.Originals.Label), signs(secret.LabelPeopleRows, secret.LabelStaffRows), macs(secret.LabelCaseEvents)),
		Access: Access{
			Groups: []Group{{sinkcases.Group, sinkcases.Topics()}}, Reads: []string{schemas.TopicReplies, schemas.TopicAudit},
			Writes: []string{schemas.TopicCommands, schemas.TopicCases, schemas.TopicAudit, schemas.TopicPoisonCases},
		},
		Databases: Databases{Rows: rows(record, registryRead,
			may("select insert update", "case_positions", "cases"), may("select", "decisions", "audit"), may("select insert", "audit_sequence"), may("select insert update", "audit_position"),
			// It carries out what staff decided: it does not propose or decide.
			may("select update(finished_at,note_tried_at,noted,refusal,state,tried_at)", "case_proposals"),
			may("execute", "lock_staff(uuid[])"),
			// The key of a file whose reading two people have allowed.
			may("select", "statement_imports", "statement_original_parts", "statement_originals"), may("select update(reading)", "statement_original_requests"),
			// What people ask for on the page about people.
			may("update", "registry_lock"), may("insert update", "staff", "staff_changes", "staff_invitations", "staff_manifest", "staff_passkeys", "staff_roles"),
			may("update(args,code,done_at,signature,state)", "staff_requests"), may("delete", "staff_contacts", "staff_roles"),
			may("select delete", "staff_sessions"), may("select insert update", "digests"))},
		Run: (*Base).cases,
	}
}

func (b *Base) cases() error {
	processor, err := b.commands(casesRole())
	if err != nil {
		return err
	}
	cl, err := b.KafkaConfig().Producer()
	if err != nil {
		return err
	}
	b.close = append(b.close, cl.Close)
	if err := add(b, "audit", audit.NewRelay, audit.RelayConfig{
		Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Client: cl, Pool: b.Pool, Verify: b.Keys.VerifySignature, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	}); err != nil {
		return err
	}
	if err := add(b, "audit verification", audit.NewNight, audit.NightConfig{
		Verify: audit.VerifyConfig{Kafka: b.KafkaConfig(), Codec: b.Codec, Pool: b.Pool, AllRecords: b.Options.Clock != nil, ClockMoves: b.Options.Clock != nil}, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	}); err != nil {
		return err
	}
	if err := add(b, "verification of decisions", identity.NewNight, identity.NightConfig{Pool: b.Pool, Keys: b.Keys, Now: b.Now, Log: b.Log, Metrics: b.Metrics}); err != nil {
		return err
	}
	if err := add(b, "readings of statements", intake.NewReadings, intake.ReadingsConfig{Pool: b.Pool, Keys: b.Keys, Now: b.Now, Log: b.Log}); err != nil {
		return err
	}
	proof, err := b.Keys.MACs(secret.LabelCaseEvents)
	if err != nil {
		return err
	}
	believed, err := CaseEvents(b.KafkaConfig(), b.Keys)
	if err != nil {
		return err
	}
	return add(b, "cases", sinkcases.New, sinkcases.Config{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Store: cases.NewStore(b.Pool).Verifying(b.Keys), Processor: processor,
		People: identity.OpenBook(b.Pool, b.Keys), Events: cases.NewEvents(b.KafkaConfig(), cl, b.Topology, b.Codec, proof), Proof: believed, Verify: decisions.Verify(b.Keys), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// CaseEvents returns the rule of who is believed in cases.events, for whoever holds the key.
func CaseEvents(cfg kafka.Config, keys *secret.Keys) (*origin.History, error) {
	macs, err := keys.MACs(secret.LabelCaseEvents)
	if err != nil {
		return nil, err
	}
	return cfg.History(schemas.TopicCases, origin.Verifier{cases.Writer: macs}), nil
}
