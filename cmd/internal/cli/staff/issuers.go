package staff

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
	"quittance/internal/openid"
	"quittance/internal/secret"
)

// whichIssuer is the error when the argument ISSUER is missing.
const whichIssuer = "say which: {usage}, the id or the group, an agency's slug or operations; `quittance staff issuers list` shows both"

func issuers() cli.Command {
	return cli.Command{
		Use: "issuers", Short: "Have the people of a group sign in at their identity provider, too",
		Commands: []cli.Command{addIssuer(), showIssuer(), listIssuers(), bindSubject(), removeIssuer()},
	}
}

// issuerJSON is an issuer as --json prints it, without the client's secret. The agency is a slug, null for operations.
func issuerJSON(i identity.IssuerEntry) render.Object {
	return render.Object{
		"id", i.ID, "address", i.Address, "client_id", i.ClientID, "agency", render.OrNone(i.Agency), "algorithms", i.Algorithms, "people_bound", i.Bound, "people_unbound", i.Unbound,
		"created_at", i.CreatedAt, "outage_until", i.OutageUntil, "outage_reason", render.OrNone(i.OutageReason), "callback_path", identity.IssuerPath + i.ID, "logout_path", identity.IssuerPath + i.ID + identity.LogoutSuffix,
	}
}

func addIssuer() cli.Command {
	var req identity.IssuerRequest
	var clientSecret, url string
	return cli.Command{
		Use: "add", Short: "Make an identity provider the one of a group, or replace the client's secret", JSON: "the issuer",
		Long: "Make an identity provider (OpenID Connect) the one of a group: its people prove their passkey and then sign in there. Their sessions end. Whoever is not bound to a subject there signs in no more: " +
			"`quittance staff issuers bind` binds those whom the group has, invitations bind new ones. The same address again replaces client, secret and algorithms, and people stay bound.",
		Examples: []string{"staff issuers add --address https://idp.example.org/realms/impots --client-id quittance --agency impots --staff-url https://staff.example"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&req.Address, "address", "", "the issuer, as its configuration names it (iss)")
			f.StringVar(&req.ClientID, "client-id", "", "the name of this service at the issuer")
			f.StringVar(&clientSecret, "client-secret", "", "the secret of this service at the issuer; prefer QUITTANCE_CLIENT_SECRET, which other users of the machine cannot read")
			f.StringVar(&req.Agency, "agency", "", "whose people sign in there, by slug or id; operations without it")
			f.StringSliceVar(&req.Algorithms, "algorithm", nil, "how the issuer signs; repeatable: "+strings.Join(openid.Algorithms, ", ")+"; RS256 unless set")
			f.StringVar(&url, "staff-url", "", "URL of the pages of staff, to show the addresses that the issuer has to know")
		},
		Check: func(*cli.Meta) error {
			if req.Address == "" || req.ClientID == "" || clientSecret == "" {
				return cli.Usage("give --address, --client-id and --client-secret (also as QUITTANCE_CLIENT_SECRET), as the identity provider has them")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			req.Secret, req.Loopback = secret.NewText(clientSecret), m.Loopback
			i, err := identity.AddIssuer(ctx, m.Pool, m.Keys, m.By, req, m.Now)
			if err != nil {
				return err
			}
			return m.Show(issuerJSON(i), func(p *render.Page) {
				p.Say("The people of %s sign in with a passkey and at %s. Register these addresses there:\n", i.Group(), i.Address)
				sayAddresses(p, i, url)
				if i.Unbound > 0 {
					p.Say("People of %s who are not known there yet: %d. They cannot sign in: say who they are with `quittance staff issuers bind STAFF --subject SUB`.", i.Group(), i.Unbound)
				}
			})
		},
	}
}

func sayAddresses(p *render.Page, i identity.IssuerEntry, url string) {
	at := strings.TrimSuffix(url, "/") + identity.IssuerPath + i.ID
	p.Say("  redirect URI          %s\n  back-channel logout   %s\n", at, at+identity.LogoutSuffix)
}

// outageOf returns what a list says of an outage.
func outageOf(i identity.IssuerEntry, now time.Time) string {
	if !i.Away(now) {
		return "no"
	}
	return fmt.Sprintf("until %s: %s", render.Moment(i.OutageUntil), i.OutageReason)
}

