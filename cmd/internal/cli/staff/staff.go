package staff

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
	"quittance/money"
)

// Command returns the command `staff`.
func Command() cli.Command {
	return cli.Command{
		Use: "staff", Short: "Give the staff their keys, passkeys and roles",
		Commands: []cli.Command{
			addStaff(), inviteStaff(), confirmStaff(), listInvitations(), listStaff(), approveStaff(), staffRoles(), listPasskeys(), staffAddress(), suspendStaff(), liftSuspension(), revokeStaff(), issuers(), outage(),
		},
		Words: words,
	}
}

// staffJSON is a member of staff as --json prints it. The agency is a slug, null for
// operations. The e-mail address is masked.
func staffJSON(s identity.StaffEntry) render.Object {
	var begins time.Time
	if s.State() == identity.StaffStateWaiting {
		begins = s.MayBegin()
	}
	return render.Object{
		"id", s.ID, "name", s.Name, "agency", render.OrNone(s.Agency), "state", s.State(), "clerks", s.Known,
		"number", render.OrNone(s.Number), "roles", render.Texts(s.Roles), "passkeys", len(s.InForcePasskeys()), "suspended_at", s.SuspendedAt,
		"issuer", render.OrNone(s.Issuer), "subject", render.OrNone(s.Subject), "email", render.OrNone(s.Contact.Email), "language", render.OrNone(string(s.Contact.Language)), "created_at", s.CreatedAt, "approved_at", s.ApprovedAt, "revoked_at", s.RevokedAt, "waits_until", begins,
	}
}

// whichStaff is the error when the argument STAFF is missing.
const whichStaff = "say whom: {usage}, the id or the name; `quittance staff list` shows both"

func addStaff() cli.Command {
	var req identity.StaffRequest
	var roles []string
	return cli.Command{
		Use: "add", Short: "Make a member of staff with a key and show the key once", JSON: "the id and the key",
		Examples: []string{`staff add --name "Mireille Okemba"`, `staff add --name "Jean Mabiala" --agency impots --clerk impots/c01 --email jean.mabiala@example.org`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&req.Name, "name", "", "the person's name; nobody else has or had it")
			f.StringVar(&req.Agency, "agency", "", "the person's agency, by slug or id; operations, who act for all agencies, without it")
			f.StringSliceVar(&req.Clerks, "clerk", nil, "what the person is called at a counter, as AGENCY/CODE; repeatable")
			f.StringVar(&req.Number, "number", "", "the person's staff number; unique in the group")
			roleFlag(f, &roles, "role", "what the person does on the pages")
			contactFlags(f, &req.Contact)
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			req.Roles = rolesOf(roles)
			minted, err := identity.AddStaff(ctx, m.Pool, m.Keys, m.By, access.StaffKey(), req, m.Now)
			if err != nil {
				return err
			}
			return m.Show(render.Object{"id", minted.ID, "key", minted.Secret.Reveal()}, func(p *render.Page) {
				p.Say("New key of %s (%s), %s. It is shown once and stored nowhere:\n\n  %s\n", minted.Name, minted.Group(), minted.ID, minted.Secret.Reveal())
				switch minted.State() {
				case identity.StaffStateWaiting:
					p.Say("%s has had people before, so that the key opens nothing yet, and the people of %[1]s and of operations who have an address are told now; an alert tells operations in any case. From %[2]s until %[3]s `quittance staff approve %[4]s` makes it valid. `quittance staff revoke %[4]s` ends it.", minted.Group(), render.Moment(minted.MayBegin()), render.Moment(minted.CreatedAt.Add(identity.StaffWaitEnds)), minted.ID)
				case identity.StaffStateProposed:
					p.Say("It opens nothing until another member of %s has approved it with `quittance staff approve %s`.", minted.Group(), minted.ID)
				case identity.StaffStateActive, identity.StaffStateSuspended, identity.StaffStateRevoked:
				}
			})
		},
	}
}

