package digest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"pgregory.net/rapid"

	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
)

var update = flag.Bool("update", false, "write testdata/vectors.json")

type object = map[string]any

// The published vectors are what this package computes, byte for byte.
func TestVectors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(object{"about": "Inputs and bytes of what approvers of disbursements sign; check.mjs computes them without Quittance. Hashes and salts are hexadecimal.", "lines": lineVectors(t), "roots": rootVectors(), "batches": batchVectors(t), "steps": stepVectors(t), "settlements": settlementVectors(t)}); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/vectors.json", out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the vectors differ from testdata/vectors.json; signatures over the old bytes stay for ever:\n%s", out.Bytes())
	}
}

// A program that shares nothing with this package computes the same bytes.
func TestVectorsOutside(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "node", "testdata/check.mjs", "testdata/vectors.json").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	vectors, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	wrong := t.TempDir() + "/vectors.json"
	for _, change := range [][2]string{{`"amount": 150000`, `"amount": 150001`}, {`"leaf": "`, `"leaf": "0`}, {`"verdict": "approve"`, `"verdict": "reject"`}, {`"needed": 2`, `"needed": 1`}, {`"outcome": "paid"`, `"outcome": "refused"`}} {
		if err := os.WriteFile(wrong, bytes.Replace(vectors, []byte(change[0]), []byte(change[1]), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "node", "testdata/check.mjs", wrong).CombinedOutput(); err == nil {
			t.Errorf("%s passes: %s", change[1], out)
		}
	}
}

func lineVectors(t *testing.T) (out []object) {
	t.Helper()
	for i, l := range []digest.Line{
		{Amount: 150000, Currency: "XAF", LineRef: "2026-11/0001", PayoutAccount: "mtn", PaymentMode: "MOMO", Name: "NGOMA JEAN", MSISDN: "242066000001", Purpose: "SALARY 11/2026"},
		{
			Amount: digest.MaxInteger, Currency: "XAF", LineRef: `quote " backslash \ <&>`, PayoutAccount: "bank", PaymentMode: "VIREMENT", Name: "O'NEIL & CO",
			IBAN: "CG5230011000202151234567890", BIC: "XXXXCGCG",
		},
		{Amount: 1, Currency: "XAF", LineRef: "~", PayoutAccount: "bank", PaymentMode: "VIREMENT", Name: "A", Number: "30011 00020 21512345678 90", Corrects: "2026-10/0001"},
	} {
		salt := sha256.Sum256([]byte{byte(i)})
		leaf, err := digest.Leaf(salt, l)
		if err != nil {
			t.Fatal(err)
		}
		content := object{"amount": l.Amount}
		for name, text := range map[string]string{
			"currency": l.Currency, "line_ref": l.LineRef, "payout_account": l.PayoutAccount, "payment_mode": l.PaymentMode, "name": l.Name, "msisdn": l.MSISDN,
			"iban": l.IBAN, "bic": l.BIC, "number": l.Number, "purpose": l.Purpose, "corrects": l.Corrects,
		} {
			if text != "" {
				content[name] = text
			}
		}
		out = append(out, object{"salt": hex.EncodeToString(salt[:]), "line": content, "leaf": leaf.String()})
	}
	return out
}

func rootVectors() (out []object) {
	for _, n := range []int{0, 1, 2, 3, 5, 8, 13} {
		var tree digest.Tree
		leaves := []string{}
		for i := range n {
			leaf := digest.Hash(sha256.Sum256([]byte{byte(i)}))
			tree = tree.Add(leaf)
			leaves = append(leaves, leaf.String())
		}
		out = append(out, object{"leaves": leaves, "root": tree.Root().String()})
	}
	return out
}

func sample() digest.Batch {
	key := func(name string) [][32]byte { return [][32]byte{sha256.Sum256([]byte(name))} }
	return digest.Batch{
		Batch: "dsb_06gc8k3c0000e080000000000000000000000006viiai3af5", BatchRef: "SALARIES-2026-11", Revision: 2, Agency: "018f0000-0000-7000-8000-000000000001",
		Mode: "live", Currency: "XAF", Date: "2026-12-01", Maker: "p-ama", Count: 3, Sum: 450000, Largest: 200000, Root: sha256.Sum256([]byte("root")),
		Accounts:     []digest.Account{{Code: "airtel", Fingerprint: "1f2e", Count: 1, Sum: 100000}, {Code: "mtn", Fingerprint: "9a8b", Count: 2, Sum: 350000}},
		ApproveUntil: time.Date(2026, 12, 3, 9, 30, 0, 0, time.UTC), PayUntil: "2026-12-06", Policy: 4, RPID: "staff.example", Origin: "https://staff.example",
		Levels: []policy.Level{
			{Needed: 1, Persons: []policy.Approver{{ID: "p-ben", Keys: slices.Concat(key("ben"), key("ben 2"))}}},
			{Needed: 2, Persons: []policy.Approver{{ID: "p-cleo", Keys: key("cleo")}, {ID: "p-dan", For: "p-eve", Keys: key("dan")}}},
		},
	}
}

func batchVectors(t *testing.T) (out []object) {
	t.Helper()
	alone := sample()
	alone.Levels, alone.Accounts, alone.Mode = alone.Levels[:1], alone.Accounts[:1], "test"
	for _, b := range []digest.Batch{sample(), alone} {
		form, err := b.Form()
		if err != nil {
			t.Fatal(err)
		}
		sum, err := b.Digest()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, object{"batch": json.RawMessage(form), "canonical": string(form), "digest": sum.String()})
	}
	return out
}

