package servers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	engine "quittance/internal/clickhouse"
	"quittance/reconciliation"
)

// Journal returns the address and the name of a database like that of ClickHouse, with the
// migrations of package reconciliation applied. It is a copy of another one, which costs a
// quarter of the migrations.
func Journal(t testing.TB) (addr, database string) {
	t.Helper()
	addr, database = ClickHouse(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, sql := range tables.of(ctx, t, addr) {
		statement(t, addr, strings.ReplaceAll(sql, original, database))
	}
	// It makes the views.
	if err := migrate(ctx, addr, database); err != nil {
		t.Fatal(err)
	}
	return addr, database
}

// original stands for the database in the statements that make a copy.
const original = "original_database"

var tables journalTables

// journalTables are the statements that make a copy of the tables of a migrated database.
type journalTables struct {
	mu         sync.Mutex
	statements []string
}

// of returns the statements. The first call of a process migrates a database to read them.
func (j *journalTables) of(ctx context.Context, t testing.TB, addr string) []string {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.statements == nil {
		database := "migrated_" + token()
		statement(t, addr, "CREATE DATABASE "+database)
		defer statement(t, addr, "DROP DATABASE "+database)
		var err error
		if j.statements, err = statementsOf(ctx, addr, database); err != nil {
			t.Fatalf("servers: reading the tables of the journal: %v", err)
		}
	}
	return j.statements
}

func statementsOf(ctx context.Context, addr, database string) (out []string, err error) {
	if err := migrate(ctx, addr, database); err != nil {
		return nil, err
	}
	conn, err := engine.Open(ctx, "http://"+addr+"/"+database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	const made = "SELECT groupArray(replaceAll(create_table_query, database, ?)) FROM system.tables WHERE database = currentDatabase() AND engine NOT LIKE '%View'"
	if err := conn.QueryRow(ctx, made, original).Scan(&out); err != nil {
		return nil, fmt.Errorf("reading the tables: %w", err)
	}
	var versions []string
	if err := conn.QueryRow(ctx, "SELECT groupArray(concat('(', toString(version), ', ''', name, ''')')) FROM schema_migrations").Scan(&versions); err != nil {
		return nil, fmt.Errorf("reading the versions: %w", err)
	}
	return append(out, "INSERT INTO "+original+".schema_migrations (version, name) VALUES "+strings.Join(versions, ", ")), nil
}

func migrate(ctx context.Context, addr, database string) error {
	conn, err := engine.Open(ctx, "http://"+addr+"/"+database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return reconciliation.Migrate(ctx, conn)
}
