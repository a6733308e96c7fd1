package checkout

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/casework"
)

// The kinds of cases that the processor opens. Each is about money (docs/design/decisions.md § 14).
const (
	// CaseLatePayment is an approval after the session ended.
	CaseLatePayment casework.Kind = "late_payment"
	// CaseMismatch is an approval of another amount or currency, or a report that contradicts
	// an approval.
	CaseMismatch casework.Kind = "mismatch"
	// CaseOrphan is a report of a collection that nobody knows, an approval of one that was
	// refused before and that does not complete its session, cash beside another payment, or
	// what the operator has above an approved or honoured sum.
	CaseOrphan casework.Kind = "orphan"
	// CaseUndecided is a collection that its operator has not decided a day after its window,
	// or has approved without a readable amount when its session ends.
	CaseUndecided casework.Kind = "undecided"
	// CaseRefundRequest is a request of staff to give back a completed payment.
	CaseRefundRequest casework.Kind = "refund_request"
	// CaseReversal is money of a completed session that was given back. A person tells
	// the ERP.
	CaseReversal casework.Kind = "reversal"
	// CaseConfirmation is a confirmation that the agency's ERP refused, or has not accepted
	// for a day.
	CaseConfirmation casework.Kind = "confirmation"
)

// The resolutions of money, beside those of casework. The last three close a case without
// staff.
const (
	// ResolutionHonour completes the ended session with its late money.
	ResolutionHonour casework.Resolution = "honour"
	// ResolutionRefund records that the money was given back.
	ResolutionRefund casework.Resolution = "refund"
	// ResolutionApproved and ResolutionRefused decide an undecided collection, as if its
	// operator had.
	ResolutionApproved casework.Resolution = "approved"
	ResolutionRefused  casework.Resolution = "refused"
	// ResolutionAskAgain has the operator asked anew, as if it had not answered.
	ResolutionAskAgain casework.Resolution = "ask_again"
	// ResolutionRetry makes one more call to the ERP.
	ResolutionRetry casework.Resolution = "retry"
	// ResolutionRecordedByHand says that the ERP has the payment, with its reference.
	ResolutionRecordedByHand casework.Resolution = "recorded_by_hand"

	// ResolutionCashReturned is a second clerk's reversal on the same day.
	ResolutionCashReturned casework.Resolution = "cash_returned"
	// ResolutionSuperseded is the operator's final word about an undecided collection, a
	// reversal, whose case covers the ERP's part, or the refund of another case of the same
	// money.
	ResolutionSuperseded casework.Resolution = "superseded"
	// ResolutionAccepted is the ERP's acceptance of a confirmation.
	ResolutionAccepted casework.Resolution = "accepted"
)

// CaseCatalog returns the kinds, and how staff can close cases of each (docs/design/decisions.md § 14).
func CaseCatalog() casework.Catalog {
	of := func(kinds ...casework.Kind) []casework.Kind { return kinds }
	return casework.Catalog{
		Kinds: of(CaseLatePayment, CaseMismatch, CaseOrphan, CaseUndecided, CaseRefundRequest, CaseReversal, CaseConfirmation),
		Exits: []casework.Exit{
			{Resolution: ResolutionHonour, Of: of(CaseLatePayment, CaseMismatch, CaseOrphan)},
			{Resolution: ResolutionRefund, Of: of(CaseLatePayment, CaseMismatch, CaseOrphan, CaseRefundRequest, CaseConfirmation), NeedsReference: true},
			{Resolution: ResolutionApproved, Of: of(CaseUndecided), NeedsReference: true},
			{Resolution: ResolutionRefused, Of: of(CaseUndecided), NeedsReference: true},
			{Resolution: ResolutionAskAgain, Of: of(CaseUndecided, CaseMismatch)},
			{Resolution: casework.ResolutionWriteOff, Of: of(CaseLatePayment, CaseMismatch, CaseOrphan), NeedsReference: true},
			{Resolution: casework.ResolutionAcknowledge, Of: of(CaseReversal), NeedsReference: true},
			{Resolution: casework.ResolutionAcknowledge, Of: of(CaseRefundRequest)},
			{Resolution: ResolutionRetry, Of: of(CaseConfirmation)},
			{Resolution: ResolutionRecordedByHand, Of: of(CaseConfirmation), NeedsReference: true, NeedsTwo: true},
		},
		Evidence: []string{DetailEventID, DetailSource, DetailAccount, DetailApprovedAt},
	}
}

