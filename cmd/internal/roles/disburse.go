package roles

import (
	"context"
	"errors"

	"quittance/disbursement/digest"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/sinks/disburse"
)

func disburseRole() Role {
	return Role{
		Kind: KindSink, Name: "disburse", Short: "has operators pay the lines of disbursement batches, and asks them for payees' names",
		Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry, NeedPayouts},
		Keys:  append(seals(registry.LabelConnector, personal.Label), macs(secret.LabelPayoutRequests)...),
		Access: Access{
			Groups: []Group{{disburse.Group, []string{schemas.TopicPayouts}}},
			Writes: []string{schemas.Disbursement.Commands, schemas.TopicPayoutCalls, schemas.TopicPoisonPayouts},
		},
		Databases: Databases{Rows: rows(registryRead, may("select", "personal_keys"),
			// lines of drafts, whose payees' names it asks for
			may("select", "disbursement_batches", "disbursement_lines"), may("select delete update(again_at,verdict)", "disbursement_names"))},
		Run: (*Base).disburse,
	}
}

func (b *Base) disburse() error {
	connectors, err := b.payoutConnectors()
	if err != nil {
		return err
	}
	signer, err := commands.NewSigner(b.Keys, disburseRole().Name)
	if err != nil {
		return err
	}
	requests, err := commands.NewPayoutVerifier(b.Keys)
	if err != nil {
		return err
	}
	err = add(b, "names of payees", disburse.NewNames, disburse.NamesConfig{
		Batches: disbursements.NewStore(b.Pool, nil), Connectors: connectors, Account: b.configuration().PayoutAccount, Open: b.openLine, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	return add(b, "disburse", disburse.New, disburse.Config{
		Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Connectors: connectors, Account: b.configuration().PayoutAccount,
		Open: b.openLine, Requests: requests, Commands: signer, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}

// openLine opens the content of a line of a batch. What opens and is no content is returned as an empty line: it is not the
// one that was approved, and another content is never sent.
func (b *Base) openLine(ctx context.Context, batch string, position int, sealed []byte) (salt [32]byte, line digest.Line, err error) {
	content, err := b.Personal.Line(ctx, personal.LineID(batch, position), sealed)
	if err != nil {
		return salt, line, err
	}
	salt, line, err = lines.ParseContent(content)
	if errors.Is(err, lines.ErrContent) {
		return salt, line, nil
	}
	return salt, line, err
}
