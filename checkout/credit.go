package checkout

import (
	"slices"
	"time"

	"quittance/casework"
)

// A citizen can also transfer the money to the agency's account and name the payment reference. Nobody asks for that
// money and nothing is reserved. The service learns of it from an accepted statement. Money that is in the account is
// never refused: it completes the session, or it is a case that blocks the order.

// Credit is a credit on an accepted statement whose text names the session's payment reference. The sender has looked the
// session up by the reference. Agency, mode and reference are compared with the session, so that an old look-up
// cannot pay another one. The command is sent again with each run that finds the line, and changes nothing then.
type Credit struct {
	// CollectionID is derived from the account and the bank's reference of the entry, so that a second report of the entry is
	// the same collection.
	CollectionID string
	AgencyID     string
	PaymentRef   string
	Amount       int64 // minor units
	Currency     string
	// Reference is the bank's reference of the entry, or else the id of the line. Account is the code of the statement account.
	Reference, Account string
	// BookedAt is noon, local time, of the day on which the bank booked the money.
	BookedAt time.Time
	// HonourLate is the agency's policy for late payments, as the sender found it.
	HonourLate bool
}

// CreditWithdrawn says that the money of a Credit is not in the account any more, or that nothing says so any more.
type CreditWithdrawn struct {
	CollectionID string
	AgencyID     string
	PaymentRef   string
	Cause        CreditCause
}

// CreditCause says why a credit does not count any more.
type CreditCause string

// The causes.
const (
	// CreditReversed: the bank has reversed the entry.
	CreditReversed CreditCause = "reversed"
	// CreditUnreported: two people have withdrawn the statement, and no other one has the entry.
	CreditUnreported CreditCause = "unreported"
)

func (Credit) action()          {}
func (CreditWithdrawn) action() {}

// SourceStatement is an accepted statement of the agency's account.
const SourceStatement Source = "statement"

// Reasons of cases about credits.
const (
	reasonReversed   = "the bank has reversed the transfer"
	reasonUnreported = "no statement has the transfer any more"
	// The next ones say why a transfer does not complete its session.
	reasonTotal    = "not the total to pay"
	reasonCurrency = "not the currency of the payment"
	reasonUnasked  = "the payment offers no bank transfer"
	reasonSecond   = "another payment has paid, or may still pay"
)

// creditSession returns the session of a credit, if the credit is for it.
func (d *decider) creditSession(agencyID, paymentRef string) (Session, bool) {
	s, ok := d.visible()
	return s, ok && s.TenantID == agencyID && s.Live == d.cmd.Live && s.PaymentRef == paymentRef
}

// credit records money that a statement shows. A clerk's reservation without cash ends with it. A payment that waits
// for its operator may still bring money of its own, so that the transfer is a case beside it.
func (d *decider) credit(do Credit) Answer {
	s, ok := d.creditSession(do.AgencyID, do.PaymentRef)
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	paid := Outcome{
		CollectionID: do.CollectionID, Source: SourceStatement, Status: OutcomeApproved, Amount: do.Amount, Currency: do.Currency,
		OperatorRef: do.Reference, Account: do.Account, ApprovedAt: d.dated(do.BookedAt, time.Time{}), HonourLate: do.HonourLate,
	}
	if s.HasCredit(do.CollectionID) {
		s = d.creditAgain(s, paid)
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	}
	if len(s.Orphans) >= maxOrphans {
		return Answer{Code: CodeTooMany, Session: &s}
	}
	s = d.expire(s)
	offer, reason := s.creditOffer(do)
	if s.reserved() && reason == "" {
		s = d.expire(d.releaseReservation(s, ""))
	}
	refused := s.Collection != nil && s.Ended() && s.Collection.Status == CollectionRefused // it brought no money
	idle := s.Collection == nil || refused
	switch {
	case reason != "":
	case !idle, s.Status == StatusOpen && (d.claimedByMoney(s) || d.overpays(s, true)):
		reason = reasonSecond
	default:
		s = d.credited(s, offer, paid)
		return Answer{Code: CodeOK, Session: &s}
	}
	s = d.creditBeside(s, offer, paid, reason)
	return Answer{Code: CodeCase, Session: &s}
}

// HasCredit reports whether the credit with the collection id is on record.
func (s Session) HasCredit(collectionID string) bool {
	_, refused := s.refusal(collectionID)
	return refused || s.Collection != nil && s.Collection.ID == collectionID || slices.Contains(s.Orphans, collectionID)
}

// creditOffer returns the offer that the credit pays, and why it does not pay it; empty if it does. Of a session without the offer,
// archived or not, it is the due without a fee.
func (s Session) creditOffer(do Credit) (offer Offer, reason string) {
	offer, known := s.Offer(OfferBankTransfer)
	if !known {
		offer = Offer{ID: OfferBankTransfer, Channel: ChannelBankTransfer}
	}
	switch {
	case do.Currency != s.Currency:
		return offer, reasonCurrency
	case s.Archived && do.Amount >= s.Amount:
		offer.Fee = do.Amount - s.Amount // its offers are gone: the money is recorded as it is
		return offer, ""
	case !known:
		return offer, reasonUnasked
	case do.Amount != s.Amount+offer.Fee:
		return offer, reasonTotal
	}
	return offer, ""
}

