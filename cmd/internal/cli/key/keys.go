package key

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// Command returns the command `keys`.
func Command() cli.Command {
	return cli.Command{
		Use: "keys", Short: "Make, list, revoke and rotate API keys, and change the agencies of platform keys",
		Commands: []cli.Command{createKey(), listKeys(), revokeKey(), rotateKey(), grantKey(), ungrantKey()},
		Words:    words,
	}
}

// keyJSON is a key as --json prints it. The agencies are slugs.
func keyJSON(k identity.KeyEntry, now time.Time) render.Object {
	scope := "application"
	if k.Platform() {
		scope = "platform"
	}
	return render.Object{
		"id", k.ID, "scope", scope, "application_id?", k.ApplicationID, "application_name?", k.Application, "agencies", k.Agencies,
		"mode", registry.Mode(k.Live), "state", k.State(now), "reads_per_minute", k.ReadsPerMinute,
		"created_at", k.CreatedAt, "last_used_at", k.LastUsedAt, "ends_at", k.EndsAt, "revoked_at", k.RevokedAt,
	}
}

// whichKey is the error when the id of a key is missing.
const whichKey = "say which key: {usage}; `quittance keys list` shows the ids"

func createKey() cli.Command {
	var req identity.KeyRequest
	var platform bool
	var mode string
	return cli.Command{
		Use: "create", Short: "Make a key and show its secret once", JSON: "the key",
		Examples: []string{`keys create --application "Guichet fiscal" --mode test`, "keys create --platform --agency impots,douanes --mode live"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&req.Application, "application", "", "the application, by id or by its name if no other has it")
			f.BoolVar(&platform, "platform", false, "a platform key, with --agency")
			f.StringSliceVar(&req.Agencies, "agency", nil, "agencies that a platform key may act for, by slug or id; repeatable")
			cli.TakesMode(f, &mode)
			f.IntVar(&req.ReadsPerMinute, "reads-per-minute", 0, fmt.Sprintf("quota of a platform key (default %d)", registry.DefaultReadsPerMinute))
		},
		Check: func(m *cli.Meta) error {
			switch {
			case platform == (req.Application != ""):
				return cli.Usage("say whose the key is: either --application ID_OR_NAME, or --platform with --agency SLUG_OR_ID,…")
			case !platform && len(req.Agencies) > 0:
				return cli.Usage("--agency is for --platform; an application's key acts for the application's agency")
			case !platform && req.ReadsPerMinute != 0:
				return cli.Usage("--reads-per-minute is for --platform; an application's keys have reads_per_minute of the application, which `quittance seed FILE` sets")
			case platform && m.Changed("reads-per-minute") && req.ReadsPerMinute < 1:
				return cli.Usage("--reads-per-minute: must be 1 or more")
			}
			return cli.NeedsMode(mode)
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			req.Live = mode == "live"
			minted, err := identity.CreateKey(ctx, m.Pool, m.Keys, m.By, req, m.Now)
			if err != nil {
				return err
			}
			return m.Show(mintedJSON(minted, m.Now), func(p *render.Page) { sayMinted(p, minted) })
		},
	}
}

func listKeys() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all keys, without their secrets", JSON: "the list", Examples: []string{"keys list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			entries, err := identity.ListKeys(ctx, m.Pool)
			if err != nil {
				return err
			}
			list := render.Mapped(entries, func(k identity.KeyEntry) render.Object { return keyJSON(k, m.Now) })
			return m.Show(list, func(p *render.Page) {
				p.Table("there are no keys yet; make one with `quittance keys create`", "ID,OWNER,MODE,CREATED,LAST USED,STATE", render.Mapped(entries, func(k identity.KeyEntry) []any {
					return []any{k.ID, k.Owner(), registry.Mode(k.Live), render.Moment(k.CreatedAt), render.MomentOr(k.LastUsedAt, "never"), stateOf(k, m.Now)}
				}))
			})
		},
	}
}

func revokeKey() cli.Command {
	return cli.Command{
		Use: "revoke KEY_ID", Short: "Revoke a key at once and permanently", JSON: "the key", Missing: whichKey,
		Examples: []string{"keys revoke 018f0000-0000-7000-8000-0000000000aa"},
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			k, changed, err := identity.RevokeKey(ctx, m.Pool, m.Keys, m.By, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return m.Show(keyJSON(k, m.Now), func(p *render.Page) {
				what := "is revoked: it opens nothing from now on."
				if !changed {
					what = "was revoked before, at " + render.Moment(k.RevokedAt) + "."
				}
				p.Say("Key %s of %s, %s mode, %s", k.ID, k.Owner(), registry.Mode(k.Live), what)
			})
		},
	}
}

