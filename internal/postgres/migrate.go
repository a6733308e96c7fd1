package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// undefinedTable is Postgres' code for a table that does not exist.
const undefinedTable = "42P01"

// insufficientPrivilege is Postgres' code for a right that the user lacks.
const insufficientPrivilege = "42501"

// Migrate applies to the database at dsn (as of Open) the migrations that this program needs.
// Concurrent calls wait for each other (advisory lock). When a migration fails, the
// earlier ones stay applied and the next call continues with the one that failed. The error is
// ErrPooler if the lock would be lost, see CheckSessions.
func Migrate(ctx context.Context, dsn string) error {
	if err := CheckSessions(ctx, dsn); err != nil {
		return fmt.Errorf("migrating Postgres: %w", err)
	}
	cfg, err := pgxpool.ParseConfig(dsn) // a connection would send the pool_… settings to the server
	if err != nil {
		return fmt.Errorf("reading the address of Postgres: %w", err)
	}
	settings(cfg.ConnConfig)
	db := stdlib.OpenDB(*cfg.ConnConfig)
	defer func() { _ = db.Close() }()
	provider, err := provider(db)
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating Postgres: %w", err)
	}
	return nil
}

// Digest identifies the migrations that this program needs: it changes when one of them does.
func Digest() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(embedded, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(embedded, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading migrations: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Pending counts the migrations that this program needs and the database lacks. It
// changes nothing. Roles refuse to start unless the count is zero.
func Pending(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	provider, err := provider(stdlib.OpenDBFromPool(pool))
	if err != nil {
		return 0, err
	}
	defer func() { _ = provider.Close() }() // does not close the pool
	// The last row of a version decides: goose writes another row when it rolls back.
	rows, _ := pool.Query(ctx, `SELECT DISTINCT ON (version_id) version_id, is_applied FROM goose_db_version ORDER BY version_id, id DESC`)
	applied := map[int64]bool{}
	var version int64
	var is bool
	_, err = pgx.ForEachRow(rows, []any{&version, &is}, func() error { // also returns the query's error
		applied[version] = is
		return nil
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == insufficientPrivilege {
		return 0, fmt.Errorf("%w: %s; make the login a member of the group of its role, which `quittance grants` prints", ErrRights, pg.Message)
	}
	if err != nil && !(errors.As(err, &pg) && pg.Code == undefinedTable) {
		return 0, fmt.Errorf("reading applied migrations: %w", err)
	}
	pending := 0
	for _, source := range provider.ListSources() {
		if !applied[source.Version] {
			pending++
		}
	}
	return pending, nil
}

func provider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}
	return p, nil
}
