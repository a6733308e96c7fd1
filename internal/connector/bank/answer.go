package bank

import (
	"cmp"
	"fmt"
	"slices"
)

// Answers returns what a report says of the lines of a file, in their order. Lines of which it says nothing are left out.
// The error is ErrReport if the report does not fit the file in all it says: the MsgId, groups, references, amounts, counts
// and sums.
func (r Report) Answers(id string, sent []Sent) ([]Answer, error) {
	if r.File != id {
		return nil, unfit("it is of another file")
	}
	all, of, amounts := total{}, map[string]total{}, map[string]Sent{}
	for _, s := range sent {
		amounts[s.Ref] = s
		all, of[s.Group] = all.plus(s), of[s.Group].plus(s)
	}
	if err := r.counts.fit(id, all); err != nil {
		return nil, err
	}
	listed, groups := map[string]Verdict{}, map[string]Verdict{}
	byStatus := map[string]int64{}
	for _, g := range r.groups {
		t, ok := of[g.id]
		if _, twice := groups[g.id]; !ok || twice {
			return nil, unfit("OrgnlPmtInfId: a group is not of the file, or there twice")
		}
		if err := g.counts.fit(g.id, t); err != nil {
			return nil, err
		}
		groups[g.id] = inherit(g.verdict, r.verdict)
		if err := g.list(amounts, listed, groups[g.id], byStatus); err != nil {
			return nil, err
		}
	}
	if err := r.counts.cover(id, byStatus); err != nil {
		return nil, err
	}
	var out []Answer
	for _, s := range sent {
		v, ok := listed[s.Ref]
		if !ok {
			if v, ok = groups[s.Group]; !ok {
				v = r.verdict
			}
		}
		if v.Status != "" && v.Status != partly {
			out = append(out, Answer{Ref: s.Ref, Meaning: meaning(v.Status, v.Reasons), Verdict: v})
		}
	}
	return out, nil
}

// list adds the group's lines.
func (g groupReport) list(sent map[string]Sent, listed map[string]Verdict, above Verdict, all map[string]int64) error {
	mine := map[string]int64{}
	for _, l := range g.lines {
		s, ok := sent[l.ref]
		_, twice := listed[l.ref]
		switch {
		case !ok || s.Group != g.id:
			return unfit("OrgnlEndToEndId: a line is not of the file")
		case twice:
			return unfit(l.ref + ": it is there twice")
		case l.amount >= 0 && l.amount != s.Amount:
			return unfit(l.ref + ": it has another amount than was sent")
		}
		listed[l.ref] = inherit(l.verdict, above)
		if l.verdict.Status != "" {
			mine[l.verdict.Status]++
			all[l.verdict.Status]++
		}
	}
	return g.counts.cover(g.id, mine)
}

// inherit returns the verdict of a level below another one, which has the status of its own if there is one. Reasons above
// count below, whatever the status there: of a file that the bank calls a duplicate no line is refused.
func inherit(v, above Verdict) Verdict {
	return Verdict{Status: cmp.Or(v.Status, above.Status), Reasons: slices.Concat(v.Reasons, above.Reasons)}
}

type total struct{ lines, sum int64 }

func (t total) plus(s Sent) total { return total{t.lines + 1, t.sum + s.Amount} }

// fit compares the numbers of the original with those of the file or the group.
func (c counts) fit(of string, t total) error {
	switch {
	case c.lines >= 0 && c.lines != t.lines:
		return unfit(fmt.Sprintf("%s: OrgnlNbOfTxs is %d, of %d lines", of, c.lines, t.lines))
	case c.sum >= 0 && c.sum != t.sum:
		return unfit(of + ": OrgnlCtrlSum is not the sum of the lines")
	}
	n := int64(0)
	for _, by := range c.by {
		n += by
	}
	if n > t.lines {
		return unfit(fmt.Sprintf("%s: NbOfTxsPerSts counts %d, of %d lines", of, n, t.lines))
	}
	return nil
}

// cover compares the numbers by status with the lines that are listed: a status that is counted has as many lines at least.
// A report may list fewer, such as the refused ones alone.
func (c counts) cover(of string, listed map[string]int64) error {
	for status, n := range listed {
		if counted, ok := c.by[status]; len(c.by) > 0 && (!ok || counted < n) {
			return unfit(fmt.Sprintf("%s: NbOfTxsPerSts counts %d lines %s, and %d are listed", of, counted, status, n))
		}
	}
	return nil
}
