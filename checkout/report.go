package checkout

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"quittance/casework"
)

// An operator's report is a foreign value. Operators contradict themselves, repeat themselves
// late, and date their approvals as they like. Each distinct report is remembered with its
// collection. A repeated one changes nothing, a differing one replaces what the earlier one
// led to, or is a case.

// Report is what an operator said of a collection.
type Report struct {
	// Status is approved, refused or unknown.
	Status OutcomeStatus
	// Amount is in minor units of Currency. Zero and empty unless the operator approved.
	Amount   int64
	Currency string
	At       time.Time // when it was decided on, UTC
}

const (
	// maxReports bounds the reports that a collection remembers. The oldest are forgotten.
	maxReports = 20
	// maxCases bounds the cases that contradicting reports open in one session.
	maxCases = 100
)

// The bounds of an operator's date of an approval. A date outside of them is dropped, because
// it would move the payment into another year.
const (
	datedBefore       = 24 * time.Hour       // before the request for the money
	datedAfter        = 24 * time.Hour       // after the service learned of it
	orphanDatedBefore = 400 * 24 * time.Hour // before that, of money that nobody asked for
)

// dated returns the operator's date of an approval, zero unless it is plausible. requested is
// when the money was asked for; zero if nobody did.
func (d *decider) dated(at, requested time.Time) time.Time {
	return bounded(at, requested, d.cmd.At)
}

// bounded returns the operator's date of an approval that the service learned of at a time; zero
// unless it is plausible. requested is as for dated.
func bounded(at, requested, known time.Time) time.Time {
	first := requested.Add(-datedBefore)
	if requested.IsZero() {
		first = known.Add(-orphanDatedBefore)
	}
	if at.Before(first) || at.After(known.Add(datedAfter)) {
		return time.Time{}
	}
	return at
}

// says returns the report of the outcome.
func (d *decider) says(do Outcome) Report {
	r := Report{Status: do.Status, At: d.cmd.At}
	if do.Status == OutcomeApproved {
		r.Amount, r.Currency = do.Amount, do.Currency
	}
	return r
}

// repeats reports whether the operator has said so before.
func (c *Collection) repeats(r Report) bool {
	return slices.ContainsFunc(c.Reports, func(known Report) bool {
		return known.Status == r.Status && known.Amount == r.Amount && known.Currency == r.Currency
	})
}

// unreadable reports whether the operator approves without an amount or a currency that can be
// read. It has money then, but no sum.
func (o Outcome) unreadable() bool {
	return o.Status == OutcomeApproved && (o.Amount <= 0 || o.Currency == "")
}

func (d *decider) outcome(do Outcome) Answer {
	if do.unreadable() {
		do.Amount, do.Currency = 0, ""
	}
	s, ok := d.visible()
	if !ok || s.Collection == nil || s.Collection.ID != do.CollectionID {
		if r, refused := s.refusal(do.CollectionID); refused && r.Collection != nil {
			s = d.afterRefusal(d.expire(s), *r.Collection, do)
			return Answer{Code: CodeOK, Session: &s}
		}
		return d.orphan(s, do)
	}
	s = d.reported(s, do)
	if s.InFlight() && !do.AskedAt.IsZero() && !do.AskedAt.Before(s.Collection.WindowEndsAt) && !d.waits(s) {
		s = d.timeout(s) // the operator was asked after the window and has not approved
	}
	return Answer{Code: CodeOK, Session: &s}
}

// reported decides on what the operator says of the session's collection.
func (d *decider) reported(s Session, do Outcome) Session {
	do.ApprovedAt = d.dated(do.ApprovedAt, s.Collection.RequestedAt)
	switch {
	case do.Status == OutcomePending, do.Status == OutcomeAmbiguous:
		return s
	case do.Status == OutcomeUnknown && !d.cmd.At.After(s.Collection.NotAfter.Add(unknownAfter)):
		// Before NotAfter the request may not have been sent or may not have arrived yet.
		return s
	case do.Status == OutcomeUnknown:
		do.FailureCode = FailureOperatorUnavailable
	}
	r := d.says(do)
	if s.Collection.repeats(r) {
		return s
	}
	d.report = &collectionReport{do.CollectionID, r}
	defer func() { d.report = nil }() // a report that changes nothing is not remembered
	switch {
	case do.unreadable():
		return d.unreadable(s, do)
	case do.Status == OutcomeApproved:
		return d.approved(s, do)
	}
	return d.refused(s, do)
}

