package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/registry"
)

func keys() Command {
	return Command{
		Use: "keys", Short: "Make, list, revoke and rotate API keys, and change the agencies of platform keys",
		Commands: []Command{createKey(), listKeys(), revokeKey(), rotateKey(), grantKey(), ungrantKey()},
		Words:    keyWords,
	}
}

// keyJSON is a key as --json prints it. The agencies are slugs.
func keyJSON(k identity.KeyEntry, now time.Time) object {
	scope := "application"
	if k.Platform() {
		scope = "platform"
	}
	return object{
		"id", k.ID, "scope", scope, "application_id?", k.ApplicationID, "application_name?", k.Application, "agencies", k.Agencies,
		"mode", registry.Mode(k.Live), "state", k.State(now), "reads_per_minute", k.ReadsPerMinute,
		"created_at", k.CreatedAt, "last_used_at", k.LastUsedAt, "ends_at", k.EndsAt, "revoked_at", k.RevokedAt,
	}
}

// whichKey is the error when the id of a key is missing.
const whichKey = "say which key: {usage}; `quittance keys list` shows the ids"

func createKey() Command {
	var req identity.KeyRequest
	var platform bool
	var mode string
	return Command{
		Use: "create", Short: "Make a key and show its secret once", JSON: "the key",
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
			case platform && m.changed("reads-per-minute") && req.ReadsPerMinute < 1:
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
			return m.show(mintedJSON(minted, m.now), func(p *page) { p.minted(minted) })
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
			list := mapped(entries, func(k identity.KeyEntry) object { return keyJSON(k, m.now) })
			return m.show(list, func(p *page) {
				p.table("there are no keys yet; make one with `quittance keys create`", "ID,OWNER,MODE,CREATED,LAST USED,STATE", mapped(entries, func(k identity.KeyEntry) []any {
					return []any{k.ID, k.Owner(), registry.Mode(k.Live), moment(k.CreatedAt), momentOr(k.LastUsedAt, "never"), stateOf(k, m.now)}
				}))
			})
		},
	}
}

func revokeKey() Command {
	return Command{
		Use: "revoke KEY_ID", Short: "Revoke a key at once and permanently", JSON: "the key", Missing: whichKey,
		Examples: []string{"keys revoke 018f0000-0000-7000-8000-0000000000aa"},
		Operate: func(ctx context.Context, m *Meta) error {
			k, changed, err := identity.RevokeKey(ctx, m.pool, operator(), m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.show(keyJSON(k, m.now), func(p *page) {
				what := "is revoked: it opens nothing from now on."
				if !changed {
					what = "was revoked before, at " + moment(k.RevokedAt) + "."
				}
				p.say("Key %s of %s, %s mode, %s", k.ID, k.Owner(), registry.Mode(k.Live), what)
			})
		},
	}
}

func rotateKey() Command {
	var overlap time.Duration
	return Command{
		Use: "rotate KEY_ID", Short: "Make a key that replaces another; the old key ends after the overlap", JSON: "the new key", Missing: whichKey,
		Examples: []string{"keys rotate 018f0000-0000-7000-8000-0000000000aa"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key remains valid; 0 ends it at once")
		},
		Operate: func(ctx context.Context, m *Meta) error {
			minted, replaced, err := identity.RotateKey(ctx, m.pool, operator(), m.args[0], overlap, m.now)
			if err != nil {
				return err
			}
			return m.show(append(mintedJSON(minted, m.now), "replaces", keyJSON(replaced, m.now)), func(p *page) {
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

func grantKey() Command {
	return regrantKey(Command{
		Use: "grant KEY_ID", Short: "Let a platform key act for more agencies", Examples: []string{"keys grant 018f0000-0000-7000-8000-0000000000aa --agency douanes"},
	}, "agencies that the key may act for from now on, by slug or id; repeatable", false, identity.GrantKey)
}

func ungrantKey() Command {
	return regrantKey(Command{
		Use: "ungrant KEY_ID", Short: "Withdraw agencies from a platform key at once", Examples: []string{"keys ungrant 018f0000-0000-7000-8000-0000000000aa --agency douanes"},
	}, "agencies that the key may no longer act for, by slug or id; repeatable", true, identity.UngrantKey)
}

// agreeToWithdraw asks before agencies are withdrawn from more than one key.
func (m *Meta) agreeToWithdraw(ctx context.Context, yes bool, agencies []string) error {
	rotation, err := identity.ListRotation(ctx, m.pool, m.args[0])
	if err != nil {
		return err
	}
	var plan []string
	for _, k := range rotation {
		if k.InForce(m.now) {
			plan = append(plan, fmt.Sprintf("  %s, %s mode, %s", k.ID, registry.Mode(k.Live), stateOf(k, m.now)))
		}
	}
	if len(plan) < 2 {
		return nil
	}
	return m.agree(yes, fmt.Sprintf("This withdraws %s from %d keys, because one replaces the other:\n%s", strings.Join(agencies, ", "), len(plan), strings.Join(plan, "\n")))
}

// regrantKey completes a command that changes the agencies of a platform key.
func regrantKey(c Command, flag string, withdraws bool, do func(context.Context, *postgres.Pool, operation.Actor, string, []string, time.Time) ([]identity.KeyEntry, bool, error)) Command {
	var agencies []string
	var yes bool
	c.JSON, c.Missing = "the key, and the other keys of its rotation that are in force, as a list", whichKey
	c.Flags = func(f *pflag.FlagSet, _ *Meta) {
		f.StringSliceVar(&agencies, "agency", nil, flag)
		if withdraws {
			yesFlag(f, &yes)
		}
	}
	c.Check = func(*Meta) error {
		if len(agencies) == 0 {
			return usage("say which agencies: --agency SLUG_OR_ID,…")
		}
		return nil
	}
	c.Operate = func(ctx context.Context, m *Meta) error {
		if withdraws {
			if err := m.agreeToWithdraw(ctx, yes, agencies); err != nil {
				return err
			}
		}
		keys, changed, err := do(ctx, m.pool, operator(), m.args[0], agencies, m.now)
		if err != nil {
			return err
		}
		return m.show(mapped(keys, func(k identity.KeyEntry) object { return keyJSON(k, m.now) }), func(p *page) {
			for _, k := range keys {
				p.say("Key %s, %s mode, %s, acts for: %s.", k.ID, registry.Mode(k.Live), stateOf(k, m.now), strings.Join(k.Agencies, ", "))
			}
			if !changed {
				p.say("Nothing changed: that was so before.")
			}
		})
	}
	return c
}

// minted adds a new key with its secret. No other output shows the secret.
func (p *page) minted(k identity.MintedKey) {
	p.say("New key %s of %s, %s mode. Its secret is shown once and stored nowhere:\n\n  %s\n", k.ID, k.Owner(), registry.Mode(k.Live), k.Secret.Reveal())
	if k.Inactive {
		p.say("The application is not active: the key opens nothing until it is.")
	}
}

func mintedJSON(k identity.MintedKey, now time.Time) object {
	return append(keyJSON(k.KeyEntry, now), "secret", k.Secret.Reveal())
}

// stateOf returns the state of a key for people.
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
