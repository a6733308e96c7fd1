package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"quittance/internal/postgres"
	"quittance/test/servers"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	pool, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	pending, err := postgres.Pending(t.Context(), pool)
	if err != nil || pending < 4 {
		t.Fatalf("an empty database: %d pending, %v", pending, err)
	}
	var tables int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("asking what is pending made %d tables, %v", tables, err)
	}
	// Concurrent migrations, as when every instance of a deployment migrates.
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := postgres.Migrate(t.Context(), dsn); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if pending, err := postgres.Pending(t.Context(), pool); err != nil || pending != 0 {
		t.Errorf("after Migrate: %d pending, %v", pending, err)
	}
	if err := postgres.Migrate(t.Context(), dsn+"&pool_max_conns=20"); err != nil { // the address of a role
		t.Errorf("again: %v", err)
	}
	// The program is newer than the database.
	if _, err := pool.Exec(t.Context(), `DELETE FROM goose_db_version WHERE version_id = 5`); err != nil {
		t.Fatal(err)
	}
	if pending, err := postgres.Pending(t.Context(), pool); err != nil || pending != 1 {
		t.Errorf("one not applied: %d pending, %v", pending, err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	pool, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for setting, want := range map[string]string{"timezone": "UTC", "application_name": "quittance", "statement_timeout": "30s"} {
		var got string
		if err := pool.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", setting, got, err, want)
		}
	}
	for _, wrong := range []string{"postgres://user:veryprivate@127.0.0.1:1/none", "postgres://user:veryprivate@127.0.0.1:port/none", "host=127.0.0.1 port=x password=veryprivate"} {
		pool, err := postgres.Open(t.Context(), wrong)
		if err == nil {
			pool.Close()
			t.Errorf("%s: opened", wrong)
			continue
		}
		if strings.Contains(err.Error(), "veryprivate") {
			t.Errorf("the error shows the password: %v", err)
		}
		if err := postgres.Migrate(t.Context(), wrong); err == nil || strings.Contains(err.Error(), "veryprivate") {
			t.Errorf("Migrate: %v", err)
		}
	}
}

// An installation put PgBouncer with pool_mode = transaction before Postgres. Commands failed now
// and then with 42P05, and a lock of the migrations stayed in a session of somebody else. Nothing
// said why.
func TestPoolers(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	if err := postgres.CheckSessions(t.Context(), dsn); err != nil {
		t.Errorf("Postgres itself: %v", err)
	}
	for _, turn := range []servers.PoolerTurn{servers.PoolerUsedLast, servers.PoolerRoundRobin} {
		pooled := servers.TransactionPooler(t, dsn, turn)
		if err := postgres.CheckSessions(t.Context(), pooled); !errors.Is(err, postgres.ErrPooler) {
			t.Errorf("a pooler that takes the session that is %s: %v", turn, err)
		}
		if err := postgres.Migrate(t.Context(), pooled); !errors.Is(err, postgres.ErrPooler) {
			t.Errorf("migrations behind a pooler that takes the session that is %s: %v", turn, err)
		}
	}
}
