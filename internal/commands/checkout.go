package commands

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Checkout is a client of the processor of checkout sessions.
type Checkout = Client[checkout.Command, checkout.Answer]

// CheckoutProtocol returns the protocol of the processor of checkout sessions. Its
// Encode returns checkout.ErrMalformedID for a command that names neither an agency
// nor a session of this installation.
func CheckoutProtocol(codec *schemas.Codec, topology *kafka.Topology) Protocol[checkout.Command, checkout.Answer] {
	return checkoutProtocol{codec, topology}
}

type checkoutProtocol struct {
	codec    *schemas.Codec
	topology *kafka.Topology
}

// Encode sends the command to the partition of its agency. A command without an agency goes
// to the partition in its session id, which is the same.
func (p checkoutProtocol) Encode(cmd checkout.Command, to *ReplyTo) (*kgo.Record, error) {
	key, topic := cmd.TenantID, schemas.Checkout.Commands
	partition := p.topology.Partition(topic, key)
	if key == "" {
		key = cmd.SessionID
		var err error
		if partition, err = checkout.SessionPartition(cmd.SessionID); err != nil || partition >= p.topology.Count(topic) {
			return nil, checkout.ErrMalformedID
		}
	}
	cmd.ReplyTo = (*checkout.ReplyTo)(to)
	r, err := mapping.FromCommand(cmd)
	if err != nil {
		return nil, err
	}
	value, err := p.codec.Encode(r)
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Partition: partition, Key: []byte(key), Value: value}, nil
}

func (p checkoutProtocol) Decode(_ string, value []byte) (checkout.Answer, error) {
	var r record.Reply
	if err := p.codec.Decode(value, &r); err != nil {
		return checkout.Answer{}, err
	}
	return mapping.ToAnswer(&r), nil
}

func (checkoutProtocol) Code(a checkout.Answer) string { return string(a.Code) }