// collectionReport is a report, and the collection that the operator reported.
type collectionReport struct {
	collectionID string
	Report
}

// remember returns the session with a further report of one of its collections.
func (s Session) remember(r collectionReport) Session {
	if c := s.Collection; c != nil && c.ID == r.collectionID {
		s.Collection = c.with(r.Report)
		return s
	}
	s.Refusals = slices.Clone(s.Refusals)
	for i, refusal := range s.Refusals {
		if refusal.CollectionID == r.collectionID && refusal.Collection != nil {
			s.Refusals[i].Collection = refusal.Collection.with(r.Report)
		}
	}
	return s
}

// with returns the collection with a further report.
func (c Collection) with(r Report) *Collection {
	c.Reports = append(slices.Clone(c.Reports), r)
	c.Reports = c.Reports[max(0, len(c.Reports)-maxReports):]
	return &c
}

// waits reports whether the session waits for its operator after the approval window.
func (d *decider) waits(s Session) bool {
	return s.outlivesRefusal() && d.cmd.At.Before(s.ExpiresAt)
}

// timeout ends a session whose approval window ended without an approval.
func (d *decider) timeout(s Session) Session {
	return d.finish(s, EventFailed, change{failure: s.Collection.timeout()}, nil)
}

// misfit says what of an approval is not as the collection asked; empty if it fits.
func (c *Collection) misfit(do Outcome) string {
	switch {
	case do.Amount != c.Amount:
		return "amount"
	case do.Currency != c.Currency:
		return "currency"
	}
	return ""
}

func (d *decider) approved(s Session, do Outcome) Session {
	if s.Collection.Status == CollectionApproved {
		return d.approvedAgain(s, do)
	}
	if reason := s.Collection.misfit(do); reason != "" {
		return d.mismatch(s, do, reason)
	}
	s = d.supersede(s, do.CollectionID, CaseUndecided, CaseMismatch, CaseOrphan)
	if s.Status == StatusOpen {
		return d.finish(s, EventCompleted, change{outcome: &do}, map[string]string{DetailSource: string(do.Source)})
	}
	s = d.late(s, do, "")
	if d.honourable(s, do) {
		late, _ := s.openCase(CaseLatePayment)
		s, _ = d.honour(s, late, Resolve{CaseID: late.ID, Resolution: ResolutionHonour, By: ByPolicy})
	}
	return s
}

// approvedAgain decides on an approval of a collection that is approved. What is above its
// amount is a surplus. What is below it, or of another currency, is no other money: a person
// must look at the payment.
func (d *decider) approvedAgain(s Session, do Outcome) Session {
	c := s.Collection
	if c.misfit(do) == "" && !s.corrected(c.ID) || len(s.Cases) >= maxCases {
		return s
	}
	s = d.supersede(s, surplusOf(c.ID), CaseOrphan)
	for _, k := range s.Cases {
		if k.Open() && k.CollectionID == c.ID && k.Reason == reasonChanged {
			s = d.closeCase(s, k, Resolve{Resolution: ResolutionSuperseded})
		}
	}
	if do.Currency == c.Currency && do.Amount >= c.Amount {
		if surplus := do.Amount - c.Amount - s.settledSurplus(c.ID); surplus > 0 {
			return d.surplus(s, Case{
				Case: casework.Case{Currency: c.Currency}, CollectionID: c.ID, OperatorRef: do.OperatorRef,
				Account: c.Account, ApprovedAt: do.ApprovedAt, OfferID: c.OfferID, Channel: c.Channel,
			}, surplus, reasonChanged)
		}
		return s
	}
	if !s.ReversedAt.IsZero() {
		return s // given back
	}
	return d.openMismatch(s, do, reasonChanged)
}