// Case is money that fits no open session, and its exit. It is part of its session's
// state, so that the money has exactly one exit.
type Case struct {
	// ID is derived from the session and the event that opened the case. Amount and Currency
	// are as they were reported. Reason says why a report did not fit, or why staff opened the
	// case. By is the clerk who took the cash, or who opened the case. ClosedBy is the clerk,
	// or who proposed the resolution.
	casework.Case
	// CollectionID is the collection of the money. An orphan's is not the session's.
	CollectionID string
	OperatorRef  string
	// Account and ApprovedAt are of the reported money, as in its Collection.
	Account    string
	ApprovedAt time.Time
	// Channel and OfferID are those of the reported money; empty if nobody knows its
	// collection, and in a case of an earlier version.
	Channel Channel
	OfferID string
	// Expected is the total that was asked for, in minor units of the session's currency. Fee
	// is the part of it that is the fee. Both are zero where nothing was asked for.
	Expected, Fee int64
	// Proven is true of an orphan that was asked for, or that names the payment reference on a statement: it pays the
	// session's order.
	Proven bool
	// Contradicted is true when the operator has refused the money since, or a bank's statements do not have it any more.
	Contradicted bool
	// AmountUnknown is true when the operator has approved without a readable amount. Amount is
	// then zero.
	AmountUnknown bool
	// TransactionID names the due of a case about a confirmation. Empty in a case of an
	// earlier version, whose session has one due.
	TransactionID string
	// TransactionIDs name the dues of a refund request, and of a reversal; empty means all that
	// the session has.
	TransactionIDs []string
}

// blocks reports whether the order cannot be paid again before the case is closed. A
// report of a collection that nobody knows does not block: it proves no payment of this
// order.
func (c Case) blocks() bool {
	switch c.Kind {
	case CaseLatePayment, CaseMismatch:
		return c.Open()
	case CaseOrphan:
		return c.Open() && (c.Cash() || c.Proven || c.Surplus())
	}
	return false
}

// Cash reports whether the case is about cash that a clerk took beside another payment. Cases of
// earlier versions name no channel: the money of their orphans is cash if a clerk reported it.
func (c Case) Cash() bool {
	return c.Kind == CaseOrphan && (c.Channel.Origin() == OriginCounter || c.Channel == "" && c.By != "")
}

// Reported reports whether the case was opened by a report of money that no other event
// counts. A report that contradicts an approval is no money. The surplus of an honoured
// mismatch counts: the mismatch does not any more.
func (c Case) Reported() bool {
	return (c.Kind == CaseMismatch || c.Kind == CaseOrphan) && !c.Notice()
}

// TakesBack reports whether the exit of a reported sum takes it away again: it was given
// back, or its operator has replaced the report, or is asked anew. The exits of late and
// completed money are told by EventReversed.
func (c Case) TakesBack() bool {
	return c.Reported() && (c.Resolution == ResolutionRefund || c.Resolution == ResolutionCashReturned || c.Replaced())
}

// Replaced reports whether the operator's report does not count any more, because of another
// one that has come or will come.
func (c Case) Replaced() bool {
	return c.Resolution == ResolutionSuperseded || c.Resolution == ResolutionAskAgain
}

// Case returns the session's case with the id.
func (s Session) Case(id string) (Case, bool) {
	return s.findCase(func(c Case) bool { return c.ID == id })
}

func (s Session) findCase(match func(Case) bool) (Case, bool) {
	i := slices.IndexFunc(s.Cases, match)
	if i < 0 {
		return Case{}, false
	}
	return s.Cases[i], true
}

// CashOrphan returns the case of cash that was taken beside another payment.
func (s Session) CashOrphan(collectionID string) (Case, bool) {
	return s.findCase(func(c Case) bool { return c.Cash() && c.CollectionID == collectionID })
}

func (s Session) openCase(kind casework.Kind) (Case, bool) {
	return s.findCase(func(c Case) bool { return c.Kind == kind && c.Open() })
}

// underReview reports whether money of the session is in an open case that blocks its
// order.
func (s Session) underReview() bool { return slices.ContainsFunc(s.Cases, Case.blocks) }

// Doubtful reports whether the operator's reports of the session's money contradict each other
// or do not fit, so that a person must look at it before anybody pays again.
func (s Session) Doubtful() bool {
	return s.Collection != nil && s.Collection.Mismatched || slices.ContainsFunc(s.Cases, func(c Case) bool {
		return c.Open() && (c.Contradicted || c.AmountUnknown || c.Proven)
	})
}

// caseID derives a case's id from the event that opens it.
func caseID(sessionID string, sequence int64) string {
	sum := sha256.Sum256([]byte("case|" + sessionID + "#" + strconv.FormatInt(sequence, 10)))
	return "case_" + idEncoding.EncodeToString(sum[:20])
}

