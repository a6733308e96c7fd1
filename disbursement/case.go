package disbursement

import (
	"cmp"
	"strconv"
	"time"

	"quittance/casework"
	"quittance/disbursement/digest"
)

// The kinds of cases of batches and lines.
const (
	// CaseConflict is an answer of an operator that contradicts what is known.
	CaseConflict casework.Kind = "payout_conflict"
	// CaseUndecided is a line about which nobody knows after a day whether it was paid.
	CaseUndecided casework.Kind = "payout_undecided"
	// CaseChanged is a line whose content is another one than was approved.
	CaseChanged casework.Kind = "payout_changed"
	// CaseUnopenable is a line that was cancelled because its content can never be opened.
	CaseUnopenable casework.Kind = "payout_unopenable"
	// CaseUnproven is a refusal that does not prove that no money moved.
	CaseUnproven casework.Kind = "payout_unproven"
	// CaseReturned is a part of a line's money that came back.
	CaseReturned casework.Kind = "payout_return"
	// CaseHeld is a batch that the service holds.
	CaseHeld casework.Kind = "payout_held"
)

// The exits of lines' cases.
const (
	ResolutionPaid    casework.Resolution = "paid"
	ResolutionRefused casework.Resolution = "refused"
)

// Cases returns the kinds and exits of this domain. Two people decide about money, however small the amount.
func Cases() casework.Catalog {
	money := []casework.Kind{CaseConflict, CaseUndecided, CaseUnproven}
	return casework.Catalog{
		Kinds: []casework.Kind{CaseConflict, CaseUndecided, CaseUnproven, CaseChanged, CaseUnopenable, CaseReturned, CaseHeld},
		Exits: []casework.Exit{
			{Resolution: ResolutionPaid, Of: money, NeedsReference: true, NeedsTwo: true},
			{Resolution: ResolutionRefused, Of: money, NeedsReference: true, NeedsTwo: true},
			{Resolution: casework.ResolutionAcknowledge, Of: []casework.Kind{CaseChanged, CaseUnopenable, CaseReturned, CaseHeld}},
		},
		Evidence: []string{DetailWord, DetailSource, DetailReported, DetailCurrency, DetailAttempt},
	}
}

// contradicted opens the case of a word that contradicts a line. The status stays, and nothing of the line is sent until
// people have decided.
func (d *decider) contradicted(b *Batch, l *Line, w Word) {
	if !l.Contested {
		d.contest(b, l, w, map[string]string{DetailWord: string(w.Kind), DetailSource: string(w.Source)})
	}
}

// contest has people decide about a line, because of a word. detail are those of the case, to which the word's attempt and money
// are added.
func (d *decider) contest(b *Batch, l *Line, w Word, detail map[string]string) {
	d.lines.edit(l.LineKey)
	l.Contested, l.Doubt = true, w.Attempt
	detail[DetailAttempt] = strconv.Itoa(w.Attempt)
	if w.Amount != 0 {
		detail[DetailReported], detail[DetailCurrency] = strconv.FormatInt(w.Amount, 10), w.Currency
	}
	d.openCase(b, l, CaseConflict, detail)
}

// Doubtful reports whether two people decide about the line: the operator contradicts itself, says nothing for a day, or has
// refused without a proof.
func (l Line) Doubtful() bool { return l.Contested || l.Unproven || l.Case == CaseUndecided }

// Underway reports whether a request to pay the line may still be carried out for the first time: nobody can say that no attempt
// pays it then. Of a line that is sent it is known when the request was answered; any other status sets Answered, too.
func (l Line) Underway(at time.Time) bool {
	return (l.Status != LineSent || !l.Answered) && at.Before(l.RequestedAt.Add(RequestLife))
}

// Settlement is what each of two people signs about the line as it is, without the person.
func (l Line) Settlement(batch digest.Hash, paid bool, reference string) digest.Settlement {
	outcome := ResolutionRefused
	if paid {
		outcome = ResolutionPaid
	}
	return digest.Settlement{
		Digest: batch, Position: l.Position, Number: l.Settled + 1, Status: string(l.Status), Attempt: l.Attempt, Doubt: l.Doubt,
		Outcome: string(outcome), Reference: reference,
	}
}

