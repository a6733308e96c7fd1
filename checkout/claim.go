package checkout

import (
	"slices"
	"strconv"
	"time"
)

// ClaimKey names a due of an agency in a mode. References compare byte for byte.
type ClaimKey struct {
	TenantID  string
	Live      bool
	ERPDueRef string
}

// Claim says which sessions pay a due, so that nobody pays it twice. The zero value is a due
// that nobody claims. Only sessions of an agency that has an ERP for their mode claim. Between
// two sessions of one order the rules of the order decide (docs/design/decisions.md § 1), and the claim does
// not matter.
type Claim struct {
	// Holders are the ids of the sessions that are a payment of the due, or may become one. A
	// second holder is a session whose money arrived after it had let go.
	Holders []string
	// SessionID and TransactionID are of the last payment that the ERP accepted, at
	// AcceptedAt. They are empty before, and 90 days after.
	SessionID     string
	TransactionID string
	AcceptedAt    time.Time
	// Left is what the ERP must have left of the due after that payment, in minor units; -1 if
	// unknown.
	Left int64
}

// claimMemory is how long the acceptance of a payment is remembered.
const claimMemory = 90 * 24 * time.Hour

// ForgetAt is when the entry is to be deleted; zero for never.
func (c Claim) ForgetAt() time.Time {
	if len(c.Holders) > 0 || c.AcceptedAt.IsZero() {
		return time.Time{}
	}
	return c.AcceptedAt.Add(claimMemory)
}

// accept returns the claim after the ERP has accepted a payment of the due, which is as it was
// before the acceptance. What the ERP must have left of the due never grows and never becomes
// unknown while an earlier acceptance is remembered: the ERP may not show that one yet.
func (c Claim) accept(s Session, due Item, at time.Time) Claim {
	left := int64(-1)
	if due.Outstanding > 0 {
		left = due.Outstanding - due.Amount
	}
	if !c.AcceptedAt.IsZero() && c.Left >= 0 {
		rest := c.Left
		if due.Confirmation.SettledAt.IsZero() { // else this payment is in it
			rest = max(0, rest-due.Amount)
		}
		if left < 0 || rest < left {
			left = rest
		}
	}
	return Claim{Holders: c.Holders, SessionID: s.ID, TransactionID: due.TransactionID, AcceptedAt: at, Left: left}
}

// giveBack returns the claim after an accepted payment of the due was given back: the ERP may
// list its amount again.
func (c Claim) giveBack(due Item) Claim {
	if c.Left >= 0 {
		c.Left += due.Amount
	}
	return c
}

// at returns the claim as it is remembered at a time.
func (c Claim) at(now time.Time) Claim {
	if c.AcceptedAt.IsZero() || !now.Before(c.AcceptedAt.Add(claimMemory)) {
		return Claim{Holders: c.Holders}
	}
	return c
}

// Shown reports whether an ERP's list of dues that was asked for at pulled shows the last
// accepted payment of the due, of which it states an outstanding amount.
func (c Claim) Shown(pulled time.Time, outstanding int64) bool {
	return c.AcceptedAt.IsZero() || pulled.After(c.AcceptedAt) && (c.Left < 0 || outstanding <= c.Left)
}