// Resolve closes a case. Two members of staff have agreed on it.
type Resolve struct {
	CaseID     string
	Resolution casework.Resolution
	// Reference names the refund or the evidence.
	Reference string
	Reason    string
	// By proposed the resolution, ApprovedBy approved it.
	By, ApprovedBy string
	// Number is that of the proposal within the case. Digest is that of what the people decided on
	// (ResolutionDigest), and Proposed and Approved are their signed steps, which the processor checks
	// before it decides. The policies of the processor have none.
	Number             int
	Digest             []byte
	Proposed, Approved *casework.Signed
}

// DecisionOfCase is the kind of decisions about cases, in what their steps sign.
const DecisionOfCase = "case"

// ProposalLife is how long a proposal waits for its approval, and an approval for being carried out.
const ProposalLife = 7 * 24 * time.Hour

// Subject returns what a decision about a case decides on: a proposal of it.
func Subject(caseID string, proposal int) string { return caseID + "#" + strconv.Itoa(proposal) }

// Agreement returns what people agreed on.
func (do Resolve) Agreement() casework.Agreement {
	return casework.Agreement{Kind: DecisionOfCase, Subject: Subject(do.CaseID, do.Number), Digest: do.Digest, Proposed: do.Proposed, Approved: do.Approved}
}

// Terms returns what the agreement about a case of the session must fit at a time.
func (do Resolve) Terms(s Session, c Case, now time.Time) casework.Terms {
	mode := "test"
	if s.Live {
		mode = "live"
	}
	exit, _ := CaseCatalog().Exit(c.Kind, do.Resolution)
	return casework.Terms{
		Digest: casework.Digest(Decided{
			Case: c.Case, AgencyID: s.TenantID, Mode: mode, SessionID: s.ID, Number: do.Number, Resolution: do.Resolution, Reference: do.Reference, Reason: do.Reason,
		}.Content()),
		AgencyID: s.TenantID, Life: ProposalLife, Now: now, NeedsTwo: exit.NeedsTwo,
	}
}

// Decided is what people decide on in a case.
type Decided struct {
	Case casework.Case
	// AgencyID, Mode and SessionID are empty where they are not known.
	AgencyID, Mode, SessionID string
	Number                    int // of the proposal
	Resolution                casework.Resolution
	Reference, Reason         string
	// Finding is the evidence of the matcher that says what is decided on; nil in other cases.
	Finding map[string]string
}

// Content returns the texts whose digest the people sign.
func (d Decided) Content() map[string]string {
	content := map[string]string{
		"case": d.Case.ID, "kind": string(d.Case.Kind), "amount": strconv.FormatInt(d.Case.Amount, 10), "currency": d.Case.Currency,
		"agency": d.AgencyID, "mode": d.Mode, "session": d.SessionID, "proposal": strconv.Itoa(d.Number),
		"resolution": string(d.Resolution), "reference": d.Reference, "reason": d.Reason,
	}
	for name, text := range d.Finding {
		content["finding."+name] = text
	}
	return content
}

// UnprovenCodes returns the codes of ApprovalCode but CodeOK, and CodeNotProven.
func UnprovenCodes() []Code {
	return []Code{CodeUnsigned, CodeOtherContent, CodeOtherGroup, CodeSamePerson, CodeNotInForce, CodeApprovalLapsed, CodeNotProven}
}

// RefusalCodes returns the codes with which the processor refuses a resolution that people agreed on,
// beside UnprovenCodes.
func RefusalCodes() []Code {
	return []Code{
		CodeSessionNotFound, CodeCaseNotFound, CodeCaseClosed, CodeCaseNotAllowed, CodeInFlight, CodeDueInPayment, CodeDueUnknown, CodeDueReturned, CodeOrderPaid,
	}
}

// ApprovalCode returns the answer to an agreement that is not carried out, for an error of casework.Agreement.Check;
// CodeOK for nil.
func ApprovalCode(err error) Code {
	switch {
	case err == nil:
		return CodeOK
	case errors.Is(err, casework.ErrOtherContent):
		return CodeOtherContent
	case errors.Is(err, casework.ErrOtherGroup):
		return CodeOtherGroup
	case errors.Is(err, casework.ErrSamePerson):
		return CodeSamePerson
	case errors.Is(err, casework.ErrRevoked):
		return CodeNotInForce
	case errors.Is(err, casework.ErrLapsed):
		return CodeApprovalLapsed
	}
	return CodeUnsigned
}

// Detail returns what the event of the exit says beside its case.
func (do Resolve) Detail() map[string]string {
	detail := map[string]string{DetailResolution: string(do.Resolution)}
	for name, value := range map[string]string{
		DetailReference: do.Reference, DetailReason: do.Reason, DetailBy: do.By, DetailApprovedBy: do.ApprovedBy,
	} {
		if value != "" {
			detail[name] = value
		}
	}
	return detail
}

