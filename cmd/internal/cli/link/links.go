package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/citizens"
	"quittance/internal/operation"
	"quittance/internal/registry"
)

// Command returns the command `links`.
func Command() cli.Command {
	return cli.Command{
		Use: "links", Short: "Link taxpayers who sign in to the portal to their references at an agency",
		Commands: []cli.Command{linkCodes(), renewLinks(), revokeLinks(), renewAllCodes(), acceptFormerCodes(), listLinks(), alertsOfLinks(), importLinks()},
		Words:    words,
	}
}

// office is the accounts of citizens, with the agency that a command names.
type office struct {
	*citizens.Store
	agency registry.Agency
	live   bool
	by     operation.Actor
}

func (o office) subject(ref string) citizens.Subject {
	return citizens.Subject{AgencyID: o.agency.ID, Live: o.live, Ref: ref}
}

// withOffice opens the accounts of citizens and calls do. Without --mode it is the mode of the
// portal: live in production, test for developers.
func withOffice(ctx context.Context, m *cli.Meta, mode string, do func(o office) error) error {
	keys, err := m.OpenKeys()
	if err != nil {
		return err
	}
	reference, err := m.OpenReferenceKey()
	if err != nil {
		return err
	}
	snapshot, err := registry.Read(ctx, m.Pool)
	if err != nil {
		return err
	}
	agency, err := snapshot.FindAgency(m.Args[0])
	if err != nil {
		return err
	}
	store, err := citizens.New(citizens.Config{Pool: m.Pool, Keys: keys, Reference: reference, Now: func() time.Time { return m.Now }})
	if err != nil {
		return err
	}
	return do(office{store, agency, mode == "live" || mode == "" && !m.Options.Developer(), m.By})
}

// takesPortalMode declares the --mode of commands that need not name it.
func takesPortalMode(f *pflag.FlagSet, mode *string) {
	cli.TakesChoice(f, mode, "mode", cli.Modes, "the mode of the references, that of the portal when not given: ")
}

// aSubject is the help of --subject.
const aSubject = "the reference of the taxpayer (subject_ref), exactly as the agency writes it"

func takesSubject(f *pflag.FlagSet, subjects *[]string) {
	f.StringArrayVar(subjects, "subject", nil, aSubject)
}

// needsSubject takes exactly one reference: what a command would do to the others is no surprise
// to anybody.
func needsSubject(subjects []string) error {
	switch {
	case len(subjects) == 0 || subjects[0] == "":
		return cli.Usage("say which reference: --subject REF")
	case len(subjects) > 1:
		return cli.Usage("--subject: name one reference, not %d; run the command for each", len(subjects))
	}
	return nil
}

func linkCodes() cli.Command {
	var mode, from string
	var subjects []string
	return cli.Command{
		Use: "codes AGENCY", Short: "Make the link codes that an agency prints on its notices", JSON: "the list of references and codes", Missing: access.MissingAgency,
		Long: "Make the link codes that an agency prints on its notices. Whoever has signed in to the portal and types the reference and its code sees the dues. A code is always the same until `quittance links renew` or `quittance links revoke`, and is stored nowhere.",
		Examples: []string{
			"links codes impots --mode live --from references.txt --json", "links codes impots --mode test --subject TP-1001 --subject TP-1002",
		},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesMode(f, &mode)
			f.StringArrayVar(&subjects, "subject", nil, aSubject+"; may be given several times")
			f.StringVar(&from, "from", "", "a file with one reference on each line; - is the standard input")
		},
		Check: func(*cli.Meta) error {
			if (len(subjects) == 0) == (from == "") {
				return cli.Usage("say whose codes: either --subject REF, or --from FILE with one reference on each line")
			}
			return cli.NeedsMode(mode)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			refs := subjects
			if from != "" {
				err := readFile(m, from, func(in io.Reader) (err error) {
					refs, err = readReferences(in)
					return err
				})
				if err != nil {
					return fmt.Errorf("--from: %w", err)
				}
			}
			return withOffice(ctx, m, mode, func(o office) error {
				codes, err := o.LinkCodes(ctx, o.agency.ID, o.live, refs)
				if err != nil {
					return err
				}
				// Whoever has a code of a reference sees its dues. References are those of taxpayers.
				if err := m.Audit(ctx, "link.codes", o.agency.ID, map[string]any{"mode": mode, "references": len(refs)}); err != nil {
					return err
				}
				list, rows := make([]render.Object, len(refs)), make([][]any, len(refs))
				for i, ref := range refs {
					list[i], rows[i] = render.Object{"subject_ref", ref, "code", codes[i]}, []any{ref, codes[i]}
				}
				return m.Show(list, func(p *render.Page) { p.Table("The file has no references.", "REFERENCE,CODE", rows) })
			})
		},
	}
}

