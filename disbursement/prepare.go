package disbursement

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/money/localtime"
)

// stale reports whether the command's configuration is older than what was seen, and remembers the newest. After a
// restore of an old registry no batch is made with its accounts.
func (d *decider) stale() bool {
	if d.cmd.Registry == 0 {
		return false
	}
	k := d.cmd.agency()
	if d.cmd.Registry < d.agencies.see(k).Registry {
		return true
	}
	if d.cmd.Registry > d.agencies.see(k).Registry {
		a := d.agencies.edit(k)
		a.AgencyKey, a.Registry = k, d.cmd.Registry
	}
	return false
}

func (d *decider) open(do Open) Answer {
	if b := d.batches.see(d.cmd.Batch); b.ID != "" {
		if b.TenantID != d.cmd.TenantID || b.Live != d.cmd.Live {
			return refuse(CodeBatchUnknown)
		}
		copied := b.copied()
		return Answer{Batch: &copied, Replayed: true}
	}
	k := d.cmd.agency()
	a := d.agencies.see(k)
	p := a.InForce(d.cmd.At)
	refKey := BatchRefKey{k, do.BatchRef}
	last := d.batchRefs.see(refKey)
	if refusal, ok := malformed(map[string]string{"batch": d.cmd.Batch, "batch_ref": do.BatchRef, "maker": do.Maker, "import_id": do.ImportID}); !ok {
		return refusal
	}
	if refusal, ok := do.wellFormed(); !ok {
		return refusal
	}
	if dayBegins(do.Date).After(d.cmd.At.Add(MaxAhead)) {
		return refuseField(CodeMalformed, "date", "choose a date within a year")
	}
	switch {
	case d.stale():
		return refuse(CodeRegistryOld)
	case p.Version == 0:
		return refuse(CodeNoPolicy)
	case do.Currency != p.Currency:
		return refuse(CodeCurrency)
	case a.Scope != "" && do.Scope != a.Scope:
		return refuseField(CodeScope, "line_ref_scope", fmt.Sprintf("say %s, as in the agency's first batch", a.Scope))
	case last.Batch != "" && d.batches.see(last.Batch).Status.Live():
		return refuse(CodeRefLive)
	case len(a.Batches) >= MaxLive:
		return refuse(CodeTooManyLive)
	}
	revision := last.Revision + 1
	b := d.batches.edit(d.cmd.Batch)
	*b = Batch{
		ID: d.cmd.Batch, TenantID: k.TenantID, Live: k.Live, BatchRef: do.BatchRef, Revision: revision, Scope: do.Scope, Source: do.Source,
		Currency: do.Currency, Date: do.Date, Maker: do.Maker, ImportID: do.ImportID, Status: StatusDraft, OpenedAt: d.cmd.At,
	}
	for _, x := range do.Accounts {
		b.Accounts = append(b.Accounts, Funding{Code: x.Code, Fingerprint: x.Fingerprint, PerSecond: x.PerSecond})
	}
	*d.batchRefs.edit(refKey) = BatchRef{Batch: b.ID, Revision: revision}
	edited := d.agencies.edit(k)
	edited.Batches, edited.Scope = append(a.Batches, b.ID), do.Scope
	d.emit(b, EventOpened, by(do.Maker))
	copied := b.copied()
	return Answer{Batch: &copied}
}

// wellFormed refuses what no later step could use.
func (do Open) wellFormed() (Answer, bool) {
	_, err := localtime.Begin(do.Date)
	switch {
	case err != nil:
		return refuseField(CodeMalformed, "date", "give a date such as 2026-12-01"), false
	case do.Scope != ScopeAgency && do.Scope != ScopeBatch:
		return refuseField(CodeMalformed, "line_ref_scope", "say agency or batch"), false
	case do.Source != SourceFile && do.Source != SourceERP:
		return refuseField(CodeMalformed, "source", "say file or erp"), false
	case len(do.Accounts) == 0 || len(do.Accounts) > MaxAccounts:
		return refuseField(CodeMalformed, "accounts", fmt.Sprintf("give 1 to %d payout accounts", MaxAccounts)), false
	}
	for i, a := range do.Accounts {
		field := fmt.Sprintf("accounts[%d]", i)
		switch {
		case a.Code == "" || a.Fingerprint == "" || !printable(a.Code) || !printable(a.Fingerprint):
			return refuseField(CodeMalformed, field, "give code and fingerprint of the account"), false
		case a.PerSecond < 1 || a.PerSecond > MaxLinesTicked:
			return refuseField(CodeMalformed, field+".per_second", fmt.Sprintf("give 1 to %d enquiries a second", MaxLinesTicked)), false
		case slices.ContainsFunc(do.Accounts[:i], func(x Payout) bool { return x.Code == a.Code }):
			return refuseField(CodeMalformed, field+".code", "give each account once"), false
		}
	}
	return Answer{}, true
}

