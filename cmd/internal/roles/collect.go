package roles

import (
	"errors"
	"strings"

	"quittance/schemas"
	"quittance/sinks/collect"
)

func collectRole() Role {
	return Role{
		Kind: KindSink, Name: "collect", Short: "asks operators for payers' money",
		Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry, NeedOperators},
		Access: Access{
			Groups: []Group{{collect.Group, []string{schemas.TopicCollections}}},
			Writes: []string{schemas.TopicCommands, schemas.TopicReplies, schemas.TopicCalls, schemas.TopicPoisonCollections},
		},
		Run: (*Base).collect,
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
	return add(b, "collect", collect.New, collect.Config{
		Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Account: b.configuration().AccountOfCollection,
		Payer: b.Personal.Payer, HonoursLate: b.configuration().HonoursLate, Connectors: connectors, Signer: b.Keys,
		PublicURL: strings.TrimSuffix(b.CallbackURL, "/"), Sealer: b.Keys,
		CheckoutURL: strings.TrimSuffix(b.CheckoutURL, "/"), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
}
