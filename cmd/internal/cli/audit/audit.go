package audit

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/audit"
)

// codeNotYours refuses the key of an agency's staff.
const codeNotYours = "audit.not_yours"

// words has the texts for the codes of refused operations.
var words = cli.Words{
	codeNotYours:              cli.Filled("the key in QUITTANCE_STAFF_KEY is of an agency; the records are of all agencies, and operations read them, or whoever has the database's password and no key"),
	"audit.reason_malformed":  cli.Filled("--reason must be one line of at most {most} characters"),
	"audit.nothing_to_accept": cli.Filled("no record from {from} to {to} is missing, changed, added, late or unsigned without an acceptance; `quittance audit verify` shows what is. A row without a number is recorded first: start the sink cases"),
}

// Command returns the command `audit`.
func Command() cli.Command {
	return cli.Command{Use: "audit", Short: "See who did what, and prove it", Commands: []cli.Command{list(), verification(), acceptance()}, Words: words}
}

func list() cli.Command {
	var f audit.Filter
	var agency, since, until string
	return cli.Command{
		Use: "list", Short: "List operations with their actors, the newest first", JSON: "the list", Args: cobra.NoArgs,
		Examples: []string{"audit list --since 2026-11-01 --action case", `audit list --who "Mireille Okemba" --json`, "audit list --subject case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e"},
		Flags: func(fl *pflag.FlagSet, _ *cli.Meta) {
			fl.StringVar(&f.Who, "who", "", "operations of this actor: the name of a member of staff, the id of a key, the user of a machine, or a role")
			fl.StringVar(&agency, "agency", "", "operations about this agency, by slug or id; operations of before 2026-11-29 have no agency")
			fl.StringVar(&since, "since", "", "operations at or after this time: "+cli.MomentForms)
			fl.StringVar(&until, "until", "", "operations before this time: "+cli.MomentForms)
			fl.StringVar(&f.Subject, "subject", "", "operations on what has this id, such as a case")
			fl.StringVar(&f.Action, "action", "", "operations of this action, such as case.approve, or of a noun, such as case")
			fl.StringVar(&f.After, "after", "", "go on after the list whose last operation has this cursor (--json); repeat the other flags; --since and --until stay those of the first list")
			fl.IntVar(&f.Limit, "limit", 1000, "number of operations at most")
		},
		Check: func(*cli.Meta) error {
			if f.Limit < 1 {
				return cli.Usage("--limit: must be 1 or more")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			err := access.OfAllAgencies(ctx, m, codeNotYours)
			if err != nil {
				return err
			}
			if f.Since, err = cli.MomentOf("since", since, m.Now); err != nil {
				return err
			}
			if f.Until, err = cli.MomentOf("until", until, m.Now); err != nil {
				return err
			}
			if f.AgencyID, err = access.AgencyID(ctx, m, agency); err != nil {
				return err
			}
			slugs, _, err := access.Slugs(ctx, m)
			if err != nil {
				return err
			}
			all, err := audit.List(ctx, m.Pool, f)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(all, func(r audit.Recorded) render.Object { return recordJSON(r, f, slugs) }), func(p *render.Page) {
				p.Table("there are no such operations", "AT,WHO,FROM,ACTION,SUBJECT,DETAIL", render.Mapped(all, func(r audit.Recorded) []any {
					return []any{render.Moment(r.At), string(r.Actor.Kind) + " " + cmp.Or(r.Person, r.Actor.Name), render.OrDash(r.Actor.Origin), r.Action, render.OrDash(r.Subject), string(r.Detail)}
				}))
			})
		},
	}
}

func recordJSON(r audit.Recorded, f audit.Filter, slugs map[string]string) render.Object {
	return render.Object{
		"id", r.ID, "at", r.At, "actor_kind", r.Actor.Kind, "actor", r.Actor.Name, "name", render.OrNone(r.Person), "origin", render.OrNone(r.Actor.Origin), "action", r.Action, "subject", render.OrNone(r.Subject), "agency", render.OrNone(slugs[r.AgencyID]), "detail", r.Detail, "cursor", f.Cursor(r),
	}
}
