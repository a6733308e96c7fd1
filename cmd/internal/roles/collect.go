package roles

import (
	"strings"

	"quittance/sinks/collect"
)

func (b *Base) collect() error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	connectors, err := b.connectors()
	if err != nil {
		return err
	}
	c, err := collect.New(collect.Config{
		Kafka: b.KafkaConfig(), Space: b.Topology, Codec: b.Codec, Account: b.configuration().Account, Connectors: connectors, Signer: b.Keys,
		PublicURL: strings.TrimSuffix(b.CallbackURL, "/"), Sealer: b.Keys, CheckoutURL: strings.TrimSuffix(b.CheckoutURL, "/"), Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return err
	}
	b.Run("collect", c.Run)
	return nil
}
