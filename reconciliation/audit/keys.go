package audit

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"quittance/internal/secret"
)

// pemType is the type of the blocks of public keys (RFC 7468), and pemID begins the line before a block, which readers
// of PEM pass over.
const (
	pemType = "PUBLIC KEY"
	pemID   = "# Key-Id: "
)

// WriteKey returns a key that verifies closes as PEM, with its id in the line before.
func WriteKey(k secret.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(k.Key)
	if err != nil {
		return "", fmt.Errorf("writing a public key: %w", err)
	}
	return fmt.Sprintf("%s%s\n%s", pemID, k.ID, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})), nil
}

// ParseKeys reads the keys that WriteKey writes.
func ParseKeys(text []byte) (out []secret.PublicKey, err error) {
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