func listStaff() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all staff, without their keys", JSON: "the list", Examples: []string{"staff list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			entries, err := identity.ListStaff(ctx, m.Pool, nil)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(entries, staffJSON), func(p *render.Page) {
				p.Table("there are no staff yet; add the first two of operations, or of an agency, with `quittance staff add`", "ID,NAME,OF,STATE,ROLES,PASSKEYS,CREATED,E-MAIL", render.Mapped(entries, func(s identity.StaffEntry) []any {
					return []any{s.ID, s.Name, s.Group(), s.State(), listed(s.Roles), len(s.InForcePasskeys()), render.Moment(s.CreatedAt), s.Contact.Email}
				}))
			})
		},
	}
}

func approveStaff() cli.Command {
	return cli.Command{
		Use: "approve STAFF", Short: "Make the key of a member of staff valid who is proposed, or who has waited", JSON: "the member", Missing: whichStaff,
		Examples: []string{"staff approve 018f0000-0000-7000-8000-0000000000aa"},
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := identity.ApproveStaff(ctx, m.Pool, m.Keys, m.By, access.StaffKey(), m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return m.Show(staffJSON(s), func(p *render.Page) { p.Say("%s (%s) is approved: the key is valid from now on.", s.Name, s.Group()) })
		},
	}
}

// contactFlags declares where a member of staff gets digests.
func contactFlags(f *pflag.FlagSet, req *identity.StaffContactRequest) {
	f.StringVar(&req.Email, "email", "", "the person's e-mail address, for digests of what waits for the person; prefer QUITTANCE_EMAIL, which other users of the machine cannot read")
	cli.TakesChoice(f, (*string)(&req.Language), "language", render.Texts(money.Languages), "language of the digests, fr unless set: ")
}

func staffAddress() cli.Command {
	var req identity.StaffContactRequest
	var remove bool
	return cli.Command{
		Use: "address STAFF", Short: "Set, change or remove the e-mail address to which a member of staff gets digests", JSON: "the member, with the address masked", Missing: whichStaff,
		Examples: []string{`staff address "Jean Mabiala" --email jean.mabiala@example.org --language en`, `staff address "Jean Mabiala" --language fr`, `staff address "Jean Mabiala" --remove`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			contactFlags(f, &req)
			f.BoolVar(&remove, "remove", false, "remove the address: the person gets no digests any more")
		},
		Check: func(*cli.Meta) error {
			switch given := req.Email != "" || req.Language != ""; {
			case remove && given:
				return cli.Usage("give either --remove, or --email (also as QUITTANCE_EMAIL) and --language")
			case !remove && !given:
				return cli.Usage("say what to change: --email ADDRESS, --language fr|en, or --remove")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if remove {
				return removeStaffAddress(ctx, m)
			}
			s, err := identity.SetStaffContact(ctx, m.Pool, m.Keys, m.By, m.Args[0], req, m.Now)
			if err != nil {
				return err
			}
			return m.Show(staffJSON(s), func(p *render.Page) {
				p.Say("%s (%s) gets digests at %s, in %s.", s.Name, s.Group(), s.Contact.Email, s.Contact.Language)
			})
		},
	}
}

func removeStaffAddress(ctx context.Context, m *cli.Meta) error {
	s, changed, err := identity.RemoveStaffContact(ctx, m.Pool, m.Keys, m.By, m.Args[0], m.Now)
	if err != nil {
		return err
	}
	return m.Show(staffJSON(s), func(p *render.Page) {
		if !changed {
			p.Say("%s (%s) has no address.", s.Name, s.Group())
			return
		}
		p.Say("The address of %s (%s) is removed: the person gets no digests any more.", s.Name, s.Group())
	})
}

func revokeStaff() cli.Command {
	return cli.Command{
		Use: "revoke STAFF", Short: "End a member of staff and the key at once and permanently", JSON: "the member", Missing: whichStaff,
		Examples: []string{`staff revoke "Jean Mabiala"`},
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, changed, err := identity.RevokeStaff(ctx, m.Pool, m.Keys, m.By, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return m.Show(staffJSON(s), func(p *render.Page) {
				if !changed {
					p.Say("%s (%s) was revoked before, at %s.", s.Name, s.Group(), render.Moment(s.RevokedAt))
					return
				}
				p.Say("%s (%s) is revoked: the key opens nothing from now on, and open proposals of this person lapse.", s.Name, s.Group())
			})
		},
	}
}