// settledSurplus is what of the collection's surplus has had its exit.
func (s Session) settledSurplus(collectionID string) (sum int64) {
	for _, k := range s.Cases {
		if k.CollectionID == surplusOf(collectionID) && !k.Open() && !k.Replaced() {
			sum += k.Amount
		}
	}
	return sum
}

// corrected reports whether an open case says that the operator's last report of the approved
// collection does not fit.
func (s Session) corrected(collectionID string) bool {
	return slices.ContainsFunc(s.Cases, func(k Case) bool {
		return k.Open() && (k.CollectionID == surplusOf(collectionID) || k.CollectionID == collectionID && k.Reason == reasonChanged)
	})
}

// late records money that arrived after the session's end, as an operator case.
func (d *decider) late(s Session, do Outcome, clerk string) Session {
	detail := map[string]string{DetailSource: string(do.Source)}
	if clerk != "" {
		detail[DetailBy] = clerk
	}
	c := s.Collection
	return d.open(s, EventLatePayment, Case{
		Case:         casework.Case{Kind: CaseLatePayment, Amount: do.Amount, Currency: do.Currency, By: clerk},
		CollectionID: do.CollectionID, OperatorRef: do.OperatorRef, Account: cmp.Or(c.Account, do.Account), ApprovedAt: do.ApprovedAt,
		OfferID: c.OfferID, Channel: c.Channel, Expected: c.Amount,
	}, change{outcome: &do, clerk: clerk}, detail)
}

func (d *decider) refused(s Session, do Outcome) Session {
	if do.FailureCode == "" {
		do.FailureCode = failureUnknown
	}
	c := s.Collection
	if c.Unreadable && s.InFlight() {
		s = d.openUndecided(d.timeout(s))
	}
	if sum, ok := s.openSum(c.ID); ok {
		// The operator said before that it has the money. A person finds out which is true, and
		// the order is not collected again before.
		s = d.contradict(s, sum, do.Source, reasonRefused)
		if s.InFlight() {
			s = d.timeout(s)
		}
		return s
	}
	switch c.Status {
	case CollectionRefused:
		return s
	case CollectionApproved:
		if !s.ReversedAt.IsZero() || s.noticed(c.ID, reasonRefused) || len(s.Cases) >= maxCases {
			return s // given back already, or known
		}
		return d.openMismatch(s, do, reasonRefused)
	case CollectionPending:
		if s.outlivesRefusal() {
			detail := map[string]string{DetailCollectionID: do.CollectionID, DetailFailureCode: string(do.FailureCode), DetailSource: string(do.Source)}
			return d.expire(d.emit(s, EventCollectionRefused, change{outcome: &do}, detail))
		}
		return d.finish(s, EventFailed, change{outcome: &do, failure: do.FailureCode}, map[string]string{DetailSource: string(do.Source)})
	case CollectionUndecided:
	}
	return d.finish(d.supersede(s, c.ID, CaseUndecided), EventCollectionRefused, change{outcome: &do}, map[string]string{DetailSource: string(do.Source)})
}

// contradict records with the open case of a sum that its operator has refused it since, or its bank has it no more.
func (d *decider) contradict(s Session, c Case, source Source, reason string) Session {
	if c.Contradicted {
		return s
	}
	c.Contradicted = true
	return d.emit(s, EventCollectionContradicted, change{notes: &c}, map[string]string{
		DetailCaseID: c.ID, DetailCaseKind: string(c.Kind), DetailReason: reason, DetailSource: string(source),
	})
}

// Reasons of notices about a collection that was approved: what the operator says since.
const (
	reasonRefused = "refused after approval"
	reasonChanged = "another amount after approval"
)

// Notice reports whether the case is about money that another event counts: its operator has
// approved it, and contradicts that.
func (c Case) Notice() bool {
	return c.Kind == CaseMismatch && (c.Reason == reasonRefused || c.Reason == reasonChanged) || c.creditGone()
}

