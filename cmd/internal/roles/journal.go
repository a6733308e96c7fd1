package roles

import (
	"context"

	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	sinkjournal "quittance/sinks/journal"
)

func journalRole() Role {
	return Role{
		Kind: KindSink, Name: "journal", Short: "writes events and attempts to ClickHouse", Needs: []Need{NeedPostgres, NeedClickHouse, NeedMasterKeys}, Keys: append(outcomeKeys(), macs(secret.LabelCaseEvents)...),
		Access: Access{Groups: []Group{{sinkjournal.Group, journal.Topics()}}, Writes: []string{schemas.TopicPoisonJournal}},
		Databases: Databases{
			// the names of agencies and applications
			Rows: registryOnly, Journal: journalWritten,
		},
		Run: (*Base).journal,
	}
}

func (b *Base) journal() error {
	conn, err := b.openJournal("journal")
	if err != nil {
		return err
	}
	store := journal.NewStore(conn)
	if err := add(b, "names", sinkjournal.NewNames, sinkjournal.NamesConfig{Read: b.names, Store: store, Log: b.Log}); err != nil {
		return err
	}
	outcomes, err := AllOutcomes(b.Keys, b.AcceptUnprovenBodies)
	if err != nil {
		return err
	}
	believed, err := CaseEvents(b.KafkaConfig(), b.Keys)
	if err != nil {
		return err
	}
	return add(b, "journal", sinkjournal.New, sinkjournal.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: store, Outcomes: outcomes, Cases: believed, Log: b.Log, Metrics: b.Metrics})
}

// names returns the present names of agencies and applications.
func (b *Base) names(ctx context.Context) (out []journal.Name, err error) {
	s, err := registry.Read(ctx, b.Pool)
	if err != nil {
		return nil, err
	}
	for _, a := range s.Agencies {
		out = append(out,
			journal.Name{Kind: journal.NameAgency, ID: a.ID, TenantID: a.ID, Name: a.Name},
			journal.Name{Kind: journal.NameSlug, ID: a.ID, TenantID: a.ID, Name: a.Slug})
	}
	for _, a := range s.Applications {
		out = append(out, journal.Name{Kind: journal.NameApplication, ID: a.ID, TenantID: a.AgencyID, Name: a.Name})
	}
	return out, nil
}
