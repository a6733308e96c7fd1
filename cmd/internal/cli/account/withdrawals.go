package account

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/cases"
	"quittance/internal/intake"
	"quittance/internal/journal"
	"quittance/internal/registry"
)

func withdrawals() cli.Command {
	return cli.Command{
		Use: "withdraw", Short: "Withdraw an import that was accepted by mistake; two people agree to it, while its days are open",
		Commands: []cli.Command{requestWithdrawal(), approveWithdrawal(), rejectWithdrawal(), listWithdrawals()},
	}
}

const whichWithdrawal = "say which withdrawal: {usage}, its id; `quittance statements withdraw list` shows them"

// withIntake does something with what withdraws imports.
func withIntake(ctx context.Context, m *cli.Meta, do func(*intake.Store, cases.By) error) error {
	if err := m.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	by, err := access.Person(ctx, m)
	if err != nil {
		return err
	}
	return withStatements(ctx, m, func(store *intake.Store) error { return do(store, by) })
}

// withStatements does something with what withdraws imports, without a person.
func withStatements(ctx context.Context, m *cli.Meta, do func(*intake.Store) error) error {
	conn, err := access.OpenJournal(ctx, m)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	store, err := openIntake(ctx, m, func(ctx context.Context, key registry.StatementAccountKey) (string, error) {
		return journal.NewStore(conn).ClosedTo(ctx, key.AgencyID, key.Live, key.Code)
	})
	if err != nil {
		return err
	}
	return do(store)
}

func withdrawalJSON(w intake.Withdrawal, agency string) render.Object {
	var decided any
	if !w.DecidedAt.IsZero() {
		decided = w.DecidedAt
	}
	return render.Object{
		"withdrawal_id", w.ID, "import_id", w.ImportID, "agency", agency, "mode", registry.Mode(w.Live), "account", w.Code, "state", string(w.State), "reason", w.Reason,
		"requested_by", w.RequestedBy, "requested_at", w.RequestedAt, "decided_by", render.OrNone(w.DecidedBy), "decided_at", decided, "until", w.Until(),
		"statements", render.Mapped(w.Statements, factsJSON),
	}
}

// showWithdrawal shows a withdrawal with its statements, and what comes next.
func showWithdrawal(ctx context.Context, m *cli.Meta, w intake.Withdrawal, next string, more ...any) error {
	s, err := registry.Read(ctx, m.Pool)
	if err != nil {
		return err
	}
	return m.Show(append(withdrawalJSON(w, s.Agencies[w.AgencyID].Slug), more...), func(p *render.Page) {
		p.Table("", "STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING", render.Mapped(w.Statements, factsRow))
		p.Say("%s", next)
	})
}

func requestWithdrawal() cli.Command {
	var reason string
	return cli.Command{
		Use: "request IMPORT", Short: "Request to withdraw an accepted import; another person approves it within a day", JSON: "the withdrawal",
		Long: `Request to withdraw an import that was accepted by mistake. When another person approves it, its lines do not count any more, but for those that another
accepted import has; their matches end, and the account goes on from the statement before. It is refused if a day of it is closed, or if a later statement
continues it: withdraw that one first.`,
		Missing:  "say which import: {usage}, its id; `quittance statements list` shows them",
		Examples: []string{`statements withdraw request 019ab3c0-0000-7000-8000-000000000000 --reason "MTN sent the file of the wrong day"`},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") },
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withIntake(ctx, m, func(store *intake.Store, by cases.By) error {
				w, err := store.RequestWithdrawal(ctx, whoever(by), m.Args[0], reason, m.Now)
				if err != nil {
					return err
				}
				return showWithdrawal(ctx, m, w, fmt.Sprintf("Withdrawal %s waits until %s. Another person approves it with `quittance statements withdraw approve %[1]s`.", w.ID, render.Moment(w.Until())))
			})
		},
	}
}

