package staff

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
)

// roleFlag declares a repeatable flag of roles.
func roleFlag(f *pflag.FlagSet, to *[]string, name, usage string) {
	f.StringSliceVar(to, name, nil, usage+"; repeatable: "+strings.Join(render.Texts(identity.Roles()), ", "))
}

func rolesOf(names []string) (out []identity.Role) {
	for _, n := range names {
		out = append(out, identity.Role(n))
	}
	return out
}

// invitationJSON is an invitation as --json prints it, without the secret of its link and without its digits.
func invitationJSON(now time.Time) func(identity.InvitationEntry) render.Object {
	return func(i identity.InvitationEntry) render.Object {
		return render.Object{
			"id", i.ID, "staff_id", i.StaffID, "name", i.Of.Name, "agency", render.OrNone(i.Of.Agency), "roles", render.Texts(i.Roles), "state", i.State(now), "passkeys", len(i.Passkeys),
			"invited_by", render.OrNone(i.InvitedBy), "invited_at", i.InvitedAt, "ends_at", i.EndsAt, "confirmed_by", render.OrNone(i.ConfirmedBy), "confirmed_at", i.ConfirmedAt,
		}
	}
}

func inviteStaff() cli.Command {
	var req identity.InvitationRequest
	var roles []string
	var withdraw, url string
	return cli.Command{
		Use: "invite [STAFF]", Short: "Invite a person to make two passkeys and show the link once", JSON: "the invitation and the secret of its link", Args: cobra.MaximumNArgs(1),
		Long: "Invite a person to make two passkeys, and show the secret of the link once. A new person has --name; STAFF is a person who has none, or, with --lost, who has lost them. " +
			"The command line invites and confirms while fewer than two people of the group can decide about its people on a page.",
		Examples: []string{`staff invite --name "Mireille Okemba" --role security-officer`, `staff invite --name "Jean Mabiala" --agency impots --number 4711 --role agency-admin --staff-url https://staff.example`, `staff invite "Jean Mabiala" --lost`, `staff invite --withdraw 018f0000-0000-7000-8000-0000000000aa`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&req.Person.Name, "name", "", "the name of a new person; nobody else has or had it")
			f.StringVar(&req.Person.Agency, "agency", "", "the person's agency, by slug or id; operations without it")
			f.StringSliceVar(&req.Person.Clerks, "clerk", nil, "what a new person is called at a counter, as AGENCY/CODE; repeatable")
			f.StringVar(&req.Person.Number, "number", "", "the person's staff number; unique in the group")
			roleFlag(f, &roles, "role", "a role that the confirmation gives")
			contactFlags(f, &req.Person.Contact)
			f.BoolVar(&req.Lost, "lost", false, "STAFF has lost the passkeys, which end when the invitation is confirmed")
			f.StringVar(&url, "staff-url", "", "URL of the pages of staff, to show the whole link")
			f.StringVar(&withdraw, "withdraw", "", "id of an open invitation that ends now")
		},
		Check: func(m *cli.Meta) error {
			switch known, named := len(m.Args) > 0, req.Person.Name != ""; {
			case withdraw != "" && (known || named):
				return cli.Usage("give either --withdraw INVITATION, or whom to invite")
			case withdraw == "" && known == named:
				return cli.Usage("say whom: --name NAME for a new person, or STAFF, the id or the name of a known one; `quittance staff list` shows both")
			case named && req.Lost:
				return cli.Usage("--lost is for a person who has passkeys: give STAFF instead of --name")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by := identity.By{Actor: m.By}
			if withdraw != "" {
				i, changed, err := identity.WithdrawInvitation(ctx, m.Pool, m.Keys, by, withdraw, m.Now)
				if err != nil {
					return err
				}
				return m.Show(invitationJSON(m.Now)(i), func(p *render.Page) {
					if !changed {
						p.Say("The invitation of %s was over before: it is %s.", i.Of.Name, i.State(m.Now))
						return
					}
					p.Say("The invitation of %s is withdrawn: its link opens nothing.", i.Of.Name)
				})
			}
			if len(m.Args) > 0 {
				req.Known = m.Args[0]
			}
			req.Person.Roles = rolesOf(roles)
			made, err := identity.InviteStaff(ctx, m.Pool, m.Keys, by, req, m.Now)
			if err != nil {
				return err
			}
			link := made.Secret.Reveal()
			if url != "" {
				link = strings.TrimSuffix(url, "/") + "/join#" + link
			}
			return m.Show(append(invitationJSON(m.Now)(made.InvitationEntry), "link", link), func(p *render.Page) {
				p.Say("%s (%s) is invited, until %s. Give this to the person alone; it works once, and is shown once and stored nowhere:\n\n  %s\n", made.Of.Name, made.Of.Group(), render.Moment(made.EndsAt), link)
				p.Say("The person makes two passkeys on the page and sees eight digits. Call the person, ask for the digits, and run `quittance staff confirm %s --digits DIGITS`; once two people of %s decide on pages, one of them does it there.", made.ID, made.Of.Group())
			})
		},
	}
}