// settle carries out what two people have decided about a line: that it is paid, or that no attempt can pay any more. The
// second proves a refusal that was not proven.
func (d *decider) settle(b *Batch, do Settle) Answer {
	l, ok := d.line(b, do.Position)
	switch {
	case !ok:
		return refuse(CodeLineUnknown)
	case !l.Doubtful():
		return refuse(CodeNoCase)
	case do.Reference == "" || !printable(do.Reference):
		return refuse(CodeEvidence)
	case !do.Paid && l.Underway(d.cmd.At):
		return refuse(CodeUnderway)
	}
	one, two := do.Signed[0], do.Signed[1]
	if code := d.signedByTwo(b, do.Signed, l.Settlement(b.Digest, do.Paid, do.Reference).Statement); code != CodeOK {
		return refuse(code)
	}
	d.lines.edit(l.LineKey)
	detail := settled(*l)
	d.endProofs(l, do.Paid, detail)
	l.Settled++
	to := LineRefused
	switch {
	case do.Paid && l.Status == LineReturned:
		to = LineReturned // it was paid, and the money came back
	case do.Paid:
		to = LinePaid
	case l.Status == LineCancelled:
		to = LineCancelled
	}
	switch {
	case !do.Paid:
		l.PaidBy, l.Out, l.PaidAt = 0, false, time.Time{}
	case l.PaidBy == 0:
		l.PaidBy, l.PaidAt = cmp.Or(l.Doubt, l.Attempt), d.cmd.At
		l.Out = l.Status == LineSent && l.PaidBy != l.Attempt
	}
	l.SettledFor = cmp.Or(l.PaidBy, l.Attempt)
	l.Contested, l.Unproven, l.Case, l.Doubt, l.ReturnShown = false, false, "", 0, false
	if to != l.Status {
		d.move(b, l, to)
	}
	detail[DetailBy], detail[DetailApprovedBy], detail[DetailReference], detail[DetailWord] = one.Person, two.Person, do.Reference, string(to)
	d.emit(b, EventLineSettled, detail, l)
	d.finish(b)
	return Answer{}
}

// settled returns what was known of a line before people settle it, for those who have told it.
func settled(l Line) map[string]string {
	out := map[string]string{DetailWas: string(l.Status)}
	if l.PaidBy != 0 {
		out[DetailPaidBy] = strconv.Itoa(l.PaidBy)
	}
	if l.Unproven {
		out[DetailUnproven] = strconv.FormatBool(true)
	}
	if at := l.paidAt(); !at.IsZero() {
		out[DetailPaidAt] = at.Format(time.RFC3339Nano)
		if l.Status == LineReturned {
			out[DetailReturnedAt] = l.EndedAt.Format(time.RFC3339Nano)
		}
	}
	return out
}

// endProofs ends the proofs by statements about which people decide: all, if no attempt has paid; otherwise that of the attempt that
// has.
func (d *decider) endProofs(l *Line, paid bool, detail map[string]string) {
	ends := func(p Proof) bool { return !paid || p.Attempt == cmp.Or(l.PaidBy, l.Doubt, l.Attempt) }
	var ended, left []Proof
	for _, p := range l.Proofs {
		if ends(p) {
			ended = append(ended, p)
		} else {
			left = append(left, p)
		}
	}
	if len(ended) > 0 {
		l.Proofs, detail[DetailProofs] = left, FormatProofs(ended)
	}
}

// acknowledge ends a case of a line that moves no money.
func (d *decider) acknowledge(b *Batch, do Acknowledge) Answer {
	l, ok := d.line(b, do.Position)
	switch {
	case !ok:
		return refuse(CodeLineUnknown)
	case l.Case != CaseChanged && l.Case != CaseUnopenable && l.Case != CaseReturned:
		return refuse(CodeNoCase)
	}
	detail := map[string]string{DetailBy: do.By, DetailCase: string(l.Case)}
	l.Case = ""
	d.emit(b, EventCaseNoted, detail, l)
	return Answer{}
}