func rotateKey() cli.Command {
	var overlap time.Duration
	return cli.Command{
		Use: "rotate KEY_ID", Short: "Make a key that replaces another; the old key ends after the overlap", JSON: "the new key", Missing: whichKey,
		Examples: []string{"keys rotate 018f0000-0000-7000-8000-0000000000aa"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key remains valid; 0 ends it at once")
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			minted, replaced, err := identity.RotateKey(ctx, m.Pool, m.Keys, m.By, m.Args[0], overlap, m.Now)
			if err != nil {
				return err
			}
			return m.Show(append(mintedJSON(minted, m.Now), "replaces", keyJSON(replaced, m.Now)), func(p *render.Page) {
				sayMinted(p, minted)
				what := "works until " + render.Moment(replaced.EndsAt) + "."
				if overlap == 0 {
					what = "is revoked: it opens nothing from now on."
				}
				p.Say("The key that it replaces, %s, %s", replaced.ID, what)
			})
		},
	}
}

func grantKey() cli.Command {
	return regrantKey(cli.Command{
		Use: "grant KEY_ID", Short: "Let a platform key act for more agencies", Examples: []string{"keys grant 018f0000-0000-7000-8000-0000000000aa --agency douanes"},
	}, "agencies that the key may act for from now on, by slug or id; repeatable", false, identity.GrantKey)
}

func ungrantKey() cli.Command {
	return regrantKey(cli.Command{
		Use: "ungrant KEY_ID", Short: "Withdraw agencies from a platform key at once", Examples: []string{"keys ungrant 018f0000-0000-7000-8000-0000000000aa --agency douanes"},
	}, "agencies that the key may no longer act for, by slug or id; repeatable", true, identity.UngrantKey)
}

// agreeToWithdraw asks before agencies are withdrawn from more than one key.
func agreeToWithdraw(ctx context.Context, m *cli.Meta, yes bool, agencies []string) error {
	rotation, err := identity.ListRotation(ctx, m.Pool, m.Args[0])
	if err != nil {
		return err
	}
	var plan []string
	for _, k := range rotation {
		if k.InForce(m.Now) {
			plan = append(plan, fmt.Sprintf("  %s, %s mode, %s", k.ID, registry.Mode(k.Live), stateOf(k, m.Now)))
		}
	}
	if len(plan) < 2 {
		return nil
	}
	return m.Agree(yes, fmt.Sprintf("This withdraws %s from %d keys, because one replaces the other:\n%s", strings.Join(agencies, ", "), len(plan), strings.Join(plan, "\n")))
}

// regrantKey completes a command that changes the agencies of a platform key.
func regrantKey(c cli.Command, flag string, withdraws bool, do func(context.Context, *postgres.Pool, *secret.Keys, operation.Actor, string, []string, time.Time) ([]identity.KeyEntry, bool, error)) cli.Command {
	var agencies []string
	var yes bool
	c.Keyed = true
	c.JSON, c.Missing = "the key, and the other keys of its rotation that are in force, as a list", whichKey
	c.Flags = func(f *pflag.FlagSet, _ *cli.Meta) {
		f.StringSliceVar(&agencies, "agency", nil, flag)
		if withdraws {
			cli.YesFlag(f, &yes)
		}
	}
	c.Check = func(*cli.Meta) error {
		if len(agencies) == 0 {
			return cli.Usage("say which agencies: --agency SLUG_OR_ID,…")
		}
		return nil
	}
	c.Operate = func(ctx context.Context, m *cli.Meta) error {
		if withdraws {
			if err := agreeToWithdraw(ctx, m, yes, agencies); err != nil {
				return err
			}
		}
		keys, changed, err := do(ctx, m.Pool, m.Keys, m.By, m.Args[0], agencies, m.Now)
		if err != nil {
			return err
		}
		return m.Show(render.Mapped(keys, func(k identity.KeyEntry) render.Object { return keyJSON(k, m.Now) }), func(p *render.Page) {
			for _, k := range keys {
				p.Say("Key %s, %s mode, %s, acts for: %s.", k.ID, registry.Mode(k.Live), stateOf(k, m.Now), strings.Join(k.Agencies, ", "))
			}
			if !changed {
				p.Say("Nothing changed: that was so before.")
			}
		})
	}
	return c
}

// sayMinted adds a new key with its secret. No other output shows the secret.
func sayMinted(p *render.Page, k identity.MintedKey) {
	p.Say("New key %s of %s, %s mode. Its secret is shown once and stored nowhere:\n\n  %s\n", k.ID, k.Owner(), registry.Mode(k.Live), k.Secret.Reveal())
	if k.Inactive {
		p.Say("The application is not active: the key opens nothing until it is.")
	}
}

func mintedJSON(k identity.MintedKey, now time.Time) render.Object {
	return append(keyJSON(k.KeyEntry, now), "secret", k.Secret.Reveal())
}

// stateOf returns the state of a key for people.
func stateOf(k identity.KeyEntry, now time.Time) string {
	said := string(k.State(now))
	switch identity.KeyState(said) {
	case identity.KeyStateActive:
	case identity.KeyStateEnding:
		said = "ends " + render.Moment(k.EndsAt)
	case identity.KeyStateEnded:
		said = "ended " + render.Moment(k.EndsAt)
	case identity.KeyStateRevoked:
		said = "revoked " + render.Moment(k.RevokedAt)
	}
	if k.Inactive {
		said += ", application not active"
	}
	return said
}
