package disbursement

import (
	"fmt"
	"slices"
	"time"
)

// waitingOf returns the name of the queue of lines that wait for an account of a batch.
func waitingOf(b *Batch, account int) string { return fmt.Sprintf("w|%s|%d", b.ID, account) }

// enquiriesOf returns the name of an account's queue of enquiries.
func enquiriesOf(k AccountKey) string {
	return fmt.Sprintf("e|%s|%s|%s", k.TenantID, Mode(k.Live), k.Code)
}

// wait puts a line at the end of its queue.
func (d *decider) wait(b *Batch, l *Line) {
	f := &b.Accounts[l.Account]
	*d.queues.edit(QueueKey{waitingOf(b, l.Account), f.Tail}) = Queued{LineKey: l.LineKey}
	f.Tail++
}

// next takes the first line of a queue; nil if the queue is empty.
func (d *decider) next(b *Batch, account int) *Line {
	f := &b.Accounts[account]
	if f.Head == f.Tail {
		return nil
	}
	q := d.queues.edit(QueueKey{waitingOf(b, account), f.Head})
	k := q.LineKey
	*q = Queued{}
	d.batches.edit(b.ID)
	f.Head++
	return d.lines.see(k)
}

// ringAll lets the accounts of a batch send its waiting lines.
func (d *decider) ringAll(b *Batch) {
	for i := range b.Accounts {
		d.ring(b, i)
	}
}

// ring lets an account send the waiting lines of a batch.
func (d *decider) ring(b *Batch, account int) {
	f := b.Accounts[account]
	if f.Head == f.Tail || !b.sends(d.cmd.At) {
		return
	}
	a := d.account(b, account)
	if !slices.Contains(a.Ring, b.ID) {
		a.Ring = append(a.Ring, b.ID)
	}
	if a.Closed != "" && a.Closed != f.Fingerprint { // another account has taken the place of the closed one
		d.reopen(a, b, "")
	}
	if !a.Paused() {
		a.SendAt = d.cmd.At
	}
}

// tickAccount sends waiting lines, and enquires about sent ones.
func (d *decider) tickAccount(code string) Answer {
	k := AccountKey{d.cmd.TenantID, d.cmd.Live, code}
	if d.accounts.see(k).Code == "" {
		return Answer{Replayed: true}
	}
	a := d.accounts.edit(k)
	sent, asked := lists{}, lists{}
	// What is older goes first: enquiries take part of the tick, if any is due.
	room := MaxLinesTicked
	if d.enquiriesDue(a) {
		room -= d.enquireDue(a, &asked)
	}
	d.sendWaiting(a, room, &sent)
	for _, id := range asked.batches {
		d.emit(d.batches.see(id), EventLinesEnquired, nil, asked.lines[id]...)
	}
	for _, id := range sent.batches {
		d.tell(&sent, d.batches.see(id))
	}
	return Answer{}
}

// tell records the lines of a batch that were sent, if there are any that it has not recorded.
func (d *decider) tell(sent *lists, b *Batch) {
	if lines := sent.lines[b.ID]; len(lines) > 0 {
		sent.lines[b.ID] = nil
		d.emit(b, EventLinesSent, nil, lines...)
	}
}

// lists are lines by batch, in order.
type lists struct {
	batches []string
	lines   map[string][]*Line
}

func (x *lists) add(l *Line) {
	if x.lines == nil {
		x.lines = map[string][]*Line{}
	}
	if !slices.Contains(x.batches, l.Batch) {
		x.batches = append(x.batches, l.Batch)
	}
	x.lines[l.Batch] = append(x.lines[l.Batch], l)
}

// sendWaiting sends up to room lines of the batches of the ring in turn.
func (d *decider) sendWaiting(a *Account, room int, sent *lists) {
	for range room {
		if len(a.Ring) == 0 || !a.admits(d.cmd.At) {
			return
		}
		b := d.batches.see(a.Ring[0])
		var l *Line
		if b.sends(d.cmd.At) {
			l = d.next(b, b.funding(a.Code))
		}
		if l == nil {
			a.Ring = a.Ring[1:]
			continue
		}
		a.Ring = append(a.Ring[1:], b.ID)
		if l.Status != LineReady || l.Contested {
			continue
		}
		if !d.free(l) {
			d.wait(b, l)
			d.tell(sent, b) // those before were sent while it was not held
			d.hold(b, "", fmt.Sprintf("line %d corrects a line that may be paid", l.Position+1))
			continue
		}
		d.send(a, b, l)
		sent.add(l)
	}
}

