package access

import (
	"context"
	"os"

	"quittance/cmd/internal/cli"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// StaffKey returns the key of the person who acts; empty when none is set.
func StaffKey() string { return cli.StaffKey() }

// Person returns the person whose key is in the environment. A command that signs what the person decides is Keyed.
func Person(ctx context.Context, m *cli.Meta) (cases.By, error) {
	e, err := identity.AuthenticateStaff(ctx, m.Pool, m.Keys, StaffKey(), m.Now)
	origin, _ := os.Hostname()
	return cases.By{Staff: e.Staff, Origin: origin, Signer: m.Keys}, err
}

// Viewer returns the person who looks at cases; nil without a key in the environment.
// Whoever has the database's password may look at all cases.
func Viewer(ctx context.Context, m *cli.Meta) (*identity.Staff, error) {
	if StaffKey() == "" {
		return nil, nil //nolint:nilnil // nobody
	}
	by, err := Person(ctx, m)
	return &by.Staff, err
}

// OfAllAgencies refuses the key of an agency's staff, for what is of all agencies. The refusal has a code of the command.
func OfAllAgencies(ctx context.Context, m *cli.Meta, code string) error {
	viewer, err := Viewer(ctx, m)
	if err == nil && viewer != nil && viewer.AgencyID != "" {
		err = operation.Refuse(code, "", nil)
	}
	return err
}
