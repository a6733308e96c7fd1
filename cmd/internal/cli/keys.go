package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quittance/internal/identity"
	"quittance/internal/postgres"
	"quittance/internal/registry"
)

func (p Program) keys() *cobra.Command {
	return p.group("keys", "Make, list, revoke and rotate API keys", "create, list, revoke or rotate", p.createKey(), p.listKeys(), p.revokeKey(), p.rotateKey())
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

// keyCommand makes a command whose argument is the id of a key.
func (p Program) keyCommand(verb, short, json string, run func(context.Context, *cobra.Command, *meta, *postgres.Pool, string, time.Time) error) *cobra.Command {
	m := p.meta()
	cmd := command(verb+" KEY_ID", short, m, func(cmd *cobra.Command, args []string) error {
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			return run(ctx, cmd, m, pool, args[0], now)
		})
	})
	cmd.Example = p.Name + " keys " + verb + " 018f0000-0000-7000-8000-0000000000aa"
	takesArgument(cmd, "say which key: `quittance keys "+verb+" KEY_ID`; `quittance keys list` shows the ids")
	m.takesJSON(cmd, json)
	return cmd
}

func (p Program) createKey() *cobra.Command {
	m := p.meta()
	var req identity.KeyRequest
	var platform bool
	var mode string
	cmd := command("create", "Make a key and show its secret, once", m, func(cmd *cobra.Command, _ []string) error {
		switch {
		case platform == (req.Application != ""):
			return usage("say whose the key is: either --application ID_OR_NAME, or --platform with --agency SLUG_OR_ID,…")
		case !platform && len(req.Agencies) > 0:
			return usage("--agency is for --platform; an application's key acts for the application's agency")
		case !platform && req.ReadsPerMinute != 0:
			return usage("--reads-per-minute is for --platform; an application's keys have reads_per_minute of the application, which `quittance seed FILE` sets")
		case platform && cmd.Flags().Changed("reads-per-minute") && req.ReadsPerMinute < 1:
			return usage("--reads-per-minute: must be 1 or more")
		case mode == "":
			return needsMode(mode)
		}
		req.Live = mode == "live"
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			minted, err := identity.CreateKey(ctx, pool, operator(), req, now)
			if err != nil {
				return err
			}
			return m.show(cmd, toMintedJSON(minted, now), func(p *page) { p.minted(minted) })
		})
	})
	cmd.Example = p.Name + " keys create --application \"Guichet fiscal\" --mode test\n" + p.Name + " keys create --platform --agency impots,douanes --mode live"
	cmd.Flags().StringVar(&req.Application, "application", "", "the application, by id or by its name if no other has it")
	cmd.Flags().BoolVar(&platform, "platform", false, "a platform key, with --agency")
	cmd.Flags().StringSliceVar(&req.Agencies, "agency", nil, "agencies that a platform key may act for, by slug or id; repeatable")
	takesMode(cmd, &mode)
	cmd.Flags().IntVar(&req.ReadsPerMinute, "reads-per-minute", 0, fmt.Sprintf("quota of a platform key (default %d)", registry.DefaultReadsPerMinute))
	m.takesJSON(cmd, "the key")
	return cmd
}

func (p Program) listKeys() *cobra.Command {
	m := p.meta()
	cmd := command("list", "List all keys, without their secrets", m, func(cmd *cobra.Command, _ []string) error {
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			entries, err := identity.ListKeys(ctx, pool)
			if err != nil {
				return err
			}
			list := mapped(entries, func(k identity.KeyEntry) keyJSON { return toKeyJSON(k, now) })
			return m.show(cmd, list, func(p *page) {
				if len(entries) == 0 {
					p.say("there are no keys yet; make one with `quittance keys create`")
					return
				}
				p.table([]string{"ID", "OWNER", "MODE", "CREATED", "LAST USED", "STATE"}, mapped(entries, func(k identity.KeyEntry) []any {
					return []any{k.ID, k.Owner(), modeOf(k.Live), moment(k.CreatedAt), momentOr(k.LastUsedAt, "never"), stateOf(k, now)}
				}))
			})
		})
	})
	cmd.Example = p.Name + " keys list --json"
	m.takesJSON(cmd, "the list")
	return cmd
}

func (p Program) revokeKey() *cobra.Command {
	return p.keyCommand("revoke", "End a key at once and for good", "the key",
		func(ctx context.Context, cmd *cobra.Command, m *meta, pool *postgres.Pool, id string, now time.Time) error {
			k, changed, err := identity.RevokeKey(ctx, pool, operator(), id, now)
			if err != nil {
				return err
			}
			return m.show(cmd, toKeyJSON(k, now), func(p *page) {
				if !changed {
					p.say("Key %s of %s, %s mode, was revoked before, at %s.", k.ID, k.Owner(), modeOf(k.Live), moment(k.RevokedAt))
					return
				}
				p.say("Key %s of %s, %s mode, is revoked: it opens nothing from now on.", k.ID, k.Owner(), modeOf(k.Live))
			})
		})
}

func (p Program) rotateKey() *cobra.Command {
	var overlap time.Duration
	cmd := p.keyCommand("rotate", "Make a key that replaces another, which ends after the overlap", "the new key",
		func(ctx context.Context, cmd *cobra.Command, m *meta, pool *postgres.Pool, id string, now time.Time) error {
			minted, replaced, err := identity.RotateKey(ctx, pool, operator(), id, overlap, now)
			if err != nil {
				return err
			}
			j, old := toMintedJSON(minted, now), toKeyJSON(replaced, now)
			j.Replaces = &old
			return m.show(cmd, j, func(p *page) {
				p.minted(minted)
				if overlap == 0 {
					p.say("The key that it replaces, %s, is revoked: it opens nothing from now on.", replaced.ID)
				} else {
					p.say("The key that it replaces, %s, works until %s.", replaced.ID, moment(replaced.EndsAt))
				}
			})
		})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key goes on working; 0 ends it at once")
	return cmd
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
	var parts []string
	switch state := k.State(now); state {
	case identity.KeyStateActive:
		parts = append(parts, string(state))
	case identity.KeyStateEnding:
		parts = append(parts, "ends "+moment(k.EndsAt))
	case identity.KeyStateEnded:
		parts = append(parts, "ended "+moment(k.EndsAt))
	case identity.KeyStateRevoked:
		parts = append(parts, "revoked "+moment(k.RevokedAt))
	}
	if k.Inactive {
		parts = append(parts, "application not active")
	}
	return strings.Join(parts, ", ")
}
