package journal

import (
	"context"
	"fmt"
	"slices"
)

// NameKind says what a name is of.
type NameKind = string

// The kinds of names.
const (
	NameAgency      NameKind = "agency"
	NameApplication NameKind = "application"
	// NameSlug is the short name of an agency, by which operators and reports name it.
	NameSlug NameKind = "slug"
)

// Name is the present name of an agency or an application.
type Name struct {
	Kind NameKind `ch:"kind"`
	ID   string   `ch:"id"`
	// TenantID is the agency that it belongs to.
	TenantID string `ch:"tenant_id"`
	Name     string `ch:"name"`
}

// PutNames stores names. It writes those that changed only, and returns their number. Names
// that are missing in the list stay.
func (s *Store) PutNames(ctx context.Context, names []Name) (int, error) {
	var stored []Name
	if err := s.conn.Select(ctx, &stored, "SELECT kind, id, tenant_id, name FROM names FINAL"); err != nil {
		return 0, fmt.Errorf("reading names: %w", err)
	}
	changed := slices.DeleteFunc(slices.Clone(names), func(n Name) bool { return slices.Contains(stored, n) })
	if len(changed) == 0 {
		return 0, nil
	}
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO names (kind, id, tenant_id, name)")
	if err != nil {
		return 0, fmt.Errorf("preparing a batch of names: %w", err)
	}
	defer func() { _ = batch.Close() }()
	for i := range changed {
		if err := batch.AppendStruct(&changed[i]); err != nil {
			return 0, fmt.Errorf("appending the name of %s %s: %w", changed[i].Kind, changed[i].ID, err)
		}
	}
	if err := batch.Send(); err != nil {
		return 0, fmt.Errorf("writing %d names: %w", len(changed), err)
	}
	return len(changed), nil
}
