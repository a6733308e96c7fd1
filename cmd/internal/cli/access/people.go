package access

import (
	"context"
	"os"

	"quittance/cmd/internal/cli"
	"quittance/internal/cases"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// StaffKey returns the key of the person who acts; empty when none is set.
func StaffKey() string { return cli.StaffKey() }

// Person returns the person whose key is in the environment.
func Person(ctx context.Context, m *cli.Meta) (cases.By, error) {
	e, err := identity.AuthenticateStaff(ctx, m.Pool, m.Keys, StaffKey(), m.Now)
	origin, _ := os.Hostname()
	return cases.By{Staff: e.Staff, Origin: origin, Signer: signer(m)}, err
}

// signer signs what the person decides with the master keys. Without them it refuses.
func signer(m *cli.Meta) decisions.Signer {
	if m.Keys != nil {
		return m.Keys
	}
	keys, err := m.OpenKeys()
	if err != nil {
		return keyless{err}
	}
	return keys
}

// keyless is a Signer without keys.
type keyless struct{ why error }

func (k keyless) Sign(string, []byte) ([]byte, error) {
	return nil, operation.Refuse("decision.no_signing_key", "", operation.Args{"why": k.why.Error()})
}

func (keyless) VerifySignature(string, []byte, []byte) bool { return false }

// Viewer returns the person who looks at cases; nil without a key in the environment.
// Whoever has the database's password may look at all cases.
func Viewer(ctx context.Context, m *cli.Meta) (*identity.Staff, error) {
	if StaffKey() == "" {
		return nil, nil //nolint:nilnil // nobody
	}
	by, err := Person(ctx, m)
	return &by.Staff, err
}
