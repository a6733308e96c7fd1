package batch

import (
	"fmt"
	"strings"

	"quittance/cmd/internal/cli/render"
	"quittance/internal/connector"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
)

// shownNotes is how many differences or warnings of a kind the commands print as text; --json has up to
// disbursements.NotesListed.
const shownNotes = 5

// changeTexts and warningTexts say what a number of differences or warnings are.
var (
	changeTexts = map[disbursements.ChangeKind]string{
		disbursements.ChangeAdded: "lines added", disbursements.ChangeRemoved: "lines removed", disbursements.ChangeLine: "lines changed",
		disbursements.ChangeNew: "payees that it has not", disbursements.ChangeGone: "payees gone", disbursements.ChangeAccount: "names with another account",
		disbursements.ChangeAmount: "payees with another sum",
	}
	warningTexts = map[lines.WarningKind]string{
		lines.WarnTwice: "lines with payee and amount of another line", lines.WarnRecent: "lines with payee and amount of the last 90 days",
		lines.WarnAccount: "known names with an account that they never had", lines.WarnPayee: "payees never paid before", lines.WarnName: "known accounts with a name that they never had",
	}
)

// notesJSON is what an import said of a batch; nil for nothing.
func notesJSON(n *disbursements.Notes) any {
	if n == nil {
		return nil
	}
	counts := render.Object{}
	for _, kind := range disbursements.WarningKinds() {
		counts = append(counts, string(kind), n.Warnings[kind])
	}
	return render.Object{
		"signed", false, "revision", comparisonJSON(n.Revision), "last", comparisonJSON(n.Last), "warnings", counts,
		"warned", render.Mapped(n.Warned, func(w disbursements.Warned) render.Object {
			return render.Object{"kind", string(w.Kind), "line_ref", w.Ref, "other", render.OrNone(w.Other)}
		}),
	}
}

func comparisonJSON(c *disbursements.Comparison) any {
	if c == nil {
		return nil
	}
	counts := render.Object{}
	for _, kind := range disbursements.ChangeKinds() {
		if c.Count[kind] > 0 {
			counts = append(counts, string(kind), c.Count[kind])
		}
	}
	return render.Object{
		"batch", c.Batch, "batch_ref", c.BatchRef, "revision", c.Revision, "date", c.Date, "before", c.Before, "after", c.After, "count", counts,
		"list", render.Mapped(c.List, func(x disbursements.Changed) render.Object {
			return render.Object{"kind", string(x.Kind), "line_ref", x.Ref, "columns", render.Texts(x.Columns), "before", x.Before, "after", x.After}
		}),
	}
}

// namesJSON is what operators have told of payees' names; nil if nobody asked.
func namesJSON(n disbursements.Names) any {
	if n.Asked == nil {
		return nil
	}
	out := render.Object{"check", string(n.Asked.Check), string(disbursements.NameWaits), n.Count[disbursements.NameWaits]}
	for _, v := range connector.NameVerdicts {
		out = append(out, string(v), n.Count[v])
	}
	refs := render.Object{}
	for _, v := range connector.NameVerdicts {
		if v != connector.NameMatch {
			refs = append(refs, string(v), append([]string{}, n.Refs[v]...))
		}
	}
	return append(out, "line_refs", refs)
}

// sayNames prints what operators have told of payees' names.
func sayNames(p *render.Page, n disbursements.Names) {
	if n.Asked == nil || n.Asked.Lines == 0 {
		return
	}
	if waiting := n.Count[disbursements.NameWaits]; waiting > 0 {
		p.Say("names: %s not told yet", render.Counted(waiting, "name"))
	}
	for _, v := range connector.NameVerdicts {
		switch {
		case n.Count[v] == 0:
		case v == connector.NameMatch:
			p.Say("names: %s", render.Counted(n.Count[v], "match"))
		default:
			p.Say("names: %d %s (%s)", n.Count[v], v, some(n.Refs[v], n.Count[v]))
		}
	}
}

// sayNotes prints what an import said of a batch.
func sayNotes(p *render.Page, n *disbursements.Notes, currency string) {
	if n == nil {
		return
	}
	sayComparison(p, "the last revision", n.Revision, currency)
	sayComparison(p, "the last batch", n.Last, currency)
	for _, kind := range disbursements.WarningKinds() {
		if n.Warnings[kind] == 0 {
			continue
		}
		var refs []string
		for _, w := range n.Warned {
			if w.Kind != kind {
				continue
			}
			switch {
			case w.Other == "":
				refs = append(refs, w.Ref)
			default:
				refs = append(refs, w.Ref+" as "+w.Other)
			}
		}
		p.Say("warning: %s: %d (%s)", warningTexts[kind], n.Warnings[kind], some(refs, n.Warnings[kind]))
	}
}

func sayComparison(p *render.Page, with string, c *disbursements.Comparison, currency string) {
	if c == nil {
		return
	}
	of := fmt.Sprintf("%s, %s revision %d of %s", with, c.BatchRef, c.Revision, c.Date)
	if c.Empty() {
		p.Say("as %s", of)
		return
	}
	p.Say("compared with %s: %s, before %s", of, render.Decimal(c.After, currency), render.Decimal(c.Before, currency))
	for _, kind := range disbursements.ChangeKinds() {
		if c.Count[kind] == 0 {
			continue
		}
		var refs []string
		for _, x := range c.List {
			if x.Kind == kind {
				refs = append(refs, x.Ref+columnsText(x.Columns))
			}
		}
		p.Say("  %s: %d (%s)", changeTexts[kind], c.Count[kind], some(refs, c.Count[kind]))
	}
}

func columnsText(columns []lines.Column) string {
	if len(columns) == 0 {
		return ""
	}
	return " (" + strings.Join(render.Texts(columns), ", ") + ")"
}

// some lists the first references of a number of them.
func some(refs []string, count int) string {
	text := strings.Join(refs[:min(len(refs), shownNotes)], ", ")
	if count > shownNotes {
		text += ", …"
	}
	return text
}