// send requests a new attempt of a ready line.
func (d *decider) send(a *Account, b *Batch, l *Line) {
	d.move(b, l, LineSent)
	l.Attempt++
	l.Try, l.SentAt, l.EnquiredAt, l.UnprovenAt, l.Code, l.Declined = 0, d.cmd.At, time.Time{}, time.Time{}, "", false
	d.request(a, b, l)
	d.enquireLater(a, l)
}

// request asks the operator to pay the line's attempt. It may be asked again under the same id.
func (d *decider) request(a *Account, b *Batch, l *Line) {
	d.lines.edit(l.LineKey)
	l.Try++
	l.RequestedAt, l.Answered = d.cmd.At, false
	a.InFlight++
	if a.Paused() {
		a.SendAt = d.cmd.At.Add(ProbeEvery)
	}
	d.effect(RequestPay, b, l)
}

// effect adds a request to the decision.
func (d *decider) effect(kind RequestKind, b *Batch, l *Line) {
	f := b.Accounts[l.Account]
	r := Request{
		Kind: kind, TenantID: b.TenantID, Live: b.Live, Line: *l, Account: f.Code, Fingerprint: f.Fingerprint, Currency: b.Currency,
		Closings: d.accounts.see(AccountKey{b.TenantID, b.Live, f.Code}).Closings, At: d.cmd.At,
	}
	if kind == RequestPay {
		r.NotAfter = d.cmd.At.Add(RequestLife)
	}
	d.out.Requests = append(d.out.Requests, r)
}

// enquireLater puts the line's attempt at the end of the account's queue of enquiries.
func (d *decider) enquireLater(a *Account, l *Line) {
	due := d.cmd.At.Add(EnquireEvery)
	if a.Head == a.Tail {
		a.EnquireAt = due
	}
	*d.queues.edit(QueueKey{enquiriesOf(a.AccountKey), a.Tail}) = Queued{LineKey: l.LineKey, Attempt: l.Attempt, Due: due}
	a.Tail++
}

func (d *decider) enquiriesDue(a *Account) bool {
	return a.Head < a.Tail && !d.cmd.At.Before(a.EnquireAt)
}

// enquireDue asks about the lines that were sent first, as many as the operator takes in a second. It returns how many
// entries of the queue it took. The queue is in the order of the times, because all enquiries have one interval.
func (d *decider) enquireDue(a *Account, asked *lists) (taken int) {
	for ; taken < a.PerSecond && a.Head < a.Tail; taken++ {
		q := d.queues.edit(QueueKey{enquiriesOf(a.AccountKey), a.Head})
		if d.cmd.At.Before(q.Due) {
			a.EnquireAt = q.Due
			return taken
		}
		l := d.lines.see(q.LineKey)
		current := (l.Status == LineSent || l.Out) && l.Attempt == q.Attempt
		*q = Queued{}
		a.Head++
		if !current {
			continue
		}
		b := d.batches.see(l.Batch)
		if l.Status == LineSent && !d.cmd.At.Before(l.SentAt.Add(UndecidedAfter)) {
			d.openCase(b, l, CaseUndecided, nil)
		}
		d.enquire(b, l)
		d.enquireLater(a, l)
		asked.add(l)
	}
	a.EnquireAt = d.cmd.At.Add(time.Second)
	return taken
}

// enquire asks the operator about the line's attempt.
func (d *decider) enquire(b *Batch, l *Line) {
	d.lines.edit(l.LineKey)
	l.EnquiredAt = d.cmd.At
	d.effect(RequestEnquire, b, l)
}

