package roles

import (
	processor "quittance/processors/checkout"
	"quittance/processors/runtime"
	"quittance/schemas"
)

// checkoutRole is the processor of checkout sessions.
func checkoutRole() Role {
	r := processorRole(schemas.Checkout, "decides the commands of checkout sessions", func(b *Base) runtime.Processor {
		return processor.New(b.Codec, b.Topology)
	})
	r.Writes = append(r.Writes, schemas.TopicCollections, schemas.TopicWebhooks, schemas.TopicPartners, schemas.TopicConfirmations)
	return r
}