// OpenRefundRequest opens a case about a completed payment, or about some of its dues.
type OpenRefundRequest struct {
	By, Reason string
	// TransactionIDs name the dues whose money is to be given back; none means all.
	TransactionIDs []string
}

func (Resolve) action()           {}
func (OpenRefundRequest) action() {}
func (NoteProposal) action()      {}

// NoteProposal records in the journal what staff did with a proposal. It decides nothing.
// The sender sends the steps of a case in order. A step that is recorded, or that is behind
// a recorded one, is not recorded again.
type NoteProposal struct {
	CaseID string
	Number int // of the proposal within the case, from 1
	Step   casework.DecisionState
	// Resolution and Reference are those of the proposal. Reason is that of the proposal,
	// or of its rejection, or the code of its refusal.
	Resolution casework.Resolution
	Reference  string
	Reason     string
	By         string // who proposed, approved or rejected it; empty if it lapsed or was refused
	// Digest and Proposed are those of the step, if it was signed: a proposal or an approval.
	Digest   []byte
	Proposed *casework.Signed
}

// Event returns the type of the event that records the step. ok is false for an unknown step.
func (do NoteProposal) Event() (t EventType, ok bool) {
	switch do.Step {
	case casework.DecisionProposed:
		return EventCaseProposed, true
	case casework.DecisionApproved:
		return EventCaseApproved, true
	case casework.DecisionRejected:
		return EventCaseRejected, true
	case casework.DecisionLapsed:
		return EventCaseLapsed, true
	case casework.DecisionRefused:
		return EventCaseRefused, true
	}
	return "", false
}

// Detail returns what the event of the step says beside its case.
func (do NoteProposal) Detail() map[string]string {
	detail := map[string]string{DetailProposal: strconv.Itoa(do.Number), DetailResolution: string(do.Resolution)}
	for name, value := range map[string]string{DetailReference: do.Reference, DetailReason: do.Reason, DetailBy: do.By} {
		if value != "" {
			detail[name] = value
		}
	}
	if s := do.Proposed; s != nil {
		detail[DetailPerson], detail[DetailGroup], detail[DetailSignedAt] = s.Person, s.Group, s.At.UTC().Format(time.RFC3339Nano)
		detail[DetailDigest], detail[DetailSignature] = hex.EncodeToString(do.Digest), base64.StdEncoding.EncodeToString(s.Signature)
		detail[DetailAlone] = strconv.FormatBool(s.Alone)
	}
	return detail
}

// SignedStep returns the signed step in the detail of an event that NoteProposal has made, and the digest of what is
// decided on. The step is nil if it was not signed.
func SignedStep(detail map[string]string) (digest []byte, step *casework.Signed) {
	at, err := time.Parse(time.RFC3339Nano, detail[DetailSignedAt])
	if err != nil {
		return nil, nil
	}
	s := casework.Signed{Person: detail[DetailPerson], Name: detail[DetailBy], Group: detail[DetailGroup], At: at.UTC(), Alone: detail[DetailAlone] == strconv.FormatBool(true)}
	digest, err = hex.DecodeString(detail[DetailDigest])
	if err != nil {
		return nil, nil
	}
	if s.Signature, err = base64.StdEncoding.DecodeString(detail[DetailSignature]); err != nil {
		return nil, nil
	}
	return digest, &s
}

// undecidedAfter is the time after the end of an approval window from which on an
// undecided collection is a case.
const undecidedAfter = 24 * time.Hour

// undecidedCaseAt returns when an undecided collection becomes a case; zero for never.
func (s Session) undecidedCaseAt() time.Time {
	c := s.Collection
	if !s.Ended() || c == nil || c.Status != CollectionUndecided || c.Mismatched || c.Origin() != OriginAsked {
		return time.Time{}
	}
	if _, open := s.openCase(CaseUndecided); open {
		return time.Time{}
	}
	if c.Unreadable {
		return s.EndedAt // it has answered, so that waiting does not help
	}
	return c.WindowEndsAt.Add(undecidedAfter)
}

// ReportedAt returns when the agency is told of the session's undecided collection, UTC; zero if
// it was told, or never is.
func (s Session) ReportedAt() time.Time { return s.undecidedCaseAt() }

// open emits an event that opens a case.
func (d *decider) open(s Session, t EventType, c Case, ch change, detail map[string]string) Session {
	c.ID, c.OpenedAt = caseID(s.ID, s.Sequence+1), d.cmd.At
	ch.opens = &c
	if detail == nil {
		detail = map[string]string{}
	}
	detail[DetailCaseID], detail[DetailCaseKind] = c.ID, string(c.Kind)
	return d.settle(d.emit(s, t, ch, detail))
}

