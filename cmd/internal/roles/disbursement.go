package roles

import (
	"quittance/internal/commands"
	"quittance/internal/secret"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
)

// disbursementMemory is what the processor needs with hundreds of thousands of lines in its state: the cache of its local
// stores is 256 MiB, and by default the collector lets the heap become twice what is in use.
const disbursementMemory = 400 << 20

// disbursementRole is the processor of disbursement batches.
func disbursementRole() Role {
	r := processorRole(schemas.Disbursement, "decides the commands of disbursement batches", processor.Senders(), (*Base).disbursement)
	r.Keys = append(r.Keys, macs(secret.LabelPayoutRequests)...)
	r.Writes = append(r.Writes, schemas.TopicPayouts)
	r.MemoryLimit = disbursementMemory
	return r
}

func (b *Base) disbursement() (p part, err error) {
	senders, err := commands.NewVerifier(b.Keys, processor.Senders())
	if err != nil {
		return p, err
	}
	requests, err := commands.NewPayoutSigner(b.Keys)
	if err != nil {
		return p, err
	}
	p.MaxPollRecords, p.MaxTicks = processor.MaxPollRecords, processor.MaxTicks
	p.Processor, err = processor.New(processor.Config{
		Codec: b.Codec, Topology: b.Topology, Senders: senders, Requests: requests, AcceptTimes: b.Developer(), Metrics: b.Metrics,
	})
	return p, err
}
