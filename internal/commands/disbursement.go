package commands

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// Disbursement is a client of the processor of disbursement batches.
type Disbursement = Client[disbursement.Command, disbursement.Answer]

// ErrNoAgency says that a command to the processor of disbursement batches names no agency.
var ErrNoAgency = errors.New("the command names no agency")

// DisbursementProtocol returns the protocol of the processor of disbursement batches. Its Encode returns ErrNoAgency for a
// command without an agency, whose partition has its state.
func DisbursementProtocol(codec *schemas.Codec, topology *kafka.Topology) Protocol[disbursement.Command, disbursement.Answer] {
	return disbursementProtocol{codec, topology}
}

type disbursementProtocol struct {
	codec    *schemas.Codec
	topology *kafka.Topology
}

// Encode sends the command to the partition of its agency.
func (p disbursementProtocol) Encode(cmd disbursement.Command, to *ReplyTo) (*kgo.Record, error) {
	if cmd.TenantID == "" {
		return nil, ErrNoAgency
	}
	cmd.ReplyTo = (*disbursement.ReplyTo)(to)
	r, err := batches.FromCommand(cmd)
	if err != nil {
		return nil, err
	}
	value, err := p.codec.Encode(r)
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Partition: p.topology.Partition(schemas.Disbursement.Commands, cmd.TenantID), Key: []byte(cmd.TenantID), Value: value}, nil
}

func (p disbursementProtocol) Decode(_ string, value []byte) (disbursement.Answer, error) {
	var r record.DisbursementReply
	if err := p.codec.Decode(value, &r); err != nil {
		return disbursement.Answer{}, err
	}
	return batches.ToAnswer(&r), nil
}

func (disbursementProtocol) Code(a disbursement.Answer) string { return string(a.Code()) }
