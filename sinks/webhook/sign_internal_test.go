package webhook

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"quittance/internal/secret"
)

// Secrets of a registry file may lack the padding of base64. Every secret signs, and where
// the library accepts the secret it accepts the signature.
func TestKeysOfSecrets(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for text, want := range map[string]string{
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": "1\xf2\x90\xf6\xbf\x06)\x8a\xabO\x08\xd4<?\x08,\xf6H\xa3b\xda-\xa4\xb0",
		"whsec_QUJDREVGR0hJSktMTU5PUA==":         "ABCDEFGHIJKLMNOP",
		"whsec_QUJDREVGR0hJSktMTU5PUA":           "ABCDEFGHIJKLMNOP",
		"whsec_aaaaaaaaaaaaaaaaaaaaa":            "aaaaaaaaaaaaaaaaaaaaa",
	} {
		if got := string(secret.WebhookKey(secret.NewText(text))); got != want {
			t.Errorf("%s: key %q, want %q", text, got, want)
		}
		h, err := Sign([]secret.Text{secret.NewText(text)}, "evt_1", at, []byte("{}"))
		if err != nil || h.Get("webhook-timestamp") != strconv.FormatInt(at.Unix(), 10) {
			t.Errorf("%s: %v, %v", text, h, err)
		}
		if wh, err := standardwebhooks.NewWebhook(text); err == nil {
			if err := wh.Verify([]byte("{}"), http.Header(h)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
