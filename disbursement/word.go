package disbursement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// word takes what an operator says of an attempt. What is said again, or late, changes nothing; what contradicts the
// status opens a case.
func (d *decider) word(b *Batch, w Word) Answer {
	l, ok := d.line(b, w.Position)
	if !ok {
		return refuse(CodeLineUnknown)
	}
	if w.Attempt < 1 || w.Attempt > l.Attempt {
		return refuse(CodeAttempt)
	}
	switch {
	case w.Attempt < l.Attempt && w.Attempt != l.PaidBy:
		// The attempt moved no money, or no other one had been made.
		switch w.Kind { //nolint:exhaustive // the others say nothing
		case WordPaid, WordReturned:
			d.contradicted(b, l, w)
		case WordNoProof:
			d.noProof(b, l, w)
		}
	case l.Status == LineSent:
		d.ofSent(b, l, w)
	default:
		d.ofOther(b, l, w)
	}
	return Answer{}
}

// ofSent takes a word about a sent line.
func (d *decider) ofSent(b *Batch, l *Line, w Word) {
	// only: the word answers the only request that was ever made of the attempt, and is the first answer to it.
	only := w.Source == FromRequest && w.Try == l.Try && l.Try == 1 && !l.Answered
	d.heard(b, l, w)
	enquired := w.Source == FromEnquiry || only && w.Absent
	switch w.Kind {
	case WordPaid:
		d.paid(b, l, w)
	case WordRefused:
		if !enquired {
			d.decline(b, l, w)
			return
		}
		d.refused(b, l, w)
	case WordNoFunds, WordClosed:
		if w.Kind == WordClosed {
			d.close(b, l, w.Code)
		} else {
			d.pause(b, l, w.Code)
		}
		switch {
		case w.Absent && !enquired: // asked about just now; an earlier request may still arrive
		case !enquired:
			d.enquireNow(b, l)
		case w.Unproven:
			d.refused(b, l, w)
		default:
			d.unsent(b, l, w)
		}
	case WordNeverSent:
		// Of an attempt that was requested again, an earlier request may have been sent.
		if w.Source == FromRequest && w.Try == l.Try && l.Try == 1 {
			d.unsent(b, l, w)
		}
	case WordNotFound:
		d.resend(b, l)
	case WordDuplicate:
		d.enquireNow(b, l)
	case WordChanged:
		d.changed(b, l, w)
	case WordUnopenable:
		d.unopenable(b, l, w)
	case WordReturned:
		d.contradicted(b, l, w)
	case WordPending, WordUndecided, WordNoDebit, WordNoProof, WordNoReturn:
	}
}

// ofOther takes a word about a line that is not sent.
func (d *decider) ofOther(b *Batch, l *Line, w Word) {
	if l.PaidBy != 0 && w.Attempt != l.PaidBy {
		d.ofOut(b, l, w)
		return
	}
	switch w.Kind {
	case WordPaid:
		once := l.Status == LinePaid || l.Status == LineReturned
		if !once || w.Amount != l.Amount || w.Currency != b.Currency || w.OtherPayee {
			d.contradicted(b, l, w)
		}
	case WordReturned:
		switch {
		case l.Status == LinePaid:
			d.returned(b, l, w)
		case l.Status == LineReturned && l.ReturnShown && w.Source != FromStatement:
			d.lines.edit(l.LineKey)
			l.ReturnShown = false
		case l.Status != LineReturned:
			d.contradicted(b, l, w)
		}
	case WordRefused, WordNoFunds, WordClosed:
		if l.Status == LinePaid || l.Status == LineReturned {
			d.contradicted(b, l, w)
		}
	case WordNeverSent:
		if (l.Status == LinePaid || l.Status == LineReturned) && w.Source == FromRequest && l.Try == 1 {
			d.contradicted(b, l, w)
		}
	case WordNoDebit:
		switch {
		case l.Status == LinePaid && !l.settledPaid():
			d.contradicted(b, l, w)
		case l.Unproven && !l.Contested:
			d.lines.edit(l.LineKey)
			l.Unproven = false
			l.Proofs = append(slices.Clip(l.Proofs), Proof{w.Attempt, d.cmd.At})
			if l.Case == CaseUnproven {
				l.Case = ""
			}
			d.emit(b, EventLineProven, said(w), l)
		}
	case WordNoProof:
		d.noProof(b, l, w)
	case WordNoReturn:
		d.noReturn(b, l, w)
	case WordPending, WordUndecided, WordNotFound, WordDuplicate, WordChanged, WordUnopenable:
	}
}

