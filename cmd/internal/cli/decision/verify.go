package decision

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
)

// errDoesNotHold is the error of a verification that found proofs which do not hold, which were shown.
var errDoesNotHold = errors.New("not every decision is as a person has signed it: see above. Find out who changed the database; nothing is carried out on such a proof")

// most is how many proofs the command shows.
const most = 10_000

// Command returns the command `decisions`.
func Command() cli.Command {
	return cli.Command{
		Use: "decisions", Short: "Verify what staff have signed with their passkeys",
		Commands: []cli.Command{verification()},
	}
}

func verification() cli.Command {
	var since, until string
	var filter identity.ProofFilter
	return cli.Command{
		Use: "verify", Short: "Verify the decisions that passkeys have signed", JSON: "the decisions with their proofs, which other programs can verify", Args: cobra.NoArgs,
		Long: `Verify the decisions that passkeys have signed: the statement is the one that was signed, the passkey is the person's and was in force, and the signature holds. Nothing is written. The command ends with code 1 if a decision does not hold.

With --json each decision has its statement, public key and signature. docs/operating/decisions has a script for Node and one for Python that verify the list without this program. What they cannot know is whose a public key is: compare it with what the person shows.`,
		Examples: []string{"decisions verify", "decisions verify --subject case_x4hq --json > decisions.json", "decisions verify --since 2026-11-01 --kind case"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&filter.Kind, "kind", "", "decisions of this kind, such as case; all when empty")
			f.StringVar(&filter.Subject, "subject", "", "decisions about this id, such as that of a case; all when empty")
			f.StringVar(&since, "since", "", "decisions at or after this time: "+cli.MomentForms+"; all when empty")
			f.StringVar(&until, "until", "", "decisions before this time, in the same forms; up to now when empty")
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) (err error) {
			if err := access.OfAllAgencies(ctx, m, "audit.not_yours"); err != nil {
				return err
			}
			if filter.Since, err = cli.MomentOf("since", since, m.Now); err != nil {
				return err
			}
			if filter.Until, err = cli.MomentOf("until", until, m.Now); err != nil {
				return err
			}
			var list, wrong []identity.CheckedProof
			n := 0
			err = identity.VerifyProofs(ctx, m.Pool, m.Keys, filter, func(p identity.CheckedProof) error {
				if n++; m.AsJSON && n > most {
					return cli.Usage("there are more than %d decisions; choose fewer with --since, --until or --subject", most)
				}
				if m.AsJSON {
					list = append(list, p)
				}
				if p.Fault != "" && len(wrong) < most {
					wrong = append(wrong, p)
				}
				return nil
			})
			if err != nil {
				return err
			}
			err = m.Show(render.Mapped(list, proofJSON), func(p *render.Page) {
				p.Say("Verified: %s. Not as signed: %d.", render.Counted(n, "decision"), len(wrong))
				p.Table("", "AT,PERSON,KIND,SUBJECT,VERDICT,FAULT,ID", render.Mapped(wrong, func(c identity.CheckedProof) []any {
					return []any{render.Moment(c.At), render.OrDash(c.Person), c.Kind, c.Subject, c.Verdict, c.Fault, c.ID}
				}))
			})
			if err == nil && len(wrong) > 0 {
				err = errDoesNotHold
			}
			return err
		},
	}
}

// proofJSON is a proof as --json prints it. Bytes are base64url without padding, as WebAuthn has them.
func proofJSON(p identity.CheckedProof) render.Object {
	text := base64.RawURLEncoding.EncodeToString
	return render.Object{
		"id", p.ID, "at", p.At, "person", p.StaffID, "name", render.OrNone(p.Person), "kind", p.Kind, "subject", p.Subject, "verdict", p.Verdict, "agency_id", render.OrNone(p.AgencyID),
		"holds", p.Fault == "", "fault", render.OrNone(string(p.Fault)), "host", p.Host, "statement", string(p.Statement), "challenge", text(p.Challenge),
		"public_key", text(p.PublicKey), "client_data", text(p.Evidence.ClientData), "authenticator_data", text(p.Evidence.AuthenticatorData), "signature", text(p.Evidence.Signature),
	}
}
