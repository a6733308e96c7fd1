package cli

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"quittance/internal/identity"
)

func clerks() Command {
	return Command{Use: "clerks", Short: "Give the clerks of agencies' counters their keys", Commands: []Command{addClerk(), listClerks(), revokeClerk()}}
}

// clerkJSON is a clerk as --json prints one.
type clerkJSON struct {
	Agency  string         `json:"agency"` // slug
	Code    string         `json:"code"`
	Name    string         `json:"name"`
	Counter string         `json:"counter"`
	Active  bool           `json:"active"`
	Keys    []clerkKeyJSON `json:"keys"`

	Secret string `json:"secret,omitempty"` // of a new key, the last of Keys
}

type clerkKeyJSON struct {
	ID         string     `json:"id"`
	Mode       string     `json:"mode"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func toClerkJSON(c identity.ClerkEntry) clerkJSON {
	return clerkJSON{Agency: c.Agency, Code: c.Code, Name: c.Name, Counter: c.Counter, Active: c.Active, Keys: mapped(c.Keys, func(k identity.Key) clerkKeyJSON {
		return clerkKeyJSON{k.ID, modeOf(k.Live), k.CreatedAt, timeOrNull(k.LastUsedAt), timeOrNull(k.RevokedAt)}
	})}
}

func addClerk() Command {
	var req identity.ClerkRequest
	var mode string
	return Command{
		Use: "add", Short: "Give a clerk, new or known, a key and show it, once", JSON: "the clerk and the key",
		Examples: []string{`clerks add --agency impots --code c03 --name "Guichet 3" --counter Annexe --mode test`},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&req.Agency, "agency", "", "the agency, by slug or id")
			f.StringVar(&req.Code, "code", "", "tells the agency's clerks apart, also in receipts and journals, such as c01")
			f.StringVar(&req.Name, "name", "", "of a new clerk")
			f.StringVar(&req.Counter, "counter", "", "desk or place of a new clerk")
			takesMode(f, &mode)
		},
		Check: func(*Meta) error { return needsMode(mode) },
		Operate: func(ctx context.Context, m *Meta) error {
			req.Live = mode == "live"
			k, err := identity.AddClerk(ctx, m.pool, operator(), req, m.now)
			if err != nil {
				return err
			}
			j := toClerkJSON(k.ClerkEntry)
			j.Secret = k.Secret.Reveal()
			return m.show(j, func(p *page) {
				p.say("New key %s of %s (%s, %s), %s mode. It is shown once and stored nowhere:\n\n  %s\n",
					k.Key.ID, k.Ref(), k.Name, k.Counter, modeOf(k.Key.Live), k.Secret.Reveal())
				if !k.Active {
					p.say("The clerk is not active: the key opens nothing until the registry file says active: true.")
				}
			})
		},
	}
}

func listClerks() Command {
	return Command{
		Use: "list", Short: "List all clerks with their keys, without secrets", JSON: "the list", Examples: []string{"clerks list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			entries, err := identity.ListClerks(ctx, m.pool)
			if err != nil {
				return err
			}
			return m.show(mapped(entries, toClerkJSON), func(p *page) {
				var rows [][]any
				for _, c := range entries {
					if len(c.Keys) == 0 {
						rows = append(rows, []any{c.Ref(), c.Name, c.Counter, "", "", "", "no keys"})
					}
					for _, k := range c.Keys {
						state := "active"
						switch {
						case !k.InForce(m.now):
							state = "revoked " + moment(k.RevokedAt)
						case !c.Active:
							state = "clerk not active"
						}
						rows = append(rows, []any{c.Ref(), c.Name, c.Counter, k.ID, modeOf(k.Live), momentOr(k.LastUsedAt, "never"), state})
					}
				}
				p.table("there are no clerks yet; add one with `quittance clerks add`", "CLERK,NAME,COUNTER,KEY,MODE,LAST USED,STATE", rows)
			})
		},
	}
}

func revokeClerk() Command {
	return Command{
		Use: "revoke AGENCY/CODE|KEY_ID", Short: "End a clerk's keys, or one of them, at once and for good", JSON: "the clerk", Examples: []string{"clerks revoke impots/c03"},
		Missing: "say whose keys, or which key: `quittance clerks revoke AGENCY/CODE` or `quittance clerks revoke KEY_ID`; `quittance clerks list` shows both",
		Operate: func(ctx context.Context, m *Meta) error {
			c, ended, err := identity.RevokeClerkKeys(ctx, m.pool, operator(), m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.show(toClerkJSON(c), func(p *page) {
				if len(ended) == 0 {
					p.say("Nothing to revoke: %s has no such key in force.", c.Ref())
				}
				for _, k := range ended {
					p.say("Key %s of %s, %s mode, is revoked: it opens nothing from now on.", k.ID, c.Ref(), modeOf(k.Live))
				}
			})
		},
	}
}
