package checkout_test

import (
	"strings"
	"testing"
	"time"

	"quittance/checkout"
)

// Every accepted id or token is one that the service could have issued: each has one
// spelling only, and no id is also a token.
func FuzzRoutableIDs(f *testing.F) {
	f.Add(checkout.NewSessionID(time.UnixMilli(1_790_000_000_000), 7, [16]byte{1}))
	f.Add(ids.NewSession(time.UnixMilli(1_790_000_000_000), 7, [16]byte{1}))
	f.Add(ids.NewCompletionToken(65_535, [32]byte{255}))
	for _, text := range []string{"", "chs_", "cpt_", "chs_secret_x", "CHS_06gvsbc8s8005g6dk23laobls1sakuhnf3qrqno", "cpt_0=", "chs_06gvsbc8s8005g6dk23laobls1sakuhnf3qrqno\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		session, _, sessionErr := ids.CheckSession(text)
		token, _, tokenErr := ids.CheckCompletionToken(text)
		if sessionErr == nil && tokenErr == nil {
			t.Fatalf("%q is a session's id and a completion token", text)
		}
		for _, c := range []struct {
			err       error
			partition int32
			prefix    string
			again     func(string) (int32, bool, error)
		}{
			{sessionErr, session, checkout.PrefixSession, ids.CheckSession},
			{tokenErr, token, checkout.PrefixCompletionToken, ids.CheckCompletionToken},
		} {
			if c.err != nil {
				continue
			}
			if !strings.HasPrefix(text, c.prefix) || c.partition < 0 || c.partition > 65_535 {
				t.Errorf("%q: partition %d", text, c.partition)
			}
			for _, other := range []string{strings.ToUpper(text), text + "=", text + "0", text[:len(text)-1], " " + text, text + "\n"} {
				if _, _, err := c.again(other); err == nil && other != text {
					t.Errorf("%q is another spelling of %q", other, text)
				}
			}
		}
	})
}
