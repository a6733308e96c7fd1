package analyst

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/analysts"
	"quittance/internal/clickhouse"
	"quittance/reconciliation"
)

// Command returns the command `analysts`.
func Command() cli.Command {
	return cli.Command{
		Use: "analysts", Short: "Give analysts of agencies users of ClickHouse that read their agency's rows only",
		Commands: []cli.Command{addAnalyst(), listAnalysts(), revokeAnalyst()},
		Words:    words,
	}
}

// whichAnalyst is the error when the argument NAME is missing.
const whichAnalyst = "say whom: {usage}; `quittance analysts list` shows the names"

// analystJSON is an analyst as --json prints it. The agency is a slug.
func analystJSON(a analysts.Analyst) render.Object {
	return render.Object{
		"name", a.Name, "agency", render.OrNone(a.Agency), "complete", a.Complete(), "unprotected", append([]string{}, a.Unprotected...), "lacking", append([]string{}, a.Lacking...), "loose", append([]string{}, a.Loose...),
	}
}

// onClickHouse calls do with a connection to a ClickHouse that is up to date.
func onClickHouse(ctx context.Context, m *cli.Meta, do func(clickhouse.Conn) error) error {
	if err := m.Need("clickhouse"); err != nil {
		return err
	}
	conn, err := clickhouse.Open(ctx, m.ClickHouse)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := reconciliation.Check(ctx, conn); err != nil {
		return err
	}
	return do(conn)
}

// sayOnlySQL shows the statements of an operation that this ClickHouse cannot carry out.
func sayOnlySQL(p *render.Page, sql []string) {
	p.Say("This ClickHouse stores no users, as the one of developer mode. Nothing was done; an administrator of a server runs this:\n\n%s;", strings.Join(sql, ";\n"))
}

func addAnalyst() cli.Command {
	var agency string
	return cli.Command{
		Use: "add NAME", Short: "Make a user of ClickHouse that reads one agency's rows and show its password once, or repair it", JSON: "the analyst and the password",
		Missing: "say how the analyst is called: {usage}, at most 63 lower-case letters, digits and hyphens",
		Long: `Make a user of ClickHouse that reads the rows of one agency through views of all tables and views in a database of its own, and show its password once.

The address of --clickhouse names an administrator: a user that may create users, row policies and databases and pass on the right to read (docs/analysts.md). For an analyst who exists, the command repairs views, policies, settings and rights, also those of tables that a migration added, and leaves the password. For a new password, revoke the analyst first.`,
		Examples: []string{"analysts add --agency impots jeanne"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&agency, "agency", "", "the agency, by slug or id")
		},
		Check: func(*cli.Meta) error {
			if agency == "" {
				return cli.Usage("--agency: say whose rows the analyst reads, by slug or id")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return onClickHouse(ctx, m, func(conn clickhouse.Conn) error {
				r, err := analysts.Add(ctx, m.Pool, conn, m.By, agency, m.Args[0], m.Now)
				if err != nil {
					return err
				}
				return m.Show(append(analystJSON(r.Analyst), "changed", r.Changed, "password", render.OrNone(r.Password.Reveal()), "sql", append([]string{}, r.SQL...)), func(p *render.Page) {
					switch {
					case len(r.SQL) > 0:
						sayOnlySQL(p, r.SQL)
						p.Say("\nThe password, which is shown once and stored nowhere:\n\n  %s\n", r.Password.Reveal())
					case !r.Changed:
						p.Say("%s exists and reads the rows of %s in all tables and views. Nothing was changed; for a new password run `quittance analysts revoke %s` first.", r.Name, r.Agency, r.Name)
					case r.Password.Empty():
						p.Say("%s existed. Its views, policies and rights are repaired: it reads the rows of %s in all tables and views. The password is the same.", r.Name, r.Agency)
					default:
						p.Say("New user %s of ClickHouse, who reads the rows of %s. Its password is shown once and stored nowhere:\n\n  %s\n", r.Name, r.Agency, r.Password.Reveal())
					}
				})
			})
		},
	}
}

func listAnalysts() cli.Command {
	return cli.Command{
		Use: "list", Short: "List the analysts, and what is wrong with their views, policies and rights", JSON: "the list", Examples: []string{"analysts list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return onClickHouse(ctx, m, func(conn clickhouse.Conn) error {
				list, stores, err := analysts.List(ctx, m.Pool, conn)
				if err != nil {
					return err
				}
				none := "there are no analysts yet; add one with `quittance analysts add`"
				if !stores {
					none = "this ClickHouse stores no users, as the one of developer mode: it has no analysts"
				}
				return m.Show(render.Mapped(list, analystJSON), func(p *render.Page) {
					p.Table(none, "NAME,AGENCY,STATE", render.Mapped(list, func(a analysts.Analyst) []any { return []any{a.Name, render.OrDash(a.Agency), analystState(a)} }))
				})
			})
		},
	}
}

// analystState says what is wrong with an analyst; the worst first.
func analystState(a analysts.Analyst) string {
	switch {
	case len(a.Unprotected) > 0:
		return "can go round its views in " + render.Some(a.Unprotected) + ": add it again, or revoke it"
	case len(a.Loose) > 0:
		return "can change the settings " + render.Some(a.Loose) + ": add it again"
	case len(a.Lacking) > 0:
		return "cannot read " + render.Some(a.Lacking) + ": add it again"
	}
	return "complete"
}

func revokeAnalyst() cli.Command {
	return cli.Command{
		Use: "revoke NAME", Short: "Remove an analyst's user, database and policies at once", JSON: "the analyst", Missing: whichAnalyst,
		Examples: []string{"analysts revoke jeanne"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return onClickHouse(ctx, m, func(conn clickhouse.Conn) error {
				r, err := analysts.Revoke(ctx, m.Pool, conn, m.By, m.Args[0], m.Now)
				if err != nil {
					return err
				}
				return m.Show(render.Object{"name", r.Name, "agency", render.OrNone(r.Agency), "changed", r.Changed, "sql", append([]string{}, r.SQL...)}, func(p *render.Page) {
					if len(r.SQL) > 0 {
						sayOnlySQL(p, r.SQL)
						return
					}
					p.Say("%s is revoked: ClickHouse has no such user any more.", r.Name)
				})
			})
		},
	}
}
