package disbursements

import (
	"fmt"
	"strings"

	"quittance/disbursement"
	"quittance/disbursement/policy"
	"quittance/ingress/staff"
	"quittance/internal/connector"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/identity"
)

// beside is what the page of a batch has beside what is signed: what the import found, and what is done with a draft.
type beside struct {
	T *importWords
	// Missing says that what the import found could not be read.
	Missing bool
	// Incomplete says that the import has not ended, or ended before it had looked for differences.
	Incomplete  bool
	Found       bool
	Comparisons []compared
	Warnings    staff.Grid
	// NamesText says what is known of the names of payees; empty where nobody was asked. Names has the verdicts.
	NamesText string
	Names     staff.Grid
	Drafts    []draftForm
}

// compared is a comparison with an earlier batch.
type compared struct {
	Text string
	Grid staff.Grid
}

// draftForm is a form about a draft. Waiver asks why names were not checked.
type draftForm struct {
	Name, Title, Text, URL, Label, Class string
	Waiver                               bool
}

// beside returns what stands beside the batch of the address; nil for a page about none. Who may not see lines sees nothing of
// what the import found.
func (v *visit) beside() *beside {
	id := v.Param("batch")
	if id == "" || v.Asks() || !v.may(identity.MaySeeLines) {
		return nil
	}
	out := &beside{T: importTexts.In(v.Lang)}
	b, err := v.read(id)
	var notes *disbursements.Notes
	if err == nil {
		notes, err = v.d.cfg.Batches.Notes(v.Context(), id)
	}
	var names disbursements.Names
	if err == nil {
		names, err = v.d.cfg.Batches.Names(v.Context(), id)
	}
	if err == nil {
		err = v.drafts(out, b, notes != nil, names)
		out.Incomplete = notes == nil && (b.Status == disbursement.StatusDraft || b.Status == disbursement.StatusSealed || b.Status == disbursement.StatusApproved)
	}
	if err != nil {
		out.Missing = true
		return out
	}
	if notes == nil {
		return out
	}
	out.Found = true
	v.names(out, names)
	for _, x := range []struct {
		text string
		c    *disbursements.Comparison
	}{{out.T.WithRevision, notes.Revision}, {out.T.WithLast, notes.Last}} {
		if x.c != nil {
			out.Comparisons = append(out.Comparisons, v.compared(out.T, x.text, x.c, b.Currency))
		}
	}
	out.Warnings = staff.Grid{Caption: out.T.Warnings, Heads: []string{out.T.Kind, out.T.HowMany, out.T.Which}}
	for _, kind := range disbursements.WarningKinds() {
		if notes.Warnings[kind] == 0 {
			continue
		}
		var refs []string
		for _, w := range notes.Warned {
			switch {
			case w.Kind != kind:
			case w.Other == "":
				refs = append(refs, w.Ref)
			case kind == lines.WarnRecent:
				refs = append(refs, w.Ref+" ("+v.day(w.Other)+")")
			default:
				refs = append(refs, w.Ref+" ("+w.Other+")")
			}
		}
		out.Warnings.Rows = append(out.Warnings.Rows, []staff.Cell{{Text: out.T.WarningKinds[string(kind)]}, {Text: v.number(notes.Warnings[kind])}, {Text: first(refs, notes.Warnings[kind]), Class: "code"}})
	}
	return out
}

// names adds what operators have told of the names of payees.
func (v *visit) names(out *beside, names disbursements.Names) {
	if names.Asked == nil || names.Asked.Lines == 0 {
		return
	}
	out.NamesText = fmt.Sprintf(out.T.NamesText, v.number(names.Asked.Lines))
	if waiting := names.Count[disbursements.NameWaits]; waiting > 0 {
		out.NamesText += " " + fmt.Sprintf(out.T.NamesWait, v.number(waiting))
	}
	out.Names = staff.Grid{Caption: out.T.Names, Heads: []string{out.T.Kind, out.T.HowMany, out.T.Which}}
	for _, verdict := range connector.NameVerdicts {
		if n := names.Count[verdict]; n > 0 {
			refs := ""
			if verdict != connector.NameMatch {
				refs = first(names.Refs[verdict], n)
			}
			out.Names.Rows = append(out.Names.Rows, []staff.Cell{{Text: out.T.Verdicts[string(verdict)]}, {Text: v.number(n)}, {Text: refs, Class: "code"}})
		}
	}
}

// refsShown is how many line_refs the page lists of a kind.
const refsShown = 20

func first(refs []string, count int) string {
	text := strings.Join(refs[:min(len(refs), refsShown)], ", ")
	if count > refsShown {
		text += ", …"
	}
	return text
}

func (v *visit) compared(t *importWords, with string, c *disbursements.Comparison, currency string) compared {
	out := compared{Text: fmt.Sprintf(with, c.BatchRef, c.Revision, v.day(c.Date), v.sum(c.Before, currency), v.sum(c.After, currency))}
	if c.Empty() {
		out.Text += " " + t.Same
		return out
	}
	out.Grid = staff.Grid{Caption: t.Differences, Heads: []string{t.Kind, t.HowMany, t.Which}}
	for _, kind := range disbursements.ChangeKinds() {
		if c.Count[kind] == 0 {
			continue
		}
		var refs []string
		for _, x := range c.List {
			if x.Kind != kind {
				continue
			}
			text := x.Ref
			if x.Before != 0 && x.After != 0 && x.Before != x.After {
				text += fmt.Sprintf(" (%s → %s)", v.sum(x.Before, currency), v.sum(x.After, currency))
			}
			refs = append(refs, text)
		}
		out.Grid.Rows = append(out.Grid.Rows, []staff.Cell{{Text: t.ChangeKinds[string(kind)]}, {Text: v.number(c.Count[kind])}, {Text: first(refs, c.Count[kind]), Class: "code"}})
	}
	return out
}

// drafts adds the forms about a draft, to those who prepare batches. Its maker alone seals it, if its import came to the end (whole):
// a draft may have the first lines of its file only. It asks why names are not checked if they are not as the policy demands.
func (v *visit) drafts(out *beside, b disbursements.Batch, whole bool, names disbursements.Names) error {
	if b.Status != disbursement.StatusDraft || !v.may(identity.MayPrepareBatches) {
		return nil
	}
	agency, _, err := v.d.cfg.Batches.Agency(v.Context(), b.TenantID, b.Live)
	if err != nil {
		return err
	}
	path, demanded := rootBatches+"/"+b.ID, agency.InForce(v.Now).NameCheck
	if b.Maker == v.Acting.Person.ID && b.Count > 0 && whole {
		x := out.T.Seal
		out.Drafts = append(out.Drafts, draftForm{
			Name: "seal", Title: x.Title, Text: x.Text, URL: v.URL(path + "/seal"), Label: x.Send, Waiver: demanded != "" && demanded != policy.CheckOff && !names.Checked(demanded),
		})
	}
	x := out.T.Discard
	out.Drafts = append(out.Drafts, draftForm{Name: "discard", Title: x.Title, Text: x.Text, URL: v.URL(path + "/discard"), Label: x.Send, Class: "bad"})
	return nil
}
