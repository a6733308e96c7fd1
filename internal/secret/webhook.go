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

// ListenSecret returns the secret that signs the events which `listen` shows to an owner, whsec_…: the
// id of an application or of a platform key, empty for all applications. It signs no event to an
// endpoint, and stays the same for an owner until the master keys are rotated.
func ListenSecret(keys *Keys, owner string) Text {
	return NewText("whsec_" + base64.StdEncoding.EncodeToString(keys.MAC(LabelListen, []byte(owner))))
}