// AcceptedPayments returns what sessions of an agency say at a time of the accepted payments of a
// due, as the claim on it has it: without the holders, and as if each payment were accepted once.
// It is for display. The processor decides by the claim.
func AcceptedPayments(sessions []Session, erpDueRef string, now time.Time) (c Claim) {
	type step struct {
		at    time.Time
		apply func(Claim) Claim
	}
	var steps []step
	for _, s := range sessions {
		for _, due := range s.Dues() {
			accepted := due.Confirmation.SettledAt
			if due.ERPDueRef != erpDueRef || accepted.IsZero() || !s.Returned(due).IsZero() && s.Returned(due).Before(accepted) {
				continue // what is accepted after it was given back is not counted
			}
			looked := due.Confirmation.Status == ConfirmationRecorded // people say what the ERP has
			due.Confirmation = Confirmation{}
			steps = append(steps, step{accepted, func(c Claim) Claim {
				if c = c.accept(s, due, accepted); looked {
					c.Left = -1
				}
				return c
			}})
			if at := s.Returned(due); !at.IsZero() {
				steps = append(steps, step{at, func(c Claim) Claim { return c.giveBack(due) }})
			}
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	for _, next := range steps {
		c = next.apply(c.at(next.at))
	}
	return c.at(now)
}

// Empty reports whether the claim says nothing, so that its entry can be deleted.
func (c Claim) Empty() bool { return len(c.Holders) == 0 && c.AcceptedAt.IsZero() }

// DueState says whether a due can be paid.
type DueState string

// The states of a due. Of a due that is in payment, a payment is open, or its operator or
// staff have not decided about it. A due that is being recorded is paid, and its ERP has not
// accepted it yet, or does not show it yet.
const (
	DuePayable   DueState = "payable"
	DueInPayment DueState = "in_payment"
	DueRecording DueState = "recording"
)

// DueState returns what the session makes of a due of it.
func (s Session) DueState(due Item) DueState {
	switch {
	case !s.ERP || due.ERPDueRef == "":
		return DuePayable
	case s.Status == StatusOpen, s.undecided(), slices.ContainsFunc(s.Cases, Case.holdsClaims):
		return DueInPayment
	case s.keeps(due) && due.Confirmation.Status != "" && !due.Confirmation.settled():
		return DueRecording
	}
	if _, open := s.findCase(func(c Case) bool {
		return c.Kind == CaseReversal && c.Open() && (len(c.TransactionIDs) == 0 || slices.Contains(c.TransactionIDs, due.TransactionID))
	}); open {
		return DueRecording
	}
	return DuePayable
}

// DueStateOf returns what sessions of an agency make of a due, of which an ERP's list that was asked
// for at pulled states an outstanding amount. It is for display: the processor decides by the claim.
func DueStateOf(sessions []Session, erpDueRef string, pulled time.Time, outstanding int64) DueState {
	state := DuePayable
	for _, s := range sessions {
		for _, due := range s.Dues() {
			if due.ERPDueRef != erpDueRef {
				continue
			}
			switch s.DueState(due) {
			case DueRecording:
				return DueRecording
			case DueInPayment:
				state = DueInPayment
			case DuePayable:
			}
		}
	}
	if !AcceptedPayments(sessions, erpDueRef, pulled).Shown(pulled, outstanding) {
		return DueRecording
	}
	return state
}

// holdsClaims reports whether the case is about money that may become a payment of the
// session's dues. A surplus is no such money.
func (c Case) holdsClaims() bool {
	switch c.Kind {
	case CaseLatePayment, CaseMismatch, CaseOrphan:
		return c.Open() && !c.Surplus()
	}
	return false
}

func (s Session) claimKey(due Item) ClaimKey { return ClaimKey{s.TenantID, s.Live, due.ERPDueRef} }

func (d *decider) claimOf(k ClaimKey) Claim {
	if c, ok := d.out.Claims[k]; ok {
		return c
	}
	return d.view.Claim(k)
}

// settleClaims makes the holders of the claims on the session's dues agree with it. They are
// a function of the session alone. Each event settles them, so a session that an earlier
// version made without claims claims with its next event.
func (d *decider) settleClaims(s Session) {
	if !s.ERP {
		return
	}
	for _, due := range s.Dues() {
		if due.ERPDueRef == "" {
			continue
		}
		k := s.claimKey(due)
		before := d.claimOf(k)
		c := before
		c.Holders = toggled(c.Holders, s.ID, s.DueState(due) != DuePayable)
		if len(c.Holders) != len(before.Holders) {
			put(&d.out.Claims, k, c)
		}
	}
}

// remembered returns the claim on the due, with the last accepted payment only while it is
// remembered.
func (d *decider) remembered(s Session, due Item) Claim {
	return d.claimOf(s.claimKey(due)).at(d.cmd.At)
}

// accepted remembers that the ERP has a payment of the due, as it was before the acceptance.
func (d *decider) accepted(s Session, due Item) {
	if !s.ERP || !s.keeps(due) || due.ERPDueRef == "" {
		return
	}
	put(&d.out.Claims, s.claimKey(due), d.remembered(s, due).accept(s, due, d.cmd.At))
}

// givenBack remembers that an accepted payment of the due was given back.
func (d *decider) givenBack(s Session, due Item) {
	c := d.remembered(s, due)
	if due.ERPDueRef == "" || due.Confirmation.SettledAt.IsZero() || c.AcceptedAt.IsZero() {
		return
	}
	put(&d.out.Claims, s.claimKey(due), c.giveBack(due))
}

// paidElsewhere returns the last payment of the due that the ERP has accepted since the
// session was made. ok is false if there is none, and if it is the session's own.
func (d *decider) paidElsewhere(s Session, due Item) (c Claim, ok bool) {
	if !s.ERP || due.ERPDueRef == "" {
		return Claim{}, false
	}
	c = d.remembered(s, due)
	return c, !c.AcceptedAt.IsZero() && c.SessionID != s.ID && c.AcceptedAt.After(s.CreatedAt)
}

// forget drops what the ERP must have left of the due after an accepted payment. That it was
// paid is remembered.
func (d *decider) forget(s Session, due Item) {
	k := s.claimKey(due)
	if c := d.claimOf(k); c.TransactionID == due.TransactionID {
		c.Left = -1
		put(&d.out.Claims, k, c)
	}
}

// claim returns why the dues of a new session cannot be paid now, a fault for each such due.
// The rule of a fault is the state of its due.
// Without any it makes room: it cancels what replace allows to cancel.
func (d *decider) claim(s Session, replace bool) (faults []Fault) {
	if !s.ERP {
		return nil
	}
	var replaced []string
	for i, due := range s.Dues() {
		if due.ERPDueRef == "" {
			continue
		}
		state := DuePayable
		if slices.ContainsFunc(s.Dues()[:i], func(other Item) bool { return other.ERPDueRef == due.ERPDueRef }) {
			state = DueInPayment // twice in one cart
		}
		for _, id := range d.claimOf(s.claimKey(due)).Holders {
			held, ok := d.session(id)
			if !ok || held.orderKey() == s.orderKey() {
				continue // the rules of the order decide about its own sessions
			}
			held = d.expire(held)
			switch now := held.dueStateOf(due.ERPDueRef); {
			case now == DuePayable, state == DueRecording:
			case replace && held.Portal() && held.Status == StatusOpen && held.Collection == nil:
				replaced = with(replaced, id)
			default:
				state = now
			}
		}
		if state == DuePayable && d.unreflected(s, due) {
			state = DueRecording
		}
		if state != DuePayable {
			faults = append(faults, Fault{Code: CodeDueInPayment, Field: s.dueField(i), Rule: string(state), Message: dueMessages[state]})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, id := range replaced {
		if held, ok := d.session(id); ok {
			d.finish(held, EventCancelled, change{}, map[string]string{DetailBy: string(ByReplacement)})
		}
	}
	return nil
}

var dueMessages = map[DueState]string{
	DueInPayment: "a payment of this due is under way",
	DueRecording: "this due is paid, and the agency's system is recording the payment",
}

// dueField is the path of a due's reference in a request.
func (s Session) dueField(i int) string {
	if len(s.Items) == 0 {
		return "metadata." + MetadataERPDueRef
	}
	return "items." + strconv.Itoa(i) + ".erp_due_ref"
}

// dueStateOf returns what the session makes of its due with the reference.
func (s Session) dueStateOf(ref string) DueState {
	for _, due := range s.Dues() {
		if due.ERPDueRef == ref {
			return s.DueState(due)
		}
	}
	return DuePayable
}

// reflectedWithin is the time after the acceptance of a payment within which the ERP must
// show it among its dues. Later it is a case (docs/design/decisions.md § 14).
const reflectedWithin = 72 * time.Hour

// reasonNotReflected is why a refused portal session opens a case about a confirmation.
const reasonNotReflected = "accepted, and 72 h later still owed in the ERP's list"

// unreflected reports whether the ERP's list of dues, as the portal session saw it, does not
// show the last payment that the ERP accepted. A ministry fixes its amounts itself, so its
// sessions are not asked.
func (d *decider) unreflected(s Session, due Item) bool {
	c := d.remembered(s, due)
	if !s.Portal() || c.Shown(s.PulledAt, due.Outstanding) {
		return false
	}
	if d.cmd.At.Before(c.AcceptedAt.Add(reflectedWithin)) {
		return true
	}
	paid, ok := d.session(c.SessionID)
	if !ok || !paid.Paid() {
		// The payment was given back, and staff have told the ERP: what it lists is owed.
		return false
	}
	about, ok := paid.Due(c.TransactionID)
	known := slices.ContainsFunc(paid.Cases, func(k Case) bool {
		return k.confirms(paid, about) && k.Reason == reasonNotReflected && k.OpenedAt.After(c.AcceptedAt)
	})
	if ok && !known {
		d.openConfirmationCase(paid, about, reasonNotReflected)
	}
	return true
}

// claimedElsewhere reports whether a session of another order holds a claim on a due of the session.
func (d *decider) claimedElsewhere(s Session) bool {
	return d.anotherHolds(s, func(Session) bool { return true })
}

// claimedByMoney reports whether money of another order is, or may become, a payment of a due
// of the session. A session that is only open does not count: the first one to collect
// wins.
func (d *decider) claimedByMoney(s Session) bool {
	return d.anotherHolds(s, func(other Session) bool { return other.Status != StatusOpen || other.Collection != nil })
}

// overpays reports whether the session would pay more of a due than the ERP has left of it
// after the payment of another session. unknown says whether an unknown rest counts as none.
func (d *decider) overpays(s Session, unknown bool) bool {
	return slices.ContainsFunc(s.Dues(), func(due Item) bool {
		c, paid := d.paidElsewhere(s, due)
		return paid && c.Left < due.Amount && (unknown || c.Left >= 0)
	})
}

func (d *decider) anotherHolds(s Session, counts func(Session) bool) bool {
	if !s.ERP {
		return false
	}
	for _, due := range s.Dues() {
		if due.ERPDueRef == "" {
			continue
		}
		for _, id := range d.claimOf(s.claimKey(due)).Holders {
			other, ok := d.session(id)
			if !ok || other.orderKey() == s.orderKey() {
				continue
			}
			if other = d.expire(other); counts(other) && other.dueStateOf(due.ERPDueRef) != DuePayable {
				return true
			}
		}
	}
	return false
}