func showIssuer() cli.Command {
	var url string
	return cli.Command{
		Use: "show ISSUER", Short: "Show an identity provider, without the client's secret", JSON: "the issuer", Missing: whichIssuer, Examples: []string{"staff issuers show impots --staff-url https://staff.example"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&url, "staff-url", "", "URL of the pages of staff, to show whole addresses")
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			i, err := identity.FindIssuer(ctx, m.Pool, m.Args[0])
			if err != nil {
				return err
			}
			return m.Show(issuerJSON(i), func(p *render.Page) {
				p.Say("%s is the identity provider of %s, as client %s, with %s. People: %d bound, %d not. Outage: %s.\n", i.Address, i.Group(), i.ClientID, strings.Join(i.Algorithms, ", "), i.Bound, i.Unbound, outageOf(i, m.Now))
				sayAddresses(p, i, url)
			})
		},
	}
}

func listIssuers() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all identity providers, without the clients' secrets", JSON: "the list", Examples: []string{"staff issuers list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			list, err := identity.ListIssuers(ctx, m.Pool, nil)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, issuerJSON), func(p *render.Page) {
				p.Table("no group has an identity provider: passkeys sign in; `quittance staff issuers add` makes one", "ID,OF,ADDRESS,CLIENT,BOUND,NOT BOUND,OUTAGE", render.Mapped(list, func(i identity.IssuerEntry) []any {
					return []any{i.ID, i.Group(), i.Address, i.ClientID, i.Bound, i.Unbound, outageOf(i, m.Now)}
				}))
			})
		},
	}
}

func bindSubject() cli.Command {
	var subject string
	return cli.Command{
		Use: "bind STAFF", Short: "Say who a known member of staff is at the identity provider of the group", JSON: "the member", Missing: whichStaff,
		Examples: []string{`staff issuers bind "Jean Mabiala" --subject 248289761001`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&subject, "subject", "", "the person's subject at the issuer (sub), as its administrator sees it; not the e-mail address")
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := identity.BindSubject(ctx, m.Pool, m.Keys, m.By, m.Args[0], subject, m.Now)
			if err != nil {
				return err
			}
			return m.Show(staffJSON(s), func(p *render.Page) {
				p.Say("%s (%s) signs in with a passkey and as %s at %s.", s.Name, s.Group(), s.Subject, s.Issuer)
			})
		},
	}
}

func removeIssuer() cli.Command {
	return cli.Command{
		Use: "remove ISSUER", Short: "End the identity provider of a group: passkeys alone sign in", JSON: "the issuer", Missing: whichIssuer, Examples: []string{"staff issuers remove impots"},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			i, err := identity.RemoveIssuer(ctx, m.Pool, m.Keys, m.By, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return m.Show(issuerJSON(i), func(p *render.Page) {
				p.Say("%s has no identity provider any more: its people sign in with passkeys alone. People who were bound to a subject: %d.", i.Group(), i.Bound)
			})
		},
	}
}

func outage() cli.Command {
	var hours int
	var reason string
	var end bool
	return cli.Command{
		Use: "outage ISSUER", Short: "Let passkeys alone sign in for some hours, because an identity provider is away", JSON: "the issuer", Missing: whichIssuer,
		Examples: []string{`staff outage impots --hours 4 --reason "the identity provider of impots is down, ticket 4711"`, "staff outage impots --end"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.IntVar(&hours, "hours", 0, fmt.Sprintf("how long, at most %d; it ends by itself", int(identity.MaxOutage.Hours())))
			f.StringVar(&reason, "reason", "", "why, in one line; the audit table has it")
			f.BoolVar(&end, "end", false, "end an outage before its time")
		},
		Check: func(*cli.Meta) error {
			if given := hours != 0 || reason != ""; end == given {
				return cli.Usage("give either --hours and --reason, or --end")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if end {
				i, err := identity.EndOutage(ctx, m.Pool, m.Keys, m.By, m.Args[0], m.Now)
				if err != nil {
					return err
				}
				return m.Show(issuerJSON(i), func(p *render.Page) {
					p.Say("The outage is over: the people of %s sign in at %s again. Sessions that have begun stay.", i.Group(), i.Address)
				})
			}
			i, err := identity.BeginOutage(ctx, m.Pool, m.Keys, m.By, m.Args[0], time.Duration(hours)*time.Hour, reason, m.Now)
			if err != nil {
				return err
			}
			return m.Show(issuerJSON(i), func(p *render.Page) {
				p.Say("Until %s the people of %s sign in with a passkey alone. Those who have an address are told now, and an alert fires. `quittance staff outage %s --end` ends it before.", render.Moment(i.OutageUntil), i.Group(), m.Args[0])
			})
		},
	}
}
