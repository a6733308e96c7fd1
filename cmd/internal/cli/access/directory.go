package access

import (
	"context"
	"errors"
	"fmt"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/registry"
)

// Slugs returns the slugs of agencies by id.
func Slugs(ctx context.Context, m *cli.Meta) (map[string]string, registry.Directory, error) {
	dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
	out := map[string]string{}
	for _, a := range dir.Agencies {
		out[a.ID] = a.Slug
	}
	return out, dir, err
}

// AgencyID returns the id of an agency by its slug or id, and the empty text for the empty text.
func AgencyID(ctx context.Context, m *cli.Meta, which string) (string, error) {
	if which == "" {
		return "", nil
	}
	s, err := registry.Read(ctx, m.Pool)
	if err != nil {
		return "", err
	}
	a, err := s.FindAgency(which)
	return a.ID, err
}

// FindDestination finds a destination by the name that operators use. The error does
// not repeat the name: the operator may have typed a secret in its place.
func FindDestination(dir registry.Directory, named string) (deliveries.Entry, error) {
	if e, ok := roles.DeliveryKinds(nil).Entry(dir, named); ok {
		return e, nil
	}
	return deliveries.Entry{}, errors.New("no webhook endpoint and no cash-in partner has this id, and no ERP this name, which looks like impots/test; `quittance endpoints list` shows them")
}

// ReadDestination finds a destination in the present registry. An error begins with
// flag, the flag or argument that named it.
func ReadDestination(ctx context.Context, m *cli.Meta, flag, named string) (deliveries.Entry, error) {
	dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
	if err != nil {
		return deliveries.Entry{}, err
	}
	e, err := FindDestination(dir, named)
	if err != nil {
		return e, fmt.Errorf("%s: %w", flag, err)
	}
	return e, nil
}

// ApplicationIDs returns the ids of the applications whose sessions a viewer sees; those of all for nil.
func ApplicationIDs(dir registry.Directory, viewer *identity.Staff) []string {
	ids := []string{}
	for _, a := range dir.Applications {
		if viewer == nil || viewer.ActsFor(a.AgencyID) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}
