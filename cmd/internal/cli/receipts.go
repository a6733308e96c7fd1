package cli

import (
	"context"

	"github.com/spf13/pflag"

	"quittance/internal/receipts"
	"quittance/internal/registry"
)

func receiptsCommand() Command {
	return Command{Use: "receipts", Short: "Check receipts, and manage the keys that sign them", Commands: []Command{verifyReceipt(), receiptKeysCommand()}, Words: receiptWords}
}

func receiptKeysCommand() Command {
	return Command{
		Use: "keys", Short: "Rotate, list and revoke the keys that sign receipts",
		Commands: []Command{rotateReceiptKeys(), listReceiptKeys(), revokeReceiptKey()},
	}
}

// receiptKeyJSON is a key of receipts as --json prints it, without its private part.
func (m *Meta) receiptKeyJSON(e receipts.Entry) object {
	return object{
		"kid", e.ID, "mode", registry.Mode(e.Live), "state", string(e.State(m.now)), "signs_from", e.From, "signs_until", e.Until, "created_at", e.CreatedAt, "revoked_at", e.RevokedAt,
	}
}

// since tells from when on a key signs.
func since(e receipts.Entry) string {
	if e.From.Unix() == 0 {
		return "the beginning"
	}
	return moment(e.From)
}

func rotateReceiptKeys() Command {
	var mode string
	return Command{
		Use: "rotate", Short: "Make the next key of live and of test receipts; it is public at once and signs from 30 days later", JSON: "the new keys",
		Examples: []string{"receipts keys rotate", "receipts keys rotate --mode live --json"},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { takesMode(f, &mode) },
		Operate: func(ctx context.Context, m *Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			rotated := []bool{true, false}
			if mode != "" {
				rotated = []bool{mode == "live"}
			}
			made, err := receipts.RotateKeys(ctx, m.pool, keys, operator(), rotated, m.now)
			if err != nil {
				return err
			}
			return m.show(mapped(made, m.receiptKeyJSON), func(p *page) {
				for _, e := range made {
					p.say("Key %s is in /.well-known/jwks.json now. It signs %s receipts of payments from %s on.", e.ID, registry.Mode(e.Live), since(e))
				}
			})
		},
	}
}

func listReceiptKeys() Command {
	return Command{
		Use: "list", Short: "List all keys of receipts, without their private parts", JSON: "the list", Examples: []string{"receipts keys list", "receipts keys list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			entries, err := receipts.ListKeys(ctx, m.pool)
			if err != nil {
				return err
			}
			return m.show(mapped(entries, m.receiptKeyJSON), func(p *page) {
				p.table("there are no keys yet; the ingress makes the first ones when it starts, or `quittance receipts keys rotate` does", "KID,MODE,STATE,SIGNS PAYMENTS FROM,UNTIL,REVOKED", mapped(entries, func(e receipts.Entry) []any {
					return []any{e.ID, registry.Mode(e.Live), string(e.State(m.now)), since(e), momentOr(e.Until, ""), momentOr(e.RevokedAt, "")}
				}))
			})
		},
	}
}

func revokeReceiptKey() Command {
	return Command{
		Use: "revoke KID", Short: "Declare a key stolen: its receipts are from now on compared with the record, and the next key signs within a minute", JSON: "the key",
		Missing:  "say which key: {usage}; `quittance receipts keys list` shows them",
		Examples: []string{"receipts keys revoke live-kPrK_qmx"},
		Operate: func(ctx context.Context, m *Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			revoked, next, changed, err := receipts.RevokeKey(ctx, m.pool, keys, operator(), m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.show(append(m.receiptKeyJSON(revoked), "changed", changed), func(p *page) {
				if !changed {
					p.say("Key %s was revoked before, at %s.", revoked.ID, moment(revoked.RevokedAt))
					return
				}
				p.say("Key %s is revoked and leaves /.well-known/jwks.json within minutes. Receipts that it signed are checked with the network only: every claim is compared with the record.", revoked.ID)
				if next != nil {
					p.say("Key %s signs %s receipts of payments from %s on.", next.ID, registry.Mode(next.Live), since(*next))
				}
			})
		},
	}
}