// readFile opens a file that a command line names, and calls do.
func readFile(m *cli.Meta, name string, do func(io.Reader) error) error {
	if name == "-" {
		return do(m.In())
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(do(file), file.Close())
}

// endLinks completes a command that ends the code and the links of a reference.
func endLinks(c cli.Command, end func(ctx context.Context, o office, ref string) (citizens.Renewal, error)) cli.Command {
	var mode string
	var subjects []string
	c.Missing = access.MissingAgency
	c.Flags = func(f *pflag.FlagSet, _ *cli.Meta) {
		takesSubject(f, &subjects)
		takesPortalMode(f, &mode)
	}
	c.Check = func(*cli.Meta) error { return needsSubject(subjects) }
	c.Operate = func(ctx context.Context, m *cli.Meta) error {
		return withOffice(ctx, m, mode, func(o office) error {
			r, err := end(ctx, o, subjects[0])
			if err != nil {
				return err
			}
			return m.Show(render.Object{
				"agency", o.agency.Slug, "mode", registry.Mode(o.live), "subject_ref", subjects[0], "code?", r.Code, "links_ended", r.Links, "contacts_ended", r.Contacts,
			}, func(p *render.Page) {
				if r.Code != "" {
					p.Say("New link code of %s (%s mode):\n\n  %s\n", subjects[0], registry.Mode(o.live), r.Code)
				}
				p.Say("The old code has ended, with %s and %s.", render.Counted(r.Links, "link"), render.Counted(r.Contacts, "verified contact"))
			})
		})
	}
	return c
}

func renewLinks() cli.Command {
	return endLinks(cli.Command{
		Use: "renew AGENCY", Short: "Make a new link code for a reference; the old code and all links end", JSON: "the new code",
		Examples: []string{"links renew impots --subject TP-1001"},
	}, func(ctx context.Context, o office, ref string) (citizens.Renewal, error) {
		return o.Renew(ctx, o.by, o.subject(ref))
	})
}

func revokeLinks() cli.Command {
	return endLinks(cli.Command{
		Use: "revoke AGENCY", Short: "End the link code and all links of a reference, without a new code", JSON: "what has ended",
		Long:     "End the link code and all links of a reference, without a new code. `quittance links codes` or `quittance links renew` tells one when the taxpayer may be linked again.",
		Examples: []string{"links revoke impots --subject TP-1001"},
	}, func(ctx context.Context, o office, ref string) (citizens.Renewal, error) {
		return o.Revoke(ctx, o.by, o.subject(ref))
	})
}

func listLinks() cli.Command {
	var mode string
	var subjects []string
	return cli.Command{
		Use: "list AGENCY", Short: "List the accounts that are linked to a reference, with masked contacts", JSON: "the list", Missing: access.MissingAgency,
		Examples: []string{"links list impots --subject TP-1001"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			takesSubject(f, &subjects)
			takesPortalMode(f, &mode)
		},
		Check: func(*cli.Meta) error { return needsSubject(subjects) },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withOffice(ctx, m, mode, func(o office) error {
				holders, err := o.Holders(ctx, o.subject(subjects[0]))
				if err != nil {
					return err
				}
				if err := m.Audit(ctx, "link.read", o.agency.ID, map[string]any{"mode": registry.Mode(o.live), "links": len(holders)}); err != nil {
					return err
				}
				return m.Show(render.Mapped(holders, func(h citizens.Holder) render.Object {
					return render.Object{"id", h.LinkID, "subject_ref", subjects[0], "contacts", append([]string{}, h.Addresses...), "proof", h.Proof, "created_at", h.CreatedAt, "used_at", h.UsedAt, "refused", h.Refused}
				}), func(p *render.Page) {
					p.Table("Nobody is linked to this reference.", "LINK,CONTACTS,PROOF,LINKED,USED", render.Mapped(holders, func(h citizens.Holder) []any {
						proof := h.Proof
						if h.Refused {
							proof = "not written by the service"
						}
						return []any{h.LinkID, strings.Join(h.Addresses, ", "), proof, render.Moment(h.CreatedAt), render.Moment(h.UsedAt)}
					}))
				})
			})
		},
	}
}

