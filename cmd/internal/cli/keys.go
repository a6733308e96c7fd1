package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"quittance/internal/identity"
	"quittance/internal/registry"
)

func keys() Command {
	return Command{Use: "keys", Short: "Make, list, revoke and rotate API keys", Commands: []Command{createKey(), listKeys(), revokeKey(), rotateKey()}}
}

// keyJSON is a key as --json prints it.
type keyJSON struct {
	ID              string            `json:"id"`
	Scope           string            `json:"scope"` // application or platform
	ApplicationID   string            `json:"application_id,omitempty"`
	ApplicationName string            `json:"application_name,omitempty"`
	Agencies        []string          `json:"agencies"` // slugs
	Mode            string            `json:"mode"`
	State           identity.KeyState `json:"state"`
	ReadsPerMinute  int               `json:"reads_per_minute"`
	CreatedAt       time.Time         `json:"created_at"`
	LastUsedAt      *time.Time        `json:"last_used_at"`
	EndsAt          *time.Time        `json:"ends_at"`
	RevokedAt       *time.Time        `json:"revoked_at"`

	Secret   string   `json:"secret,omitempty"`   // of a new key
	Replaces *keyJSON `json:"replaces,omitempty"` // by a rotation
}

func toKeyJSON(k identity.KeyEntry, now time.Time) keyJSON {
	scope := "application"
	if k.Platform() {
		scope = "platform"
	}
	return keyJSON{
		ID: k.ID, Scope: scope, ApplicationID: k.ApplicationID, ApplicationName: k.Application, Agencies: k.Agencies,
		Mode: modeOf(k.Live), State: k.State(now), ReadsPerMinute: k.ReadsPerMinute,
		CreatedAt: k.CreatedAt, LastUsedAt: timeOrNull(k.LastUsedAt), EndsAt: timeOrNull(k.EndsAt), RevokedAt: timeOrNull(k.RevokedAt),
	}
}

// whichKey is said when the id of a key is missing.
const whichKey = "say which key: {usage}; `quittance keys list` shows the ids"

func createKey() Command {
	var req identity.KeyRequest
	var platform bool
	var mode string
	return Command{
		Use: "create", Short: "Make a key and show its secret, once", JSON: "the key",
		Examples: []string{`keys create --application "Guichet fiscal" --mode test`, "keys create --platform --agency impots,douanes --mode live"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&req.Application, "application", "", "the application, by id or by its name if no other has it")
			f.BoolVar(&platform, "platform", false, "a platform key, with --agency")
			f.StringSliceVar(&req.Agencies, "agency", nil, "agencies that a platform key may act for, by slug or id; repeatable")
			takesMode(f, &mode)
			f.IntVar(&req.ReadsPerMinute, "reads-per-minute", 0, fmt.Sprintf("quota of a platform key (default %d)", registry.DefaultReadsPerMinute))
		},
		Check: func(m *Meta) error {
			switch {
			case platform == (req.Application != ""):
				return usage("say whose the key is: either --application ID_OR_NAME, or --platform with --agency SLUG_OR_ID,…")
			case !platform && len(req.Agencies) > 0:
				return usage("--agency is for --platform; an application's key acts for the application's agency")
			case !platform && req.ReadsPerMinute != 0:
				return usage("--reads-per-minute is for --platform; an application's keys have reads_per_minute of the application, which `quittance seed FILE` sets")
			case platform && m.cmd.Flags().Changed("reads-per-minute") && req.ReadsPerMinute < 1:
				return usage("--reads-per-minute: must be 1 or more")
			}
			return needsMode(mode)
		},
		Operate: func(ctx context.Context, m *Meta) error {
			req.Live = mode == "live"
			minted, err := identity.CreateKey(ctx, m.pool, operator(), req, m.now)
			if err != nil {
				return err
			}
			return m.show(toMintedJSON(minted, m.now), func(p *page) { p.minted(minted) })
		},
	}
}

func listKeys() Command {
	return Command{
		Use: "list", Short: "List all keys, without their secrets", JSON: "the list", Examples: []string{"keys list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			entries, err := identity.ListKeys(ctx, m.pool)
			if err != nil {
				return err
			}
			list := mapped(entries, func(k identity.KeyEntry) keyJSON { return toKeyJSON(k, m.now) })
			return m.show(list, func(p *page) {
				p.table("there are no keys yet; make one with `quittance keys create`", "ID,OWNER,MODE,CREATED,LAST USED,STATE", mapped(entries, func(k identity.KeyEntry) []any {
					return []any{k.ID, k.Owner(), modeOf(k.Live), moment(k.CreatedAt), momentOr(k.LastUsedAt, "never"), stateOf(k, m.now)}
				}))
			})
		},
	}
}

func revokeKey() Command {
	return Command{
		Use: "revoke KEY_ID", Short: "End a key at once and for good", JSON: "the key", Missing: whichKey,
		Examples: []string{"keys revoke 018f0000-0000-7000-8000-0000000000aa"},
		Operate: func(ctx context.Context, m *Meta) error {
			k, changed, err := identity.RevokeKey(ctx, m.pool, operator(), m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.show(toKeyJSON(k, m.now), func(p *page) {
				what := "is revoked: it opens nothing from now on."
				if !changed {
					what = "was revoked before, at " + moment(k.RevokedAt) + "."
				}
				p.say("Key %s of %s, %s mode, %s", k.ID, k.Owner(), modeOf(k.Live), what)
			})
		},
	}
}

func rotateKey() Command {
	var overlap time.Duration
	return Command{
		Use: "rotate KEY_ID", Short: "Make a key that replaces another, which ends after the overlap", JSON: "the new key", Missing: whichKey,
		Examples: []string{"keys rotate 018f0000-0000-7000-8000-0000000000aa"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key goes on working; 0 ends it at once")
		},
		Operate: func(ctx context.Context, m *Meta) error {
			minted, replaced, err := identity.RotateKey(ctx, m.pool, operator(), m.args[0], overlap, m.now)
			if err != nil {
				return err
			}
			j, old := toMintedJSON(minted, m.now), toKeyJSON(replaced, m.now)
			j.Replaces = &old
			return m.show(j, func(p *page) {
				p.minted(minted)
				what := "works until " + moment(replaced.EndsAt) + "."
				if overlap == 0 {
					what = "is revoked: it opens nothing from now on."
				}
				p.say("The key that it replaces, %s, %s", replaced.ID, what)
			})
		},
	}
}

// minted shows the secret of a new key: nothing else does.
func (p *page) minted(k identity.MintedKey) {
	p.say("New key %s of %s, %s mode. Its secret is shown once and stored nowhere:\n\n  %s\n", k.ID, k.Owner(), modeOf(k.Live), k.Secret.Reveal())
	if k.Inactive {
		p.say("The application is not active: the key opens nothing until it is.")
	}
}

func toMintedJSON(k identity.MintedKey, now time.Time) keyJSON {
	j := toKeyJSON(k.KeyEntry, now)
	j.Secret = k.Secret.Reveal()
	return j
}

func stateOf(k identity.KeyEntry, now time.Time) string {
	said := string(k.State(now))
	switch identity.KeyState(said) {
	case identity.KeyStateActive:
	case identity.KeyStateEnding:
		said = "ends " + moment(k.EndsAt)
	case identity.KeyStateEnded:
		said = "ended " + moment(k.EndsAt)
	case identity.KeyStateRevoked:
		said = "revoked " + moment(k.RevokedAt)
	}
	if k.Inactive {
		said += ", application not active"
	}
	return said
}
