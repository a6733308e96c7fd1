package disbursement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/casework"
)

// ErrUnknownCommand says that this version does not know the command. Nothing is decided.
var ErrUnknownCommand = errors.New("unknown command")

// Decide returns what the command leads to. It is deterministic and changes nothing itself. Its only error is
// ErrUnknownCommand.
func Decide(view View, cmd Command) (Decision, error) {
	d := newDecider(view, cmd)
	a, err := d.do()
	if err != nil {
		return Decision{}, err
	}
	out := d.decision()
	if cmd.ReplyTo != nil {
		out.Answer = &a
	}
	return out, nil
}

func (d *decider) do() (Answer, error) {
	switch do := d.cmd.Do.(type) {
	case Open:
		return d.open(do), nil
	case SetPolicy:
		return d.setPolicy(do), nil
	case Enrol:
		return d.enrol(do), nil
	case Revoke:
		return d.revoke(do), nil
	case Tick:
		if do.Account != "" {
			return d.tickAccount(do.Account), nil
		}
	}
	b, ok := d.visible()
	if !ok {
		return refuse(CodeBatchUnknown), nil
	}
	a, err := d.ofBatch(b)
	copied := b.copied()
	a.Batch = &copied
	return a, err
}

// ofBatch carries out a command about one batch.
func (d *decider) ofBatch(b *Batch) (Answer, error) {
	switch do := d.cmd.Do.(type) {
	case AddLines:
		return d.addLines(b, do), nil
	case Seal:
		return d.seal(b, do), nil
	case Discard:
		return d.discard(b, do), nil
	case Approve:
		return d.approve(b, do), nil
	case Reject:
		return d.reject(b, do), nil
	case Recall:
		return d.recall(b, do), nil
	case Release:
		return d.release(b, do), nil
	case ERPSame:
		return d.erpSame(b, do), nil
	case SetHold:
		return d.setHold(b, do), nil
	case Lift:
		return d.lift(b, do), nil
	case Stop:
		return d.stop(b, do), nil
	case Retry:
		return d.retry(b, do), nil
	case Cancel:
		return d.cancel(b, do), nil
	case TryAccount:
		return d.tryAccount(b, do), nil
	case Settle:
		return d.settle(b, do), nil
	case Acknowledge:
		return d.acknowledge(b, do), nil
	case Word:
		return d.word(b, do), nil
	case Tick:
		return d.tickBatch(b), nil
	}
	return Answer{}, fmt.Errorf("%T: %w", d.cmd.Do, ErrUnknownCommand)
}

// decider collects a decision. Its reads see its own changes.
type decider struct {
	view View
	cmd  Command
	out  Decision

	batches   entries[string, Batch]
	sealings  entries[string, Sealing]
	lines     entries[LineKey, Line]
	queues    entries[QueueKey, Queued]
	accounts  entries[AccountKey, Account]
	agencies  entries[AgencyKey, Agency]
	rosters   entries[string, Roster]
	refs      entries[RefKey, LineKey]
	batchRefs entries[BatchRefKey, BatchRef]
}

func newDecider(v View, cmd Command) *decider {
	d := &decider{view: v, cmd: cmd}
	d.batches.load = func(id string) Batch { b, _ := v.Batch(id); return b.copied() }
	d.sealings.load = func(id string) Sealing { return v.Sealing(id).copied() }
	d.lines.load = func(k LineKey) Line { l, _ := v.Line(k); return l }
	d.queues.load = func(k QueueKey) Queued { q, _ := v.Queued(k); return q }
	d.accounts.load = func(k AccountKey) Account { return v.Account(k).copied() }
	d.agencies.load = func(k AgencyKey) Agency { return v.Agency(k).copied() }
	d.rosters.load = v.Roster
	d.refs.load = v.Ref
	d.batchRefs.load = v.BatchRef
	return d
}

// entries are entries of one kind, as a decision sees and changes them.
type entries[K comparable, V any] struct {
	load    func(K) V
	read    map[K]*V
	changed map[K]*V
}

// see returns an entry to be read.
func (e *entries[K, V]) see(k K) *V {
	if v, ok := e.read[k]; ok {
		return v
	}
	v := e.load(k)
	if e.read == nil {
		e.read = map[K]*V{}
	}
	e.read[k] = &v
	return &v
}

// edit returns an entry to be changed.
func (e *entries[K, V]) edit(k K) *V {
	v := e.see(k)
	if e.changed == nil {
		e.changed = map[K]*V{}
	}
	e.changed[k] = v
	return v
}

// all returns the changed entries; nil for none.
func (e *entries[K, V]) all() map[K]V {
	if len(e.changed) == 0 {
		return nil
	}
	out := make(map[K]V, len(e.changed))
	for k, v := range e.changed {
		out[k] = *v
	}
	return out
}

func (d *decider) decision() Decision {
	d.out.Batches, d.out.Sealings, d.out.Lines = d.batches.all(), d.sealings.all(), d.lines.all()
	d.out.Queues, d.out.Accounts, d.out.Agencies = d.queues.all(), d.accounts.all(), d.agencies.all()
	d.out.Rosters, d.out.Refs, d.out.BatchRefs = d.rosters.all(), d.refs.all(), d.batchRefs.all()
	return d.out
}

