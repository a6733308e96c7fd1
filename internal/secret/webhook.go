package secret

import (
	"encoding/base64"
	"strings"
)

// WebhookKey returns the key in a webhook secret: the base64 value after whsec_
// (Standard Webhooks 1.0). Secrets of registry files may be base64 without padding, or
// not base64; the latter are used as keys byte for byte.
func WebhookKey(s Text) []byte {
	text := strings.TrimRight(strings.TrimPrefix(s.Reveal(), "whsec_"), "=")
	if raw, err := base64.RawStdEncoding.DecodeString(text); err == nil {
		return raw
	}
	return []byte(text)
}
