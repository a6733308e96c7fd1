package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"quittance/cmd/internal/cli/setup"
	"quittance/cmd/internal/roles"
	"quittance/internal/postgres"
)

// developer is the login of all roles and commands in Postgres. It is a member of each of their groups, since they share
// one process and one pool: what no role may do, it may not do either.
const developer = "developer"

// migrate migrates as the owner of the tables, and makes the users of Postgres. From then on the settings have the
// address of the login developer.
func (u *installation) migrate(ctx context.Context) error {
	superuser := u.Postgres
	if err := postgres.Execute(ctx, superuser, roles.OwnerStatements("public")); err != nil {
		return fmt.Errorf("making the owner in Postgres: %w", err)
	}
	as, err := withUser(superuser, nil, roles.GroupPrefix+roles.ClientMigrate)
	if err != nil {
		return err
	}
	u.Postgres = as
	if _, err := setup.Migrate(ctx, u.Settings, u.log); err != nil {
		return err
	}
	password := rand.Text()
	statements := append(roles.Statements(u.Options, "public"),
		`DO $$ BEGIN CREATE ROLE `+developer+` LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;`,
		`ALTER ROLE `+developer+` PASSWORD '`+password+`';`)
	for _, c := range roles.DatabaseClients(u.Options) {
		if len(c.Rows) > 0 {
			statements = append(statements, "GRANT "+roles.GroupPrefix+c.Name+" TO "+developer+";")
		}
	}
	if err := postgres.Execute(ctx, superuser, statements); err != nil {
		return fmt.Errorf("making the users of Postgres: %w", err)
	}
	u.Postgres, err = withUser(superuser, url.UserPassword(developer, password), "")
	return err
}

// withUser returns the address with another user, and with a role that its sessions set.
func withUser(address string, user *url.Userinfo, role string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", errors.New("making the users of Postgres: the address is no URL") // err has the password
	}
	if user != nil {
		at.User = user
	}
	if role != "" {
		query := at.Query()
		query.Set("options", "-c role="+role)
		at.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq's form
	}
	return at.String(), nil
}