// visible returns the command's batch if it is one of the command's agency and mode.
func (d *decider) visible() (*Batch, bool) {
	b := d.batches.see(d.cmd.Batch)
	return b, b.ID != "" && b.TenantID == d.cmd.TenantID && b.Live == d.cmd.Live
}

// line returns a line of a batch.
func (d *decider) line(b *Batch, position int) (*Line, bool) {
	if position < 0 || position >= b.Count {
		return nil, false
	}
	return d.lines.see(LineKey{b.ID, position}), true
}

func (d *decider) account(b *Batch, index int) *Account {
	k := AccountKey{b.TenantID, b.Live, b.Accounts[index].Code}
	a := d.accounts.edit(k)
	a.AccountKey, a.PerSecond = k, b.Accounts[index].PerSecond
	return a
}

// emit records an event of a batch, with lines as they are now.
func (d *decider) emit(b *Batch, t EventType, detail map[string]string, lines ...*Line) {
	d.batches.edit(b.ID)
	b.Sequence++
	after := b.copied()
	e := Event{ID: eventID(b.ID, b.Sequence), Type: t, TenantID: b.TenantID, Live: b.Live, Batch: &after, At: d.cmd.At, Detail: detail}
	if len(lines) == 1 {
		e.Detail = maps.Clone(detail)
		if e.Detail == nil {
			e.Detail = map[string]string{}
		}
		e.Detail[DetailLine] = strconv.Itoa(lines[0].Position)
	}
	for _, l := range lines {
		d.lines.edit(l.LineKey)
		changed := *l
		if t != EventLinesAdded {
			changed.Sealed = nil
		}
		e.Lines = append(e.Lines, changed)
	}
	if t == EventSealed || t == EventApproval {
		s := d.sealings.edit(b.ID).copied()
		e.Sealing = &s
	}
	d.out.Events = append(d.out.Events, e)
}

// move changes the status of a line and the batch's totals.
func (d *decider) move(b *Batch, l *Line, to LineStatus) {
	d.lines.edit(l.LineKey)
	d.batches.edit(b.ID)
	b.Lines.add(l.Status, -1, -l.Amount)
	b.Lines.add(to, 1, l.Amount)
	if l.Status == LineSent {
		d.answered(b, l)
	}
	l.Status = to
	if to != LineReady && to != LineSent {
		l.EndedAt = d.cmd.At
	}
}

// openCase opens a case of a line, unless one of its kind is open. Of two kinds the contradiction remains.
func (d *decider) openCase(b *Batch, l *Line, kind casework.Kind, detail map[string]string) {
	if l.Case == kind || l.Case == CaseConflict {
		return
	}
	l.Case = kind
	detail = maps.Clone(detail)
	if detail == nil {
		detail = map[string]string{}
	}
	detail[DetailCase] = string(kind)
	d.emit(b, EventCaseOpened, detail, l)
}

// hold holds a batch. It opens a case about the batch if the service holds it.
func (d *decider) hold(b *Batch, by, reason string) {
	if b.Held() {
		return
	}
	d.batches.edit(b.ID)
	b.Hold = Hold{Reason: reason, By: by, Since: d.cmd.At}
	b.Holds++
	b.AskedAt = time.Time{}
	detail := map[string]string{DetailReason: reason}
	if by != "" {
		detail[DetailBy] = by
	} else {
		detail[DetailCase] = string(CaseHeld)
	}
	d.emit(b, EventHeld, detail)
}

// end ends a live batch.
func (d *decider) end(b *Batch, status Status, t EventType, detail map[string]string) {
	a := d.agencies.edit(AgencyKey{b.TenantID, b.Live})
	a.Batches = slices.DeleteFunc(a.Batches, func(id string) bool { return id == b.ID })
	if status.Void() {
		d.forgetDay(a, b)
	}
	d.batches.edit(b.ID)
	b.Status, b.EndedAt, b.AskedAt = status, d.cmd.At, time.Time{}
	d.emit(b, t, detail)
}

// revive makes a batch that is done pay again.
func (d *decider) revive(b *Batch) {
	a := d.agencies.edit(AgencyKey{b.TenantID, b.Live})
	a.Batches = append(a.Batches, b.ID)
	d.batches.edit(b.ID)
	b.Status = StatusReleasing
}

// finish ends a releasing batch that has no line left to send or to hear of.
func (d *decider) finish(b *Batch) {
	if b.Status == StatusReleasing && b.Lines.Ready.Count == 0 && b.Lines.Sent.Count == 0 {
		d.end(b, StatusDone, EventDone, nil)
	}
}

func by(person string) map[string]string { return map[string]string{DetailBy: person} }

// malformed returns the refusal of texts that are no references; ok is true if all are.
func malformed(texts map[string]string) (Answer, bool) {
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		if t := texts[field]; t == "" || !printable(t) {
			return refuseField(CodeMalformed, field, fmt.Sprintf("give 1 to %d characters of printable ASCII", MaxText)), false
		}
	}
	return Answer{}, true
}

func printable(text string) bool {
	return len(text) <= MaxText && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
