package cli

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"quittance/internal/identity"
)

// staffKeyVariable is the environment variable with the key of the person who acts. No flag
// sets it, because other users of the machine can read a command line.
const staffKeyVariable = "QUITTANCE_STAFF_KEY"

// staffKey returns the key of the person who acts; empty when none is set.
func staffKey() string { return os.Getenv(staffKeyVariable) }

func staff() Command {
	return Command{
		Use: "staff", Short: "Give the staff who resolve operator cases their keys",
		Commands: []Command{addStaff(), listStaff(), approveStaff(), revokeStaff()},
	}
}

// staffJSON is a member of staff as --json prints it. The agency is a slug, null for
// operations.
func staffJSON(s identity.StaffEntry) object {
	return object{
		"id", s.ID, "name", s.Name, "agency", orNone(s.Agency), "state", s.State(), "clerks", s.Known,
		"created_at", s.CreatedAt, "approved_at", s.ApprovedAt, "revoked_at", s.RevokedAt,
	}
}

// orNone makes an empty text the JSON null.
func orNone(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// whichStaff is the error when the argument STAFF is missing.
const whichStaff = "say whom: {usage}, the id or the name; `quittance staff list` shows both"

func addStaff() Command {
	var req identity.StaffRequest
	return Command{
		Use: "add", Short: "Make a member of staff with a key and show the key once", JSON: "the id and the key",
		Examples: []string{`staff add --name "Mireille Okemba"`, `staff add --name "Jean Mabiala" --agency impots --clerk impots/c01`},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&req.Name, "name", "", "the person's name; nobody else has or had it")
			f.StringVar(&req.Agency, "agency", "", "the person's agency, by slug or id; operations, who act for all agencies, without it")
			f.StringSliceVar(&req.Clerks, "clerk", nil, "what the person is called at a counter, as AGENCY/CODE; repeatable")
		},
		Operate: func(ctx context.Context, m *Meta) error {
			minted, err := identity.AddStaff(ctx, m.pool, operator(), staffKey(), req, m.now)
			if err != nil {
				return err
			}
			return m.show(object{"id", minted.ID, "key", minted.Secret.Reveal()}, func(p *page) {
				p.say("New key of %s (%s), %s. It is shown once and stored nowhere:\n\n  %s\n", minted.Name, minted.Group(), minted.ID, minted.Secret.Reveal())
				if !minted.InForce() {
					p.say("It opens nothing until another member of %s has approved it with `quittance staff approve %s`.", minted.Group(), minted.ID)
				}
			})
		},
	}
}

func listStaff() Command {
	return Command{
		Use: "list", Short: "List all staff, without their keys", JSON: "the list", Examples: []string{"staff list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			entries, err := identity.ListStaff(ctx, m.pool)
			if err != nil {
				return err
			}
			return m.show(mapped(entries, staffJSON), func(p *page) {
				p.table("there are no staff yet; add the first two of operations, or of an agency, with `quittance staff add`", "ID,NAME,OF,STATE,CREATED", mapped(entries, func(s identity.StaffEntry) []any {
					return []any{s.ID, s.Name, s.Group(), s.State(), moment(s.CreatedAt)}
				}))
			})
		},
	}
}

func approveStaff() Command {
	return Command{
		Use: "approve STAFF", Short: "Make the key of a proposed member of staff valid", JSON: "the member", Missing: whichStaff,
		Examples: []string{"staff approve 018f0000-0000-7000-8000-0000000000aa"},
		Operate: func(ctx context.Context, m *Meta) error {
			s, err := identity.ApproveStaff(ctx, m.pool, operator(), staffKey(), m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.show(staffJSON(s), func(p *page) { p.say("%s (%s) is approved: the key is valid from now on.", s.Name, s.Group()) })
		},
	}
}

func revokeStaff() Command {
	return Command{
		Use: "revoke STAFF", Short: "End a member of staff and the key at once and permanently", JSON: "the member", Missing: whichStaff,
		Examples: []string{`staff revoke "Jean Mabiala"`},
		Operate: func(ctx context.Context, m *Meta) error {
			s, changed, err := identity.RevokeStaff(ctx, m.pool, operator(), m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.show(staffJSON(s), func(p *page) {
				if !changed {
					p.say("%s (%s) was revoked before, at %s.", s.Name, s.Group(), moment(s.RevokedAt))
					return
				}
				p.say("%s (%s) is revoked: the key opens nothing from now on, and open proposals of this person lapse.", s.Name, s.Group())
			})
		},
	}
}
