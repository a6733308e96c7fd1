// Package postgres opens connections to Quittance's PostgreSQL (15 or newer) and
// holds its schema as embedded migrations.
//
// Each table belongs to one package, which alone reads and writes it. The schema is
// in one place because one command applies it (`quittance migrate`).
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	connectTimeout = 5 * time.Second
	// pingTimeout is how long a connection that was idle may take to answer before it is used. Then it is
	// closed, so that a query does not wait for aliveWithin on a machine that has vanished.
	pingTimeout = 3 * time.Second
	// statementTimeout bounds each statement of a role. Migrations have no limit.
	statementTimeout = "30s"
	// idleTimeout ends a transaction that its process left idle, so that its locks do
	// not block other processes.
	idleTimeout = "60s"
)

// Pool is a pool of connections, as Open makes it.
type Pool = pgxpool.Pool

// Open connects a pool to the database at dsn (a URL or key=value words, also with
// the pool_… settings of pgxpool) and checks that the database answers. Connections use
// UTC, return times in UTC, and cancel a statement after 30 s unless the dsn says
// otherwise. Errors never contain the password. Each connection is given to prepare first.
func Open(ctx context.Context, dsn string, prepare ...func(*pgx.Conn)) (*Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("reading the address of Postgres: %w", err)
	}
	settings(cfg.ConnConfig)
	setDefault(cfg.ConnConfig, "statement_timeout", statementTimeout)
	setDefault(cfg.ConnConfig, "idle_in_transaction_session_timeout", idleTimeout)
	cfg.MaxConns = max(cfg.MaxConns, 8) // the default is the number of cores, which is too few for calls that wait
	cfg.MaxConnLifetimeJitter = cmp.Or(cfg.MaxConnLifetimeJitter, 5*time.Minute)
	cfg.HealthCheckPeriod = 15 * time.Second
	cfg.PingTimeout = cmp.Or(cfg.PingTimeout, pingTimeout)
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		for _, p := range prepare {
			p(conn)
		}
		return nil
	}
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
	cfg.DialFunc = dial
	setDefault(cfg, "application_name", "quittance")
	cfg.RuntimeParams["timezone"] = "UTC"
}

func setDefault(cfg *pgx.ConnConfig, name, value string) {
	if _, ok := cfg.RuntimeParams[name]; !ok {
		cfg.RuntimeParams[name] = value
	}
}
