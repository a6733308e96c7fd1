package servers

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
)

// groupPrefix begins the names of the groups that `quittance grants` makes.
const groupPrefix = "quittance_"

// loginPassword is that of all logins of tests. The servers listen on this machine alone.
const loginPassword = "login-of-a-test"

// Grant runs the statements of `quittance grants` in the database at dsn, as its superuser.
func Grant(t testing.TB, dsn, statements string) {
	t.Helper()
	superuser(t, dsn, statements)
}

// Login returns the address of the database at dsn for a login that is a member of the group of a role. The login of
// `migrate` makes tables as that group, which owns them. The groups must exist: see Grant.
func Login(t testing.TB, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("servers: the address of the PostgreSQL server is not a URL") // err contains the password
	}
	login, group := "test_"+role, groupPrefix+role
	// Users belong to the server, which tests share.
	superuser(t, dsn, `DO $$ BEGIN CREATE ROLE `+login+` LOGIN PASSWORD '`+loginPassword+`'; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
		DO $$ BEGIN IF NOT pg_has_role('`+login+`', '`+group+`', 'MEMBER') THEN GRANT `+group+` TO `+login+`; END IF; EXCEPTION WHEN unique_violation THEN NULL; END $$`)
	if role == "migrate" {
		superuser(t, dsn, `ALTER ROLE `+login+` IN DATABASE `+u.Path[1:]+` SET role = '`+group+`'`)
	}
	u.User = url.UserPassword(login, loginPassword)
	return u.String()
}

// superuser runs statements in the database at dsn.
func superuser(t testing.TB, dsn, statements string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("servers: connecting to PostgreSQL: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statements); err != nil {
		t.Fatalf("servers: making users of PostgreSQL: %v", err)
	}
}