// addLines adds lines, all or none.
func (d *decider) addLines(b *Batch, do AddLines) Answer {
	if b.Status != StatusDraft {
		return refuseStatus(b, "recall it and import a new revision")
	}
	if do.ImportID != b.ImportID {
		return refuse(CodeImport)
	}
	if len(do.Lines) == 0 || len(do.Lines) > MaxLinesAdded || do.Position+len(do.Lines) > MaxLines {
		return refuse(CodeTooManyLines)
	}
	if do.Position < b.Count {
		return d.addedBefore(b, do)
	}
	if do.Position > b.Count {
		return refuse(CodePosition)
	}
	size := 0
	for _, l := range do.Lines {
		size += len(l.Sealed) + len(l.Ref) + len(l.Corrects) + len(l.Account) + len(l.Leaf)
		if len(l.Sealed) > MaxBytesSealed || size > MaxBytesAdded {
			return refuse(CodeTooLarge)
		}
	}
	if refusal, ok := b.linesFit(do.Lines); !ok {
		return refusal
	}
	corrected := map[LineKey]bool{}
	for i, l := range do.Lines {
		if refusal, ok := d.refFits(b, l, fmt.Sprintf("lines[%d].", i), corrected); !ok {
			return refusal
		}
	}
	added := make([]*Line, 0, len(do.Lines))
	for _, l := range do.Lines {
		added = append(added, d.add(b, l))
	}
	d.emit(b, EventLinesAdded, nil, added...)
	d.tellCorrected(added)
	return Answer{}
}

// addedBefore answers lines that the batch may have.
func (d *decider) addedBefore(b *Batch, do AddLines) Answer {
	for i, l := range do.Lines {
		if known, ok := d.line(b, do.Position+i); !ok || known.Leaf != l.Leaf || known.Ref != l.Ref || known.Amount != l.Amount {
			return refuse(CodePosition)
		}
	}
	return Answer{Replayed: true}
}

// linesFit refuses lines that are faulty by themselves.
func (b *Batch) linesFit(lines []NewLine) (Answer, bool) {
	last, sum := b.LastRef, b.Sum
	for i, l := range lines {
		field := fmt.Sprintf("lines[%d].", i)
		switch {
		case l.Ref == "" || !printable(l.Ref):
			return refuseField(CodeText, field+"line_ref", fmt.Sprintf("give 1 to %d characters of printable ASCII", MaxText)), false
		case last != "" && l.Ref <= last:
			return refuseField(CodeOrder, field+"line_ref", "give each line_ref once, and the lines in the order of their bytes"), false
		case l.Amount <= 0 || l.Amount > MaxSum:
			return refuseField(CodeAmount, field+"amount", "give a positive amount in minor units"), false
		case b.funding(l.Account) < 0:
			return refuseField(CodeAccount, field+"payout_account", "name one of the batch's payout accounts"), false
		case l.Amount > MaxSum-sum:
			return refuse(CodeSum), false
		}
		last, sum = l.Ref, sum+l.Amount
	}
	return Answer{}, true
}

// funding returns the index of a payout account; -1 if the batch has none with the code.
func (b *Batch) funding(code string) int {
	return slices.IndexFunc(b.Accounts, func(f Funding) bool { return f.Code == code })
}

// add adds one line that was checked.
func (d *decider) add(b *Batch, n NewLine) *Line {
	account := b.funding(n.Account)
	l := d.lines.edit(LineKey{b.ID, b.Count})
	*l = Line{
		LineKey: LineKey{b.ID, b.Count}, Ref: n.Ref, Account: account, Amount: n.Amount, Leaf: n.Leaf, Sealed: n.Sealed, Status: LineReady,
		CorrectsRef: n.Corrects,
	}
	if n.Corrects != "" {
		l.Corrects = *d.refs.see(refKey(b, n.Corrects))
		d.lines.edit(l.Corrects).CorrectedBy = l.LineKey
	}
	*d.refs.edit(refKey(b, n.Ref)) = l.LineKey
	d.wait(b, l)
	b.Accounts[account].Count++
	b.Accounts[account].Sum += n.Amount
	b.Count++
	b.Sum += n.Amount
	b.Largest = max(b.Largest, n.Amount)
	b.LastRef = n.Ref
	b.Tree = b.Tree.Add(n.Leaf)
	b.Lines.add(LineReady, 1, n.Amount)
	return l
}

func (d *decider) discard(b *Batch, do Discard) Answer {
	if b.Status == StatusDiscarded {
		return Answer{Replayed: true}
	}
	if b.Status != StatusDraft {
		return refuseStatus(b, "only a draft is discarded")
	}
	d.end(b, StatusDiscarded, EventDiscarded, by(do.By))
	return Answer{}
}

