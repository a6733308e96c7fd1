package clerk

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
	"quittance/internal/registry"
)

// Command returns the command `clerks`.
func Command() cli.Command {
	return cli.Command{Use: "clerks", Short: "Give the clerks of agencies' counters their keys", Commands: []cli.Command{addClerk(), limitClerk(), listClerks(), revokeClerk(), listDevices(), forgetDevices()}, Words: words}
}

// clerkJSON is a clerk as --json prints it. The agency is a slug.
func clerkJSON(c identity.ClerkEntry) render.Object {
	return render.Object{
		"agency", c.Agency, "code", c.Code, "name", c.Name, "counter", c.Counter, "active", c.Active,
		"payment_limit", c.PaymentLimit, "day_limit", c.DayLimit,
		"keys", render.Mapped(c.Keys, func(k identity.Key) render.Object {
			return render.Object{
				"id", k.ID, "mode", registry.Mode(k.Live), "created_at", k.CreatedAt, "last_used_at", k.LastUsedAt, "revoked_at", k.RevokedAt,
			}
		}),
	}
}

func addClerk() cli.Command {
	var req identity.ClerkRequest
	var mode string
	return cli.Command{
		Use: "add", Short: "Make a key for a new or an existing clerk and show it once", JSON: "the clerk and the key",
		Examples: []string{`clerks add --agency impots --code c03 --name "Guichet 3" --counter Annexe --mode test`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&req.Agency, "agency", "", "the agency, by slug or id")
			f.StringVar(&req.Code, "code", "", "name of the clerk within the agency, such as c01; receipts and journals show it")
			f.StringVar(&req.Name, "name", "", "name of a new clerk")
			f.StringVar(&req.Counter, "counter", "", "desk or place of a new clerk")
			cli.TakesMode(f, &mode)
		},
		Check: func(*cli.Meta) error { return cli.NeedsMode(mode) },
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			req.Live = mode == "live"
			k, err := identity.AddClerk(ctx, m.Pool, m.Keys, m.By, req, m.Now)
			if err != nil {
				return err
			}
			return m.Show(append(clerkJSON(k.ClerkEntry), "secret", k.Secret.Reveal()), func(p *render.Page) { // of the last key
				p.Say("New key %s of %s (%s, %s), %s mode. It is shown once and stored nowhere:\n\n  %s\n",
					k.Key.ID, k.Ref(), k.Name, k.Counter, registry.Mode(k.Key.Live), k.Secret.Reveal())
				if !k.Active {
					p.Say("The clerk is not active: the key opens nothing until the registry file says active: true.")
				}
			})
		},
	}
}

func limitClerk() cli.Command {
	var payment, day int64
	given := func(m *cli.Meta, flag string, value *int64) *int64 {
		if m.Changed(flag) {
			return value
		}
		return nil
	}
	return cli.Command{
		Use: "limit AGENCY/CODE", Short: "Limit the cash that a clerk puts on record, over all keys of the clerk", JSON: "the clerk",
		Examples: []string{"clerks limit impots/c03 --per-payment 500000 --per-day 2000000", "clerks limit impots/c03 --per-day 0"},
		Missing:  "say whose limits: {usage}; `quittance clerks list` shows the clerks",
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.Int64Var(&payment, "per-payment", 0, "largest total of one payment in XAF; 0 is no limit")
			f.Int64Var(&day, "per-day", 0, "largest sum of a day in Brazzaville in XAF, in each mode; cash that was given back counts; 0 is no limit")
		},
		Check: func(m *cli.Meta) error {
			if given(m, "per-payment", &payment) == nil && given(m, "per-day", &day) == nil {
				return cli.Usage("say which limit: --per-payment AMOUNT, --per-day AMOUNT, or both")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			c, err := identity.LimitClerk(ctx, m.Pool, m.Keys, m.By, m.Args[0], given(m, "per-payment", &payment), given(m, "per-day", &day), m.Now)
			if err != nil {
				return err
			}
			return m.Show(clerkJSON(c), func(p *render.Page) {
				p.Say("Limits of %s in XAF: a payment %s, a day %s.", c.Ref(), limit(c.PaymentLimit), limit(c.DayLimit))
			})
		},
	}
}

// limit is an amount that limits a clerk.
func limit(amount int64) string {
	if amount == 0 {
		return "unlimited"
	}
	return strconv.FormatInt(amount, 10)
}

