package checkout

import (
	"slices"
	"time"

	"quittance/money/localtime"
)

// Cash at an agency's counter is also a collection. A clerk decides it by commands, not
// an operator. A look-up reserves the session, so that no other payment can begin while
// the citizen counts notes. A reservation that ends without cash leaves the session
// unchanged.

// maxOrphans bounds the orphaned collections that one session remembers. Without a bound,
// desk software that sends a new id with each try would grow the session for ever.
const maxOrphans = 100

// reserve reserves the session for a clerk. A repeated look-up by the same clerk is the
// same reservation, so that two windows of one desk cannot take the cash twice.
func (d *decider) reserve(do Reserve) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	if s.InFlight() && s.reserved() {
		switch held := d.cmd.At.Before(s.Collection.WindowEndsAt); {
		case held && s.Collection.Clerk == do.By, s.Collection.ID == do.CollectionID:
			return Answer{Code: CodeOK, Session: &s, Replayed: true}
		case held:
			return Answer{Code: CodeReserved, Session: &s}
		}
		s = d.releaseReservation(s, "") // its window has ended; the tick that releases it is late
	}
	s = d.expire(s)
	offer, code := d.payable(s, OfferCashAgency)
	if code != CodeOK {
		return Answer{Code: code, Session: &s}
	}
	if _, code := d.till(s, do.By, s.Amount+offer.Fee, do.Limits); code != CodeOK {
		return Answer{Code: code, Session: &s}
	}
	s = d.cash(s, offer, do.CollectionID, do.By, do.Window)
	return Answer{Code: CodeOK, Session: &s}
}

// cash begins a collection at a counter.
func (d *decider) cash(s Session, offer Offer, id, clerk string, window time.Duration) Session {
	ends := d.cmd.At.Add(window)
	s = d.emit(s, EventCollectionRequested, change{collection: &Collection{
		ID: id, OfferID: offer.ID, Channel: offer.Channel, Status: CollectionPending, Amount: s.Amount + offer.Fee, Fee: offer.Fee,
		Currency: s.Currency, RequestedAt: d.cmd.At, NotAfter: ends, WindowEndsAt: ends, Clerk: clerk,
	}}, map[string]string{DetailBy: clerk})
	return s
}

// releaseReservation ends a reservation without cash.
func (d *decider) releaseReservation(s Session, by string) Session {
	detail := map[string]string{DetailCollectionID: s.Collection.ID}
	if by != "" {
		detail[DetailBy] = by
	}
	s = d.emit(s, EventCollectionReleased, change{}, detail)
	if s.Ended() {
		d.settle(s)
	}
	return s
}

func (d *decider) release(do Release) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	switch c := s.Collection; {
	case c == nil:
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	case c.ID == do.CollectionID && c.Origin() != OriginCounter:
		return Answer{Code: CodeNotTaken, Session: &s} // the citizen's own payment: no desk was ever told its id
	case c.ID != do.CollectionID || !s.reserved():
		return Answer{Code: CodeInFlight, Session: &s}
	case c.Clerk != do.By:
		return Answer{Code: CodeReserved, Session: &s}
	}
	s = d.releaseReservation(s, do.By)
	s = d.expire(s)
	return Answer{Code: CodeOK, Session: &s}
}

// cashOffer returns the offer that cash of the total pays. An archived session has no
// offers left; cash that is reported for it is recorded as it is.
func (s Session) cashOffer(total int64) (Offer, bool) {
	if s.Archived && total >= s.Amount {
		return Offer{ID: OfferCashAgency, Channel: ChannelCash, Fee: total - s.Amount}, true
	}
	return s.Offer(OfferCashAgency)
}

// till returns the clerk's till after cash of a total, or the code of the limit that the
// cash exceeds. A command that is stamped before the till's day counts on the till's day.
// What a clerk took is counted without a limit, too, so that a limit that is set later
// counts the whole day.
func (d *decider) till(s Session, clerk string, total int64, l Limits) (Till, Code) {
	t := d.view.Till(s.till(clerk))
	if today := localtime.Day(d.cmd.At); today > t.Day {
		t = Till{Day: today}
	}
	t.Taken += total
	switch {
	case l.Payment > 0 && total > l.Payment:
		return t, CodePaymentLimit
	case l.Day > 0 && t.Taken > l.Day:
		return t, CodeDayLimit
	}
	return t, CodeOK
}

func (s Session) till(clerk string) TillKey { return TillKey{s.TenantID, s.Live, clerk} }

// alreadyTaken answers cash that is on record, or that cannot be put on record. known says that the
// session takes cash, fits that the total is the one to pay.
func alreadyTaken(s Session, o Order, do Take, known, fits bool) (answer Answer, done bool) {
	mutable := s.Cashin != nil
	switch c := s.Collection; {
	case c != nil && c.ID == do.CollectionID && c.Origin() != OriginCounter:
		return Answer{Code: CodeNotTaken, Session: &s}, true // the citizen's own payment: no desk was ever told its id
	case c != nil && c.ID == do.CollectionID && c.Status == CollectionApproved:
		return Answer{Code: CodeOK, Session: &s, Replayed: true}, true
	case slices.Contains(s.Orphans, do.CollectionID):
		return Answer{Code: CodeCase, Session: &s, Replayed: true}, true
	case slices.Contains(o.Cash, do.CollectionID):
		return Answer{Code: CodeTakenElsewhere, Session: &s}, true
	case !known && !mutable:
		return Answer{Code: CodeOfferUnknown, Session: &s}, true
	case !fits && !mutable:
		return Answer{Code: CodeTotalChanged, Session: &s}, true
	case len(s.Orphans) >= maxOrphans:
		return Answer{Code: CodeTooMany, Session: &s}, true
	}
	return Answer{}, false
}