// seal ends the draft. It fixes people, policy and dates, and counts the batch on the agency's day.
func (d *decider) seal(b *Batch, do Seal) Answer {
	if b.Status == StatusSealed && do.Root == b.Tree.Root() {
		return Answer{Replayed: true}
	}
	a := d.agencies.see(d.cmd.agency())
	p := a.InForce(d.cmd.At)
	payUntil := localtime.Day(localtime.In(dayBegins(b.Date)).AddDate(0, 0, p.PayWithinDays))
	switch {
	case b.Status != StatusDraft:
		return refuseStatus(b, "only a draft is sealed")
	case d.stale():
		return refuse(CodeRegistryOld)
	case b.Count == 0:
		return refuse(CodeEmpty)
	case do.Count != b.Count || do.Sum != b.Sum || do.Root != b.Tree.Root():
		return refuse(CodeOtherContent)
	case p.Version == 0:
		return refuse(CodeNoPolicy)
	case p.Currency != b.Currency:
		return refuse(CodeCurrency)
	case p.NameCheck != policy.CheckOff && !do.Checked && do.Waiver == "":
		return refuse(CodeNames)
	case localtime.Day(d.cmd.At) > payUntil:
		return refuse(CodeDate)
	}
	rules, err := p.Rules(b.Sum, a.day(d.cmd.At), b.Largest)
	switch {
	case errors.Is(err, policy.ErrDayLimit):
		return refuse(CodeDayLimit)
	case err != nil:
		return refuse(CodeAboveTiers)
	}
	roster := d.rosters.see(b.TenantID)
	if maker, known := roster.Find(b.Maker); !known || !maker.RevokedAt.IsZero() {
		return refuseField(CodeNotInForce, "maker", "the person who made the batch is not in force: discard it, and have another person import it")
	}
	levels, ok := roster.Levels(rules, b.Maker, d.cmd.At)
	if !ok {
		return refuse(CodeTooFew)
	}
	if refusal, ok := d.signable(b, p, levels, payUntil); !ok {
		return refusal
	}
	d.countDay(b)
	d.batches.edit(b.ID)
	b.Status, b.SealedAt, b.OnDate, b.Waiver = StatusSealed, d.cmd.At, p.Release == policy.ReleaseOnDate, do.Waiver
	d.emit(b, EventSealed, by(b.Maker))
	return Answer{}
}

// signable makes what approvers sign.
func (d *decider) signable(b *Batch, p policy.Policy, levels []policy.Level, payUntil string) (Answer, bool) {
	roster := d.rosters.see(b.TenantID)
	until := d.cmd.At.Add(p.ApproveWithin).Truncate(time.Second)
	content := digest.Batch{
		Batch: b.ID, BatchRef: b.BatchRef, Revision: b.Revision, Agency: b.TenantID, Mode: Mode(b.Live), Currency: b.Currency, Date: b.Date, Maker: b.Maker,
		Count: b.Count, Sum: b.Sum, Largest: b.Largest, Root: b.Tree.Root(), ApproveUntil: until, PayUntil: payUntil, Policy: p.Version, Levels: levels,
		RPID: roster.RPID, Origin: roster.Origin,
	}
	for _, f := range b.Accounts {
		if f.Count > 0 {
			content.Accounts = append(content.Accounts, digest.Account{Code: f.Code, Fingerprint: f.Fingerprint, Count: f.Count, Sum: f.Sum})
		}
	}
	sum, err := content.Digest()
	if err != nil {
		return refuseField(CodeMalformed, "batch", "use ids, references and codes of printable ASCII, and amounts up to 2^53-1"), false
	}
	*d.sealings.edit(b.ID) = Sealing{Content: content}
	b.Digest, b.ApproveUntil, b.PayUntil = sum, until, payUntil
	return Answer{}, true
}

// countDay counts a sealed batch on the agency's local day.
func (d *decider) countDay(b *Batch) {
	a := d.agencies.edit(AgencyKey{b.TenantID, b.Live})
	a.Sealed = a.day(d.cmd.At) + b.Sum
	a.Day = max(a.Day, localtime.Day(d.cmd.At))
	d.batches.edit(b.ID)
	b.CountedOn = a.Day
}

// forgetDay takes a batch that will pay nothing off its day, so that a new revision of it does not count twice.
func (d *decider) forgetDay(a *Agency, b *Batch) {
	if b.CountedOn != "" && b.CountedOn == a.Day {
		a.Sealed = max(0, a.Sealed-b.Sum)
	}
}

// Mode returns the text of a mode, as approvers sign it: live or test.
func Mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}
