package cli

import (
	"context"

	"github.com/spf13/pflag"

	"quittance/internal/identity"
	"quittance/money"
)

func staff() Command {
	return Command{
		Use: "staff", Short: "Give the staff who resolve operator cases their keys",
		Commands: []Command{addStaff(), listStaff(), approveStaff(), staffAddress(), revokeStaff()},
		Words:    staffWords,
	}
}

// staffJSON is a member of staff as --json prints it. The agency is a slug, null for
// operations. The e-mail address is masked.
func staffJSON(s identity.StaffEntry) object {
	return object{
		"id", s.ID, "name", s.Name, "agency", orNone(s.Agency), "state", s.State(), "clerks", s.Known,
		"email", orNone(s.Contact.Email), "language", orNone(string(s.Contact.Language)), "created_at", s.CreatedAt, "approved_at", s.ApprovedAt, "revoked_at", s.RevokedAt,
	}
}

// whichStaff is the error when the argument STAFF is missing.
const whichStaff = "say whom: {usage}, the id or the name; `quittance staff list` shows both"

func addStaff() Command {
	var req identity.StaffRequest
	return Command{
		Use: "add", Short: "Make a member of staff with a key and show the key once", JSON: "the id and the key",
		Examples: []string{`staff add --name "Mireille Okemba"`, `staff add --name "Jean Mabiala" --agency impots --clerk impots/c01 --email jean.mabiala@example.org`},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&req.Name, "name", "", "the person's name; nobody else has or had it")
			f.StringVar(&req.Agency, "agency", "", "the person's agency, by slug or id; operations, who act for all agencies, without it")
			f.StringSliceVar(&req.Clerks, "clerk", nil, "what the person is called at a counter, as AGENCY/CODE; repeatable")
			contactFlags(f, &req.Contact)
		},
		Operate: func(ctx context.Context, m *Meta) error {
			if err := m.sealContact(&req.Contact); err != nil {
				return err
			}
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
				p.table("there are no staff yet; add the first two of operations, or of an agency, with `quittance staff add`", "ID,NAME,OF,STATE,CREATED,E-MAIL", mapped(entries, func(s identity.StaffEntry) []any {
					return []any{s.ID, s.Name, s.Group(), s.State(), moment(s.CreatedAt), s.Contact.Email}
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

// contactFlags declares where a member of staff gets digests.
func contactFlags(f *pflag.FlagSet, req *identity.StaffContactRequest) {
	f.StringVar(&req.Email, "email", "", "the person's e-mail address, for digests of what waits for the person; prefer QUITTANCE_EMAIL, which other users of the machine cannot read")
	takesChoice(f, (*string)(&req.Language), "language", texts(money.Languages), "language of the digests, fr unless set: ")
}

// sealContact opens the master keys if the request has an address to seal.
func (m *Meta) sealContact(req *identity.StaffContactRequest) error {
	if req.Email == "" {
		return nil
	}
	keys, err := m.OpenKeys()
	req.Keys = keys
	return err
}

func staffAddress() Command {
	var req identity.StaffContactRequest
	var remove bool
	return Command{
		Use: "address STAFF", Short: "Set, change or remove the e-mail address to which a member of staff gets digests", JSON: "the member, with the address masked", Missing: whichStaff,
		Examples: []string{`staff address "Jean Mabiala" --email jean.mabiala@example.org --language en`, `staff address "Jean Mabiala" --language fr`, `staff address "Jean Mabiala" --remove`},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			contactFlags(f, &req)
			f.BoolVar(&remove, "remove", false, "remove the address: the person gets no digests any more")
		},
		Check: func(*Meta) error {
			switch given := req.Email != "" || req.Language != ""; {
			case remove && given:
				return usage("give either --remove, or --email (also as QUITTANCE_EMAIL) and --language")
			case !remove && !given:
				return usage("say what to change: --email ADDRESS, --language fr|en, or --remove")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *Meta) error {
			if remove {
				return m.removeStaffAddress(ctx)
			}
			if err := m.sealContact(&req); err != nil {
				return err
			}
			s, err := identity.SetStaffContact(ctx, m.pool, operator(), m.args[0], req, m.now)
			if err != nil {
				return err
			}
			return m.show(staffJSON(s), func(p *page) {
				p.say("%s (%s) gets digests at %s, in %s.", s.Name, s.Group(), s.Contact.Email, s.Contact.Language)
			})
		},
	}
}

func (m *Meta) removeStaffAddress(ctx context.Context) error {
	s, changed, err := identity.RemoveStaffContact(ctx, m.pool, operator(), m.args[0], m.now)
	if err != nil {
		return err
	}
	return m.show(staffJSON(s), func(p *page) {
		if !changed {
			p.say("%s (%s) has no address.", s.Name, s.Group())
			return
		}
		p.say("The address of %s (%s) is removed: the person gets no digests any more.", s.Name, s.Group())
	})
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