func alertsOfLinks() cli.Command {
	var mode string
	return cli.Command{
		Use: "alerts AGENCY", Short: "List the references whose holders ask for a new code, and those whose code somebody tries to guess", JSON: "the list", Missing: access.MissingAgency,
		Examples: []string{"links alerts impots"},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { takesPortalMode(f, &mode) },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withOffice(ctx, m, mode, func(o office) error {
				list, err := o.Attentions(ctx, o.agency.ID, o.live)
				if err != nil {
					return err
				}
				return m.Show(render.Mapped(list, func(a citizens.Attention) render.Object {
					return render.Object{"subject_ref", a.SubjectRef, "renewal_asked_at", a.AskedAt, "wrong_codes", a.Failures, "links", a.Holders}
				}), func(p *render.Page) {
					p.Table("Nobody asks for a new code, and no reference had "+fmt.Sprint(citizens.FailuresOfSubject)+" wrong codes in the last day.", "REFERENCE,NEW CODE ASKED,WRONG CODES IN A DAY,LINKS", render.Mapped(list, func(a citizens.Attention) []any {
						return []any{a.SubjectRef, render.MomentOr(a.AskedAt, "no"), a.Failures, a.Holders}
					}))
				})
			})
		},
	}
}

const importFormat = `Import contacts of taxpayers that the agency has verified. Whoever signs in to the portal with such a contact within 90 days is linked to its reference. After 90 days the contact does not link any more, because phone numbers are given to others; another import of it begins the 90 days again.

The file is CSV in UTF-8, with commas or semicolons. Each line has a reference, and a mobile number of Congo or an e-mail address. With a first line of names the columns may come in any order: subject_ref, phone, email, contact (either of both). Nothing is imported unless the whole file is good. A file may be imported again.

A contact that was ended by ` + "`quittance links revoke` or `quittance links renew`" + `, or by its holder who removed the reference in the portal, is skipped, and the number of those is printed. --again imports them too: give it when the agency has verified the contacts of the file since.`

func importLinks() cli.Command {
	var mode string
	var again bool
	return cli.Command{
		Use: "import AGENCY FILE", Short: "Import contacts that the agency has verified; they link when they sign in", Long: importFormat, JSON: "the counts",
		Args:     needsAgencyAndFile,
		Examples: []string{"links import impots contacts.csv", "links import impots - --mode test < contacts.csv"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			takesPortalMode(f, &mode)
			f.BoolVar(&again, "again", false, "import also contacts that an operator has revoked, or whose holder has removed the reference")
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			var contacts []citizens.Contact
			err := readFile(m, m.Args[1], func(in io.Reader) (err error) {
				contacts, err = readContacts(in)
				return err
			})
			if err != nil {
				return err
			}
			return withOffice(ctx, m, mode, func(o office) error {
				done, err := o.Import(ctx, m.By, o.agency.ID, o.live, contacts, again)
				if err != nil {
					return err
				}
				return m.Show(render.Object{
					"agency", o.agency.Slug, "mode", registry.Mode(o.live), "contacts", len(contacts), "new", done.New,
					"skipped_revoked", done.Revoked, "skipped_removed", done.Removed, "revived", done.Revived,
				}, func(p *render.Page) { sayImported(p, o, len(contacts), done) })
			})
		},
	}
}

func sayImported(p *render.Page, o office, contacts int, done citizens.Imported) {
	skipped := done.Revoked + done.Removed
	p.Say("Imported %s for %s (%s mode), new: %d.", render.Counted(int64(contacts)-skipped, "contact"), o.agency.Slug, registry.Mode(o.live), done.New)
	if done.Revived > 0 {
		p.Say("Linked again after being revoked or removed: %d.", done.Revived)
	}
	if skipped > 0 {
		p.Say("Skipped %s: revoked by an operator %d, removed by the holder %d. If the agency has verified them since, import them with --again.", render.Counted(skipped, "contact"), done.Revoked, done.Removed)
	}
}
