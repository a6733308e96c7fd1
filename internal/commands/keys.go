package commands

import (
	"fmt"

	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
)

// NewSigner returns what signs the commands of a sender. The error is secret.ErrNotHeld if the keys are
// those of another role.
func NewSigner(keys *secret.Keys, sender string) (*origin.Signer, error) {
	macs, err := keys.MACs(secret.LabelCommands(sender))
	if err != nil {
		return nil, fmt.Errorf("the key of commands: %w", err)
	}
	return origin.NewSigner(sender, macs), nil
}

// NewPayoutSigner returns what proves the requests of the processor of batches to operators. The error is
// secret.ErrNotHeld if the keys are those of another role.
func NewPayoutSigner(keys *secret.Keys) (*origin.Signer, error) {
	macs, err := keys.MACs(secret.LabelPayoutRequests)
	if err != nil {
		return nil, fmt.Errorf("the key of requests to pay: %w", err)
	}
	return origin.NewSigner(schemas.Disbursement.Processor, macs), nil
}

// NewPayoutVerifier returns what knows the requests of the processor of batches, for the sink that pays. The error is
// secret.ErrNotHeld if the keys are those of another role.
func NewPayoutVerifier(keys *secret.Keys) (origin.Verifier, error) {
	macs, err := keys.MACs(secret.LabelPayoutRequests)
	if err != nil {
		return nil, fmt.Errorf("the key of requests to pay: %w", err)
	}
	return origin.Verifier{schemas.Disbursement.Processor: macs}, nil
}

// NewVerifier returns what knows the commands of the senders, for a processor. The error is
// secret.ErrNotHeld if the keys are those of another role.
func NewVerifier(keys *secret.Keys, senders []string) (origin.Verifier, error) {
	v := origin.Verifier{}
	for _, sender := range senders {
		macs, err := keys.MACs(secret.LabelCommands(sender))
		if err != nil {
			return nil, fmt.Errorf("the keys of commands: %w", err)
		}
		v[sender] = macs
	}
	return v, nil
}
