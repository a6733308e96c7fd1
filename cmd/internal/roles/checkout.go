package roles

import (
	"quittance/internal/commands"
	"quittance/internal/decisions"
	"quittance/internal/secret"
	processor "quittance/processors/checkout"
	"quittance/processors/runtime"
	"quittance/schemas"
)

// checkoutRole is the processor of checkout sessions.
func checkoutRole() Role {
	r := processorRole(schemas.Checkout, "decides the commands of checkout sessions", (*Base).checkout)
	r.Keys = append(r.Keys, verifies(secret.LabelDecisions, secret.LabelOfficeDecisions)...)
	r.Writes = append(r.Writes, schemas.TopicCollections, schemas.TopicWebhooks, schemas.TopicPartners, schemas.TopicConfirmations)
	return r
}

func (b *Base) checkout() (runtime.Processor, error) {
	senders, err := commands.NewVerifier(b.Keys, processor.Senders())
	if err != nil {
		return nil, err
	}
	bodies, err := b.Keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		return nil, err
	}
	return processor.New(processor.Config{
		Codec: b.Codec, Topology: b.Topology, Senders: senders, AcceptUnsigned: b.AcceptUnsignedCommands, Bodies: bodies, Verify: decisions.Verify(b.Keys), Metrics: b.Metrics,
	})
}
