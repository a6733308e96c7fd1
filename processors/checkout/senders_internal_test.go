package checkout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/processors/sender"
)

// actions are all commands by the names of their types, those of Outcome by their source.
var actions = map[string][]checkout.Action{
	"Create": {checkout.Create{}}, "Cancel": {checkout.Cancel{}}, "Collect": {checkout.Collect{}}, "Redirected": {checkout.Redirected{}},
	"Outcome": {
		checkout.Outcome{Source: checkout.SourceCallback},
		checkout.Outcome{Source: checkout.SourceRequest},
		checkout.Outcome{Source: checkout.SourceEnquiry},
		checkout.Outcome{Source: checkout.SourceCounter},
		checkout.Outcome{Source: checkout.SourceStaff},
		checkout.Outcome{Source: checkout.SourceStatement},
		checkout.Outcome{},
	},
	"Enquire": {checkout.Enquire{}}, "Reserve": {checkout.Reserve{}}, "Take": {checkout.Take{}}, "Release": {checkout.Release{}}, "Reverse": {checkout.Reverse{}},
	"IssueToken": {checkout.IssueToken{}}, "ConsumeToken": {checkout.ConsumeToken{}}, "OpenRefundRequest": {checkout.OpenRefundRequest{}},
	"Resolve": {checkout.Resolve{}}, "NoteProposal": {checkout.NoteProposal{}}, "Confirmed": {checkout.Confirmed{}},
	"Credit": {checkout.Credit{}}, "CreditWithdrawn": {checkout.CreditWithdrawn{}},
	"InitCheckout": {checkout.InitCheckout{}}, "PartnerPay": {checkout.PartnerPay{}}, "LookUp": {checkout.LookUp{}}, "Erase": {checkout.Erase{}}, "Tick": {checkout.Tick{}},
}

// name returns the name of a cell's command.
func name(kind string, do checkout.Action) string {
	if o, ok := do.(checkout.Outcome); ok {
		return kind + " " + string(o.Source)
	}
	return kind
}

// What each sender may send, once more and by sender: a change of the table is two changes.
var sends = map[string][]string{
	"ingress": {
		"Create", "Cancel", "Collect", "Outcome callback", "Enquire", "Reserve", "Take", "Release", "Reverse", "IssueToken", "ConsumeToken",
		"InitCheckout", "PartnerPay", "LookUp",
	},
	"collect":  {"Redirected", "Outcome request", "Outcome enquiry"},
	"erp":      {"Confirmed"},
	"cases":    {"Resolve", "NoteProposal"},
	"operator": {"OpenRefundRequest", "Erase"},
	"match":    {"Credit", "CreditWithdrawn"},
}

// Every sender and every command: each cell of the table.
func TestEachSenderSendsItsCommandsOnly(t *testing.T) {
	t.Parallel()
	kinds := commandTypes(t)
	for _, kind := range kinds {
		if len(actions[kind]) == 0 {
			t.Errorf("the command %s has no row", kind)
		}
	}
	if len(kinds) != len(actions) {
		t.Errorf("%d commands, %d rows", len(kinds), len(actions))
	}
	g, err := sender.New(sender.Config[checkout.Action]{Allowed: sendersOf, Metrics: prometheus.NewRegistry()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	for _, from := range append(Senders(), "webhook", "root", "") {
		for kind, all := range actions {
			for _, do := range all {
				want := slices.Contains(sends[from], name(kind, do))
				if from == "" { // unsigned, and accepted as such
					want = kind != "Tick" && name(kind, do) != "Outcome counter" && name(kind, do) != "Outcome staff" && name(kind, do) != "Outcome statement" && name(kind, do) != "Outcome "
				}
				if got := g.Allows(from, do) == nil; got != want {
					t.Errorf("%q sends %s: %t", from, name(kind, do), got)
				}
				cells++
			}
		}
	}
	t.Logf("%d cells", cells)
}

// commandTypes returns the names of the types that are commands.
func commandTypes(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../checkout/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && m.Name.Name == "action" {
				names = append(names, fmt.Sprint(m.Recv.List[0].Type))
			}
		}
	}
	if len(names) < 20 {
		t.Fatalf("found %q", names)
	}
	return names
}
