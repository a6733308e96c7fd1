package roles

import (
	"quittance/internal/decisions"
	processor "quittance/processors/checkout"
	"quittance/processors/runtime"
	"quittance/schemas"
)

// checkoutRole is the processor of checkout sessions.
func checkoutRole() Role {
	r := processorRole(schemas.Checkout, "decides the commands of checkout sessions", (*Base).checkout)
	r.Writes = append(r.Writes, schemas.TopicCollections, schemas.TopicWebhooks, schemas.TopicPartners, schemas.TopicConfirmations)
	return r
}

func (b *Base) checkout() (runtime.Processor, error) {
	return processor.New(processor.Config{Codec: b.Codec, Topology: b.Topology, Verify: decisions.Verify(b.Keys), Metrics: b.Metrics})
}
