package row

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/signed"
)

// staff is the table of people, whom nobody puts in force at once.
const staff = "staff"

// madeAnew are tables whose rows are not signed by hand, because that would put a passkey or a role in force at once.
var madeAnew = []string{"staff_passkeys", "staff_roles", "staff_invitations", "staff_changes", "staff_requests"}

// Command returns the command `rows`.
func Command() cli.Command {
	return cli.Command{
		Use: "rows", Short: "Show the rows of Postgres that are not as they were signed, and sign them after a look",
		Commands: []cli.Command{list(), sign(), accept()},
		Words:    Words,
	}
}

func rowJSON(r signed.Row) render.Object {
	content := render.Object{}
	for _, c := range r.Columns() {
		content = append(content, c.Name, c.Value)
	}
	return render.Object{"table", r.Table, "key", r.Key, "signed", r.Signed, "verified", r.Verified, "content", content}
}

// sayRow shows the content of a row.
func sayRow(p *render.Page, r signed.Row) {
	what := "its signature does not verify"
	switch {
	case r.Verified:
		what = "verifies"
	case !r.Signed:
		what = "it has no signature"
	}
	p.Say("%s: %s", r.ID, what)
	p.Facts(render.Mapped(r.Columns(), func(c signed.Column) [2]string { return [2]string{c.Name, c.Value} }))
}

const (
	forgedRows = "These rows decide, and somebody has written them beside the service. They are not used: what they open is refused, and what goes to them waits. Find out who wrote them. Put each right (`quittance seed FILE` sets ERPs, accounts, fees, mappings and cash-in access anew; otherwise SQL), or delete what somebody inserted; then `quittance rows sign TABLE KEY` for what is right and does not verify."
	lostRows   = "Signed rows of these tables were deleted, or put back to an earlier state: %s. Compare them with the registry file and with `quittance audit list`. When they are right, `quittance rows accept`."
)

func list() cli.Command {
	return cli.Command{
		Use: "list", Short: "List the rows that do not verify, with their content, and the tables that lost signed rows", JSON: "the findings", Examples: []string{"rows list --json"},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			f, err := registry.LookAtRows(ctx, m.Pool, m.Keys)
			if err != nil {
				return err
			}
			err = m.Show(render.Object{"rows", render.Mapped(f.Rows, rowJSON), "lost", append([]string{}, f.Lost...), "not_signed_yet", f.NotSigned, "other_keys", f.NoneVerifies}, func(p *render.Page) {
				if f.NotSigned {
					return
				}
				for _, r := range f.Rows {
					sayRow(p, r)
				}
				if len(f.Rows) > 0 {
					p.Say(forgedRows)
				}
				if len(f.Lost) > 0 {
					p.Say(lostRows, strings.Join(f.Lost, ", "))
				}
				if len(f.Rows)+len(f.Lost) == 0 {
					p.Say("All rows that decide are as they were signed.")
				}
			})
			if err == nil {
				err = f.Err()
			}
			if err == nil && len(f.Rows)+len(f.Lost) > 0 {
				err = fmt.Errorf("not as signed: %s; without some of their rows: %s", render.Counted(len(f.Rows), "row"), render.Counted(len(f.Lost), "table"))
			}
			return err
		},
	}
}

func sign() cli.Command {
	var yes bool
	return cli.Command{
		Use: "sign TABLE KEY...", Short: "Sign rows as they are now, after a look at their content", JSON: "the rows",
		Examples: []string{"rows sign applications 018f0000-0000-7000-8000-00000000000a"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usage("say which rows: `%s`; `quittance rows list` shows tables and keys", cmd.UseLine())
			}
			return nil
		},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) { cli.YesFlag(f, &yes) },
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			table, names := m.Args[0], m.Args[1:]
			if !signed.Known(table) {
				return operation.Refuse(signed.CodeUnknownTable, "", operation.Args{"tables": signed.Names()})
			}
			f, err := registry.LookAtRows(ctx, m.Pool, m.Keys)
			if err != nil {
				return err
			}
			if f.NotSigned { // with other keys none verifies, and the first row that is signed mends that
				return signed.ErrNotSigned
			}
			var seen []signed.Row
			var content render.Page
			for _, name := range names {
				i := slices.IndexFunc(f.Rows, func(r signed.Row) bool { return r.ID == signed.ID{Table: table, Key: name} })
				if i < 0 {
					return operation.Refuse(signed.CodeUnknown, "", operation.Args{"table": table})
				}
				seen = append(seen, f.Rows[i])
				sayRow(&content, f.Rows[i])
			}
			plan := "These rows are believed from now on. Sign them only if every value is right."
			if table == staff {
				plan = "These people wait from now on, as people who are added on the command line do, and are believed after that. Sign them only if every value is right."
			}
			if err := m.Agree(yes, content.String()+plan); err != nil {
				return err
			}
			if slices.Contains(madeAnew, table) {
				return operation.Refuse("rows.made_anew", "", operation.Args{"table": table})
			}
			if table == staff {
				if err := identity.SignStaff(ctx, m.Pool, m.Keys, m.By, seen, m.Now); err != nil {
					return err
				}
				return m.Show(render.Mapped(seen, rowJSON), func(p *render.Page) {
					p.Say("Signed: %s. The people wait for %s and are told to the others; then `%s staff approve` makes each valid. Who was revoked stays so.",
						strings.Join(names, ", "), identity.StaffWait, m.Program)
				})
			}
			rows, err := registry.SignRows(ctx, m.Pool, m.Keys, m.By, seen, m.Now)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(rows, rowJSON), func(p *render.Page) {
				p.Say("Signed: %s. Every role uses them within a second.", strings.Join(render.Mapped(rows, func(r signed.Row) string { return r.ID.String() }), ", "))
			})
		},
	}
}

func accept() cli.Command {
	var yes bool
	return cli.Command{
		Use: "accept", Short: "Take the signed rows that there are for all, after rows were deleted or put back and you have looked", JSON: "the tables", Examples: []string{"rows accept"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) { cli.YesFlag(f, &yes) },
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			f, err := registry.LookAtRows(ctx, m.Pool, m.Keys)
			if err != nil {
				return err
			}
			if f.NotSigned { // with other keys none verifies, and the first row that is signed mends that
				return signed.ErrNotSigned
			}
			if len(f.Lost) > 0 {
				if err := m.Agree(yes, fmt.Sprintf("Signed rows of these tables were deleted, or put back to an earlier state: %s. This takes the rows that there are for all.", strings.Join(f.Lost, ", "))); err != nil {
					return err
				}
			}
			lost, err := registry.AcceptRows(ctx, m.Pool, m.Keys, m.By, m.Now)
			if err != nil {
				return err
			}
			return m.Show(render.Object{"accepted", append([]string{}, lost...)}, func(p *render.Page) {
				if len(lost) == 0 {
					p.Say("Nothing changed: no table has lost rows.")
					return
				}
				p.Say("Accepted: %s.", strings.Join(lost, ", "))
			})
		},
	}
}