func approveWithdrawal() cli.Command {
	return cli.Command{
		Use: "approve WITHDRAWAL", Short: "Approve the withdrawal of an import, which carries it out", JSON: "the withdrawal, with withdrawn_lines", Missing: whichWithdrawal,
		Examples: []string{"statements withdraw approve 019ab3c0-0000-7000-8000-000000000000"},
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withIntake(ctx, m, func(store *intake.Store, by cases.By) error {
				w, lines, err := store.ApproveWithdrawal(ctx, whoever(by), m.Args[0], m.Now)
				if err != nil {
					return err
				}
				return showWithdrawal(ctx, m, w, fmt.Sprintf("Import %s is withdrawn. Lines that do not count any more: %d. Import the right file.", w.ImportID, lines), "withdrawn_lines", lines)
			})
		},
	}
}

func rejectWithdrawal() cli.Command {
	return cli.Command{
		Use: "reject WITHDRAWAL", Short: "Reject the withdrawal of an import; whoever requested it takes it back so", JSON: "the withdrawal", Missing: whichWithdrawal,
		Examples: []string{"statements withdraw reject 019ab3c0-0000-7000-8000-000000000000"},
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withIntake(ctx, m, func(store *intake.Store, by cases.By) error {
				w, err := store.RejectWithdrawal(ctx, whoever(by), m.Args[0], m.Now)
				if err != nil {
					return err
				}
				return showWithdrawal(ctx, m, w, fmt.Sprintf("The withdrawal of import %s is rejected. The import still counts.", w.ImportID))
			})
		},
	}
}

// carryOut is for whoever runs the installation: two people have decided, each with a passkey.
func carryOut() cli.Command {
	return cli.Command{
		Use: "carry-out", Short: "Carry out what two people agreed on pages: withdrawals, and earlier versions of a last statement", JSON: "what was agreed on, with what became of it", Args: cobra.NoArgs,
		Long: `Carry out what two people agreed on the pages of staff within the last day: withdrawals of imports, and that an earlier version of an account's last
statement is the last one again. The signatures and the passkeys of both people are verified first. Withdrawals that were interrupted are settled before. Run it where statements are imported, at least once a day;
it needs no key of a person. A file that was released is imported again as ever. The exit code is 1 if something was refused.`,
		Examples: []string{"statements carry-out", "statements carry-out --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			return withStatements(ctx, m, func(store *intake.Store) error {
				done, err := store.CarryOut(ctx, m.Now)
				if err != nil {
					return err
				}
				var refused []error
				for _, a := range done {
					if a.Err != nil {
						refused = append(refused, fmt.Errorf("%s of import %s: %w", a.ID, a.ImportID, a.Err))
					}
				}
				return errors.Join(append([]error{m.Show(render.Mapped(done, agreedJSON), func(p *render.Page) {
					p.Table("nothing waits to be carried out", "DECISION,IMPORT,WHAT,LINES,CARRIED OUT", render.Mapped(done, func(a intake.Agreed) []any {
						return []any{a.ID, a.ImportID, string(a.Of), a.Lines, a.Err == nil}
					}))
				})}, refused...)...)
			})
		},
	}
}

func agreedJSON(a intake.Agreed) render.Object {
	return render.Object{"decision_id", a.ID, "import_id", a.ImportID, "what", string(a.Of), "withdrawn_lines", a.Lines, "carried_out", a.Err == nil}
}

func listWithdrawals() cli.Command {
	const short = "List the withdrawals of imports, also those that are done"
	return listOf(short, "statements withdraw", func(ctx context.Context, m *cli.Meta, tenant string, s *registry.Snapshot) error {
		list, err := intake.Withdrawals(ctx, m.Pool, tenant)
		if err != nil {
			return err
		}
		return m.Show(render.Mapped(list, func(w intake.Withdrawal) render.Object { return withdrawalJSON(w, s.Agencies[w.AgencyID].Slug) }), func(p *render.Page) {
			p.Table("no import was withdrawn, and no request waits", "WITHDRAWAL,AGENCY,MODE,ACCOUNT,IMPORT,REASON,REQUESTED BY,STATE,BY", render.Mapped(list, func(w intake.Withdrawal) []any {
				return []any{w.ID, s.Agencies[w.AgencyID].Slug, registry.Mode(w.Live), w.Code, w.ImportID, w.Reason, w.RequestedBy, string(w.State), render.OrDash(w.DecidedBy)}
			}))
		})
	})
}
