package reconciliation_test

import (
	"slices"
	"testing"

	"quittance/internal/analysts"
)

// withoutAgency are tables that have no rows of agencies. No analyst may read them.
var withoutAgency = []string{"journal_positions", "rewrites", "schema_migrations"}

// A table or view that a migration adds must be in the lists of package analysts, or analysts
// have no view of it. Views that read with the rights of their maker would show all rows.
func TestTablesOfAnalysts(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	of := func(rest string) []string {
		return lines(t, conn, "name", "FROM system.tables WHERE database = currentDatabase() AND "+rest+" ORDER BY name")
	}
	tables := of("engine NOT LIKE '%View'")
	if missing := slices.DeleteFunc(tables, func(n string) bool {
		return slices.Contains(analysts.Tables(), n) || slices.Contains(withoutAgency, n)
	}); len(missing) > 0 {
		t.Errorf("tables that analysts.Tables lacks: %q: add them, or to withoutAgency if they have no rows of agencies", missing)
	}
	want(t, lines(t, conn, "table", "FROM system.columns WHERE database = currentDatabase() AND name = 'tenant_id' AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine NOT LIKE '%View') ORDER BY table"), analysts.Tables()...)
	want(t, of("engine LIKE '%View'"), analysts.Views()...)
	want(t, of("engine LIKE '%View' AND position(create_table_query, 'SQL SECURITY INVOKER') > 0"), analysts.Views()...)
}