// closeCase emits the event that closes a case.
func (d *decider) closeCase(s Session, c Case, do Resolve) Session {
	closed := c
	closed.Resolution, closed.Reference, closed.ClosedBy, closed.ClosedAt = do.Resolution, do.Reference, do.By, d.cmd.At
	detail := do.Detail()
	detail[DetailCaseID], detail[DetailCaseKind] = c.ID, string(c.Kind)
	detail[DetailReportedAmount], detail[DetailReportedCurr] = strconv.FormatInt(c.Amount, 10), c.Currency
	return d.settle(d.emit(s, EventCaseResolved, change{closes: &closed}, detail))
}

// settle makes the order agree with a session: whether it is open, paid, undecided or under
// review. What it says of the session is a function of the session alone.
func (d *decider) settle(s Session) Session {
	k := s.orderKey()
	o := d.order(k)
	o.Undecided = toggled(o.Undecided, s.ID, s.undecided())
	o.Late = toggled(o.Late, s.ID, s.underReview())
	o.OpenSessionID = holder(o.OpenSessionID, s.ID, s.Status == StatusOpen)
	o.PaidSessionID = holder(o.PaidSessionID, s.ID, s.Paid())
	d.putOrder(k, o)
	return s
}

// holder returns who holds a place of which now is the holder, after the session took it or
// left it.
func holder(now, id string, in bool) string {
	switch {
	case in:
		return id
	case now == id:
		return ""
	}
	return now
}

// toggled returns the list with the id or without it.
func toggled(ids []string, id string, in bool) []string {
	if in {
		return with(ids, id)
	}
	return without(ids, id)
}

func (d *decider) openRefundRequest(do OpenRefundRequest) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	if !s.Paid() {
		return Answer{Code: CodeNotCompleted, Session: &s}
	}
	named, code := s.refundable(do.TransactionIDs)
	if code != CodeOK {
		return Answer{Code: code, Session: &s}
	}
	if c, open := s.openRefundRequest(named); open {
		if slices.Equal(transactionIDs(s.refunds(c)), transactionIDs(named)) {
			return Answer{Code: CodeOK, Session: &s, CaseID: c.ID, Replayed: true}
		}
		return Answer{Code: CodeRefundRequested, Session: &s, CaseID: c.ID}
	}
	var ids []string
	if len(named) < len(s.Dues()) {
		ids = transactionIDs(named)
	}
	s = d.open(s, EventCaseOpened, Case{
		Case:         casework.Case{Kind: CaseRefundRequest, Amount: Total(named), Currency: s.Currency, By: do.By, Reason: do.Reason},
		CollectionID: s.Collection.ID, TransactionIDs: ids,
	}, change{}, map[string]string{DetailBy: do.By, DetailReason: do.Reason})
	return Answer{Code: CodeOK, Session: &s, CaseID: s.Cases[len(s.Cases)-1].ID}
}

// refundable returns the dues with the transaction ids, in the order of the session; all whose
// money was not given back if there are no ids.
func (s Session) refundable(ids []string) ([]Item, Code) {
	if len(ids) == 0 {
		return s.Kept(), CodeOK
	}
	for _, id := range ids {
		due, ok := s.Due(id)
		switch {
		case !ok || id == "":
			return nil, CodeDueUnknown
		case !s.Returned(due).IsZero():
			return nil, CodeDueReturned
		}
	}
	return s.named(ids), CodeOK
}

// named returns the dues with the transaction ids, in the order of the session; all if there are no
// ids.
func (s Session) named(ids []string) (out []Item) {
	for _, due := range s.Dues() {
		if len(ids) == 0 || slices.Contains(ids, due.TransactionID) {
			out = append(out, due)
		}
	}
	return out
}

// refunds returns the dues of a refund request.
func (s Session) refunds(c Case) []Item {
	dues, _ := s.refundable(c.TransactionIDs)
	return dues
}

// openRefundRequest returns the open refund request that has one of the dues.
func (s Session) openRefundRequest(dues []Item) (Case, bool) {
	return s.findCase(func(c Case) bool {
		return c.Kind == CaseRefundRequest && c.Open() && slices.ContainsFunc(s.refunds(c), func(of Item) bool {
			return slices.ContainsFunc(dues, func(due Item) bool { return due.TransactionID == of.TransactionID })
		})
	})
}

func transactionIDs(dues []Item) (ids []string) {
	for _, due := range dues {
		ids = append(ids, due.TransactionID)
	}
	return ids
}