// take records cash. The session may still be reserved, released, ended (then the cash is
// a late payment), or paid otherwise (then the cash is an operator case).
func (d *decider) take(do Take) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	offer, known := s.cashOffer(do.Total)
	// A later init-checkout may have changed the payment since the clerk looked it up. The cash
	// was taken all the same.
	fits := known && do.Total == s.Amount+offer.Fee
	k := s.orderKey()
	o := d.order(k)
	if answer, done := alreadyTaken(s, o, do, known, fits); done {
		return answer
	}
	till, code := d.till(s, do.By, do.Total, do.Limits)
	if code != CodeOK {
		return Answer{Code: code, Session: &s}
	}
	put(&d.out.Tills, s.till(do.By), till)
	o.Cash = with(o.Cash, do.CollectionID)
	d.putOrder(k, o)
	paid := Outcome{
		CollectionID: do.CollectionID, Source: SourceCounter, Status: OutcomeApproved, Amount: do.Total, Currency: s.Currency, OperatorRef: do.Receipt,
		Account: do.Desk,
	}
	// Cash that nobody reserved does not pay a due that other money pays.
	if !fits || s.Status == StatusOpen && s.Collection == nil && (d.claimedByMoney(s) || d.overpays(s, true)) {
		s = d.orphaned(s, paid, do.By)
		return Answer{Code: CodeCase, Session: &s}
	}
	if s.reserved() && s.Collection.ID != do.CollectionID {
		s = d.releaseReservation(s, "") // the reservation of a later look-up, without cash so far
	}
	// A refused collection brought no money, so the cash is the only money of the session.
	if s.Collection == nil || s.Ended() && s.Collection.ID != do.CollectionID && s.Collection.Status == CollectionRefused {
		s = d.expire(s)
		s = d.cash(s, offer, do.CollectionID, do.By, 0)
	}
	detail := map[string]string{DetailSource: string(SourceCounter), DetailBy: do.By}
	switch {
	case s.Collection.ID != do.CollectionID:
		s = d.orphaned(s, paid, do.By)
		return Answer{Code: CodeCase, Session: &s}
	case s.Status == StatusOpen:
		s = d.finish(s, EventCompleted, change{outcome: &paid, clerk: do.By}, detail)
	default:
		s = d.late(s, paid, do.By)
	}
	return Answer{Code: CodeOK, Session: &s}
}

// reverse records that cash was given back on the day on which it was taken: that of the
// session, or cash beside another payment.
func (d *decider) reverse(do Reverse) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	c := s.Collection
	if c == nil || c.ID != do.CollectionID {
		return d.reverseOrphan(s, do)
	}
	switch {
	case c.Origin() != OriginCounter || c.Status != CollectionApproved:
		return Answer{Code: CodeNotTaken, Session: &s}
	case c.ReversedBy != "":
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	case len(s.Kept()) < len(s.Dues()), !s.Paid() && !s.lateAndOpen(c.ID):
		return Answer{Code: CodeCaseClosed, Session: &s} // staff have recorded another exit
	}
	if code := returnable(c.Clerk, do.By, c.DecidedAt, d.cmd.At); code != CodeOK {
		return Answer{Code: code, Session: &s}
	}
	s = d.emit(s, EventCollectionReversed, change{clerk: do.By}, map[string]string{DetailBy: do.By, DetailReason: do.Reason})
	for _, open := range s.Cases {
		if open.Open() && open.CollectionID == c.ID && open.Kind != CaseConfirmation {
			s = d.closeCase(s, open, Resolve{Resolution: ResolutionCashReturned, By: do.By, Reason: do.Reason})
		}
	}
	s = d.giveBack(s, s.Dues(), reversal{reason: ReversalCashReturned, by: do.By})
	return Answer{Code: CodeOK, Session: &s}
}

// lateAndOpen reports whether the collection's money came late and has no exit yet. Cases of
// other sums do not count.
func (s Session) lateAndOpen(collectionID string) bool {
	_, ok := s.findCase(func(c Case) bool {
		return c.Open() && c.Kind == CaseLatePayment && c.CollectionID == collectionID
	})
	return ok
}

// reverseOrphan records that cash beside another payment was given back.
func (d *decider) reverseOrphan(s Session, do Reverse) Answer {
	c, ok := s.CashOrphan(do.CollectionID)
	switch {
	case !ok:
		return Answer{Code: CodeNotTaken, Session: &s}
	case c.Resolution == ResolutionCashReturned:
		return Answer{Code: CodeOK, Session: &s, CaseID: c.ID, Replayed: true}
	case !c.Open():
		return Answer{Code: CodeCaseClosed, Session: &s}
	}
	if code := returnable(c.By, do.By, c.OpenedAt, d.cmd.At); code != CodeOK {
		return Answer{Code: code, Session: &s}
	}
	s = d.closeCase(s, c, Resolve{Resolution: ResolutionCashReturned, By: do.By, Reason: do.Reason})
	return Answer{Code: CodeOK, Session: &s, CaseID: c.ID}
}

// returnable says whether the clerk by may record that cash was given back.
func returnable(takenBy, by string, taken, now time.Time) Code {
	switch {
	case takenBy == by:
		return CodeSecondPerson
	case !localtime.SameDay(taken, now):
		return CodeReversalLate
	}
	return CodeOK
}
