package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Right is something that a user of ClickHouse may do with a table or a view: SELECT or INSERT.
type Right struct {
	Verb, On string
}

// Errors of users of ClickHouse.
var (
	// ErrRights: the user lacks rights.
	ErrRights = errors.New("rights are missing in ClickHouse")
	// ErrExcess: the user has rights that it must not have.
	ErrExcess = errors.New("the user of ClickHouse may do more than it needs")
)

// mostNamed is how many rights an error names.
const mostNamed = 5

// CheckRights asks the server which of the rights on tables of the connection's database its user lacks. The error wraps
// ErrRights and names the user and what it lacks.
func CheckRights(ctx context.Context, conn Conn, rights []Right) error {
	var lacking []string
	for _, r := range rights {
		has, err := granted(ctx, conn, r.Verb+" ON "+Quote(r.On))
		if err != nil {
			return err
		}
		if !has {
			lacking = append(lacking, r.Verb+" of "+r.On)
		}
	}
	return about(ctx, conn, ErrRights, "lacks", lacking)
}

// CheckExcess asks the server whether its user may do what rights do not list: change, empty or drop one of the tables, or
// make users. The error wraps ErrExcess and names the user and what it may do too much.
func CheckExcess(ctx context.Context, conn Conn, tables []string, rights []Right) error {
	var excess []string
	for _, what := range []string{"CREATE USER", "ROLE ADMIN"} {
		has, err := granted(ctx, conn, what+" ON *.*")
		if err != nil {
			return err
		}
		if has {
			excess = append(excess, what)
		}
	}
	if len(excess) > 0 { // an administrator: the list would be long and say nothing
		return about(ctx, conn, ErrExcess, "is an administrator with", excess)
	}
	for _, table := range tables {
		for _, verb := range []string{"INSERT", "ALTER DELETE", "ALTER UPDATE", "TRUNCATE", "DROP TABLE"} {
			if slices.Contains(rights, Right{verb, table}) {
				continue
			}
			has, err := granted(ctx, conn, verb+" ON "+Quote(table))
			if err != nil {
				return err
			}
			if has {
				excess = append(excess, verb+" of "+table)
			}
		}
	}
	return about(ctx, conn, ErrExcess, "has", excess)
}

func granted(ctx context.Context, conn Conn, what string) (bool, error) {
	var has uint8
	if err := conn.QueryRow(ctx, "CHECK GRANT "+what).Scan(&has); err != nil {
		return false, fmt.Errorf("reading the rights of the user of ClickHouse: %w", err)
	}
	return has == 1, nil
}

// about returns nil without a text, else an error that wraps is and names the user.
func about(ctx context.Context, conn Conn, is error, does string, what []string) error {
	if len(what) == 0 {
		return nil
	}
	var user string
	if err := conn.QueryRow(ctx, "SELECT currentUser()").Scan(&user); err != nil {
		return fmt.Errorf("asking for the user of ClickHouse: %w", err)
	}
	more := ""
	if len(what) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(what)-mostNamed)
		what = what[:mostNamed]
	}
	return fmt.Errorf("%w: the user %s %s %s%s", is, user, does, strings.Join(what, ", "), more)
}

// Grants returns the statements that give a role of ClickHouse the rights on tables of a database, and make the role
// unless there is one. With revoke the role has no other rights from then on.
func Grants(database, role string, rights []Right, revoke bool) []string {
	replace := ""
	if revoke {
		replace = " WITH REPLACE OPTION"
	}
	return []string{
		fmt.Sprintf("CREATE ROLE IF NOT EXISTS %s;", Quote(role)),
		fmt.Sprintf("GRANT %s TO %s%s;", strings.Join(onTables(database, rights), ", "), Quote(role), replace),
	}
}

// Owner returns the statements that make the role of the user that migrates.
func Owner(database, role string) []string {
	return []string{
		fmt.Sprintf("CREATE ROLE IF NOT EXISTS %s;", Quote(role)),
		fmt.Sprintf("GRANT CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP VIEW, ALTER TABLE, SELECT, INSERT ON %s.* TO %s WITH REPLACE OPTION;", Quote(database), Quote(role)),
	}
}

// onTables returns rights as GRANT has them, those of one table together.
func onTables(database string, rights []Right) (out []string) {
	verbs := map[string][]string{}
	var order []string
	for _, r := range rights {
		if verbs[r.On] == nil {
			order = append(order, r.On)
		}
		if !slices.Contains(verbs[r.On], r.Verb) {
			verbs[r.On] = append(verbs[r.On], r.Verb)
		}
	}
	slices.Sort(order)
	for _, table := range order {
		out = append(out, fmt.Sprintf("%s ON %s.%s", strings.Join(verbs[table], ", "), Quote(database), Quote(table)))
	}
	return out
}