// resolve carries out what staff agreed on.
func (d *decider) resolve(do Resolve) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	c, ok := s.Case(do.CaseID)
	switch {
	case !ok:
		return Answer{Code: CodeCaseNotFound, Session: &s}
	case !c.Open() && c.Resolution == do.Resolution && c.Reference == do.Reference:
		return Answer{Code: CodeOK, Session: &s, CaseID: c.ID, Replayed: true}
	case !c.Open():
		return Answer{Code: CodeCaseClosed, Session: &s}
	}
	if _, allowed := CaseCatalog().Exit(c.Kind, do.Resolution); !allowed {
		return Answer{Code: CodeCaseNotAllowed, Session: &s}
	}
	code := CodeOK
	switch do.Resolution {
	case ResolutionHonour:
		s, code = d.honour(s, c, do)
	case ResolutionRefund:
		s, code = d.refund(s, c, do)
	case ResolutionApproved, ResolutionRefused:
		s = d.decideByHand(s, c, do)
	case ResolutionAskAgain:
		s, code = d.askAgain(s, c, do)
	case casework.ResolutionWriteOff:
		s = d.closeCase(s, c, do)
	case casework.ResolutionAcknowledge:
		s = d.closeCase(s, c, do)
		for _, due := range s.named(c.TransactionIDs) {
			if c.Kind == CaseReversal && due.Confirmation.Status != "" && !due.Confirmation.settled() {
				// A person has corrected the ERP. A confirmation that comes later would make the
				// due paid again.
				s = d.recordConfirmation(s, due, c, do)
			}
		}
	case ResolutionRetry:
		s = d.retryConfirmation(s, c, do)
	case ResolutionRecordedByHand:
		s = d.recordByHand(s, c, do)
	}
	return Answer{Code: code, Session: &s, CaseID: c.ID}
}

// noteProposal emits the event of a proposal's step, once.
func (d *decider) noteProposal(do NoteProposal) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	c, ok := s.Case(do.CaseID)
	if !ok {
		return Answer{Code: CodeCaseNotFound, Session: &s}
	}
	t, ok := do.Event()
	if !ok {
		return Answer{Code: CodeCaseNotAllowed, Session: &s}
	}
	last := &c.Decided
	switch do.Step { //nolint:exhaustive // the others decide
	case casework.DecisionProposed:
		last = &c.Proposed
	case casework.DecisionRefused:
		last = &c.Refused
	}
	if do.Number <= *last {
		return Answer{Code: CodeOK, Session: &s, CaseID: c.ID, Replayed: true}
	}
	*last = do.Number
	detail := do.Detail()
	detail[DetailCaseID], detail[DetailCaseKind] = c.ID, string(c.Kind)
	s = d.emit(s, t, change{notes: &c}, detail)
	return Answer{Code: CodeOK, Session: &s, CaseID: c.ID}
}

// honour completes a session with the money of one of its cases: an ended one, or one that an
// orphan of a refused payment pays. An open session of the same order that waits for no money
// is cancelled, so that the order is paid once.
func (d *decider) honour(s Session, c Case, do Resolve) (Session, Code) {
	if !s.pays(c) {
		return s, CodeCaseNotAllowed
	}
	o := d.order(s.orderKey())
	switch {
	case !s.Ended() && s.Collection != nil:
		return s, CodeInFlight
	case d.claimedElsewhere(s), d.overpays(s, false): // an unknown rest is for staff to judge
		return s, CodeDueInPayment
	case o.PaidSessionID != "":
		return s, CodeOrderPaid
	case !s.ReversedAt.IsZero():
		return s, CodeCaseNotAllowed
	}
	if id := d.openBeside(s); id != "" {
		if open, ok := d.session(id); ok && !open.Ended() {
			if open.InFlight() {
				return s, CodeInFlight
			}
			d.finish(open, EventCancelled, change{}, map[string]string{DetailBy: string(ByCase), DetailCaseID: c.ID})
		}
	}
	s = d.closeCase(s, c, do)
	if c.Kind == CaseOrphan {
		s = d.reopen(s, s.refused(c))
	}
	total := s.Collection.Amount
	s = d.finish(s, EventCompleted, change{late: true, outcome: &Outcome{OperatorRef: c.OperatorRef, ApprovedAt: c.ApprovedAt}, decided: c.OpenedAt}, map[string]string{
		DetailLate: "true", DetailCaseID: c.ID, DetailBy: do.By,
	})
	if surplus := c.Amount - total; surplus > 0 {
		s = d.surplus(s, c, surplus, "")
	}
	return s, CodeOK
}

// pays reports whether the case's money is enough for the session, and whether the session
// waits for no other money.
func (s Session) pays(c Case) bool {
	switch c.Kind {
	case CaseLatePayment:
		return true
	case CaseMismatch:
		own := s.Collection
		return c.CollectionID == own.ID && c.Currency == own.Currency && c.Amount >= own.Amount && !c.Notice()
	case CaseOrphan:
		idle := s.Collection == nil || s.Collection.Status == CollectionRefused && s.Ended()
		return c.Proven && idle && c.Currency == s.Currency && c.Amount >= c.Expected && c.Expected == s.Amount+c.Fee
	}
	return false
}