func confirmStaff() cli.Command {
	var digits string
	return cli.Command{
		Use: "confirm INVITATION", Short: "Make the passkeys of an invited person valid, with the digits that the person has told you by voice", JSON: "the member",
		Missing:  "say which: {usage}, the id of the invitation; `quittance staff invitations` shows it",
		Examples: []string{"staff confirm 018f0000-0000-7000-8000-0000000000aa --digits '1234 5678'"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&digits, "digits", "", "the eight digits that the person sees on the page and tells you by voice")
		},
		Check: func(*cli.Meta) error {
			if digits == "" {
				return cli.Usage("give --digits DIGITS: the eight digits that the invited person sees on the page and tells you by voice")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := identity.ConfirmInvitation(ctx, m.Pool, m.Keys, identity.By{Actor: m.By}, m.Args[0], digits, m.Now)
			if err != nil {
				return err
			}
			return m.Show(staffJSON(s), func(p *render.Page) {
				p.Say("%s (%s) signs in with the passkeys from now on, and approves with them from %s. The roles are: %s.", s.Name, s.Group(), render.Moment(m.Now.Add(identity.ApprovesAfter)), listed(s.Roles))
			})
		},
	}
}

func listInvitations() cli.Command {
	return cli.Command{
		Use: "invitations", Short: "List all invitations of staff, without their links", JSON: "the list", Examples: []string{"staff invitations --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			list, err := identity.ListInvitations(ctx, m.Pool, nil)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, invitationJSON(m.Now)), func(p *render.Page) {
				p.Table("nobody was invited yet; `quittance staff invite` does", "ID,NAME,OF,STATE,PASSKEYS,UNTIL", render.Mapped(list, func(i identity.InvitationEntry) []any {
					return []any{i.ID, i.Of.Name, i.Of.Group(), i.State(m.Now), len(i.Passkeys), render.Moment(i.EndsAt)}
				}))
			})
		},
	}
}

func staffRoles() cli.Command {
	var add, remove []string
	return cli.Command{
		Use: "roles STAFF", Short: "Give a member of staff roles, or end some", JSON: "the member", Missing: whichStaff,
		Examples: []string{`staff roles "Jean Mabiala" --add accountant --remove reader`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			roleFlag(f, &add, "add", "a role to give")
			roleFlag(f, &remove, "remove", "a role to end")
		},
		Check: func(*cli.Meta) error {
			if len(add)+len(remove) == 0 {
				return cli.Usage("say what to change: --add ROLE, --remove ROLE, or both")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := identity.SetStaffRoles(ctx, m.Pool, m.Keys, m.By, m.Args[0], identity.RolesRequest{Add: rolesOf(add), Remove: rolesOf(remove)}, m.Now)
			if err != nil {
				return err
			}
			return m.Show(staffJSON(s), func(p *render.Page) { p.Say("The roles of %s (%s) are: %s.", s.Name, s.Group(), listed(s.Roles)) })
		},
	}
}

func listed(roles []identity.Role) string {
	if len(roles) == 0 {
		return "none"
	}
	return strings.Join(render.Texts(roles), ", ")
}

// stopping is the commands suspend and lift.
func stopping(use, short, example, said string, do func(context.Context, *cli.Meta, string) (identity.StaffEntry, error)) cli.Command {
	var reason string
	return cli.Command{
		Use: use + " STAFF", Short: short, JSON: "the member", Missing: whichStaff, Examples: []string{example},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&reason, "reason", "", "why, in one line; the audit table has it")
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := do(ctx, m, reason)
			if err != nil {
				return err
			}
			return m.Show(staffJSON(s), func(p *render.Page) { p.Say(said, s.Name, s.Group()) })
		},
	}
}

func suspendStaff() cli.Command {
	return stopping("suspend", "Suspend a member of staff at once, until somebody lifts it", `staff suspend "Jean Mabiala" --reason "a passkey is lost"`,
		"%s (%s) is suspended: sessions end, keys open nothing, and open proposals of this person lapse. `quittance staff lift`, or another person on a page, ends it.",
		func(ctx context.Context, m *cli.Meta, reason string) (identity.StaffEntry, error) {
			return identity.SuspendStaff(ctx, m.Pool, m.Keys, identity.By{Actor: m.By}, m.Args[0], reason, m.Now)
		})
}

func liftSuspension() cli.Command {
	return stopping("lift", "End the suspension of a member of staff", `staff lift "Jean Mabiala" --reason "the passkey was found"`,
		"%s (%s) may act again.",
		func(ctx context.Context, m *cli.Meta, reason string) (identity.StaffEntry, error) {
			return identity.LiftSuspension(ctx, m.Pool, m.Keys, identity.By{Actor: m.By}, m.Args[0], reason, m.Now)
		})
}

func listPasskeys() cli.Command {
	return cli.Command{
		Use: "passkeys STAFF", Short: "List the passkeys of a member of staff", JSON: "the list", Missing: whichStaff, Examples: []string{`staff passkeys "Jean Mabiala"`},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := identity.FindStaff(ctx, m.Pool, m.Args[0])
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(s.Passkeys, func(k identity.StaffPasskey) render.Object {
				return render.Object{"id", k.ID, "name", k.Name, "host", k.Host, "created_at", k.CreatedAt, "approves_from", k.ApprovesFrom, "last_used_at", k.LastUsedAt, "removed_at", k.RemovedAt}
			}), func(p *render.Page) {
				p.Table(s.Name+" has no passkeys; `quittance staff invite` lets the person make two", "ID,NAME,HOST,CREATED,APPROVES FROM,USED,REMOVED", render.Mapped(s.Passkeys, func(k identity.StaffPasskey) []any {
					return []any{k.ID, k.Name, k.Host, render.Moment(k.CreatedAt), render.Moment(k.ApprovesFrom), render.Moment(k.LastUsedAt), render.Moment(k.RemovedAt)}
				}))
			})
		},
	}
}
