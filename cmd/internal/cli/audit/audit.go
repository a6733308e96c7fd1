package audit

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/operation"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"audit.not_yours":         cli.Filled("the key in QUITTANCE_STAFF_KEY is of an agency; the records are of all agencies, and operations read them, or whoever has the database's password and no key"),
	"audit.reason_malformed":  cli.Filled("--reason must be one line of at most {most} characters"),
	"audit.nothing_to_accept": cli.Filled("no record from {from} to {to} is missing, changed, added or late without an acceptance; `quittance audit verify` shows what is. A row without a number is recorded first: start the sink cases"),
}

// Command returns the command `audit`.
func Command() cli.Command {
	return cli.Command{Use: "audit", Short: "See who did what, and prove it", Commands: []cli.Command{list(), verification(), acceptance()}, Words: words}
}

func list() cli.Command {
	var f operation.Filter
	var since string
	return cli.Command{
		Use: "list", Short: "List operations with their actors, the newest first", JSON: "the list", Args: cobra.NoArgs,
		Examples: []string{"audit list --since 2026-11-01 --action case", `audit list --who "Mireille Okemba" --json`, "audit list --subject case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e"},
		Flags: func(fl *pflag.FlagSet, _ *cli.Meta) {
			fl.StringVar(&f.Who, "who", "", "operations of this actor: the name of a member of staff, the id of a key, the user of a machine, or a role")
			fl.StringVar(&since, "since", "", "operations at or after this time: "+cli.MomentForms)
			fl.StringVar(&f.Subject, "subject", "", "operations on what has this id, such as a case")
			fl.StringVar(&f.Action, "action", "", "operations of this action, such as case.approve, or of a noun, such as case")
			fl.IntVar(&f.Limit, "limit", 1000, "number of operations at most")
		},
		Check: func(*cli.Meta) error {
			if f.Limit < 1 {
				return cli.Usage("--limit: must be 1 or more")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			viewer, err := access.Viewer(ctx, m)
			if err != nil {
				return err
			}
			if viewer != nil && viewer.AgencyID != "" {
				return operation.Refuse("audit.not_yours", "", nil)
			}
			if f.Since, err = cli.MomentOf("since", since, m.Now); err != nil {
				return err
			}
			all, err := operation.List(ctx, m.Pool, f)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(all, recordJSON), func(p *render.Page) {
				p.Table("there are no such operations", "AT,WHO,FROM,ACTION,SUBJECT,DETAIL", render.Mapped(all, func(r operation.Recorded) []any {
					return []any{render.Moment(r.At), string(r.Actor.Kind) + " " + cmp.Or(r.Person, r.Actor.Name), render.OrDash(r.Actor.Origin), r.Action, render.OrDash(r.Subject), string(r.Detail)}
				}))
			})
		},
	}
}

func recordJSON(r operation.Recorded) render.Object {
	return render.Object{
		"id", r.ID, "at", r.At, "actor_kind", r.Actor.Kind, "actor", r.Actor.Name, "name", render.OrNone(r.Person), "origin", render.OrNone(r.Actor.Origin), "action", r.Action, "subject", render.OrNone(r.Subject), "detail", r.Detail,
	}
}
