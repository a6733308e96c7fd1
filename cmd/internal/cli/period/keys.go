package period

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/journal"
	"quittance/internal/secret"
	"quittance/reconciliation/audit"
)

func periodKeys() cli.Command {
	return cli.Command{
		Use: "keys", Short: "Print the public keys that verify the signatures of closes", JSON: "the keys", Args: cobra.NoArgs,
		Long:     `Print the public keys that verify the signatures of closes (Ed25519), the newest first, as PEM. Give them to agencies and auditors by another way than e-mail, and keep those of earlier master keys: what they have signed stays valid. Keys marked ` + "`:open`" + ` are not printed. The keys are no secret.`,
		Examples: []string{"periods keys > closes.pem", "periods keys --json"},
		Run: func(_ context.Context, m *cli.Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			var list []render.Object
			var text string
			for _, k := range keys.PublicKeys(journal.LabelCloses) {
				block, err := audit.WriteKey(k)
				if err != nil {
					return err
				}
				text += block
				list = append(list, render.Object{"id", k.ID, "algorithm", "Ed25519", "pem", block})
			}
			return m.Show(list, func(p *render.Page) { p.Say("%s", text) })
		},
	}
}

// closeKeys returns the keys of files, and those that derive from the master keys, if there are any.
func closeKeys(m *cli.Meta, files []string) (out []secret.PublicKey, err error) {
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, cli.Usage("--key: %v", err)
		}
		keys, err := audit.ParseKeys(text)
		if err != nil {
			return nil, cli.Usage("--key %s: %v", name, err)
		}
		out = append(out, keys...)
	}
	if m.MasterKeys == "" && !m.PlainSecrets {
		return out, nil
	}
	keys, err := m.OpenKeys()
	if err != nil {
		return nil, err
	}
	return append(out, keys.PublicKeys(journal.LabelCloses)...), nil
}