// surplus opens the case of what the operator has of a collection above its amount.
func (d *decider) surplus(s Session, of Case, amount int64, reason string) Session {
	id := surplusOf(of.CollectionID)
	return d.open(s, EventCollectionOrphaned, Case{
		Case:         casework.Case{Kind: CaseOrphan, Amount: amount, Currency: of.Currency, Reason: reason},
		CollectionID: id, OperatorRef: of.OperatorRef, Account: of.Account, ApprovedAt: of.ApprovedAt, Channel: of.Channel, OfferID: of.OfferID,
	}, change{}, map[string]string{
		DetailCollectionID: id, DetailReportedAmount: strconv.FormatInt(amount, 10), DetailReportedCurr: of.Currency, DetailOperatorRef: of.OperatorRef,
	})
}

// surplusOf returns the id of the orphan that the surplus of a collection is.
func surplusOf(collectionID string) string { return collectionID + surplusSuffix }

// Surplus reports whether the case is what an operator has of a collection above its amount.
func (c Case) Surplus() bool {
	return c.Kind == CaseOrphan && !c.Cash() && strings.HasSuffix(c.CollectionID, surplusSuffix)
}

// Honoured reports whether the surplus is what an honoured mismatch left. Its money is a part of
// what the mismatch reported.
func (c Case) Honoured() bool { return c.Surplus() && c.Reason == "" }

const surplusSuffix = "-surplus"

// decideByHand decides an undecided collection on staff's evidence. Money of an ended
// session is then late, and honoured only by another resolution.
func (d *decider) decideByHand(s Session, c Case, do Resolve) Session {
	s = d.closeCase(s, c, do)
	o := Outcome{CollectionID: c.CollectionID, Source: SourceStaff, Amount: s.Collection.Amount, Currency: s.Collection.Currency, OperatorRef: do.Reference, Account: s.Collection.Account}
	if do.Resolution == ResolutionApproved {
		o.Status = OutcomeApproved
		return d.approved(s, o)
	}
	o.Status = OutcomeRefused
	return d.refused(s, o)
}

// ReversalReason says how money was given back.
type ReversalReason string

// The reasons of checkout.reversed.
const (
	ReversalCashReturned ReversalReason = "cash_returned"
	ReversalRefunded     ReversalReason = "refunded"
)

// reversal is what checkout.reversed adds to the session, and checkout.partially_reversed to the dues
// with the transaction ids.
type reversal struct {
	reason         ReversalReason
	reference      string
	by             string
	transactionIDs []string
}

// returned returns the session after the money of some of its dues was given back.
func (s Session) returned(r reversal, at time.Time) Session {
	s.Items = slices.Clone(s.Items)
	for i := range s.Items {
		if slices.Contains(r.transactionIDs, s.Items[i].TransactionID) {
			s.Items[i].ReversedAt, s.Items[i].ReversalRef = at, r.reference
		}
	}
	return s
}

// giveBack records that money of the session was given back, and tells the integrator: that of
// some dues, or the last that the session had. The ERP that has a confirmation of it is told by a
// person.
func (d *decider) giveBack(s Session, dues []Item, r reversal) Session {
	t := EventReversed
	var ids []string
	if len(dues) < len(s.Dues()) {
		ids = transactionIDs(dues)
	}
	if len(dues) < len(s.Kept()) {
		t, r.transactionIDs = EventPartiallyReversed, ids
	}
	confirmed := s.Status == StatusCompleted && slices.ContainsFunc(dues, func(due Item) bool { return due.ERPDueRef != "" })
	detail := map[string]string{
		DetailWasCompleted: strconv.FormatBool(s.Paid()), DetailReason: string(r.reason), DetailBy: r.by, DetailReference: r.reference,
	}
	if t == EventPartiallyReversed {
		detail[DetailTransactionIDs] = strings.Join(ids, " ")
	} else {
		detail[DetailOrderPaid] = strconv.FormatBool(d.otherPaid(s))
	}
	for _, due := range dues {
		s = d.closeConfirmation(s, due, Resolve{Resolution: ResolutionSuperseded})
	}
	s = d.settle(d.emit(s, t, change{reversal: &r}, detail))
	for _, due := range dues {
		d.givenBack(s, due)
	}
	if confirmed {
		s = d.open(s, EventCaseOpened, Case{
			Case:         casework.Case{Kind: CaseReversal, Amount: Total(dues), Currency: s.Currency, By: r.by, Reason: string(r.reason)},
			CollectionID: s.Collection.ID, TransactionIDs: ids,
		}, change{}, map[string]string{DetailBy: r.by, DetailReason: string(r.reason)})
	}
	return s
}

