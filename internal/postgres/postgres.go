// Package postgres opens connections to Quittance's PostgreSQL (15 or newer) and
// holds its schema as embedded migrations.
//
// Tables belong to the packages that read and write them; the schema is in one
// place because one command applies it (`quittance migrate`).
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	connectTimeout = 5 * time.Second
	// statementTimeout bounds what a role asks; migrations take as long as they take.
	statementTimeout = "30s"
	// idleTimeout ends a transaction whose process has forgotten it, so that it
	// does not hold locks that others wait for.
	idleTimeout = "60s"
)

// Open connects a pool to the database at dsn (a URL or key=value words, also
// with the pool_… settings of pgxpool) and proves that it answers. Sessions
// speak UTC and give up a statement after 30 s unless the dsn says otherwise.
// Errors never hold the password.
func Open(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("reading the address of Postgres: %w", err)
	}
	settings(cfg.ConnConfig)
	setDefault(cfg.ConnConfig, "statement_timeout", statementTimeout)
	setDefault(cfg.ConnConfig, "idle_in_transaction_session_timeout", idleTimeout)
	cfg.MaxConns = max(cfg.MaxConns, 8) // the default follows the number of cores, which says nothing here
	cfg.MaxConnLifetimeJitter = cmp.Or(cfg.MaxConnLifetimeJitter, 5*time.Minute)
	cfg.HealthCheckPeriod = 15 * time.Second
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to Postgres: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connecting to Postgres: %w", err)
	}
	return pool, nil
}

func settings(cfg *pgx.ConnConfig) {
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, connectTimeout)
	setDefault(cfg, "application_name", "quittance")
	cfg.RuntimeParams["timezone"] = "UTC"
}

func setDefault(cfg *pgx.ConnConfig, name, value string) {
	if _, ok := cfg.RuntimeParams[name]; !ok {
		cfg.RuntimeParams[name] = value
	}
}
