package cli

import (
	"context"
	"os"

	"quittance/internal/cases"
	"quittance/internal/identity"
)

// staffKeyVariable is the environment variable with the key of the person who acts. No flag
// sets it, because other users of the machine can read a command line.
const staffKeyVariable = "QUITTANCE_STAFF_KEY"

// staffKey returns the key of the person who acts; empty when none is set.
func staffKey() string { return os.Getenv(staffKeyVariable) }

// person returns the person whose key is in the environment.
func (m *Meta) person(ctx context.Context) (cases.By, error) {
	e, err := identity.AuthenticateStaff(ctx, m.pool, staffKey(), m.now)
	origin, _ := os.Hostname()
	return cases.By{Staff: e.Staff, Origin: origin}, err
}

// viewer returns the person who looks at cases; nil without a key in the environment.
// Whoever has the database's password may look at all cases.
func (m *Meta) viewer(ctx context.Context) (*identity.Staff, error) {
	if staffKey() == "" {
		return nil, nil //nolint:nilnil // nobody
	}
	by, err := m.person(ctx)
	return &by.Staff, err
}