// tickBatch carries out what the batch's deadline is for.
func (d *decider) tickBatch(b *Batch) Answer {
	switch at := b.Deadline(); {
	case at.IsZero() || d.cmd.At.Before(at):
		return Answer{Replayed: true}
	case b.Sweeping:
		d.sweep(b)
	case b.Status == StatusDraft:
		d.end(b, StatusDiscarded, EventDiscarded, nil)
	case b.Status == StatusSealed, b.Status == StatusApproved && b.late(d.cmd.At):
		d.end(b, StatusExpired, EventExpired, nil)
	case b.Status == StatusApproved && !b.AskedAt.IsZero():
		d.ask(b, "")
	case b.Status == StatusApproved:
		d.begin(b, "")
	default:
		d.batches.edit(b.ID)
		b.Overdue, b.Sweeping, b.Cursor = true, true, 0
		d.emit(b, EventOverdue, nil)
		d.sweep(b)
	}
	return Answer{}
}

// sweep cancels the ready and refused lines of a batch that sends nothing any more, some at a time.
func (d *decider) sweep(b *Batch) {
	var cancelled []*Line
	end := min(b.Cursor+MaxLinesTicked, b.Count)
	for ; b.Cursor < end; b.Cursor++ {
		l := d.lines.see(LineKey{b.ID, b.Cursor})
		if l.Status == LineReady || l.Status == LineRefused {
			d.move(b, l, LineCancelled)
			cancelled = append(cancelled, l)
		}
	}
	d.batches.edit(b.ID)
	b.Sweeping = b.Cursor < b.Count
	if len(cancelled) > 0 {
		d.emit(b, EventLinesCancel, nil, cancelled...)
	}
	d.finish(b)
}

// stop cancels what is not sent.
func (d *decider) stop(b *Batch, do Stop) Answer {
	switch {
	case b.Stopped:
		return Answer{Replayed: true}
	case b.Status != StatusReleasing:
		return refuseStatus(b, "only a batch that pays is stopped; a sealed or approved one is recalled or rejected")
	}
	d.batches.edit(b.ID)
	b.Stopped, b.Sweeping, b.Cursor = true, true, 0
	d.emit(b, EventStopped, by(do.By))
	return Answer{}
}

// retry makes a refused line ready again, if it is proven that nothing was paid.
func (d *decider) retry(b *Batch, do Retry) Answer {
	l, ok := d.line(b, do.Position)
	switch {
	case !ok:
		return refuse(CodeLineUnknown)
	case b.over(d.cmd.At):
		return refuse(CodeOver)
	case l.Status != LineRefused:
		return refuseField(CodeLineStatus, "position", fmt.Sprintf("the line is %s: only a refused line is tried again", l.Status))
	case l.Contested:
		return refuse(CodeContested)
	case l.Unproven:
		return refuse(CodeUnproven)
	case d.corrected(l):
		return refuse(CodeCorrected)
	case l.Retries+1 >= MaxAttempts:
		return refuse(CodeAttempts)
	}
	if b.Status == StatusDone {
		if reason := d.unreleasable(b); reason != "" {
			return refuseField(CodeNotInForce, "batch", reason+": pay the line by one that corrects it")
		}
		ref := *d.batchRefs.see(BatchRefKey{d.cmd.agency(), b.BatchRef})
		switch {
		case ref.Batch != b.ID && d.batches.see(ref.Batch).Status.Live():
			return refuse(CodeRefLive)
		case len(d.agencies.see(d.cmd.agency()).Batches) >= MaxLive:
			return refuse(CodeTooManyLive)
		}
		d.revive(b)
	}
	d.move(b, l, LineReady)
	l.Retries++
	l.Unsent = 0
	l.EndedAt = time.Time{}
	d.wait(b, l)
	d.emit(b, EventLineRetried, by(do.By), l)
	d.ring(b, l.Account)
	return Answer{}
}

// cancel ends a line that is not sent.
func (d *decider) cancel(b *Batch, do Cancel) Answer {
	l, ok := d.line(b, do.Position)
	switch {
	case !ok:
		return refuse(CodeLineUnknown)
	case l.Status == LineCancelled:
		return Answer{Replayed: true}
	case b.Status != StatusReleasing && b.Status != StatusDone:
		return refuseStatus(b, "lines of a released batch are cancelled; another one is recalled and imported again")
	case l.Status != LineReady && l.Status != LineRefused:
		return refuseField(CodeLineStatus, "position", fmt.Sprintf("the line is %s: only a ready or refused line is cancelled", l.Status))
	}
	d.move(b, l, LineCancelled)
	d.emit(b, EventLinesCancel, by(do.By), l)
	d.finish(b)
	return Answer{}
}
