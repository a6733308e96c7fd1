package journaltest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/internal/clickhouse"
	"quittance/reconciliation"
	"quittance/test/servers"
)

// Migrated returns the address and the name of a database like that of servers.ClickHouse,
// with the migrations of package reconciliation applied. The tables are copied from a migrated
// database, which takes less time than the migrations.
func Migrated(t testing.TB) (addr, database string) {
	t.Helper()
	statements, err := tables.of(t)
	if err == nil {
		addr, database = servers.ClickHouse(t)
		err = with(t, addr, database, func(conn driver.Conn) error {
			for _, sql := range statements {
				if err := conn.Exec(t.Context(), strings.ReplaceAll(sql, original, database)); err != nil {
					return fmt.Errorf("copying a table: %w", err)
				}
			}
			return reconciliation.Migrate(t.Context(), conn) // makes the views
		})
	}
	if err != nil {
		t.Fatalf("migrating a copy of ClickHouse's tables: %v", err)
	}
	return addr, database
}

// original stands for the database in the statements that make a copy.
const original = "original_database"

var tables migratedTables

// migratedTables are the statements that make a copy of the tables of a migrated database.
type migratedTables struct {
	mu         sync.Mutex
	statements []string
}

// of returns the statements. The first call of a process migrates a database to read them.
func (m *migratedTables) of(t testing.TB) ([]string, error) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.statements != nil {
		return m.statements, nil
	}
	addr, database := servers.ClickHouse(t)
	err := with(t, addr, database, func(conn driver.Conn) (err error) {
		if err = reconciliation.Migrate(t.Context(), conn); err == nil {
			m.statements, err = statementsOf(t.Context(), conn)
		}
		return err
	})
	return m.statements, err
}

// statementsOf returns the statements that make a copy of the tables of the connection's database, and of
// the rows of schema_migrations.
func statementsOf(ctx context.Context, conn driver.Conn) (out []string, err error) {
	const made = "SELECT groupArray(replaceAll(create_table_query, database, ?)) FROM system.tables WHERE database = currentDatabase() AND engine NOT LIKE '%View'"
	if err := conn.QueryRow(ctx, made, original).Scan(&out); err != nil {
		return nil, fmt.Errorf("reading the tables: %w", err)
	}
	var versions []string
	if err := conn.QueryRow(ctx, "SELECT groupArray(concat('(', toString(version), ', ''', name, ''')')) FROM schema_migrations").Scan(&versions); err != nil {
		return nil, fmt.Errorf("reading the versions: %w", err)
	}
	return append(out, "INSERT INTO "+original+".schema_migrations (version, name) SELECT * FROM values('version UInt32, name String', "+strings.Join(versions, ", ")+")"), nil
}

// with calls do with a connection to a database.
func with(t testing.TB, addr, database string, do func(driver.Conn) error) error {
	t.Helper()
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return do(conn)
}
