package journal

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"quittance/internal/secret"
)

// LabelCloses is the label of the keys that sign closes. Only sink match signs.
const LabelCloses = "closes of periods"

// Statement returns what is signed of a close, as lines "name value": whose it is, its days, its root over how many
// rows, the close before, and its totals in minor units. docs/design/reconciliation.md § "Signed closes" has its form,
// which never changes: another form has another first line.
func (c *Close) Statement() string {
	mode := "test"
	if c.Livemode {
		mode = "live"
	}
	var b strings.Builder
	say := func(name, format string, args ...any) { fmt.Fprintf(&b, name+" "+format+"\n", args...) }
	form := "1"
	if len(c.Reports) > 0 {
		form = "2"
	}
	say("quittance-close", "%s", form)
	say("close", "%s", c.ID)
	say("agency", "%s", c.TenantID)
	say("mode", "%s", mode)
	say("account", "%s", c.Account)
	say("from", "%s", c.FromDay.Format(time.DateOnly))
	say("to", "%s", c.ToDay.Format(time.DateOnly))
	say("root", "%s", c.ChainRoot)
	say("rows", "%d", c.ChainRows)
	say("version", "%d", c.ChainVersion)
	say("previous", "%s", cmp.Or(c.Previous, "-"))
	say("digest", "%s", c.Digest)
	say("currency", "%s", c.Currency)
	for _, of := range []struct {
		name      string
		n, amount int64
	}{
		{"expected-start", c.SourcesStart, c.SourcesStartAmount},
		{"expected-new", c.SourcesNew, c.SourcesNewAmount},
		{"expected-matched", c.SourcesMatched, c.SourcesMatchedAmount},
		{"expected-resolved", c.SourcesResolved, c.SourcesResolvedAmount},
		{"expected-end", c.SourcesEnd, c.SourcesEndAmount},
		{"lines-start", c.LinesStart, c.LinesStartAmount},
		{"lines-new", c.LinesNew, c.LinesNewAmount},
		{"lines-matched", c.LinesMatched, c.LinesMatchedAmount},
		{"lines-resolved", c.LinesResolved, c.LinesResolvedAmount},
		{"lines-end", c.LinesEnd, c.LinesEndAmount},
		{"breaks", c.OpenBreaks, c.OpenBreaksAmount},
	} {
		say(of.name, "%d %d", of.n, of.amount)
	}
	say("corrections", "%d", c.Corrections)
	for _, total := range c.Reports {
		say("report", "%s", total)
	}
	say("at", "%s", c.At.UTC().Format("2006-01-02T15:04:05.000Z"))
	return b.String()
}

// SignedBy reports whether one of the keys has signed the close. Without a signature it is false.
func (c *Close) SignedBy(keys []secret.PublicKey) bool {
	signature, err := base64.StdEncoding.DecodeString(c.Signature)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return false
	}
	for _, k := range keys {
		if ed25519.Verify(k.Key, []byte(c.Statement()), signature) {
			return true
		}
	}
	return false
}
