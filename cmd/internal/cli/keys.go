package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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
		Mode: keyMode(k), State: k.State(now), ReadsPerMinute: k.ReadsPerMinute,
		CreatedAt: k.CreatedAt, LastUsedAt: timeOrNull(k.LastUsedAt), EndsAt: timeOrNull(k.EndsAt), RevokedAt: timeOrNull(k.RevokedAt),
	}
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func keyMode(k identity.KeyEntry) string {
	if k.Live {
		return "live"
	}
	return "test"
}

func (p Program) createKey() *cobra.Command {
	m := p.meta()
	var req identity.KeyRequest
	var platform, asJSON bool
	var mode string
	cmd := command("create", "Make a key and show its secret, once", m, func(cmd *cobra.Command, _ []string) error {
		switch {
		case platform == (req.Application != ""):
			return errors.New("say whose the key is: either --application ID_OR_NAME, or --platform with --agency SLUG_OR_ID,…")
		case !platform && len(req.Agencies) > 0:
			return errors.New("--agency is for --platform; an application's key acts for the application's agency")
		case !platform && req.ReadsPerMinute != 0:
			return errors.New("--reads-per-minute is for --platform; an application's keys have reads_per_minute of the application, which `quittance seed FILE` sets")
		case platform && cmd.Flags().Changed("reads-per-minute") && req.ReadsPerMinute < 1:
			return errors.New("--reads-per-minute: must be 1 or more")
		case mode != "test" && mode != "live":
			return errors.New("--mode: must be test or live")
		}
		req.Live = mode == "live"
		return m.onPostgres(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			minted, err := identity.CreateKey(ctx, pool, operator(), req, now)
			if err != nil {
				return refusal(err, "KEY_ID")
			}
			if asJSON {
				return printMinted(cmd.OutOrStdout(), minted, nil, now)
			}
			showMinted(cmd.OutOrStdout(), minted)
			return nil
		})
	})
	cmd.Flags().StringVar(&req.Application, "application", "", "the application, by id or by its name if no other has it")
	cmd.Flags().BoolVar(&platform, "platform", false, "a platform key, with --agency")
	cmd.Flags().StringSliceVar(&req.Agencies, "agency", nil, "agencies that a platform key may act for, by slug or id; repeatable")
	cmd.Flags().StringVar(&mode, "mode", "", "test or live")
	cmd.Flags().IntVar(&req.ReadsPerMinute, "reads-per-minute", 0, fmt.Sprintf("quota of a platform key (default %d)", registry.DefaultReadsPerMinute))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the key as JSON")
	return cmd
}

func (p Program) listKeys() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("list", "List all keys, without their secrets", m, func(cmd *cobra.Command, _ []string) error {
		return m.onPostgres(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			entries, err := identity.ListKeys(ctx, pool)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				list := make([]keyJSON, len(entries))
				for i, k := range entries {
					list[i] = toKeyJSON(k, now)
				}
				return printJSON(out, list)
			}
			if len(entries) == 0 {
				_, err := fmt.Fprintln(out, "there are no keys yet; make one with `quittance keys create`")
				return err
			}
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(table, "ID\tOWNER\tMODE\tCREATED\tLAST USED\tSTATE")
			for _, k := range entries {
				used := "never"
				if !k.LastUsedAt.IsZero() {
					used = moment(k.LastUsedAt)
				}
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Owner(), keyMode(k), moment(k.CreatedAt), used, stateOf(k, now))
			}
			return table.Flush()
		})
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

func (p Program) revokeKey() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("revoke KEY_ID", "End a key at once and for good", m, func(cmd *cobra.Command, args []string) error {
		return m.onPostgres(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			k, changed, err := identity.RevokeKey(ctx, pool, operator(), args[0], now)
			if err != nil {
				return refusal(err, "KEY_ID")
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), toKeyJSON(k, now))
			}
			if !changed {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Key %s of %s, %s mode, was revoked before, at %s.\n", k.ID, k.Owner(), keyMode(k), moment(k.RevokedAt))
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Key %s of %s, %s mode, is revoked: it opens nothing from now on.\n", k.ID, k.Owner(), keyMode(k))
			return err
		})
	})
	cmd.Args = oneKey
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the key as JSON")
	return cmd
}

func (p Program) rotateKey() *cobra.Command {
	m := p.meta()
	var overlap time.Duration
	var asJSON bool
	cmd := command("rotate KEY_ID", "Make a key that replaces another, which ends after the overlap", m, func(cmd *cobra.Command, args []string) error {
		return m.onPostgres(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			minted, replaced, err := identity.RotateKey(ctx, pool, operator(), args[0], overlap, now)
			if err != nil {
				return refusal(err, "KEY_ID")
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return printMinted(out, minted, &replaced, now)
			}
			showMinted(out, minted)
			if overlap == 0 {
				_, err = fmt.Fprintf(out, "The key that it replaces, %s, is revoked: it opens nothing from now on.\n", replaced.ID)
			} else {
				_, err = fmt.Fprintf(out, "The key that it replaces, %s, works until %s.\n", replaced.ID, moment(replaced.EndsAt))
			}
			return err
		})
	})
	cmd.Args = oneKey
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key goes on working; 0 ends it at once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the new key as JSON")
	return cmd
}

func oneKey(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say which key: `%s KEY_ID`; `quittance keys list` shows the ids", cmd.CommandPath())
	}
	return nil
}

// onPostgres runs a change or a look at the keys, with the service's time.
func (m *meta) onPostgres(ctx context.Context, do func(context.Context, *postgres.Pool, time.Time) error) error {
	if err := m.locate(); err != nil {
		return err
	}
	pool, err := m.OpenPostgres(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	now, err := m.Time(ctx, pool)
	if err != nil {
		return err
	}
	return do(ctx, pool, now)
}

// showMinted is the one place where a person sees the secret.
func showMinted(out io.Writer, k identity.MintedKey) {
	_, _ = fmt.Fprintf(out, "New key %s of %s, %s mode. Its secret is shown once and stored nowhere:\n\n  %s\n\n", k.ID, k.Owner(), keyMode(k.KeyEntry), k.Secret.Reveal())
	if k.Inactive {
		_, _ = fmt.Fprint(out, "The application is not active: the key opens nothing until it is.\n")
	}
}

func printMinted(out io.Writer, k identity.MintedKey, replaced *identity.KeyEntry, now time.Time) error {
	j := toKeyJSON(k.KeyEntry, now)
	j.Secret = k.Secret.Reveal()
	if replaced != nil {
		old := toKeyJSON(*replaced, now)
		j.Replaces = &old
	}
	return printJSON(out, j)
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

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