// noProof takes back that statements prove that an attempt paid nobody. If it is the last one, the refusal proves nothing again.
// Otherwise the line was tried again because of the proof: people decide. While they decide about something else, it waits: the
// word is told again.
func (d *decider) noProof(b *Batch, l *Line, w Word) {
	i := l.proof(w.Attempt)
	if i < 0 || l.Contested || !d.cmd.At.After(l.Proofs[i].At) { // rows of money are told apart by their times
		return
	}
	d.lines.edit(l.LineKey)
	ended := l.Proofs[i]
	l.Proofs = slices.Delete(slices.Clone(l.Proofs), i, i+1)
	detail := said(w)
	detail[DetailProofs] = FormatProofs([]Proof{ended})
	if w.Attempt != l.Attempt || l.Status != LineRefused && l.Status != LineCancelled {
		d.contest(b, l, w, detail)
		return
	}
	l.Unproven, l.UnprovenAt = true, d.cmd.At
	d.emit(b, EventLineUnproven, detail, l)
	d.openCase(b, l, CaseUnproven, said(w))
}

// noReturn takes back that money of a line came back: the line is paid. If another line has paid it again meanwhile, people decide.
func (d *decider) noReturn(b *Batch, l *Line, w Word) {
	if !l.ReturnShown || l.Status != LineReturned || l.Contested || !d.cmd.At.After(l.EndedAt) {
		return
	}
	detail := said(w)
	detail[DetailReturnedAt] = l.EndedAt.Format(time.RFC3339Nano)
	d.move(b, l, LinePaid)
	l.EndedAt, l.ReturnShown = l.PaidAt, false
	d.emit(b, EventReturnWithdrawn, detail, l)
	if d.corrected(l) {
		d.contradicted(b, l, w)
	}
}

// FormatProofs returns proofs as a detail of an event has them, and ParseProofs reads it: each as attempt@time, with commas.
func FormatProofs(all []Proof) string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = strconv.Itoa(p.Attempt) + "@" + p.At.Format(time.RFC3339Nano)
	}
	return strings.Join(out, ",")
}

