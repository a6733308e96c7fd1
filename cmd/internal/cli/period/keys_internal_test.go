package period

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/internal/journal"
	"quittance/internal/secret"
	"quittance/reconciliation/audit"
)

// verifyWithNode verifies the signature of a close with the standard library of Node alone: the files of the key and
// the statement, and the signature in base64.
const verifyWithNode = `
const {createPublicKey, verify} = require('node:crypto');
const {readFileSync} = require('node:fs');
const [key, statement, signature] = process.argv.slice(1);
const good = verify(null, readFileSync(statement), createPublicKey(readFileSync(key)), Buffer.from(signature, 'base64'));
console.log(good ? 'good' : 'bad');
`

// Somebody who has the published key, the statement and the signature verifies the close without a program of ours. A
// close in which one value is another has another statement.
func TestAThirdPersonVerifiesAClose(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("node is needed: ", err)
	}
	keys, dir := secret.GenerateKeys(), t.TempDir()
	c := journal.Close{
		ID: "cls_1", TenantID: "018f0000-0000-7000-8000-00000000000a", Livemode: true, Account: "mtn", FromDay: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), ToDay: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		Digest: "d", Currency: "XAF", ChainVersion: 1, ChainRows: 12, ChainRoot: strings.Repeat("ab", 32), SourcesNew: 12, SourcesNewAmount: 60900, At: time.Date(2026, 11, 30, 22, 0, 0, 123e6, time.UTC),
	}
	signature, id, err := keys.SignDetached(journal.LabelCloses, []byte(c.Statement()))
	if err != nil {
		t.Fatal(err)
	}
	c.Signature, c.SignedWith = base64.StdEncoding.EncodeToString(signature), id
	public := keys.PublicKeys(journal.LabelCloses)
	block, err := audit.WriteKey(public[0])
	if err != nil {
		t.Fatal(err)
	}
	verify := func(c journal.Close) string {
		t.Helper()
		key, statement := filepath.Join(dir, "key.pem"), filepath.Join(dir, "statement.txt")
		for name, text := range map[string]string{key: block, statement: c.Statement()} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), node, "-e", verifyWithNode, key, statement, c.Signature).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := verify(c); got != "good" || !c.SignedBy(public) {
		t.Errorf("node says %q", got)
	}
	for name, change := range map[string]func(*journal.Close){
		"root":   func(c *journal.Close) { c.ChainRoot = strings.Repeat("ac", 32) },
		"rows":   func(c *journal.Close) { c.ChainRows++ },
		"amount": func(c *journal.Close) { c.SourcesNewAmount++ },
		"agency": func(c *journal.Close) { c.TenantID = "018f0000-0000-7000-8000-00000000000b" },
		"mode":   func(c *journal.Close) { c.Livemode = false },
		"day":    func(c *journal.Close) { c.ToDay = c.ToDay.AddDate(0, 0, 1) },
		"before": func(c *journal.Close) { c.Previous = "x" },
	} {
		forged := c
		change(&forged)
		if forged.SignedBy(public) {
			t.Errorf("another %s is believed", name)
		}
	}
	forged := c
	forged.SourcesNewAmount++
	if got := verify(forged); got != "bad" {
		t.Errorf("node says %q of another amount", got)
	}
	if other := secret.GenerateKeys(); c.SignedBy(other.PublicKeys(journal.LabelCloses)) {
		t.Error("another key verifies it")
	}
}

// A file of keys holds what the command prints; anything else is refused with the mend.
func TestKeysOfAFile(t *testing.T) {
	t.Parallel()
	var text string
	keys := append(secret.GenerateKeys().PublicKeys(journal.LabelCloses), secret.GenerateKeys().PublicKeys(journal.LabelCloses)...)
	for _, k := range keys {
		block, err := audit.WriteKey(k)
		if err != nil {
			t.Fatal(err)
		}
		text += block
	}
	got, err := audit.ParseKeys([]byte(text))
	if err != nil || len(got) != 2 || got[0].ID != keys[0].ID || !got[1].Key.Equal(keys[1].Key) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "no key", "-----BEGIN PRIVATE KEY-----\nMC4CAQ==\n-----END PRIVATE KEY-----\n"} {
		if _, err := audit.ParseKeys([]byte(bad)); err == nil || !strings.Contains(err.Error(), "periods keys") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
