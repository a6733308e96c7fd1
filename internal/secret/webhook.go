package secret

import (
	"encoding/base64"
	"strings"
)

// WebhookKey is the key in a webhook secret: what stands behind whsec_ in base64,
// as Standard Webhooks has it. Registry files may hold letters and digits that
// are base64 only without its padding, or not at all; the latter sign as they
// stand.
func WebhookKey(s Text) []byte {
	text := strings.TrimRight(strings.TrimPrefix(s.Reveal(), "whsec_"), "=")
	if raw, err := base64.RawStdEncoding.DecodeString(text); err == nil {
		return raw
	}
	return []byte(text)
}
