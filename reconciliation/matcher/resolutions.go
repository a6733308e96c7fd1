package matcher

import (
	"context"
	"slices"
	"strings"

	"quittance/casework"
	"quittance/internal/cases"
	"quittance/internal/journal"
	"quittance/reconciliation/match"
	"quittance/schemas/record"
)

// settle takes the open findings in whose cases people agreed on something out of the open ones: their rows
// are settled, and no later run matches them. What cannot be carried out any more is asked again
// in a new case: r.again.
func (r *run) settle(ctx context.Context) error {
	byCase, asked := map[string]string{}, map[string]cases.Case{}
	for id, f := range r.world.open {
		if f.CaseID != "" {
			byCase[f.CaseID], asked[f.CaseID] = id, caseOf(f)
		}
	}
	all, err := r.ofFindings(ctx, asked)
	if err != nil {
		return err
	}
	for _, a := range all {
		f, open := r.world.open[byCase[a.caseID]]
		switch {
		case !open: // matched by hand with another break
		case a.over:
			r.again = append(r.again, again{f, whyUnsigned})
		case a.explains():
			r.resolve(f, a)
		case a.resolution == cases.ResolutionMatch && !r.world.stands(f):
			r.again = append(r.again, again{f, whyChanged})
		case a.resolution == cases.ResolutionMatch && f.Type == journal.FindingProposal:
			r.resolve(f, a)
			r.byHand(a, f)
		case a.resolution == cases.ResolutionMatchByHand:
			r.matchByHand(a, f, byCase)
		}
	}
	return nil
}

// resolve ends a finding as people agreed.
func (r *run) resolve(f journal.Finding, a agreed) {
	end := r.ended(f, journal.FindingResolved)
	end.Resolution = string(a.resolution)
	r.agreed = append(r.agreed, end)
	delete(r.world.open, f.ID)
	if a.explains() {
		r.world.explained[f.ID] = f
	}
}

// matchByHand matches the rows of a break with those of the breaks that its resolution names. The
// breaks may have changed since people agreed: then they decide again.
func (r *run) matchByHand(a agreed, f journal.Finding, byCase map[string]string) {
	all := []journal.Finding{f}
	sum := f.Amount
	for _, id := range cases.Others(a.reference) {
		other, open := r.world.open[byCase[id]]
		open = open && !slices.ContainsFunc(all, func(f journal.Finding) bool { return f.ID == other.ID })
		if !open || other.Type != journal.FindingBreak || other.Currency != f.Currency {
			r.again = append(r.again, again{f, whyChanged})
			return
		}
		all = append(all, other)
		sum += other.Amount
	}
	if sum != 0 || slices.ContainsFunc(all, func(f journal.Finding) bool { return !r.world.stands(f) || r.world.undecided(f) }) {
		r.again = append(r.again, again{f, whyChanged})
		return
	}
	for _, one := range all {
		r.resolve(one, a)
	}
	r.byHand(a, all...)
}

// byHand adds the match of the rows of findings.
func (r *run) byHand(a agreed, findings ...journal.Finding) {
	m := match.Match{Stage: match.StageHand, Key: a.caseID, Currency: findings[0].Currency, Rule: match.RuleVersion}
	for _, f := range findings {
		m.Sources, m.Lines = append(m.Sources, f.Sources...), append(m.Lines, f.Lines...)
	}
	slices.Sort(m.Sources)
	slices.Sort(m.Lines)
	for _, id := range m.Lines {
		if l := r.world.lines.get(id); l != nil {
			m.Amount += r.counts(l)
		}
	}
	m.ID = match.HandID(a.caseID, m.Sources, m.Lines)
	f := r.finding(m, journal.FindingMatch)
	f.CaseID, f.Resolution = a.caseID, string(a.resolution)
	r.agreed = append(r.agreed, f)
	r.world.inForce[m.ID] = journal.Finding{ID: m.ID, Type: journal.FindingMatch, Stage: f.Stage, Sources: m.Sources, Lines: m.Lines}
}

// again is a finding about which people decide once more, in a new case, and why.
type again struct {
	journal.Finding
	why string
}

// notCarriedOut begins the reason of a break whose resolution was refused.
const notCarriedOut = "what people agreed on in "

