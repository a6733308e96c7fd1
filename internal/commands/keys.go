package commands

import (
	"fmt"

	"quittance/internal/secret"
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
