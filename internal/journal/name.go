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
	if err := s.conn.Select(ctx, &stored, "SELECT "+nameTable.columns+" FROM names FINAL"); err != nil {
		return 0, fmt.Errorf("reading names: %w", err)
	}
	changed := slices.DeleteFunc(slices.Clone(names), func(n Name) bool { return slices.Contains(stored, n) })
	if len(changed) == 0 {
		return 0, nil
	}
	if err := s.Insert(ctx, Rows(changed)...); err != nil {
		return 0, fmt.Errorf("writing %d names: %w", len(changed), err)
	}
	return len(changed), nil
}

var nameTable = tableOf[Name]("names")

// Validate returns an error that wraps ErrInvalidEntry unless the name can be written.
func (n *Name) Validate() error {
	if n.Kind == "" || n.ID == "" {
		return fmt.Errorf("%w: a name without kind or id", ErrInvalidEntry)
	}
	return nil
}

func (n *Name) table() *table { return nameTable }
func (n *Name) key() string   { return n.Kind + " " + n.ID }
