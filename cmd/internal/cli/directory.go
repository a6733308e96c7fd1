package cli

import (
	"context"
	"errors"
	"fmt"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
)

// slugs returns the slugs of agencies by id.
func (m *Meta) slugs(ctx context.Context) (map[string]string, registry.Directory, error) {
	dir, err := registry.ReadDirectory(ctx, m.pool, m.SimulatorURL, m.now)
	out := map[string]string{}
	for _, a := range dir.Agencies {
		out[a.ID] = a.Slug
	}
	return out, dir, err
}

// agencyID returns the id of an agency by its slug or id, and the empty text for the empty text.
func (m *Meta) agencyID(ctx context.Context, which string) (string, error) {
	if which == "" {
		return "", nil
	}
	s, err := registry.Read(ctx, m.pool)
	if err != nil {
		return "", err
	}
	a, err := s.FindAgency(which)
	return a.ID, err
}

// findDestination finds a destination by the name that operators use. The error does
// not repeat the name: the operator may have typed a secret in its place.
func findDestination(dir registry.Directory, named string) (deliveries.Entry, error) {
	if e, ok := roles.DeliveryKinds(nil).Entry(dir, named); ok {
		return e, nil
	}
	return deliveries.Entry{}, errors.New("no webhook endpoint and no cash-in partner has this id, and no ERP this name, which looks like impots/test; `quittance endpoints list` shows them")
}

// readDestination finds a destination in the present registry. An error begins with
// flag, the flag or argument that named it.
func (m *Meta) readDestination(ctx context.Context, flag, named string) (deliveries.Entry, error) {
	dir, err := registry.ReadDirectory(ctx, m.pool, m.SimulatorURL, m.now)
	if err != nil {
		return deliveries.Entry{}, err
	}
	e, err := findDestination(dir, named)
	if err != nil {
		return e, fmt.Errorf("%s: %w", flag, err)
	}
	return e, nil
}

// applicationIDs returns the ids of all applications.
func applicationIDs(dir registry.Directory) []string {
	return mapped(dir.Applications, func(a registry.Application) string { return a.ID })
}