// Why a resolution was refused.
const (
	whyChanged  = "its rows had changed"
	whyUnsigned = "nobody has signed it as it stands there"
)

// reopened returns the records that end findings whose resolution could not be carried out as refused,
// and open them again with a new case that says so, unless the run ends them.
func (r *run) reopened(ended []string) (out []*record.Finding) {
	for _, of := range r.again {
		f := of.Finding
		if slices.Contains(ended, f.ID) {
			continue
		}
		again := r.ended(f, journal.FindingOpen)
		again.CaseID = cases.OfFinding(f.ID, r.id)
		before := f.Reason
		if rest, again := strings.CutPrefix(before, notCarriedOut); again {
			_, before, _ = strings.Cut(rest, ": ")
		}
		again.Reason = notCarriedOut + f.CaseID + " was refused, because " + of.why + ": " + before
		refused := r.ended(f, journal.FindingCleared)
		refused.Resolution = string(cases.ResolutionRefused)
		out = append(out, refused, again)
	}
	return out
}

// readExplained reads the findings that people have explained, of the rows that were read. It
// reports whether there are any that were not read yet.
func (r *run) readExplained(ctx context.Context) (bool, error) {
	before := len(r.world.explained)
	var ids []string
	for id := range r.world.all() {
		if !r.inWindow(id) && !r.world.asked["explained "+id] {
			r.world.asked["explained "+id] = true
			ids = append(ids, id)
		}
	}
	var which []string
	if !r.world.asked["explained"] {
		r.world.asked["explained"] = true
		which = append(which, "arrayExists(id -> id >= "+quote(r.horizon.String())+", arrayConcat(sources, lines))")
	}
	for _, some := range chunks(ids) {
		which = append(which, naming(some))
	}
	for _, one := range which {
		if err := r.findings(ctx, "breaks", journal.FindingResolved, r.among("breaks", one), r.world.explained); err != nil {
			return false, err
		}
	}
	for id, f := range r.world.explained {
		if !(agreed{resolution: casework.Resolution(f.Resolution)}).explains() {
			delete(r.world.explained, id)
		}
	}
	return len(r.world.explained) > before, nil
}

// stands reports whether no payment and no line of a finding of people was withdrawn. Otherwise its rows are
// free again.
func (w *world) stands(f journal.Finding) bool {
	gone := func(id string) bool { return w.gone[id] }
	return !slices.ContainsFunc(f.Sources, gone) && !slices.ContainsFunc(f.Lines, gone)
}

// undecided reports whether a row of the finding is a collection that its operator has not decided: no
// money that a match could count.
func (w *world) undecided(f journal.Finding) bool {
	return slices.ContainsFunc(f.Sources, func(id string) bool { e := w.expected.get(id); return e != nil && (e.Undecided || e.Refused) })
}

// frozen reports whether a match never changes: people made it, its period is closed, or a line of it is
// of an account that does not settle to the bank account any more. It does
// not hold any more when one of its payments or lines was withdrawn.
func (w *world) frozen(f journal.Finding) bool {
	byHand := f.Stage == string(match.StageHand)
	if slices.ContainsFunc(f.Sources, func(id string) bool { return w.left[id] }) {
		return true
	}
	last := w.closed()
	return w.stands(f) && (byHand || last != nil && !f.Day.After(last.ToDay) && f.SourceOffset < last.SourceOffset)
}

// settled returns the rows that people have matched or explained, or whose match is closed.
func (w *world) settled() map[string]bool {
	out := map[string]bool{}
	for _, findings := range []map[string]journal.Finding{w.explained, w.inForce} {
		for _, f := range findings {
			if f.Type == journal.FindingMatch && !w.frozen(f) || !w.stands(f) {
				continue
			}
			for _, id := range slices.Concat(f.Sources, f.Lines) {
				out[id] = true
			}
		}
	}
	return out
}

// marked returns rows with those marked that are settled: match names them but does not match them
// again.
func marked[T any](rows *table[T], settled map[string]bool, mark func(*T)) []T {
	for id := range settled {
		if row := rows.get(id); row != nil {
			mark(row)
		}
	}
	return rows.rows
}