// noticed reports whether an open notice has the reason.
func (s Session) noticed(collectionID, reason string) bool {
	return slices.ContainsFunc(s.Cases, func(c Case) bool {
		return c.Open() && c.CollectionID == collectionID && c.Notice() && c.Reason == reason
	})
}

// openSum returns the open case of a sum that the operator has reported for the collection.
func (s Session) openSum(collectionID string) (Case, bool) {
	return s.findCase(func(c Case) bool {
		if !c.Open() || c.CollectionID != collectionID {
			return false
		}
		switch c.Kind {
		case CaseLatePayment:
			return true
		case CaseMismatch:
			return !c.Notice()
		case CaseUndecided:
			return c.AmountUnknown
		}
		return c.Proven
	})
}

// openMismatch opens a case about a report that does not fit the session's collection.
func (d *decider) openMismatch(s Session, do Outcome, reason string) Session {
	c := s.Collection
	detail := reportedDetail(do)
	detail[DetailReason] = reason
	return d.open(s, EventCollectionMismatched, Case{
		Case:         casework.Case{Kind: CaseMismatch, Amount: do.Amount, Currency: do.Currency, Reason: reason},
		CollectionID: do.CollectionID, OperatorRef: do.OperatorRef, Account: c.Account, ApprovedAt: do.ApprovedAt,
		OfferID: c.OfferID, Channel: c.Channel, Expected: c.Amount,
	}, change{}, detail)
}

// mismatch records that a report does not fit the collection, for an operator case. The
// operator has money, but not the amount or currency of the collection. Whatever is reported
// later, the order is not collected again before a person has decided. A differing report
// takes the place of an earlier one.
func (d *decider) mismatch(s Session, do Outcome, reason string) Session {
	c := s.Collection
	if s.knows(c.ID, do) || len(s.Cases) >= maxCases {
		return s
	}
	s = d.supersede(s, c.ID, CaseUndecided, CaseMismatch, CaseOrphan)
	return d.openMismatch(s, do, reason)
}

// knows reports whether an open case has the reported sum already. An earlier version did not
// remember the report that opened it.
func (s Session) knows(collectionID string, do Outcome) bool {
	return slices.ContainsFunc(s.Cases, func(c Case) bool {
		return c.Open() && c.CollectionID == collectionID && c.Reported() && !c.AmountUnknown && c.Amount == do.Amount && c.Currency == do.Currency
	})
}

// unreadable records that the operator approved without an amount or a currency that can be
// read. It is asked on. Once the session has ended, staff are told too.
func (d *decider) unreadable(s Session, do Outcome) Session {
	c := s.Collection
	if _, summed := s.openSum(c.ID); summed || c.Status == CollectionApproved || c.Mismatched {
		return s // it named a sum before
	}
	if c.Status == CollectionRefused {
		s = d.reopen(s, *c)
	}
	s = d.emit(s, EventCollectionUnreadable, change{outcome: &do}, map[string]string{DetailSource: string(do.Source)})
	if s.Ended() {
		s = d.openUndecided(d.supersede(s, c.ID, CaseUndecided))
	}
	return s
}

// reasonUnreadable is why a collection is undecided although its operator has answered.
const reasonUnreadable = "approved without a readable amount"

// openUndecided opens the case of a collection that its operator has not decided.
func (d *decider) openUndecided(s Session) Session {
	c := s.Collection
	about := Case{
		Case:         casework.Case{Kind: CaseUndecided, Amount: c.Amount, Currency: c.Currency},
		CollectionID: c.ID, OfferID: c.OfferID, Channel: c.Channel, Expected: c.Amount,
	}
	if c.Unreadable {
		about.Amount, about.AmountUnknown, about.Reason, about.OperatorRef = 0, true, reasonUnreadable, c.OperatorRef
	}
	return d.open(s, EventCaseOpened, about, change{}, nil)
}

