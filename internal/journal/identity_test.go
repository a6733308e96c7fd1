package journal_test

import (
	"slices"
	"strings"
	"testing"

	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	journaltest "quittance/test/journal"
)

// A migration adds a column to the key of a table, and the verification does not know: it takes two rows for one, and
// says that a right row is different.
func TestIdentitiesAreKeys(t *testing.T) {
	t.Parallel()
	addr, database := journaltest.Migrated(t)
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for table, identity := range journal.Identities() {
		var key string
		if err := conn.QueryRow(t.Context(), "SELECT sorting_key FROM system.tables WHERE database = currentDatabase() AND name = ?", table).Scan(&key); err != nil {
			t.Fatal(err)
		}
		var columns []string
		for _, c := range strings.Split(key, ", ") {
			columns = append(columns, strings.TrimSuffix(strings.TrimPrefix(c, "toDate("), ")"))
		}
		slices.Sort(columns)
		slices.Sort(identity)
		if !slices.Equal(columns, identity) {
			t.Errorf("%s has the key %q, the verification names rows by %q", table, columns, identity)
		}
	}
}
