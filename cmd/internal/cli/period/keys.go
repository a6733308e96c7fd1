package period

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/journal"
	"quittance/internal/secret"
)

// pemType is the type of the blocks of public keys (RFC 7468), and pemID begins the line before a block, which readers
// of PEM pass over.
const (
	pemType = "PUBLIC KEY"
	pemID   = "# Key-Id: "
)

func periodKeys() cli.Command {
	return cli.Command{
		Use: "keys", Short: "Print the public keys that verify the signatures of closes", JSON: "the keys", Args: cobra.NoArgs,
		Long:     `Print the public keys that verify the signatures of closes (Ed25519), the newest first, as PEM. Give them to agencies and auditors by another way than e-mail, and keep those of earlier master keys: what they have signed stays valid. The keys are no secret.`,
		Examples: []string{"periods keys > closes.pem", "periods keys --json"},
		Run: func(_ context.Context, m *cli.Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			var list []render.Object
			var text string
			for _, k := range keys.PublicKeys(journal.LabelCloses) {
				block, err := pemOf(k)
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

// pemOf returns a key as PEM.
func pemOf(k secret.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(k.Key)
	if err != nil {
		return "", fmt.Errorf("writing a public key: %w", err)
	}
	return fmt.Sprintf("%s%s\n%s", pemID, k.ID, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})), nil
}

// closeKeys returns the keys of files, and those that derive from the master keys, if there are any.
func closeKeys(m *cli.Meta, files []string) (out []secret.PublicKey, err error) {
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, cli.Usage("--key: %v", err)
		}
		keys, err := parseKeys(text)
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

// parseKeys reads the blocks of a file.
func parseKeys(text []byte) (out []secret.PublicKey, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, ok := public.(ed25519.PublicKey)
		if err != nil || !ok || block.Type != pemType {
			return nil, fmt.Errorf("block %d is no public key of Ed25519; `quittance periods keys` prints them", len(out)+1)
		}
		id := ""
		before, _, _ := strings.Cut(string(text), "-----BEGIN")
		if _, after, ok := strings.Cut(before, pemID); ok {
			id = strings.TrimSpace(after)
		}
		out, text = append(out, secret.PublicKey{ID: id, Key: key}), rest
	}
	if len(out) == 0 {
		return nil, errors.New("holds no public key in PEM; `quittance periods keys` prints them")
	}
	return out, nil
}
