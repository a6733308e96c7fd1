package grant

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/clickhouse"
	"quittance/internal/postgres"
)

// The servers that have rights.
const (
	serverPostgres   = "postgres"
	serverClickHouse = "clickhouse"
)

// identifier is a name that SQL takes without quotes.
var identifier = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)

// settings are what the flags say.
type settings struct {
	server, prefix, schema, database string
	keep                             bool
}

// Command prints the rights of each role in Postgres and ClickHouse.
func Command() cli.Command {
	var s settings
	clients := roles.DatabaseClients(roles.Options{})
	names := render.Mapped(clients, func(c roles.DatabaseClient) string { return c.Name })
	return cli.Command{
		Use: "grants [ROLE]", Short: "Print the least rights of each role in Postgres or ClickHouse, as SQL", JSON: "one object for each right",
		Long: "Print the least rights of each role in Postgres or ClickHouse, as SQL.\n\n" +
			"Each role is a group (in ClickHouse a role) without a login. Make a login for each instance or person, and make it a member. The statements take away what is not listed; they can be repeated.",
		Examples: []string{"grants | psql -v ON_ERROR_STOP=1 -d quittance", "grants --server clickhouse | clickhouse-client", "grants erp --json"},
		Args:     cobra.MaximumNArgs(1), Connection: cli.ConnectionNone,
		Valid: render.Mapped(clients, func(c roles.DatabaseClient) cobra.Completion { return cobra.CompletionWithDesc(c.Name, c.Short) }),
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			s.server = serverPostgres
			cli.TakesChoice(f, &s.server, "server", []string{serverPostgres, serverClickHouse}, "whose rights: ")
			f.StringVar(&s.prefix, "prefix", roles.GroupPrefix, "what the names of groups begin with; the role's name follows")
			f.StringVar(&s.schema, "schema", "public", "schema of the tables in Postgres")
			f.StringVar(&s.database, "database", "quittance", "database in ClickHouse")
			f.BoolVar(&s.keep, "keep", false, "take nothing away, for the time in which the release before still runs")
		},
		Check: func(m *cli.Meta) error {
			if len(m.Args) > 0 && !slices.Contains(names, m.Args[0]) {
				return cli.Usage("no role is called %q; there are %s", m.Args[0], strings.Join(names, ", "))
			}
			for flag, value := range map[string]string{"prefix": s.prefix, "schema": s.schema, "database": s.database} {
				if !identifier.MatchString(value) {
					return cli.Usage("--%s %q: must be lower-case letters, digits and underscores, and must not begin with a digit", flag, value)
				}
			}
			return nil
		},
		Run: func(_ context.Context, m *cli.Meta) error {
			chosen := slices.DeleteFunc(roles.DatabaseClients(m.Options), func(c roles.DatabaseClient) bool {
				return len(m.Args) > 0 && c.Name != m.Args[0]
			})
			return m.Show(s.objects(chosen), func(p *render.Page) { s.print(p, chosen) })
		},
	}
}

// objects lists the rights for --json.
func (s settings) objects(clients []roles.DatabaseClient) []render.Object {
	out := []render.Object{} // an empty list, not null
	for _, c := range clients {
		if s.server == serverClickHouse {
			for _, r := range c.Journal {
				out = append(out, render.Object{"role", c.Name, "group", s.prefix + c.Name, "verb", r.Verb, "of", s.database + "." + r.On, "column", ""})
			}
			continue
		}
		for _, r := range c.Rows {
			out = append(out, render.Object{"role", c.Name, "group", s.prefix + c.Name, "verb", r.Verb, "of", s.schema + "." + r.On, "column", r.Column})
		}
	}
	return out
}

// print prints the statements. Those of Postgres are one transaction, so that no role is without its rights meanwhile.
func (s settings) print(p *render.Page, clients []roles.DatabaseClient) {
	if s.server == serverPostgres {
		p.Say("BEGIN;")
	}
	// The owner comes first: it gives the others their rights.
	for _, owner := range []bool{true, false} {
		for _, c := range clients {
			if c.Owner != owner {
				continue
			}
			if statements := s.statements(c); len(statements) > 0 {
				p.Say("\n-- %s: %s", c.Name, c.Short)
				p.Say("%s", strings.Join(statements, "\n"))
			} else {
				p.Say("\n-- %s needs no user here", c.Name)
			}
		}
	}
	if s.server == serverPostgres {
		p.Say("\nCOMMIT;")
	}
}

func (s settings) statements(c roles.DatabaseClient) []string {
	group := s.prefix + c.Name
	switch {
	case s.server == serverPostgres && c.Owner:
		return postgres.Owner(s.schema, group)
	case s.server == serverPostgres && len(c.Rows) > 0:
		return postgres.Grants(s.schema, group, c.Rows, !s.keep)
	case s.server == serverClickHouse && c.Owner:
		return clickhouse.Owner(s.database, group)
	case s.server == serverClickHouse && len(c.Journal) > 0:
		return clickhouse.Grants(s.database, group, c.Journal, !s.keep)
	}
	return nil
}
