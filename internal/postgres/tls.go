package postgres

import (
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/transport"
)

// WithTLS adds files of TLS to a dsn. The server's certificate and name are verified, unless
// the dsn has another sslmode. What the dsn has already wins.
func WithTLS(dsn string, files transport.Files) string {
	settings := []struct{ name, value string }{
		{"sslmode", "verify-full"}, {"sslrootcert", files.CA}, {"sslcert", files.Cert}, {"sslkey", files.Key},
	}
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		query := u.Query()
		for _, s := range settings {
			if s.value != "" && !query.Has(s.name) {
				query.Set(s.name, s.value)
			}
		}
		u.RawQuery = query.Encode()
		return u.String()
	}
	for _, s := range settings {
		if s.value != "" && !strings.Contains(" "+dsn, " "+s.name+"=") {
			dsn += " " + s.name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s.value) + "'"
		}
	}
	return dsn
}

// Protection describes the connections to the database at dsn, the least of them: without an
// sslmode in the dsn, connections fall back to plaintext. A dsn that cannot be read is not
// exposed: Open refuses it.
func Protection(dsn string) transport.Protection {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return transport.Protection{How: "not readable"}
	}
	least := transport.Of(cfg.ConnConfig.TLSConfig, cfg.ConnConfig.Host)
	for _, f := range cfg.ConnConfig.Fallbacks {
		if p := transport.Of(f.TLSConfig, f.Host); p.Exposed || f.TLSConfig == nil && !least.Exposed {
			least = p
		}
	}
	return least
}