// credited begins the collection of a credit and decides it at once.
func (d *decider) credited(s Session, offer Offer, paid Outcome) Session {
	at := paid.ApprovedAt
	if at.IsZero() {
		at = d.cmd.At
	}
	s = d.emit(s, EventCollectionRequested, change{collection: &Collection{
		ID: paid.CollectionID, OfferID: offer.ID, Channel: offer.Channel, Status: CollectionPending, Amount: s.Amount + offer.Fee, Fee: offer.Fee,
		Currency: s.Currency, RequestedAt: at, NotAfter: at, WindowEndsAt: at, Account: paid.Account,
	}}, map[string]string{DetailSource: string(SourceStatement)})
	return d.approved(s, paid)
}

// creditBeside records a credit that does not complete its session, as a case that blocks the order.
func (d *decider) creditBeside(s Session, offer Offer, paid Outcome, reason string) Session {
	detail := orphanDetail(paid, reason)
	return d.open(s, EventCollectionOrphaned, Case{
		Case:         casework.Case{Kind: CaseOrphan, Amount: paid.Amount, Currency: paid.Currency, Reason: reason},
		CollectionID: paid.CollectionID, OperatorRef: paid.OperatorRef, Account: paid.Account, ApprovedAt: paid.ApprovedAt,
		OfferID: offer.ID, Channel: offer.Channel, Expected: s.Amount + offer.Fee, Fee: offer.Fee, Proven: true,
	}, change{}, detail)
}

// creditAgain decides on a credit that is on record. Usually nothing is new. A statement that was withdrawn may have been
// imported again, and a bank may report another amount of the same entry.
func (d *decider) creditAgain(s Session, paid Outcome) Session {
	for _, c := range s.Cases {
		if !c.Open() || c.CollectionID != paid.CollectionID {
			continue
		}
		switch {
		case c.Kind == CaseMismatch && c.Reason == reasonUnreported:
			s = d.closeCase(s, c, Resolve{Resolution: ResolutionSuperseded})
		case c.Contradicted:
			c.Contradicted = false
			s = d.emit(s, EventCollectionReported, change{notes: &c}, map[string]string{
				DetailCaseID: c.ID, DetailCaseKind: string(c.Kind), DetailSource: string(SourceStatement),
			})
		}
	}
	if c := s.Collection; c != nil && c.ID == paid.CollectionID {
		if c.Status == CollectionApproved {
			s = d.approvedAgain(s, paid)
		}
		return s
	}
	if c, open := s.openSum(paid.CollectionID); open && (c.Amount != paid.Amount || c.Currency != paid.Currency) && len(s.Cases) < maxCases {
		s = d.supersede(s, c.CollectionID, c.Kind)
		s = d.creditBeside(s, Offer{ID: c.OfferID, Channel: c.Channel, Fee: c.Fee}, paid, reasonTotal)
	}
	return s
}

// creditGone reports whether the case says that a credit which has paid the session does not count any more.
func (c Case) creditGone() bool {
	return c.Kind == CaseMismatch && (c.Reason == reasonReversed || c.Reason == reasonUnreported)
}

// reason returns the reason of a case about the cause.
func (c CreditCause) reason() string {
	if c == CreditReversed {
		return reasonReversed
	}
	return reasonUnreported
}

// creditWithdrawn records that the money of a credit is gone. A case of the money says so. A payment that it has made is a
// case: a person finds out, and gives the payment back or leaves it.
func (d *decider) creditWithdrawn(do CreditWithdrawn) Answer {
	s, ok := d.creditSession(do.AgencyID, do.PaymentRef)
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	if sum, open := s.openSum(do.CollectionID); open {
		s = d.contradict(s, sum, SourceStatement, do.Cause.reason())
		return Answer{Code: CodeOK, Session: &s}
	}
	c := s.Collection
	switch {
	case c == nil || c.ID != do.CollectionID || c.Status != CollectionApproved:
		return Answer{Code: CodeNotTaken, Session: &s}
	case !s.ReversedAt.IsZero(), s.noticed(c.ID, do.Cause.reason()), len(s.Cases) >= maxCases:
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	}
	for _, k := range s.Cases {
		if k.Open() && k.CollectionID == c.ID && k.creditGone() {
			s = d.closeCase(s, k, Resolve{Resolution: ResolutionSuperseded}) // the other cause
		}
	}
	s = d.openMismatch(s, Outcome{
		CollectionID: c.ID, Source: SourceStatement, Amount: c.Amount, Currency: c.Currency, OperatorRef: c.OperatorRef, ApprovedAt: c.ApprovedAt,
	}, do.Cause.reason())
	return Answer{Code: CodeOK, Session: &s}
}
