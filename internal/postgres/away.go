package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsAway reports whether Postgres answered that it cannot serve now: a connection exception, too many
// connections, or a server that starts or stops. A connection that fails is no answer.
func IsAway(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P"))
}
