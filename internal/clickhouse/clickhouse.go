// Package clickhouse opens connections to ClickHouse.
//
// A URL names the server and the database:
//
//	http://127.0.0.1:8085/quittance                    HTTP, the protocol of developer mode's engine
//	https://user:password@host:8443/quittance          HTTP over TLS
//	clickhouse://user:password@host:9000/quittance     the native protocol; clickhouse://…?secure=true with TLS
//
// With TLS, ca_file, cert_file and key_file name PEM files: the authorities of the server's
// certificate, and a client certificate with its key. Several servers are separated by
// commas in the host. A URL without a database means `default`. Parameters of the URL are clickhouse-go's (dial_timeout=5s,
// max_open_conns=10, compress=lz4, …). Parameters that clickhouse-go does not know
// become settings of every query (max_execution_time=60). The password never appears
// in an error.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// defaults are the values of parameters that the URL omits.
var defaults = map[string]string{
	"dial_timeout": "5s",
	// Bounds one answer. It is long enough for a big insert on a busy server and
	// short enough to detect a server that does not answer.
	"read_timeout":   "1m",
	"max_open_conns": "8",
	"max_idle_conns": "2",
}

// Conn is a pool of connections. It is safe for concurrent use.
type Conn = driver.Conn

// Open connects to the server and database that the URL names and pings the server,
// within ctx. The database must exist: see CreateDatabase. The caller closes the
// connection.
func Open(ctx context.Context, address string) (Conn, error) {
	opts, where, err := parse(address)
	if err != nil {
		return nil, err
	}
	return open(ctx, opts, where)
}

// OpenForMigration is Open for statements that read and write whole tables: an answer may take
// a day.
func OpenForMigration(ctx context.Context, address string) (Conn, error) {
	opts, where, err := parse(address)
	if err != nil {
		return nil, err
	}
	opts.ReadTimeout = 24 * time.Hour
	return open(ctx, opts, where)
}

// CreateDatabase creates the database that the URL names unless it exists.
func CreateDatabase(ctx context.Context, address string) error {
	opts, where, err := parse(address)
	if err != nil {
		return err
	}
	database := opts.Auth.Database
	opts.Auth.Database = "default" // exists on every server
	conn, err := open(ctx, opts, where)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+Quote(database)); err != nil {
		return fmt.Errorf("creating database %s on ClickHouse at %s: %w", database, where, err)
	}
	return nil
}

// Quote returns name as a quoted identifier for use in SQL.
func Quote(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}

// ErrAddress is the error of a URL that has none of the forms in the package comment.
var ErrAddress = errors.New("a ClickHouse address is http(s)://host:port/database or clickhouse://host:port/database")

// parse reads the URL. where is the part of the URL that may appear in messages.
func parse(address string) (opts *clickhouse.Options, where string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", ErrAddress // the text of err may hold the password
	}
	switch u.Scheme {
	case "http", "https", "clickhouse":
	default:
		return nil, "", fmt.Errorf("%w, not %s://…", ErrAddress, u.Scheme)
	}
	if u.Host == "" {
		return nil, "", fmt.Errorf("%w: the host is missing", ErrAddress)
	}
	where = u.Host
	query := u.Query()
	for name, value := range defaults {
		if !query.Has(name) {
			query.Set(name, value)
		}
	}
	files := takeFiles(query)
	if u.Scheme == "https" && !query.Has("secure") {
		query.Set("secure", "true") // the library wants both
	}
	u.RawQuery = query.Encode()
	opts, err = clickhouse.ParseDSN(u.String())
	if err != nil {
		// Errors of the library name the faulty parameter, but some quote the URL.
		if strings.Contains(err.Error(), "://") || (u.User != nil && strings.Contains(err.Error(), u.User.String())) {
			err = errors.New("a parameter is malformed")
		}
		return nil, "", fmt.Errorf("reading the address of ClickHouse at %s: %w", where, err)
	}
	if opts.TLS, err = withFiles(opts.TLS, files); err != nil {
		return nil, "", err
	}
	if opts.Auth.Database == "" {
		opts.Auth.Database = "default"
	}
	return opts, where, nil
}

func open(ctx context.Context, opts *clickhouse.Options, where string) (Conn, error) {
	conn, err := clickhouse.Open(opts)
	if err != nil {
		return nil, fmt.Errorf("opening ClickHouse at %s: %w", where, err)
	}
	if err := conn.Ping(ctx); err != nil {
		_ = conn.Close()
		var exc *clickhouse.Exception
		if errors.As(err, &exc) && exc.Code == codeUnknownDatabase {
			return nil, fmt.Errorf("ClickHouse at %s has no database %s, `quittance migrate` makes it: %w", where, opts.Auth.Database, err)
		}
		return nil, fmt.Errorf("ClickHouse at %s does not answer: %w", where, err)
	}
	return conn, nil
}

// codeUnknownDatabase is ClickHouse's UNKNOWN_DATABASE.
const codeUnknownDatabase = 81
