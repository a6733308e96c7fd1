package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPooler says that a pooler between here and Postgres gives each transaction of a
// connection to any session. What a session has is lost then or left to others: prepared
// statements, locks, LISTEN.
var ErrPooler = errors.New("a pooler in transaction mode is between here and Postgres: prepared statements fail (42P05), and locks of sessions stay behind. Connect to Postgres itself, or through a pooler in session mode")

// CheckSessions returns ErrPooler if the transactions of a connection to the database at dsn
// (as of Open) run in different sessions.
func CheckSessions(ctx context.Context, dsn string) error {
	cfg, err := pgxpool.ParseConfig(dsn) // a connection would send the pool_… settings to the server
	if err != nil {
		return fmt.Errorf("reading the address of Postgres: %w", err)
	}
	settings(cfg.ConnConfig)
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // prepared statements fail behind the pooler that is looked for
	var conns [2]*pgx.Conn
	for i := range conns {
		if conns[i], err = pgx.ConnectConfig(ctx, cfg.ConnConfig); err != nil {
			return fmt.Errorf("connecting to Postgres: %w", err)
		}
		defer func() { _ = conns[i].Close(context.WithoutCancel(ctx)) }()
	}
	one, other := conns[0], conns[1]
	// Two transactions at a time have two sessions. The first round moves a connection to the
	// other session if the pooler prefers the session that was used last, the second one if it
	// takes the sessions by turns.
	first := 0
	for round := range 3 {
		session, err := begin(ctx, one)
		if err != nil {
			return err
		}
		if round > 0 && session != first {
			return ErrPooler
		}
		if _, err := begin(ctx, other); err != nil {
			return err
		}
		first = session
		ends := []*pgx.Conn{one, other}
		if round == 1 {
			ends = []*pgx.Conn{other, one}
		}
		for _, c := range ends {
			if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
				return fmt.Errorf("comparing sessions of Postgres: %w", err)
			}
		}
	}
	return nil
}

// begin begins a transaction and returns the number of its session.
func begin(ctx context.Context, c *pgx.Conn) (session int, err error) {
	if _, err = c.Exec(ctx, "BEGIN"); err == nil {
		err = c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&session)
	}
	if err != nil {
		return 0, fmt.Errorf("comparing sessions of Postgres: %w", err)
	}
	return session, nil
}
