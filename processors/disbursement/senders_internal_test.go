package disbursement

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/disbursement"
	"quittance/processors/sender"
)

// actions are all commands by the names of their types, those of Word by their source.
var actions = map[string][]disbursement.Action{
	"Open": {disbursement.Open{}}, "AddLines": {disbursement.AddLines{}}, "Seal": {disbursement.Seal{}}, "Discard": {disbursement.Discard{}},
	"Approve": {disbursement.Approve{}}, "Reject": {disbursement.Reject{}}, "Recall": {disbursement.Recall{}}, "Release": {disbursement.Release{}},
	"ERPSame": {disbursement.ERPSame{}}, "SetHold": {disbursement.SetHold{}}, "Lift": {disbursement.Lift{}}, "Stop": {disbursement.Stop{}}, "TryAccount": {disbursement.TryAccount{}},
	"Retry": {disbursement.Retry{}}, "Cancel": {disbursement.Cancel{}}, "Settle": {disbursement.Settle{}}, "Acknowledge": {disbursement.Acknowledge{}},
	"Word": {
		disbursement.Word{Source: disbursement.FromRequest},
		disbursement.Word{Source: disbursement.FromEnquiry},
		disbursement.Word{Source: disbursement.FromCallback},
		disbursement.Word{Source: disbursement.FromStatement},
		disbursement.Word{Source: disbursement.FromStatement, Kind: disbursement.WordPaid},
		disbursement.Word{Source: disbursement.FromStatement, Kind: disbursement.WordReturned},
		disbursement.Word{Source: disbursement.FromStatement, Kind: disbursement.WordNoDebit},
		disbursement.Word{Source: disbursement.FromStatement, Kind: disbursement.WordNoProof},
		disbursement.Word{Source: disbursement.FromStatement, Kind: disbursement.WordNoReturn},
		disbursement.Word{Source: disbursement.FromStatement, Kind: disbursement.WordRefused},
		disbursement.Word{},
	},
	"SetPolicy": {disbursement.SetPolicy{}}, "Enrol": {disbursement.Enrol{}}, "Revoke": {disbursement.Revoke{}}, "Tick": {disbursement.Tick{}},
}

// What each sender may send, once more and by sender: a change of the table is two changes.
var sends = map[string][]string{
	"operator": {"Open", "AddLines", "Seal", "Discard", "Recall", "SetHold", "Stop", "Retry", "Cancel", "Acknowledge", "TryAccount", "SetPolicy", "Enrol", "Revoke"},
	"office":   {"Open", "AddLines", "Seal", "Discard", "Approve", "Reject", "Release", "Lift", "Settle", "Recall", "SetHold", "Stop", "Retry", "Cancel", "Acknowledge", "TryAccount", "SetPolicy", "Enrol", "Revoke"},
	"disburse": {"Word request", "Word enquiry"},
	"match":    {"Word statement paid", "Word statement returned", "Word statement no_debit", "Word statement no_proof", "Word statement no_return"},
	"erp":      {"ERPSame"},
}

// Every sender and every command: each cell of the table.
func TestEachSenderSendsItsCommandsOnly(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../disbursement/*.go")
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && m.Name.Name == "action" {
				known++
				if kind := fmt.Sprint(m.Recv.List[0].Type); len(actions[kind]) == 0 {
					t.Errorf("the command %s has no row", kind)
				}
			}
		}
	}
	if known != len(actions) {
		t.Errorf("%d commands, %d rows", known, len(actions))
	}
	g, err := sender.New(sender.Config[disbursement.Action]{Allowed: sendersOf, Metrics: prometheus.NewRegistry()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range append(Senders(), "ingress", "cases", "root", "") {
		for kind, all := range actions {
			for _, do := range all {
				name := kind
				if w, ok := do.(disbursement.Word); ok {
					name = strings.TrimSpace(name + " " + string(w.Source) + " " + string(w.Kind))
				}
				want := slices.Contains(sends[from], name)
				if got := g.Allows(from, do) == nil; got != want && from != "" {
					t.Errorf("%q sends %s: %t", from, name, got)
				}
			}
		}
	}
}
