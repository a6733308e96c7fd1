package receipt

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/receipts"
	"quittance/internal/registry"
)

// Command returns the command `receipts`.
func Command() cli.Command {
	return cli.Command{Use: "receipts", Short: "Check receipts, and manage the keys that sign them", Commands: []cli.Command{verifyReceipt(), receiptKeysCommand()}, Words: words}
}

func receiptKeysCommand() cli.Command {
	return cli.Command{
		Use: "keys", Short: "Rotate, list and revoke the keys that sign receipts",
		Commands: []cli.Command{rotateReceiptKeys(), listReceiptKeys(), revokeReceiptKey()},
	}
}

// receiptKeyJSON is a key of receipts as --json prints it, without its private part.
func receiptKeyJSON(e receipts.Entry, now time.Time) render.Object {
	return render.Object{
		"kid", e.ID, "mode", registry.Mode(e.Live), "state", string(e.State(now)), "signs_from", e.From, "signs_until", e.Until, "created_at", e.CreatedAt, "revoked_at", e.RevokedAt,
	}
}

// since tells from when on a key signs.
func since(e receipts.Entry) string {
	if e.From.Unix() == 0 {
		return "the beginning"
	}
	return render.Moment(e.From)
}

func rotateReceiptKeys() cli.Command {
	var mode string
	return cli.Command{
		Use: "rotate", Short: "Make the next key of live and of test receipts; it is public at once and signs from 30 days later", JSON: "the new keys",
		Examples: []string{"receipts keys rotate", "receipts keys rotate --mode live --json"},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { cli.TakesMode(f, &mode) },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			rotated := []bool{true, false}
			if mode != "" {
				rotated = []bool{mode == "live"}
			}
			made, err := receipts.RotateKeys(ctx, m.Pool, keys, m.By, rotated, m.Now)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(made, func(e receipts.Entry) render.Object { return receiptKeyJSON(e, m.Now) }), func(p *render.Page) {
				for _, e := range made {
					p.Say("Key %s is in /.well-known/jwks.json now. It signs %s receipts of payments from %s on.", e.ID, registry.Mode(e.Live), since(e))
				}
			})
		},
	}
}

func listReceiptKeys() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all keys of receipts, without their private parts", JSON: "the list", Examples: []string{"receipts keys list", "receipts keys list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			entries, err := receipts.ListKeys(ctx, m.Pool)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(entries, func(e receipts.Entry) render.Object { return receiptKeyJSON(e, m.Now) }), func(p *render.Page) {
				p.Table("there are no keys yet; the ingress makes the first ones when it starts, or `quittance receipts keys rotate` does", "KID,MODE,STATE,SIGNS PAYMENTS FROM,UNTIL,REVOKED", render.Mapped(entries, func(e receipts.Entry) []any {
					return []any{e.ID, registry.Mode(e.Live), string(e.State(m.Now)), since(e), render.MomentOr(e.Until, ""), render.MomentOr(e.RevokedAt, "")}
				}))
			})
		},
	}
}

func revokeReceiptKey() cli.Command {
	return cli.Command{
		Use: "revoke KID", Short: "Declare a key stolen: its receipts are from now on compared with the record, and the next key signs within a minute", JSON: "the key",
		Missing:  "say which key: {usage}; `quittance receipts keys list` shows them",
		Examples: []string{"receipts keys revoke live-kPrK_qmx"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			revoked, next, changed, err := receipts.RevokeKey(ctx, m.Pool, keys, m.By, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return m.Show(append(receiptKeyJSON(revoked, m.Now), "changed", changed), func(p *render.Page) {
				if !changed {
					p.Say("Key %s was revoked before, at %s.", revoked.ID, render.Moment(revoked.RevokedAt))
					return
				}
				p.Say("Key %s is revoked and leaves /.well-known/jwks.json within minutes. Receipts that it signed are checked with the network only: every claim is compared with the record.", revoked.ID)
				if next != nil {
					p.Say("Key %s signs %s receipts of payments from %s on.", next.ID, registry.Mode(next.Live), since(*next))
				}
			})
		},
	}
}