// ofApproved reports whether the case is about the money of the session's approved collection,
// not about another sum.
func (c Case) ofApproved() bool {
	return c.Kind == CaseLatePayment || c.Kind == CaseRefundRequest || c.Kind == CaseConfirmation || c.Notice()
}

// refund closes a case because its money was given back, and gives that money of the session back
// once. After a refund of everything, other cases about the same money have no exit of their own any
// more.
func (d *decider) refund(s Session, c Case, do Resolve) (Session, Code) {
	r := reversal{reason: ReversalRefunded, reference: do.Reference, by: do.By}
	if ids := s.refundedDues(c); len(ids) > 0 {
		dues, code := s.refundable(ids)
		if code != CodeOK {
			return s, code
		}
		if !s.Paid() || s.exitElsewhere(c, dues) {
			return s, CodeCaseNotAllowed
		}
		if len(dues) < len(s.Kept()) {
			return d.giveBack(d.closeCase(s, c, do), dues, r), CodeOK
		}
	}
	s = d.closeCase(s, c, do)
	if !c.ofApproved() {
		return s, CodeOK
	}
	s = d.supersede(s, s.Collection.ID, CaseLatePayment, CaseRefundRequest, CaseMismatch) // a mismatch of an approved collection is a notice
	if dues := s.Kept(); len(dues) > 0 {
		s = d.giveBack(s, dues, r)
	}
	return s, CodeOK
}

// exitElsewhere reports whether another open case is the exit of the money of the dues: a refund
// request, or a report of the operator that contradicts the whole payment.
func (s Session) exitElsewhere(c Case, dues []Item) bool {
	if requested, ok := s.openRefundRequest(dues); ok && requested.ID != c.ID {
		return true
	}
	_, contradicted := s.findCase(func(other Case) bool { return other.Open() && other.Notice() && other.CollectionID == c.CollectionID })
	return contradicted
}

// refundedDues returns the transaction ids of the dues that a case is about; none if it is about the
// whole money of the session, or about other money.
func (s Session) refundedDues(c Case) []string {
	if c.Kind == CaseConfirmation {
		due, _ := s.Due(c.TransactionID)
		return []string{due.TransactionID}
	}
	if c.Kind == CaseRefundRequest {
		return c.TransactionIDs
	}
	return nil
}

// supersede closes the cases of a collection that a report of the operator replaces, or a refund
// of the same money.
func (d *decider) supersede(s Session, collectionID string, kinds ...casework.Kind) Session {
	for _, c := range s.Cases {
		if c.Open() && c.CollectionID == collectionID && slices.Contains(kinds, c.Kind) {
			s = d.closeCase(s, c, Resolve{Resolution: ResolutionSuperseded})
		}
	}
	return s
}

// honourable reports whether the agency's policy completes the ended session with its
// late money without staff (docs/design/decisions.md § 14, "Late money on its own").
func (d *decider) honourable(s Session, do Outcome) bool {
	timedOut := s.Status == StatusExpired || s.Status == StatusFailed && s.FailureCode == s.Collection.timeout()
	return do.HonourLate && timedOut && s.Collection.Origin() != OriginCounter &&
		d.inTime(s, do) && d.alone(s) && s.onlySum(s.Collection.ID) &&
		!slices.ContainsFunc(s.Dues(), func(due Item) bool { _, paid := d.paidElsewhere(s, due); return paid })
}

const (
	// honourWithin is how long after a session's end an approval may be dated that the
	// agency's policy honours.
	honourWithin = 24 * time.Hour
	// honourUndatedWithin is how long after a session's end the service may learn of an
	// approval by phone, whose reports may have no date.
	honourUndatedWithin = time.Hour
)

// inTime reports whether the approval is early enough for the agency's policy.
func (d *decider) inTime(s Session, do Outcome) bool {
	if do.ApprovedAt.IsZero() {
		return s.Collection.Channel.ByPhone() && !d.cmd.At.After(s.EndedAt.Add(honourUndatedWithin))
	}
	return !do.ApprovedAt.After(s.EndedAt.Add(honourWithin))
}

// onlySum reports whether the session's late payment is its only sum. A sum that has had
// another exit counts; a report that its operator has replaced does not.
func (s Session) onlySum(collectionID string) bool {
	return !slices.ContainsFunc(s.Cases, func(c Case) bool {
		late := c.Kind == CaseLatePayment && c.CollectionID == collectionID
		return (c.Kind == CaseLatePayment || c.Reported()) && !late && !c.Replaced()
	})
}

// ByPolicy is who resolves a case that the agency's policy honours.
const ByPolicy = "policy"
