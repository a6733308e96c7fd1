package roles

import (
	"quittance/internal/commands"
	"quittance/internal/decisions"
	"quittance/internal/secret"
	processor "quittance/processors/checkout"
	"quittance/schemas"
)

// checkoutRole is the processor of checkout sessions.
func checkoutRole() Role {
	r := processorRole(schemas.Checkout, "decides the commands of checkout sessions", processor.Senders(), (*Base).checkout)
	r.Keys = append(r.Keys, verifies(secret.LabelDecisions, secret.LabelOfficeDecisions)...)
	r.Writes = append(r.Writes, schemas.TopicCollections, schemas.TopicWebhooks, schemas.TopicPartners, schemas.TopicConfirmations)
	return r
}

func (b *Base) checkout() (p part, err error) {
	senders, err := commands.NewVerifier(b.Keys, processor.Senders())
	if err != nil {
		return p, err
	}
	bodies, err := b.Keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		return p, err
	}
	p.Processor, err = processor.New(processor.Config{
		Codec: b.Codec, Topology: b.Topology, Senders: senders, AcceptUnsigned: b.AcceptUnsignedCommands, Bodies: bodies, Verify: decisions.Verify(b.Keys), Metrics: b.Metrics,
	})
	return p, err
}