func listClerks() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all clerks with their keys, without secrets", JSON: "the list", Examples: []string{"clerks list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			entries, err := identity.ListClerks(ctx, m.Pool)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(entries, clerkJSON), func(p *render.Page) {
				var rows [][]any
				for _, c := range entries {
					if len(c.Keys) == 0 {
						rows = append(rows, []any{c.Ref(), c.Name, c.Counter, limit(c.PaymentLimit), limit(c.DayLimit), "", "", "", "no keys"})
					}
					for _, k := range c.Keys {
						state := "active"
						switch {
						case !k.InForce(m.Now):
							state = "revoked " + render.Moment(k.RevokedAt)
						case !c.Active:
							state = "clerk not active"
						}
						rows = append(rows, []any{c.Ref(), c.Name, c.Counter, limit(c.PaymentLimit), limit(c.DayLimit), k.ID, registry.Mode(k.Live), render.MomentOr(k.LastUsedAt, "never"), state})
					}
				}
				p.Table("there are no clerks yet; add one with `quittance clerks add`", "CLERK,NAME,COUNTER,A PAYMENT,A DAY,KEY,MODE,LAST USED,STATE", rows)
			})
		},
	}
}

func revokeClerk() cli.Command {
	var mode string
	var yes bool
	return cli.Command{
		Use: "revoke AGENCY/CODE|KEY_ID", Short: "Revoke all keys of a clerk, or one key, at once and permanently; it asks before it revokes more than one", JSON: "the clerk",
		Examples: []string{"clerks revoke impots/c03", "clerks revoke impots/c03 --mode test"},
		Missing:  "say whose keys, or which key: `quittance clerks revoke AGENCY/CODE` or `quittance clerks revoke KEY_ID`; `quittance clerks list` shows both",
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesChoice(f, &mode, "mode", cli.Modes, "only keys of this mode: ")
			cli.YesFlag(f, &yes)
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			c, ended, err := revokeClerkKeys(ctx, m, m.Args[0], mode, yes)
			if err != nil {
				return err
			}
			return m.Show(clerkJSON(c), func(p *render.Page) {
				if len(ended) == 0 {
					p.Say("Nothing to revoke: %s has no such key in force.", c.Ref())
				}
				for _, k := range ended {
					p.Say("Key %s of %s, %s mode, is revoked: it opens nothing from now on.", k.ID, c.Ref(), registry.Mode(k.Live))
				}
			})
		},
	}
}

// revokeClerkKeys revokes the keys of a clerk, or one key, in one mode unless it is empty. It
// asks before it revokes more than one.
func revokeClerkKeys(ctx context.Context, m *cli.Meta, which, mode string, yes bool) (clerk identity.ClerkEntry, ended []identity.Key, err error) {
	all, err := identity.ListClerks(ctx, m.Pool)
	if err != nil {
		return clerk, nil, err
	}
	var keys []identity.Key
	var plan []string
	named := false
	for _, c := range all {
		for _, k := range c.Keys {
			if c.Ref() != which && k.ID != strings.ToLower(which) {
				continue
			}
			clerk, named = c, true
			if k.InForce(m.Now) && (mode == "" || mode == registry.Mode(k.Live)) {
				keys = append(keys, k)
				plan = append(plan, fmt.Sprintf("  %s, %s mode, last used %s", k.ID, registry.Mode(k.Live), render.MomentOr(k.LastUsedAt, "never")))
			}
		}
	}
	if len(keys) > 1 {
		if err := m.Agree(yes, fmt.Sprintf("This revokes %d keys of %s (%s), permanently:\n%s\n--mode or the id of a key revokes fewer.", len(keys), which, clerk.Name, strings.Join(plan, "\n"))); err != nil {
			return clerk, nil, err
		}
	}
	if !named || mode == "" {
		return identity.RevokeClerkKeys(ctx, m.Pool, m.Keys, m.By, which, m.Now)
	}
	for _, k := range keys {
		now, one, err := identity.RevokeClerkKeys(ctx, m.Pool, m.Keys, m.By, k.ID, m.Now)
		if err != nil {
			return clerk, ended, err
		}
		clerk, ended = now, append(ended, one...)
	}
	return clerk, ended, nil
}