func stepVectors(t *testing.T) (out []object) {
	t.Helper()
	sum, err := sample().Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []digest.Step{{sum, 1, "p-ben", digest.Approve}, {sum, 0, "p-ben", digest.Reject}, {sum, 2, "p-cleo", digest.Release}, {sum, 1, "p-dan", digest.Resume}} {
		statement, err := s.Statement()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, object{"step": object{"digest": sum.String(), "level": s.Level, "person": s.Person, "verdict": string(s.Verdict)}, "statement": statement.String()})
	}
	return out
}

func settlementVectors(t *testing.T) (out []object) {
	t.Helper()
	sum, err := sample().Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []digest.Settlement{
		{Digest: sum, Position: 0, Number: 1, Status: "sent", Attempt: 1, Outcome: "paid", Reference: "statement 2026-12-02, line 14"},
		{Digest: sum, Position: 99, Number: 2, Status: "refused", Attempt: 3, Doubt: 2, Outcome: "refused", Reference: "letter of 4 December"},
	} {
		statement, err := s.Statement("p-ben")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, object{"settlement": object{
			"attempt": s.Attempt, "digest": sum.String(), "doubt": s.Doubt, "number": s.Number, "outcome": s.Outcome, "person": "p-ben",
			"position": s.Position, "reference": s.Reference, "status": s.Status,
		}, "statement": statement.String()})
	}
	return out
}

// The tree is that of RFC 6962 as another implementation has it.
func TestTree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		var tree digest.Tree
		other := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
		for i := range n {
			leaf := digest.Hash(sha256.Sum256(fmt.Append(nil, i, n)))
			tree = tree.Add(leaf)
			if err := other.Append(leaf[:], nil); err != nil {
				t.Fatal(err)
			}
		}
		want, err := other.GetRootHash(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Root(); !bytes.Equal(got[:], want) {
			t.Fatalf("%d leaves: %s, want %x", n, got, want)
		}
		if len(tree.Peaks) > 17 {
			t.Fatalf("%d peaks", len(tree.Peaks))
		}
	})
}

// Nothing but printable ASCII and safe integers is signed, wherever it stands.
func TestOtherTextsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"é", "a\tb", "\x7f", "a\x00"} {
		if _, err := digest.Leaf([32]byte{}, digest.Line{Amount: 1, Name: text}); !errors.Is(err, digest.ErrText) {
			t.Errorf("%q: %v", text, err)
		}
		b := sample()
		b.Levels[0].Persons[0].ID = text
		if _, err := b.Digest(); !errors.Is(err, digest.ErrText) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := (digest.Step{Person: text}).Statement(); !errors.Is(err, digest.ErrText) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := digest.Leaf([32]byte{}, digest.Line{Amount: digest.MaxInteger + 1}); !errors.Is(err, digest.ErrText) {
		t.Errorf("%v", err)
	}
}

// Each member of a batch, a line and a step changes what is signed.
func TestEveryMemberCounts(t *testing.T) {
	t.Parallel()
	known := map[digest.Hash]string{}
	add := func(name string, h digest.Hash, err error) {
		if other, twice := known[h]; twice || err != nil {
			t.Errorf("%s is signed as %q is: %v", name, other, err)
		}
		known[h] = name
	}
	for name, change := range map[string]func(*digest.Batch){
		"none": func(*digest.Batch) {}, "id": func(b *digest.Batch) { b.Batch = "x" }, "ref": func(b *digest.Batch) { b.BatchRef = "x" },
		"revision": func(b *digest.Batch) { b.Revision++ }, "agency": func(b *digest.Batch) { b.Agency = "x" }, "mode": func(b *digest.Batch) { b.Mode = "test" },
		"currency": func(b *digest.Batch) { b.Currency = "EUR" }, "date": func(b *digest.Batch) { b.Date = "2026-12-02" }, "maker": func(b *digest.Batch) { b.Maker = "x" },
		"count": func(b *digest.Batch) { b.Count++ }, "sum": func(b *digest.Batch) { b.Sum++ }, "largest": func(b *digest.Batch) { b.Largest++ },
		"root": func(b *digest.Batch) { b.Root[0]++ }, "account": func(b *digest.Batch) { b.Accounts[0].Fingerprint = "x" }, "account sum": func(b *digest.Batch) { b.Accounts[0].Sum++ },
		"until": func(b *digest.Batch) { b.ApproveUntil = b.ApproveUntil.Add(time.Second) }, "pay until": func(b *digest.Batch) { b.PayUntil = "2026-12-07" },
		"policy": func(b *digest.Batch) { b.Policy++ }, "needed": func(b *digest.Batch) { b.Levels[1].Needed = 1 }, "person": func(b *digest.Batch) { b.Levels[0].Persons[0].ID = "x" },
		"for": func(b *digest.Batch) { b.Levels[1].Persons[1].For = "" }, "key": func(b *digest.Batch) { b.Levels[0].Persons[0].Keys[1][0]++ },
		"host": func(b *digest.Batch) { b.RPID = "x" }, "origin": func(b *digest.Batch) { b.Origin = "x" },
	} {
		b := sample()
		change(&b)
		h, err := b.Digest()
		add(name, h, err)
	}
	for _, s := range []digest.Step{{Level: 1}, {Level: 2}, {Level: 1, Person: "a"}, {Level: 1, Verdict: digest.Approve}, {Digest: digest.Hash{1}, Level: 1}} {
		h, err := s.Statement()
		add(fmt.Sprint(s), h, err)
	}
	for _, c := range []digest.Change{{Number: 1}, {Number: 2}, {Number: 1, Agency: "a"}, {Number: 1, Person: "a"}, {Number: 1, Content: map[string]string{"a": "b"}}} {
		h, err := c.Statement()
		add(fmt.Sprint(c), h, err)
	}
}
