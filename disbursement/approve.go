package disbursement

import (
	"errors"
	"slices"
	"time"

	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
)

// signed says whether a person in force has signed a step about a batch, with a key that the batch was sealed with if
// the person is one of its approvers. The batch's digest is in what was signed, so that no signature of another revision
// counts.
func (d *decider) signed(b *Batch, s Signed, level int, verdict digest.Verdict) Code {
	return d.signedOver(b, s, func(person string) (digest.Hash, error) {
		return digest.Step{Digest: b.Digest, Level: level, Person: person, Verdict: verdict}.Statement()
	})
}

// signedOver says whether a person in force has signed the statement that is made for the person.
func (d *decider) signedOver(b *Batch, s Signed, statement func(person string) (digest.Hash, error)) Code {
	if !d.rosters.see(b.TenantID).InForce(s.Person, s.Assertion.KeyHash(), d.cmd.At) {
		return CodeNotInForce
	}
	content := d.sealings.see(b.ID).Content
	want, err := statement(s.Person)
	if err != nil || s.Assertion.Verify(assertion.Party{RPID: content.RPID, Origin: content.Origin}, want) != nil {
		return CodeNotSigned
	}
	return CodeOK
}

// signedByTwo says whether two people in force, with a passkey each, have signed the statements that are made for them.
func (d *decider) signedByTwo(b *Batch, both [2]Signed, statement func(person string) (digest.Hash, error)) Code {
	if both[0].Person == both[1].Person || both[0].Assertion.KeyHash() == both[1].Assertion.KeyHash() {
		return CodeNeedsTwo
	}
	for _, s := range both {
		if code := d.signedOver(b, s, statement); code != CodeOK {
			return code
		}
	}
	return CodeOK
}

// SealedKey reports whether a batch was sealed with the key of a person, at the level or, for level 0, at any.
func SealedKey(levels []policy.Level, level int, s Signed) bool {
	for i, l := range levels {
		for _, p := range l.Persons {
			if p.ID == s.Person && (level == 0 || level == i+1) && slices.Contains(p.Keys, s.Assertion.KeyHash()) {
				return true
			}
		}
	}
	return false
}

func (d *decider) approve(b *Batch, do Approve) Answer {
	sealing := d.sealings.see(b.ID)
	person := do.Signed.Person
	if slices.ContainsFunc(sealing.Approvals, func(a Approved) bool { return a.Person == person && a.Level == do.Level }) {
		return Answer{Replayed: true}
	}
	switch {
	case b.Status != StatusSealed:
		return refuseStatus(b, "only a sealed batch is approved")
	case !d.cmd.At.Before(b.ApproveUntil) || b.late(d.cmd.At):
		d.end(b, StatusExpired, EventExpired, nil)
		return refuseStatus(b, "the time for its approvals is over; import it again")
	}
	levels := sealing.Content.Levels
	counted, err := policy.Counts(levels, sealing.Given(), b.Maker, do.Level, person)
	switch {
	case errors.Is(err, policy.ErrOtherLevel):
		return refuse(CodeLevel)
	case errors.Is(err, policy.ErrMaker):
		return refuse(CodeMaker)
	case errors.Is(err, policy.ErrTwice):
		return refuse(CodeTwice)
	case err != nil:
		return refuse(CodeNotListed)
	case !SealedKey(levels, do.Level, do.Signed):
		return refuse(CodeNotInForce)
	case !d.rosters.see(b.TenantID).Holds(counted, levels[do.Level-1].Role, d.cmd.At):
		return refuseField(CodeNotInForce, "person", "a person must sign whose role or delegation has not ended since the batch was sealed")
	}
	if code := d.signed(b, do.Signed, do.Level, digest.Approve); code != CodeOK {
		return refuse(code)
	}
	sealing = d.sealings.edit(b.ID)
	sealing.Approvals = append(sealing.Approvals, Approved{Approval: counted, At: d.cmd.At, Signed: do.Signed})
	all := policy.Current(levels, sealing.Given()) > len(levels)
	if all {
		b.Status = StatusApproved
	}
	d.emit(b, EventApproval, by(person))
	if all {
		d.emit(b, EventApproved, nil)
	}
	return Answer{}
}

// unreleased refuses to end a batch that is neither sealed nor approved.
func (b *Batch) unreleased(mend string) (Answer, bool) {
	if b.Status != StatusSealed && b.Status != StatusApproved {
		return refuseStatus(b, mend), false
	}
	return Answer{}, true
}

func (d *decider) reject(b *Batch, do Reject) Answer {
	if b.Status == StatusRejected {
		return Answer{Replayed: true}
	}
	if refusal, ok := b.unreleased("only a sealed or approved batch is rejected; one that pays is held or stopped"); !ok {
		return refusal
	}
	if !SealedKey(d.sealings.see(b.ID).Content.Levels, 0, do.Signed) {
		return refuse(CodeNotListed)
	}
	if code := d.signed(b, do.Signed, 0, digest.Reject); code != CodeOK {
		return refuse(code)
	}
	d.end(b, StatusRejected, EventRejected, map[string]string{DetailBy: do.Signed.Person, DetailReason: do.Reason})
	return Answer{}
}

