package reconciliation

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// files holds the tables' numbered migrations, which never change once released, and
// the views, which hold no data and are created anew by each Migrate. Each file is one
// statement.
//
//go:embed migrations/*.sql views/*.sql
var files embed.FS

// ErrPending is the error of a database that lacks migrations of this build.
var ErrPending = errors.New("ClickHouse has pending migrations: run `quittance migrate`")

type migration struct {
	version uint32
	name    string
	sql     string
}

// Migrate brings the connection's database to this build's version: it applies the
// migrations that the database lacks, then creates all views. A second call changes
// nothing. Concurrent calls are safe.
func Migrate(ctx context.Context, conn driver.Conn) error {
	all, err := load("migrations")
	if err != nil {
		return err
	}
	views, err := load("views")
	if err != nil {
		return err
	}
	const versions = `CREATE TABLE IF NOT EXISTS schema_migrations (version UInt32, name String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3))
		ENGINE = ReplacingMergeTree ORDER BY version`
	if err := conn.Exec(ctx, versions); err != nil {
		return fmt.Errorf("creating ClickHouse's schema_migrations: %w", err)
	}
	pending, err := pending(ctx, conn, all)
	if err != nil {
		return err
	}
	for _, m := range pending {
		if err := conn.Exec(ctx, m.sql); err != nil {
			return fmt.Errorf("ClickHouse migration %s: %w", m.name, err)
		}
		if err := conn.Exec(ctx, "INSERT INTO schema_migrations (version, name) SELECT ?, ?", m.version, m.name); err != nil {
			return fmt.Errorf("recording ClickHouse migration %s: %w", m.name, err)
		}
	}
	for _, v := range views {
		if err := conn.Exec(ctx, v.sql); err != nil {
			return fmt.Errorf("creating ClickHouse view %s: %w", v.name, err)
		}
	}
	return nil
}

// Check returns nil when the connection's database has every migration of this
// build, else an error that wraps ErrPending and names the missing ones. Migrations of
// a newer build are accepted.
func Check(ctx context.Context, conn driver.Conn) error {
	all, err := load("migrations")
	if err != nil {
		return err
	}
	var exists uint8
	if err := conn.QueryRow(ctx, "EXISTS TABLE schema_migrations").Scan(&exists); err != nil {
		return fmt.Errorf("looking for ClickHouse's schema_migrations: %w", err)
	}
	lacking := all
	if exists == 1 {
		if lacking, err = pending(ctx, conn, all); err != nil {
			return err
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	names := make([]string, len(lacking))
	for i, m := range lacking {
		names[i] = m.name
	}
	return fmt.Errorf("%w (%s)", ErrPending, strings.Join(names, ", "))
}

// pending returns the migrations that the database lacks.
func pending(ctx context.Context, conn driver.Conn, all []migration) ([]migration, error) {
	var applied []uint32
	if err := conn.QueryRow(ctx, "SELECT groupUniqArray(version) FROM schema_migrations").Scan(&applied); err != nil {
		return nil, fmt.Errorf("reading ClickHouse's schema_migrations: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(m migration) bool { return slices.Contains(applied, m.version) }), nil
}

// load reads the statements of a folder in the order of their numbers.
func load(dir string) ([]migration, error) {
	names, err := fs.Glob(files, dir+"/*.sql") // sorted
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	out := make([]migration, 0, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		base := strings.TrimSuffix(path.Base(name), ".sql")
		number, _, _ := strings.Cut(base, "_")
		version, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s does not begin with a number: %w", name, err)
		}
		out = append(out, migration{version: uint32(version), name: base, sql: string(text)})
	}
	return out, nil
}
