package checkout

import (
	"slices"
	"strconv"
	"time"
)

// Cash at an agency's counter is a collection too, but no operator decides it: a
// clerk does, by commands. A look-up reserves the session, so that nothing else
// pays it while the citizen counts notes; a reservation that ends without cash
// leaves the session as it was.

// maxOrphans bounds what one session keeps of cash that is not its own: software
// that makes up an id for each try must not grow it for ever.
const maxOrphans = 100

// reserve holds the session for a clerk. The holder's own look-up again is the
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
		s = d.releaseReservation(s, "") // its tick is on the way
	}
	s = d.expire(s)
	offer, code := d.payable(s, OfferCashAgency)
	if code != CodeOK {
		return Answer{Code: code, Session: &s}
	}
	s = d.cash(s, offer, do.CollectionID, do.By, do.Window)
	return Answer{Code: CodeOK, Session: &s}
}

// cash begins a collection at a counter.
func (d *decider) cash(s Session, offer Offer, id, clerk string, window time.Duration) Session {
	ends := d.cmd.At.Add(window)
	return d.emit(s, EventCollectionRequested, change{collection: &Collection{
		ID: id, OfferID: offer.ID, Channel: offer.Channel, Status: CollectionPending, Amount: s.Amount + offer.Fee, Fee: offer.Fee,
		Currency: s.Currency, RequestedAt: d.cmd.At, NotAfter: ends, WindowEndsAt: ends, Clerk: clerk,
	}}, map[string]string{DetailBy: clerk})
}

// releaseReservation ends a reservation without cash.
func (d *decider) releaseReservation(s Session, by string) Session {
	detail := map[string]string{DetailCollectionID: s.Collection.ID}
	if by != "" {
		detail[DetailBy] = by
	}
	s = d.emit(s, EventCollectionReleased, change{}, detail)
	if s.Ended() {
		d.decided(s)
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
	case c.ID == do.CollectionID && c.Channel != ChannelCash:
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

// take puts cash on record. It finds the session as it is: still reserved, let go,
// ended (then it is a late payment), or paid by other means (then it is a case).
func (d *decider) take(do Take) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	offer, known := s.Offer(OfferCashAgency)
	switch c := s.Collection; {
	case c != nil && c.ID == do.CollectionID && c.Channel != ChannelCash:
		return Answer{Code: CodeNotTaken, Session: &s} // the citizen's own payment: no desk was ever told its id
	case c != nil && c.ID == do.CollectionID && c.Status == CollectionApproved:
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	case slices.Contains(s.Orphans, do.CollectionID):
		return Answer{Code: CodeCase, Session: &s, Replayed: true}
	case !known:
		return Answer{Code: CodeOfferUnknown, Session: &s}
	case do.Total != s.Amount+offer.Fee:
		return Answer{Code: CodeTotalChanged, Session: &s}
	case len(s.Orphans) >= maxOrphans:
		return Answer{Code: CodeTooMany, Session: &s}
	}
	if s.reserved() && s.Collection.ID != do.CollectionID {
		s = d.releaseReservation(s, "") // a later look-up, by whom no cash was taken yet
	}
	// Of a payment that was refused no money is there but this.
	if s.Collection == nil || s.Ended() && s.Collection.ID != do.CollectionID && s.Collection.Status == CollectionRefused {
		s = d.expire(s)
		s = d.cash(s, offer, do.CollectionID, do.By, 0)
	}
	o := Outcome{
		CollectionID: do.CollectionID, Source: SourceCounter, Status: OutcomeApproved, Amount: do.Total, Currency: s.Currency, OperatorRef: do.Receipt,
	}
	detail := map[string]string{DetailSource: string(SourceCounter), DetailBy: do.By}
	switch {
	case s.Collection.ID != do.CollectionID:
		s = d.emit(s, EventCollectionOrphaned, change{}, map[string]string{
			DetailCollectionID: do.CollectionID, DetailReportedAmount: strconv.FormatInt(do.Total, 10), DetailReportedCurr: s.Currency,
			DetailOperatorRef: do.Receipt, DetailSource: string(SourceCounter), DetailBy: do.By,
		})
		d.late(s)
		return Answer{Code: CodeCase, Session: &s}
	case s.Status == StatusOpen:
		s = d.finish(s, EventCompleted, change{outcome: &o, clerk: do.By}, detail)
	default:
		s = d.emit(s, EventLatePayment, change{outcome: &o, clerk: do.By}, detail)
		d.late(s)
	}
	return Answer{Code: CodeOK, Session: &s}
}

// reverse puts on record that cash was given back.
func (d *decider) reverse(do Reverse) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	c := s.Collection
	switch {
	case c == nil || c.ID != do.CollectionID || c.Channel != ChannelCash || c.Status != CollectionApproved:
		return Answer{Code: CodeNotTaken, Session: &s}
	case c.ReversedBy != "":
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	case c.Clerk == do.By:
		return Answer{Code: CodeSecondPerson, Session: &s}
	case !SameDay(c.DecidedAt, d.cmd.At):
		return Answer{Code: CodeReversalLate, Session: &s}
	}
	s = d.emit(s, EventCollectionReversed, change{clerk: do.By}, map[string]string{DetailBy: do.By, DetailReason: do.Reason})
	if !s.Paid() && len(s.Orphans) == 0 {
		// The order's money is gone again: it can be paid.
		k := s.orderKey()
		o := d.order(k)
		o.Late = without(o.Late, s.ID)
		d.putOrder(k, o)
	}
	return Answer{Code: CodeOK, Session: &s}
}