// reopen makes a refused collection, or one whose operator is asked anew, the session's
// collection without a decision.
func (d *decider) reopen(s Session, c Collection) Session {
	now := d.cmd.At
	c.Status, c.FailureCode, c.DecidedAt, c.Mismatched, c.Unreadable = CollectionPending, "", time.Time{}, false, false
	c.Reopened++
	c.NextEnquiryAt, c.ClosingEnquiryAt = now.Add(enquiryStep), time.Time{}
	if c.WindowEndsAt.Before(now) {
		c.WindowEndsAt = now
	}
	if s.Ended() {
		c.Status, c.WindowEndsAt, c.ClosingEnquiryAt = CollectionUndecided, now, now
	}
	return d.settle(d.emit(s, EventCollectionReopened, change{collection: &c}, map[string]string{DetailCollectionID: c.ID}))
}

// reopened returns the session with c as its collection. It remembers the refused collection
// whose place c takes.
func (s Session) reopened(c Collection) Session {
	if s.Collection != nil && s.Collection.ID != c.ID {
		s = s.withRefusal()
	}
	s.Refusals = slices.DeleteFunc(slices.Clone(s.Refusals), func(r Refusal) bool { return r.CollectionID == c.ID })
	s.Collection = &c
	return s
}

// askAgain closes the case of a collection, and asks its operator at once, as if it had not
// answered. If it stays silent for a day, there is a case again.
func (d *decider) askAgain(s Session, c Case, do Resolve) (Session, Code) {
	if s.Collection == nil || c.CollectionID != s.Collection.ID || s.Collection.Status == CollectionApproved {
		return s, CodeCaseNotAllowed
	}
	s = d.closeCase(s, c, do)
	anew := *s.Collection
	anew.Reports, anew.LastEnquiryAt = nil, time.Time{}
	s = d.reopen(s, anew)
	d.enquiry(s)
	s, _ = d.session(s.ID)
	return s, CodeOK
}

// refused returns the collection of the orphan, as it was refused. Of one that is not
// remembered any more, it is made of the case.
func (s Session) refused(of Case) Collection {
	if r, ok := s.refusal(of.CollectionID); ok && r.Collection != nil {
		return *r.Collection
	}
	return Collection{
		ID: of.CollectionID, OfferID: of.OfferID, Channel: of.Channel, Amount: of.Expected, Fee: of.Fee, Currency: of.Currency, Account: of.Account,
		RequestedAt: of.OpenedAt, NotAfter: of.OpenedAt, WindowEndsAt: of.OpenedAt,
	}
}

// afterRefusal decides on what the operator says of a collection that it refused, so that its
// session stayed open or took other money.
func (d *decider) afterRefusal(s Session, c Collection, do Outcome) Session {
	do.ApprovedAt = d.dated(do.ApprovedAt, c.RequestedAt)
	if do.Status != OutcomeApproved && do.Status != OutcomeRefused || c.repeats(d.says(do)) {
		return s
	}
	if do.Status == OutcomeRefused {
		if sum, ok := s.openSum(c.ID); ok {
			s = d.contradict(s, sum, do.Source, reasonRefused)
		}
		return s
	}
	if _, summed := s.openSum(c.ID); summed && do.unreadable() || s.knows(c.ID, do) {
		return s // it named the sum before
	}
	if s.Collection == nil && s.Amount+c.Fee == c.Amount && (s.Ended() || d.completes(s, c, do)) {
		return d.reported(d.reopen(s, c), do)
	}
	return d.beside(s, c, do)
}

// completes reports whether the approval of a refused payment completes the idle open session,
// as if it had come before the refusal.
func (d *decider) completes(s Session, c Collection, do Outcome) bool {
	offer, code := d.payable(s, c.OfferID)
	fits := c.misfit(do) == "" || do.unreadable() // it is asked for the amount
	return code == CodeOK && fits && s.Currency == c.Currency && s.Amount+offer.Fee == c.Amount && !d.otherPaid(s)
}

// reasonAfterRefusal is why money of a refused payment is a case.
const reasonAfterRefusal = "approved after a refusal"