// ParseProofs is the inverse of FormatProofs. The error says which part is none.
func ParseProofs(s string) (all []Proof, err error) {
	for part := range strings.SplitSeq(s, ",") {
		number, at, _ := strings.Cut(part, "@")
		var p Proof
		if p.Attempt, err = strconv.Atoi(number); err == nil {
			p.At, err = time.Parse(time.RFC3339Nano, at)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no proof: %w", part, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// ofOut takes a word about the last attempt of a line that an earlier one has paid. Money that moves is a second payment.
// The operator is asked until it refuses, or knows nothing of the attempt when it is not requested any more.
func (d *decider) ofOut(b *Batch, l *Line, w Word) {
	ends := w.Source == FromEnquiry && !w.Unproven && (w.Kind == WordRefused || w.Kind == WordNoFunds || w.Kind == WordClosed ||
		w.Kind == WordNotFound && !d.cmd.At.Before(l.SentAt.Add(ResendWithin)))
	switch {
	case w.Kind == WordPaid || w.Kind == WordReturned:
		d.contradicted(b, l, w)
		ends = true
	case w.Kind == WordNeverSent && w.Source == FromRequest && l.Try == 1:
		ends = true
	}
	if ends && l.Out {
		d.lines.edit(l.LineKey)
		l.Out = false
	}
}

// heard notes that the line's request was answered, or can no longer be carried out for the first time.
func (d *decider) heard(b *Batch, l *Line, w Word) {
	if w.Source == FromRequest && w.Try == l.Try || !d.cmd.At.Before(l.RequestedAt.Add(RequestLife)) {
		d.answered(b, l)
	}
}

// answered takes the line's request off those of its account that are not answered.
func (d *decider) answered(b *Batch, l *Line) {
	if l.Answered {
		return
	}
	d.lines.edit(l.LineKey)
	l.Answered = true
	d.account(b, l.Account).InFlight--
}

// paid takes the operator's word that the payee has the money.
func (d *decider) paid(b *Batch, l *Line, w Word) {
	if w.Amount != l.Amount || w.Currency != b.Currency || w.OtherPayee {
		d.contradicted(b, l, w)
		return
	}
	a := d.account(b, l.Account)
	a.Suspects = 0
	if a.Paused() && a.Closed == "" && !l.SentAt.Before(a.PausedAt) {
		a.Reason, a.PausedAt, a.SendAt = "", time.Time{}, d.cmd.At
		d.emit(b, EventRefills, map[string]string{DetailAccount: a.Code})
	}
	d.move(b, l, LinePaid)
	l.PaidBy, l.PaidAt = l.Attempt, d.cmd.At
	l.OperatorRef = w.OperatorRef
	d.decided(l)
	d.emit(b, EventLinePaid, said(w), l)
	d.finish(b)
}

// decided ends the case of a line about which nobody knew. A contradiction stays for people.
func (d *decider) decided(l *Line) {
	if l.Case == CaseUndecided {
		l.Case = ""
	}
}

// refused takes a refusal to which an enquiry has agreed.
func (d *decider) refused(b *Batch, l *Line, w Word) {
	a := d.account(b, l.Account)
	if w.Suspect {
		a.Suspects++
	} else {
		a.Suspects = 0
	}
	if a.Suspects >= maxSuspects {
		a.Suspects = 0
		d.pause(b, l, w.Code)
	}
	d.move(b, l, LineRefused)
	l.Code, l.Unproven, l.OperatorRef = w.Code, w.Unproven, w.OperatorRef
	d.decided(l)
	d.emit(b, EventLineRefused, said(w), l)
	if w.Unproven {
		d.openCase(b, l, CaseUnproven, said(w))
	}
	d.finish(b)
}

// decline takes a refusal to which no enquiry has agreed. The operator is asked, unless it was just now. The attempt is not
// requested again.
func (d *decider) decline(b *Batch, l *Line, w Word) {
	d.lines.edit(l.LineKey)
	l.Declined = true
	if !w.Absent {
		d.enquireNow(b, l)
	}
}

// unopenable cancels a line whose content can never be opened, and opens a case. If an earlier request may have been sent,
// the line stays sent and is not requested again.
func (d *decider) unopenable(b *Batch, l *Line, w Word) {
	d.lines.edit(l.LineKey)
	l.Declined = true
	if w.Source != FromRequest || w.Try != l.Try || l.Try != 1 {
		return
	}
	d.decided(l)
	d.move(b, l, LineCancelled)
	d.emit(b, EventLinesCancel, said(w), l)
	d.openCase(b, l, CaseUnopenable, said(w))
	d.finish(b)
}

// ReasonTriedOften is the reason of a refusal after MaxUnsent attempts that moved no money.
const ReasonTriedOften = "tried_often"

// unsent makes a line ready again of which the attempt moved no money, at the end of its queue. In a batch that sends
// nothing any more it is cancelled. After MaxUnsent attempts it is refused, and people decide: a new attempt rests on the word
// of the sender alone, which may be wrong.
func (d *decider) unsent(b *Batch, l *Line, w Word) {
	d.decided(l)
	if b.over(d.cmd.At) {
		d.move(b, l, LineCancelled)
		d.emit(b, EventLinesCancel, said(w), l)
		d.finish(b)
		return
	}
	l.Unsent++
	if l.Unsent > MaxUnsent {
		d.move(b, l, LineRefused)
		l.Code = ReasonTriedOften
		d.emit(b, EventLineRefused, said(w), l)
		d.finish(b)
		return
	}
	d.move(b, l, LineReady)
	d.wait(b, l)
	d.emit(b, EventLineUnsent, said(w), l)
	d.ring(b, l.Account)
}

// resend requests the same attempt again, under the same id, of which the operator knows nothing. While the request may
// still be read for the first time, and where nothing may be sent, the operator is only asked again later.
func (d *decider) resend(b *Batch, l *Line) {
	a := d.account(b, l.Account)
	if !l.Answered || l.Declined || l.Contested || !b.sends(d.cmd.At) || !d.free(l) || !d.cmd.At.Before(l.SentAt.Add(ResendWithin)) || !a.admits(d.cmd.At) {
		return
	}
	d.request(a, b, l)
	d.emit(b, EventLinesResent, nil, l)
}

// enquireNow asks about the attempt at once, unless it was asked about just now.
func (d *decider) enquireNow(b *Batch, l *Line) {
	if d.cmd.At.Before(l.EnquiredAt.Add(enquireAgain)) {
		return
	}
	d.enquire(b, l)
	d.emit(b, EventLinesEnquired, nil, l)
}

// free reports whether the line corrects none, or one that is still proven unpaid.
func (d *decider) free(l *Line) bool {
	return l.Corrects == (LineKey{}) || d.correctable(l.Corrects, l.LineKey) == CodeOK
}

// changed holds the batch of a line whose content is another one than was approved.
func (d *decider) changed(b *Batch, l *Line, w Word) {
	reason := "the content of a line is another one than was approved"
	if w.Code != "" {
		reason = "a line cannot be paid as it was approved: " + w.Code
	}
	d.hold(b, "", reason)
	d.openCase(b, l, CaseChanged, said(w))
	if w.Source == FromRequest && w.Try == l.Try && l.Try == 1 {
		d.unsent(b, l, w)
	}
}

// returned takes the word that money of a paid line came back.
func (d *decider) returned(b *Batch, l *Line, w Word) {
	d.lines.edit(l.LineKey)
	if w.Amount != l.Amount || w.Currency != b.Currency {
		detail := said(w)
		detail[DetailReported], detail[DetailCurrency] = strconv.FormatInt(w.Amount, 10), w.Currency
		if w.OperatorRef != "" {
			detail[DetailReference] = w.OperatorRef
		}
		d.emit(b, EventLinePart, detail, l) // each return, also while a case is open
		d.openCase(b, l, CaseReturned, detail)
		return
	}
	l.PaidAt, l.ReturnShown = l.paidAt(), w.Source == FromStatement
	d.move(b, l, LineReturned)
	d.emit(b, EventLineReturned, said(w), l)
}

// pause stops an account that has no funds. Its next waiting line tries it later.
func (d *decider) pause(b *Batch, l *Line, reason string) {
	a := d.account(b, l.Account)
	if a.Paused() {
		return
	}
	a.Reason, a.PausedAt, a.SendAt = reason, d.cmd.At, d.cmd.At.Add(ProbeEvery)
	d.emit(b, EventPaused, map[string]string{DetailAccount: a.Code, DetailReason: reason})
}

// close stops an account whose settings the operator refuses, until a person has it tried again or another account takes its
// place. A word about a request of before the last reopening says nothing of the settings of now.
func (d *decider) close(b *Batch, l *Line, reason string) {
	a := d.account(b, l.Account)
	if a.Closed != "" || a.Closings > 0 && a.Paused() && l.RequestedAt.Before(a.PausedAt) {
		return
	}
	if !a.Paused() {
		a.PausedAt = d.cmd.At
	}
	a.Reason, a.Closed = reason, b.Accounts[l.Account].Fingerprint
	a.Closings++
	d.emit(b, EventPaused, map[string]string{DetailAccount: a.Code, DetailReason: reason, DetailClosed: "true"})
}

// reopen lets the next waiting line of a closed account try it. The account stays paused until a line is paid.
func (d *decider) reopen(a *Account, b *Batch, person string) {
	a.Closed, a.PausedAt, a.SendAt = "", d.cmd.At, d.cmd.At
	detail := map[string]string{DetailAccount: a.Code}
	if person != "" {
		detail[DetailBy] = person
	}
	d.emit(b, EventReopened, detail)
}

// tryAccount has a closed account of the batch tried again.
func (d *decider) tryAccount(b *Batch, do TryAccount) Answer {
	i := slices.IndexFunc(b.Accounts, func(f Funding) bool { return f.Code == do.Account })
	switch {
	case i < 0:
		return refuse(CodeAccountUnknown)
	case b.Status != StatusReleasing:
		return refuseStatus(b, "name a batch that pays")
	case d.account(b, i).Closed == "":
		return refuse(CodeNotClosed)
	}
	d.reopen(d.account(b, i), b, do.By)
	d.ring(b, i)
	return Answer{}
}

// said are the details of a word.
func said(w Word) map[string]string {
	detail := map[string]string{DetailWord: string(w.Kind), DetailSource: string(w.Source)}
	if w.Code != "" {
		detail[DetailReason] = w.Code
	}
	return detail
}
