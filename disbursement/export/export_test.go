package export_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/export"
	"quittance/disbursement/policy"
)

const rpID, origin = "staff.example", "https://staff.example"

func signers(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ben": ec, "cleo": rs, "dan": ed, "foreign": foreign}
}

func spki(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	b, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sign signs a statement as an authenticator does, with user presence and verification.
func sign(t *testing.T, key crypto.Signer, statement digest.Hash) assertion.Assertion {
	t.Helper()
	client, err := json.Marshal(map[string]any{
		"type": "webauthn.get", "origin": origin, "challenge": base64.RawURLEncoding.EncodeToString(slices.Concat(make([]byte, 32), statement[:])),
	})
	if err != nil {
		t.Fatal(err)
	}
	host, sum := sha256.Sum256([]byte(rpID)), sha256.Sum256(client)
	data := slices.Concat(host[:], []byte{5, 0, 0, 0, 1})
	message, hash := slices.Concat(data, sum[:]), crypto.SHA256
	hashed := sha256.Sum256(message)
	signed := hashed[:]
	if _, ok := key.(ed25519.PrivateKey); ok {
		signed, hash = message, 0
	}
	signature, err := key.Sign(rand.Reader, signed, hash)
	if err != nil {
		t.Fatal(err)
	}
	return assertion.Assertion{PublicKey: spki(t, key), ClientData: client, AuthenticatorData: data, Signature: signature}
}

// batch is a sealed batch of five lines that three people have approved at two levels, one of them as a delegate.
func batch(t *testing.T, keys map[string]crypto.Signer) (disbursement.Sealing, []export.Opened) {
	t.Helper()
	var lines []export.Opened
	var tree digest.Tree
	content := digest.Batch{
		Batch: "dsb_1", BatchRef: `salaries "11/2026"`, Revision: 2, Agency: "agency", Mode: "live", Currency: "XAF", Date: "2026-12-01", Maker: "ama",
		ApproveUntil: time.Date(2026, 12, 3, 8, 0, 0, 0, time.UTC), PayUntil: "2026-12-06", Policy: 3, RPID: rpID, Origin: origin,
		Accounts: []digest.Account{{Code: "airtel", Fingerprint: "f2"}, {Code: "mtn", Fingerprint: "f1"}},
	}
	for i, ref := range []string{"L-1", "L-10", "L-2", `L-3 <a&b>\`, "L-4"} {
		l := digest.Line{
			Amount: int64(1000 * (i + 1)), Currency: "XAF", LineRef: ref, PayoutAccount: content.Accounts[i%2].Code, PaymentMode: "momo", Name: "PAYEE",
			MSISDN: "24206600000" + fmt.Sprint(i),
		}
		salt := sha256.Sum256([]byte(ref))
		leaf, err := digest.Leaf(salt, l)
		if err != nil {
			t.Fatal(err)
		}
		tree = tree.Add(leaf)
		lines = append(lines, export.Opened{Salt: salt, Line: l})
		content.Accounts[i%2].Count++
		content.Accounts[i%2].Sum += l.Amount
		content.Count++
		content.Sum += l.Amount
		content.Largest = max(content.Largest, l.Amount)
	}
	content.Root = tree.Root()
	approver := func(id, of string) policy.Approver {
		return policy.Approver{ID: id, For: of, Keys: [][32]byte{sha256.Sum256(spki(t, keys[id]))}}
	}
	content.Levels = []policy.Level{{Needed: 1, Persons: []policy.Approver{approver("ben", "")}}, {Needed: 2, Persons: []policy.Approver{approver("cleo", ""), approver("dan", "eve"), approver("ben", "")}}}
	s := disbursement.Sealing{Content: content}
	sum, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []policy.Approval{{Level: 1, Person: "ben"}, {Level: 2, Person: "cleo"}, {Level: 2, Person: "dan", For: "eve"}} {
		statement, err := digest.Step{Digest: sum, Level: a.Level, Person: a.Person, Verdict: digest.Approve}.Statement()
		if err != nil {
			t.Fatal(err)
		}
		s.Approvals = append(s.Approvals, disbursement.Approved{Approval: a, Signed: disbursement.Signed{Person: a.Person, Assertion: sign(t, keys[a.Person], statement)}})
	}
	return s, lines
}

// Two programs that share nothing with the service say that an exported batch holds, and refuse each change of it.
func TestExportIsVerifiedOutside(t *testing.T) {
	t.Parallel()
	keys := signers(t)
	s, lines := batch(t, keys)
	good, err := export.New(s, lines)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	python := "../../.deps/papers/python/bin/python"
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("Python with the package cryptography is missing; run make deps/test: %v", err)
	}
	scripts := map[string][]string{"Node": {"node", "verify.mjs"}, "Python": {python, "verify.py"}}
	folder := t.TempDir()
	run := func(script []string, b []byte, known ...string) (string, bool) {
		file := filepath.Join(folder, "batch.json")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), script[0], append([]string{"../../docs/operating/disbursements/" + script[1], file}, known...)...).CombinedOutput()
		return string(out), err == nil
	}
	known := func(person, key string) string {
		return fmt.Sprintf("%s=%x", person, sha256.Sum256(spki(t, keys[key])))
	}
	for name, script := range scripts {
		if out, ok := run(script, text); !ok || !strings.Contains(out, "holds (digest ") {
			t.Fatalf("%s: %s", name, out)
		}
		if out, ok := run(script, text, known("ben", "ben"), known("cleo", "cleo"), known("dan", "dan")); !ok {
			t.Errorf("%s with known keys: %s", name, out)
		}
		if out, ok := run(script, text, known("ben", "foreign"), known("cleo", "cleo"), known("dan", "dan")); ok {
			t.Errorf("%s takes a key that is not known: %s", name, out)
		}
		for what, change := range changes(t, keys, s) {
			if out, ok := run(script, changed(t, text, change)); ok || !strings.Contains(out, "does not hold") {
				t.Errorf("%s takes %s: %s", name, what, out)
			}
		}
	}
}

// changed returns an export after a change.
func changed(t *testing.T, text []byte, change func(e, batch map[string]any, lines, approvals []any)) []byte {
	t.Helper()
	var e map[string]any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&e); err != nil {
		t.Fatal(err)
	}
	change(e, e["batch"].(map[string]any), e["lines"].([]any), e["approvals"].([]any))
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func changes(t *testing.T, keys map[string]crypto.Signer, s disbursement.Sealing) map[string]func(e, batch map[string]any, lines, approvals []any) {
	t.Helper()
	object := func(v any) map[string]any { return v.(map[string]any) }
	foreign := func(approval any, level int) {
		sum, err := s.Content.Digest()
		if err != nil {
			t.Fatal(err)
		}
		statement, err := digest.Step{Digest: sum, Level: level, Person: "ben", Verdict: digest.Approve}.Statement()
		if err != nil {
			t.Fatal(err)
		}
		a := sign(t, keys["foreign"], statement)
		for name, b := range map[string][]byte{"public_key": a.PublicKey, "client_data": a.ClientData, "authenticator_data": a.AuthenticatorData, "signature": a.Signature} {
			object(approval)[name] = base64.RawURLEncoding.EncodeToString(b)
		}
	}
	return map[string]func(e, batch map[string]any, lines, approvals []any){
		"nobody has to approve": func(e, batch map[string]any, _, _ []any) {
			object(batch["policy"])["levels"], e["approvals"] = []any{}, []any{}
		},
		"a level that needs nobody": func(e, batch map[string]any, _, _ []any) {
			for _, l := range object(batch["policy"])["levels"].([]any) {
				object(l)["needed"] = 0
			}
			e["approvals"] = []any{}
		},
		"one franc more": func(_, _ map[string]any, lines, _ []any) { object(lines[0])["amount"] = 1001 },
		"one franc from line to line": func(_, _ map[string]any, lines, _ []any) {
			object(lines[0])["amount"], object(lines[2])["amount"] = 999, 3001
		},
		"one franc more in the batch, too": func(_, batch map[string]any, lines, _ []any) {
			object(lines[0])["amount"], batch["sum"] = 1001, 15001
			object(batch["accounts"].([]any)[0])["sum"] = 9001
		},
		"two lines swapped": func(_, _ map[string]any, lines, _ []any) { lines[0], lines[1] = lines[1], lines[0] },
		"two payees swapped": func(_, _ map[string]any, lines, _ []any) {
			a, b := object(lines[0]), object(lines[2])
			a["msisdn"], b["msisdn"] = b["msisdn"], a["msisdn"]
		},
		"one line removed": func(e, _ map[string]any, lines, _ []any) { e["lines"] = lines[1:] },
		"another salt":     func(_, _ map[string]any, lines, _ []any) { object(lines[0])["salt"] = object(lines[1])["salt"] },
		"a foreign key":    func(_, _ map[string]any, _, approvals []any) { foreign(approvals[0], 1) },
		"another level": func(_, _ map[string]any, _, approvals []any) {
			object(approvals[0])["level"], object(approvals[1])["level"] = 2, 1
		},
		"ben at level 2": func(e, _ map[string]any, _, approvals []any) {
			object(approvals[0])["level"] = 2
			e["approvals"] = approvals[:2]
		},
		"an approval twice":   func(_, _ map[string]any, _, approvals []any) { approvals[2] = approvals[1] },
		"an approval missing": func(e, _ map[string]any, _, approvals []any) { e["approvals"] = approvals[:2] },
		"another maker":       func(_, batch map[string]any, _, _ []any) { batch["maker"] = "ben" },
		"fewer people needed": func(e, batch map[string]any, _, approvals []any) {
			object(batch["policy"].(map[string]any)["levels"].([]any)[1])["needed"] = 1
			e["approvals"] = approvals[:2]
		},
		"another signature": func(_, _ map[string]any, _, approvals []any) {
			object(approvals[0])["signature"] = object(approvals[1])["signature"]
		},
		"another origin": func(_, batch map[string]any, _, _ []any) { batch["origin"] = "https://other.example" },
	}
}

// Lines that are not those that were sealed are not exported.
func TestExportOfOtherLines(t *testing.T) {
	t.Parallel()
	s, lines := batch(t, signers(t))
	lines[0].Line.Amount++
	if _, err := export.New(s, lines); err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("%v", err)
	}
}
