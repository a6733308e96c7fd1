package roles

import (
	"errors"
	"strings"

	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/collect"
)

func collectRole() Role {
	return Role{
		Kind: KindSink, Name: "collect", Short: "asks operators for payers' money",
		Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry, NeedOperators},
		Keys:  append(seals(registry.LabelConnector, personal.Label, connector.LabelRedirect), macs(connector.LabelCallback)...),
		Access: Access{
			Groups: []Group{{collect.Group, []string{schemas.TopicCollections}}},
			Writes: []string{schemas.TopicCommands, schemas.TopicReplies, schemas.TopicCalls, schemas.TopicPoisonCollections},
		},
		Databases: Databases{Rows: rows(registryRead, may("select", "personal_keys"))},
		Run:       (*Base).collect,
	}
}

func (b *Base) collect() error {
	if err := errors.Join(b.checkPublicURL("checkout-url", b.CheckoutURL), b.checkPublicURL("callback-url", b.CallbackURL)); err != nil {
		return err
	}
	_, connectors, err := b.connectors()
	if err != nil {
		return err
	}
	signer, err := commands.NewSigner(b.Keys, collectRole().Name)
	if err != nil {
		return err
	}
	return add(b, "collect", collect.New, collect.Config{
		Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Account: b.configuration().AccountOfCollection,
		Payer: b.Personal.Payer, HonoursLate: b.configuration().HonoursLate, Connectors: connectors, Signer: b.Keys, Commands: signer,
		PublicURL: strings.TrimSuffix(b.CallbackURL, "/"), Sealer: b.Keys,
		CheckoutURL: strings.TrimSuffix(b.CheckoutURL, "/"), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}
