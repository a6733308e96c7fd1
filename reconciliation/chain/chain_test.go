package chain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/reconciliation/chain"
)

func sample() chain.Row {
	return chain.Row{
		Entry: "5b6f0d6e-7d0b-5c0e-9d6a-0d6f1f9d7a11", Item: 1, Due: "IMP-2026-00017", Session: "cs_1", OperatorRef: "MP261123.1001.A1",
		Transaction: "0198c3a0-0000-7000-8000-000000000001", Confirmation: "0198c3a0-0000-7000-8000-000000000001",
		Amount: 15000, Gross: 15150, Currency: "XAF", OperatorLine: "momo/MP261123.1001.A1", BankLine: "banque/2026-11-24/7",
	}
}

func tree(t rapid.TB, rows []chain.Row) *chain.Tree {
	t.Helper()
	tree, err := chain.New(rows)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestCanonical pins the bytes of version 1 and the root over them. Closed periods keep roots:
// another form needs another version.
func TestCanonical(t *testing.T) {
	t.Parallel()
	full := sample()
	if got, want := string(full.Canonical()), "17:quittance-chain/1,36:5b6f0d6e-7d0b-5c0e-9d6a-0d6f1f9d7a11,1:1,14:IMP-2026-00017,4:cs_1,16:MP261123.1001.A1,"+
		"36:0198c3a0-0000-7000-8000-000000000001,36:0198c3a0-0000-7000-8000-000000000001,5:15000,5:15150,3:XAF,21:momo/MP261123.1001.A1,19:banque/2026-11-24/7,"; got != want {
		t.Errorf("full row:\n%s\nwant\n%s", got, want)
	}
	orphan := chain.Row{Entry: "é", Amount: -75, Gross: -75, Currency: "XAF"}
	if got, want := string(orphan.Canonical()), "17:quittance-chain/1,2:é,1:0,0:,0:,0:,0:,0:,3:-75,3:-75,3:XAF,0:,0:,"; got != want {
		t.Errorf("row without hops:\n%s\nwant\n%s", got, want)
	}
	if got, want := tree(t, []chain.Row{full, orphan}).Root().String(), "3525ff8ecca73e2f69ab91b920d2f8d623f484163982d2fb5e9ec115bc33b5aa"; got != want {
		t.Errorf("root %s, want %s", got, want)
	}
}

// TestEveryFieldCounts changes each field of a row. Its proof then fails, so no field of the
// type was left out of the canonical form.
func TestEveryFieldCounts(t *testing.T) {
	t.Parallel()
	row := sample()
	other := sample()
	other.Item = 2
	all := tree(t, []chain.Row{row, other})
	p, err := all.Prove(row)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(row, all.Root(), all.Size()); err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[chain.Row]().NumField() {
		changed := row
		switch f := reflect.ValueOf(&changed).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "0")
		case reflect.Int, reflect.Int64:
			f.SetInt(f.Int() + 75)
		default:
			t.Fatalf("field %d has kind %s", i, f.Kind())
		}
		name := reflect.TypeFor[chain.Row]().Field(i).Name
		if err := p.Verify(changed, all.Root(), all.Size()); err == nil {
			t.Errorf("the proof holds after %s changed", name)
		}
		if _, err := all.Prove(changed); !errors.Is(err, chain.ErrNotInTree) {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}

// TestTree draws sets of rows: the order changes nothing, every row has a proof, and neither
// another root, size, index or path nor a missing row passes.
func TestTree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]chain.Row, rapid.IntRange(0, 70).Draw(t, "rows"))
		for i := range rows {
			rows[i] = sample()
			rows[i].Entry, rows[i].Item = fmt.Sprint(i/3), i%3
			rows[i].OperatorLine = rapid.StringMatching(`|momo/[0-9:,]{1,9}`).Draw(t, "line")
		}
		all := tree(t, rows)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if again := tree(t, rows); again.Root() != all.Root() || int(all.Size()) != len(rows) {
			t.Fatalf("shuffled: %s of %d, before: %s", again.Root(), again.Size(), all.Root())
		}
		if len(rows) == 0 {
			return
		}
		fewer := tree(t, rows[1:])
		if fewer.Root() == all.Root() {
			t.Fatal("a row less has the same root")
		}
		if _, err := fewer.Prove(rows[0]); !errors.Is(err, chain.ErrNotInTree) {
			t.Fatalf("a row that is not in the tree: %v", err)
		}
		for _, row := range rows {
			p, err := all.Prove(row)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(row, all.Root(), all.Size()); err != nil {
				t.Fatal(err)
			}
			for what, bad := range map[string]chain.Proof{
				"index":         {Version: p.Version, Index: p.Index + 1, Size: p.Size, Path: p.Path},
				"path too long": {Version: p.Version, Index: p.Index, Size: p.Size, Path: append(p.Path[:len(p.Path):len(p.Path)], all.Root())},
				"size":          {Version: p.Version, Index: p.Index, Size: p.Size + 1, Path: p.Path},
				"version":       {Version: p.Version + 1, Index: p.Index, Size: p.Size, Path: p.Path},
			} {
				if err := bad.Verify(row, all.Root(), all.Size()); err == nil {
					t.Fatalf("a proof with another %s holds", what)
				}
			}
			if err := p.Verify(row, fewer.Root(), all.Size()); err == nil {
				t.Fatal("the proof holds for another root")
			}
		}
	})
}

// TestBadRows names the field and the mend.
func TestBadRows(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*chain.Row){
		`entry_id: give the id of the expected money`: func(r *chain.Row) { r.Entry = "" },
		`item: number dues from 1`:                    func(r *chain.Row) { r.Item = -1 },
		`currency: give an ISO 4217 code`:             func(r *chain.Row) { r.Currency = "" },
		`bank_line: give UTF-8`:                       func(r *chain.Row) { r.BankLine = "relev\xe9" },
	} {
		row := sample()
		change(&row)
		_, err := chain.New([]chain.Row{sample(), row})
		if bad := (*chain.RowError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	twice := sample()
	twice.BankLine = ""
	if _, err := chain.New([]chain.Row{sample(), twice}); !errors.Is(err, chain.ErrDuplicateRow) {
		t.Errorf("a due twice: %v", err)
	}
}

// TestProofJSON reads a proof back from what a command prints.
func TestProofJSON(t *testing.T) {
	t.Parallel()
	rows := []chain.Row{sample(), sample(), sample()}
	rows[1].Item, rows[2].Item = 2, 3
	all := tree(t, rows)
	p, err := all.Prove(rows[1])
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var read chain.Proof
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if err := read.Verify(rows[1], all.Root(), all.Size()); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	var hash chain.Hash
	for _, bad := range []string{"", "12", strings.Repeat("z", 64), all.Root().String() + "00"} {
		if err := hash.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("the hash %q was read", bad)
		}
	}
}