func (d *decider) recall(b *Batch, do Recall) Answer {
	if b.Status == StatusRecalled {
		return Answer{Replayed: true}
	}
	if refusal, ok := b.unreleased("only a sealed or approved batch is recalled; one that pays is held or stopped"); !ok {
		return refusal
	}
	if do.By != b.Maker {
		return refuse(CodeNotMaker)
	}
	d.end(b, StatusRecalled, EventRecalled, by(do.By))
	return Answer{}
}

// release begins the payment as a person has signed it.
func (d *decider) release(b *Batch, do Release) Answer {
	if b.Status == StatusReleasing || b.Status == StatusApproved && !b.AskedAt.IsZero() {
		return Answer{Replayed: true}
	}
	switch {
	case b.Status != StatusApproved:
		return refuseStatus(b, "only an approved batch is released")
	case b.Held():
		return refuse(CodeHeld)
	case d.stale():
		return refuse(CodeRegistryOld)
	case d.rosters.see(b.TenantID).Same(do.Signed.Person, b.Maker):
		return refuse(CodeMaker)
	}
	if code := d.signed(b, do.Signed, b.Holds, digest.Release); code != CodeOK {
		return refuse(code)
	}
	return d.begin(b, do.Signed.Person)
}

// begin releases a batch if it may still pay, or holds it. The ERP is asked first whether its lines are the same. by is
// empty for a release on the date.
func (d *decider) begin(b *Batch, person string) Answer {
	if reason := d.unreleasable(b); reason != "" {
		d.hold(b, "", reason)
		return refuse(CodeHeld)
	}
	if b.Source == SourceERP {
		d.ask(b, person)
		return Answer{}
	}
	d.pay(b, person)
	return Answer{}
}

// unreleasable says why a batch that was approved may not pay any more; empty if it may.
func (d *decider) unreleasable(b *Batch) string {
	sealing := d.sealings.see(b.ID)
	roster := d.rosters.see(b.TenantID)
	inForce := d.agencies.see(AgencyKey{b.TenantID, b.Live}).InForce(d.cmd.At)
	switch {
	case b.late(d.cmd.At):
		return "its last day of payment is over"
	case inForce.Version != sealing.Content.Policy:
		return "the policy has changed since it was sealed"
	}
	for _, a := range sealing.Approvals {
		if !roster.InForce(a.Person, a.Signed.Assertion.KeyHash(), d.cmd.At) {
			return "a person who approved it is not in force any more"
		}
		if !roster.Holds(a.Approval, sealing.Content.Levels[a.Level-1].Role, d.cmd.At) {
			return "the role or the delegation of a person who approved it has ended"
		}
	}
	return ""
}

func (d *decider) ask(b *Batch, person string) {
	d.batches.edit(b.ID)
	b.AskedAt = d.cmd.At
	d.emit(b, EventAsked, by(person))
	d.out.Questions = append(d.out.Questions, Question{Batch: b.copied(), At: d.cmd.At})
}

// erpSame takes the ERP's answer to the last question. An older answer says nothing.
func (d *decider) erpSame(b *Batch, do ERPSame) Answer {
	switch {
	case b.Status == StatusReleasing:
		return Answer{Replayed: true}
	case b.Status != StatusApproved || b.AskedAt.IsZero() || !b.AskedAt.Equal(do.AskedAt):
		return refuseStatus(b, "no release waits for this answer of the ERP")
	case b.Held():
		return refuse(CodeHeld)
	case !do.Same:
		d.hold(b, "", "the ERP has other lines than were approved")
		return refuse(CodeHeld)
	}
	if reason := d.unreleasable(b); reason != "" {
		d.hold(b, "", reason)
		return refuse(CodeHeld)
	}
	d.pay(b, "")
	return Answer{}
}

// pay lets the lines of a batch be sent.
func (d *decider) pay(b *Batch, person string) {
	d.batches.edit(b.ID)
	b.Status, b.ReleasedAt, b.AskedAt = StatusReleasing, d.cmd.At, time.Time{}
	d.emit(b, EventReleased, by(person))
	d.ringAll(b)
}

func (d *decider) setHold(b *Batch, do SetHold) Answer {
	switch {
	case b.Held():
		return Answer{Replayed: true}
	case b.Status == StatusDraft || !b.Status.Live():
		return refuseStatus(b, "only a batch that is sealed and not done is held; a draft is discarded")
	case do.Reason == "":
		return refuseField(CodeMalformed, "reason", "say why the batch is held")
	}
	d.hold(b, do.By, do.Reason)
	return Answer{}
}

// lift ends a hold. Two people of the agency sign, of whom one may be the maker: an approval stays what it is.
func (d *decider) lift(b *Batch, do Lift) Answer {
	if !b.Held() {
		return refuse(CodeNotHeld)
	}
	code := d.signedByTwo(b, do.Signed, func(person string) (digest.Hash, error) {
		return digest.Step{Digest: b.Digest, Level: b.Holds, Person: person, Verdict: digest.Resume}.Statement()
	})
	if code != CodeOK {
		return refuse(code)
	}
	d.batches.edit(b.ID)
	b.Hold = Hold{}
	d.emit(b, EventResumed, map[string]string{DetailBy: do.Signed[0].Person, DetailApprovedBy: do.Signed[1].Person})
	if b.Status == StatusReleasing {
		d.ringAll(b)
	}
	return Answer{}
}
