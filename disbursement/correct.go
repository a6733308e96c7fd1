package disbursement

import (
	"crypto/sha256"
	"fmt"
)

// A line_ref is taken while its batch is live, or its line sent, paid or returned. What was refused or cancelled, or came
// back, is paid again only by a line that names it in corrects, once. Nothing is cleaned up: a reference or a correction of
// a batch that ended without paying counts for nothing. A line that corrects has a line_ref of its own, so that the entry
// of a reference changes only when its line can never pay.

// refKey returns the key of a line_ref in its scope.
func refKey(b *Batch, ref string) RefKey {
	scope := ""
	if b.Scope == ScopeBatch {
		scope = b.BatchRef
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", b.TenantID, Mode(b.Live), scope, ref))
}

// refFits refuses a line whose reference is taken, or whose correction is none. corrected are the lines that those before
// it correct.
func (d *decider) refFits(b *Batch, n NewLine, field string, corrected map[LineKey]bool) (Answer, bool) {
	if n.Corrects != "" {
		old := *d.refs.see(refKey(b, n.Corrects))
		if d.chain(old) > MaxCorrections {
			return refuseField(CodeNotCorrected, field+"corrects", fmt.Sprintf("a payment is corrected at most %d times: pay it outside this service", MaxCorrections)), false
		}
		if code := d.correctable(old, LineKey{}); code != CodeOK || corrected[old] {
			return refuseField(CodeNotCorrected, field+"corrects", d.whyNot(code)), false
		}
		corrected[old] = true
	}
	known := *d.refs.see(refKey(b, n.Ref))
	of := d.batches.see(known.Batch)
	if known == (LineKey{}) || of.Status.Void() {
		return Answer{}, true
	}
	l := d.lines.see(known)
	if of.Status.Live() || l.Status == LineSent || l.Status == LinePaid || l.Status == LineReturned || l.Contested {
		return refuseField(CodeRefTaken, field+"line_ref", fmt.Sprintf("batch %s has this line_ref: use another one, or corrects if it was not paid", of.BatchRef)), false
	}
	return refuseField(CodeMustCorrect, field+"line_ref", "use another line_ref, and name this one in corrects: it was tried before"), false
}

// chain returns the number of lines that a line and those before it make, each of which corrects the one before, counted
// up to one more than may be corrected.
func (d *decider) chain(k LineKey) (n int) {
	for ; k != (LineKey{}) && n <= MaxCorrections; n++ {
		k = d.lines.see(k).Corrects
	}
	return n
}

// correctable returns why a line cannot be paid again by another one; CodeOK if it can. by is the line that does; the zero
// key for a new one. The lines that the line itself corrects are looked at, too: any of them may turn out to be paid.
func (d *decider) correctable(k, by LineKey) Code {
	if k == (LineKey{}) {
		return CodeLineUnknown
	}
	l := d.lines.see(k)
	switch {
	case d.batches.see(k.Batch).Status.Void():
		return CodeLineStatus
	case d.corrected(l) && l.CorrectedBy != by:
		return CodeCorrected
	case l.Contested || l.Out:
		return CodeContested
	case l.Unproven:
		return CodeUnproven
	case l.Status != LineRefused && l.Status != LineCancelled && l.Status != LineReturned:
		return CodeLineStatus
	case l.Corrects != (LineKey{}):
		return d.correctable(l.Corrects, k)
	}
	return CodeOK
}

func (d *decider) whyNot(c Code) string {
	if text, ok := refusals[c]; ok {
		return text[1]
	}
	return "name a line that was refused, cancelled or returned"
}

// corrected reports whether another line pays the line again, in a batch that did not end without paying.
func (d *decider) corrected(l *Line) bool {
	return l.CorrectedBy != (LineKey{}) && !d.batches.see(l.CorrectedBy.Batch).Status.Void()
}

// tellCorrected emits an event of each batch of which added lines correct lines.
func (d *decider) tellCorrected(added []*Line) {
	var batches []string
	lines := map[string][]*Line{}
	for _, l := range added {
		if of := l.Corrects.Batch; of != "" {
			if lines[of] == nil {
				batches = append(batches, of)
			}
			lines[of] = append(lines[of], d.lines.edit(l.Corrects))
		}
	}
	for _, of := range batches {
		d.emit(d.batches.edit(of), EventLineCorrected, nil, lines[of]...)
	}
}