// beside records money of a refused payment that does not complete its session, as a case that
// blocks the order.
func (d *decider) beside(s Session, c Collection, do Outcome) Session {
	if s.tells(c.ID, do) || len(s.Cases) >= maxCases {
		return s
	}
	d.report = &collectionReport{c.ID, d.says(do)}
	s = d.supersede(s, c.ID, CaseOrphan)
	return d.open(s, EventCollectionOrphaned, Case{
		Case:         casework.Case{Kind: CaseOrphan, Amount: do.Amount, Currency: cmp.Or(do.Currency, c.Currency), Reason: reasonAfterRefusal},
		CollectionID: c.ID, OperatorRef: do.OperatorRef, Account: c.Account, ApprovedAt: do.ApprovedAt,
		OfferID: c.OfferID, Channel: c.Channel, Expected: c.Amount, Fee: c.Fee, Proven: true, AmountUnknown: do.unreadable(),
	}, change{}, orphanDetail(do, reasonAfterRefusal))
}

// orphan records money that belongs to no known collection, for an operator case.
func (d *decider) orphan(s Session, do Outcome) Answer {
	if do.Status != OutcomeApproved {
		return Answer{Code: CodeSessionNotFound}
	}
	do.ApprovedAt = d.dated(do.ApprovedAt, time.Time{})
	if s.ID != "" {
		if !s.tells(do.CollectionID, do) && len(s.Cases) < maxCases {
			s = d.orphaned(d.supersede(s, do.CollectionID, CaseOrphan), do, "")
		}
		return Answer{Code: CodeSessionNotFound, Session: &s}
	}
	detail := orphanDetail(do, "")
	detail[DetailCaseID], detail[DetailCaseKind] = caseID(do.CollectionID, 0), string(CaseOrphan)
	detail[DetailLive] = strconv.FormatBool(d.cmd.Live)
	if do.Account != "" {
		detail[DetailAccount] = do.Account
	}
	if !do.ApprovedAt.IsZero() {
		detail[DetailApprovedAt] = do.ApprovedAt.Format(time.RFC3339)
	}
	d.out.Events = append(d.out.Events, Event{
		ID: eventID(do.CollectionID, 0), Type: EventCollectionOrphaned, SessionID: d.cmd.SessionID,
		OccurredAt: d.cmd.At, Detail: detail,
	})
	return Answer{Code: CodeSessionNotFound}
}

// tells reports whether a case of the session has the orphan: as it is reported now, or as
// cash. A sum that was never readable is no news beside another.
func (s Session) tells(collectionID string, do Outcome) bool {
	return slices.ContainsFunc(s.Cases, func(c Case) bool {
		return c.Kind == CaseOrphan && c.CollectionID == collectionID &&
			(c.Cash() || do.unreadable() || !c.AmountUnknown && c.Amount == do.Amount && c.Currency == do.Currency)
	})
}

// orphaned records money for a session that is not the session's. clerk took it, if it is
// cash.
func (d *decider) orphaned(s Session, do Outcome, clerk string) Session {
	detail := orphanDetail(do, "")
	c := Case{
		Case:         casework.Case{Kind: CaseOrphan, Amount: do.Amount, Currency: do.Currency, By: clerk},
		CollectionID: do.CollectionID, OperatorRef: do.OperatorRef, Account: do.Account, ApprovedAt: do.ApprovedAt, AmountUnknown: do.unreadable(),
	}
	if clerk != "" {
		detail[DetailBy] = clerk
		c.OfferID, c.Channel = OfferCashAgency, ChannelCash
	}
	return d.open(s, EventCollectionOrphaned, c, change{}, detail)
}

func orphanDetail(do Outcome, reason string) map[string]string {
	detail := reportedDetail(do)
	detail[DetailCollectionID] = do.CollectionID
	if reason != "" {
		detail[DetailReason] = reason
	}
	return detail
}

func reportedDetail(do Outcome) map[string]string {
	return map[string]string{
		DetailReportedAmount: strconv.FormatInt(do.Amount, 10), DetailReportedCurr: do.Currency,
		DetailOperatorRef: do.OperatorRef, DetailSource: string(do.Source),
	}
}
