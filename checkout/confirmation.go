package checkout

import (
	"slices"
	"time"

	"quittance/casework"
)

// ConfirmationStatus says what is known of the confirmation of a payment to the agency's
// ERP.
type ConfirmationStatus string

// The statuses of a confirmation. The empty status means that no ERP is awaited: the
// session is not a payment of a due, or its agency has no ERP.
const (
	ConfirmationAwaited  ConfirmationStatus = "awaited"
	ConfirmationRefused  ConfirmationStatus = "refused"
	ConfirmationAccepted ConfirmationStatus = "accepted"
	// ConfirmationRecorded: staff recorded the ERP's reference, which counts as acceptance.
	ConfirmationRecorded ConfirmationStatus = "recorded"
)

// Confirmation is what the state remembers of the ERP's part in a payment.
type Confirmation struct {
	Status ConfirmationStatus
	// Since is when the ERP was last told, or was to be told: the completion, or a retry.
	Since time.Time
	// AnsweredAt is the time of the last call whose answer counted.
	AnsweredAt time.Time
	// SettledAt is when the ERP accepted it, or staff recorded that it has it.
	SettledAt time.Time
	Reference string // of the ERP, as staff recorded it
	// Again is how often staff had the ERP told again of a payment that it had accepted,
	// because it went on to list the due. Each time is a delivery of its own, with the same
	// transaction_id.
	Again int32
}

// settled reports whether the ERP has the payment. Nothing changes that.
func (c Confirmation) settled() bool {
	return c.Status == ConfirmationAccepted || c.Status == ConfirmationRecorded
}

// ConfirmationAnswer is what became of a call to an ERP.
type ConfirmationAnswer string

// The answers. Failed means that the schedule tries again.
const (
	AnswerAccepted ConfirmationAnswer = "accepted"
	AnswerRefused  ConfirmationAnswer = "refused"
	AnswerFailed   ConfirmationAnswer = "failed"
)

// Confirmed reports an answer of the agency's ERP to the confirmation of a payment. The
// sender may repeat it, and may send the answers of several calls in any order.
type Confirmed struct {
	// TransactionID is the confirmation's stable id.
	TransactionID string
	Answer        ConfirmationAnswer
	// AnsweredAt is the time of the call. With TransactionID it identifies the answer.
	AnsweredAt time.Time
	// Reason is a code for why it was not accepted, such as http_422. It holds no text of
	// the ERP.
	Reason string
}

func (Confirmed) action() {}

// confirmationPatience is the time after which a confirmation that the ERP has not
// accepted is a case (docs/design/decisions.md § 14).
const confirmationPatience = 24 * time.Hour

// reasonNotAccepted is why a tick opens a case about a confirmation.
const reasonNotAccepted = "not accepted in 24 h"

// Confirms reports whether the session is a payment that causes an ERP confirmation,
// provided that the agency has an ERP (docs/design/decisions.md § 10).
func (s Session) Confirms() bool {
	return s.Status == StatusCompleted && slices.ContainsFunc(s.Dues(), func(due Item) bool { return due.ERPDueRef != "" })
}

// confirmationCaseAt returns when the next unaccepted confirmation of the session becomes a
// case; zero for never.
func (s Session) confirmationCaseAt() (at time.Time) {
	if !s.Paid() {
		return at // after a reversal, its case covers the ERP's part
	}
	for _, due := range s.Dues() {
		at = earliest(at, s.confirmationCaseOf(due))
	}
	return at
}

// confirmationCaseOf is confirmationCaseAt for one due.
func (s Session) confirmationCaseOf(due Item) time.Time {
	c := due.Confirmation
	if c.Status == "" || c.settled() || !s.keeps(due) {
		return time.Time{}
	}
	if _, open := s.openConfirmationCase(due); open {
		return time.Time{}
	}
	return c.Since.Add(confirmationPatience)
}

// openConfirmationCase returns the open case about the confirmation of the due.
func (s Session) openConfirmationCase(due Item) (Case, bool) {
	return s.findCase(func(c Case) bool { return c.Open() && c.confirms(s, due) })
}

// confirms reports whether the case is about the confirmation of the due. A case of an
// earlier version names no due; its session has one.
func (c Case) confirms(s Session, due Item) bool {
	about, ok := s.Due(c.TransactionID)
	return c.Kind == CaseConfirmation && ok && about.TransactionID == due.TransactionID
}

// openConfirmationCase emits an event that opens a case about the confirmation of a due.
func (d *decider) openConfirmationCase(s Session, due Item, reason string) Session {
	return d.open(s, EventCaseOpened, s.confirmationCase(due, reason), change{}, map[string]string{DetailReason: reason, DetailTransactionID: due.TransactionID})
}

// confirmationCase returns the case of an unaccepted confirmation.
func (s Session) confirmationCase(due Item, reason string) Case {
	return Case{
		Case:         casework.Case{Kind: CaseConfirmation, Amount: due.Amount + due.Fee, Currency: s.Currency, Reason: reason},
		CollectionID: s.Collection.ID, TransactionID: due.TransactionID,
	}
}

// confirmed records an answer of the ERP. The first acceptance counts, and each refusal
// once. After the acceptance nothing counts, whatever is repeated or replayed.
func (d *decider) confirmed(do Confirmed) Answer {
	s, ok := d.visible()
	due, known := s.Due(do.TransactionID)
	if !ok || !known || do.TransactionID == "" {
		return Answer{Code: CodeSessionNotFound}
	}
	c := due.Confirmation
	repeated := Answer{Code: CodeOK, Session: &s, Replayed: true}
	detail := map[string]string{DetailAnsweredAt: do.AnsweredAt.UTC().Format(time.RFC3339Nano), DetailTransactionID: due.TransactionID}
	if do.Reason != "" {
		detail[DetailReason] = do.Reason
	}
	switch {
	case s.Status != StatusCompleted:
		return Answer{Code: CodeNotCompleted, Session: &s}
	case c.settled(), c.Again > 0 && !do.AnsweredAt.After(c.AnsweredAt): // or an answer from before the ERP was told again
		return repeated
	case do.Answer == AnswerAccepted:
		s = d.settle(d.emit(s, EventConfirmationAccepted, change{answered: do.AnsweredAt}, detail))
		s = d.closeConfirmation(s, due, Resolve{Resolution: ResolutionAccepted})
		d.accepted(s, due)
		d.answers(s)
		s, _ = d.session(s.ID)
	case do.Answer == AnswerRefused:
		if !do.AnsweredAt.After(c.AnsweredAt) {
			return repeated
		}
		ch := change{answered: do.AnsweredAt}
		_, open := s.openConfirmationCase(due)
		if do.Reason == ReasonCredentials && s.keeps(due) {
			if _, _, told := d.erpCase(s); told { // by another confirmation
				open = true
			} else {
				put(&d.out.RefusingERPs, s.erpKey(), RefusingERP{SessionID: s.ID})
			}
		}
		if open || !s.keeps(due) {
			s = d.emit(s, EventConfirmationRefused, ch, detail)
			break
		}
		s = d.open(s, EventConfirmationRefused, s.confirmationCase(due, do.Reason), ch, detail)
	case do.Answer == AnswerFailed && c.Status == "" && s.keeps(due):
		// The agency had no ERP when the session was created, or the session is older than
		// the memory of confirmations. From now on the ERP is awaited.
		s = d.settle(d.emit(s, EventConfirmationAwaited, change{}, detail))
	default:
		return repeated
	}
	return Answer{Code: CodeOK, Session: &s}
}

// closeConfirmation closes the open case of the due's confirmation, if there is one.
func (d *decider) closeConfirmation(s Session, due Item, do Resolve) Session {
	if c, open := s.openConfirmationCase(due); open {
		s = d.closeCase(s, c, do)
	}
	return s
}

// retryConfirmation makes the ERP be told once more, under the same id. The ERP has the
// full time again to accept it.
func (d *decider) retryConfirmation(s Session, c Case, do Resolve) Session {
	due, _ := s.Due(c.TransactionID)
	s = d.closeCase(s, c, do)
	return d.settle(d.emit(s, EventConfirmationRetried, change{}, map[string]string{
		DetailCaseID: c.ID, DetailBy: do.By, DetailTransactionID: due.TransactionID,
	}))
}

// recordByHand records that the ERP has the payment of the case's due, as two people say.
func (d *decider) recordByHand(s Session, c Case, do Resolve) Session {
	due, _ := s.Due(c.TransactionID)
	s = d.recordConfirmation(d.closeCase(s, c, do), due, c, do)
	if due.Confirmation.SettledAt.IsZero() {
		d.accepted(s, due)
		return s
	}
	// The ERP had accepted it, and went on to list the due. Now two people have looked: what
	// the ERP lists from now on can be paid.
	d.forget(s, due)
	return s
}

// recordConfirmation emits the event that the ERP has the payment of a due. Calls that are
// planned are withdrawn.
func (d *decider) recordConfirmation(s Session, due Item, c Case, do Resolve) Session {
	return d.settle(d.emit(s, EventConfirmationRecorded, change{reference: do.Reference}, map[string]string{
		DetailCaseID: c.ID, DetailReference: do.Reference, DetailBy: do.By, DetailTransactionID: due.TransactionID,
	}))
}

// applyConfirmation returns the confirmation after one of its events.
func applyConfirmation(c Confirmation, e Event) Confirmation {
	if at := e.change.answered; at.After(c.AnsweredAt) {
		c.AnsweredAt = at
	}
	switch e.Type {
	case EventConfirmationAwaited, EventConfirmationRetried:
		if c.settled() || c.Again == 0 && !c.SettledAt.IsZero() { // an earlier version did not count
			c.Again++
		}
		c.Status, c.Since = ConfirmationAwaited, e.OccurredAt
	case EventConfirmationRefused:
		c.Status = ConfirmationRefused
	case EventConfirmationAccepted:
		c.Status, c.SettledAt = ConfirmationAccepted, e.OccurredAt
	case EventConfirmationRecorded:
		c.Status, c.SettledAt, c.Reference = ConfirmationRecorded, e.OccurredAt, e.change.reference
	default: // no event of a confirmation
	}
	return c
}

// ConfirmationKind is what an event asks of the deliveries to the agency's ERP about a due.
type ConfirmationKind string

// The kinds. RequestWithdraw ends all calls, because the ERP has the payment.
const (
	RequestConfirm  ConfirmationKind = "confirm"
	RequestAgain    ConfirmationKind = "again"
	RequestWithdraw ConfirmationKind = "withdraw"
)

// ConfirmationRequest is an effect: tell the agency's ERP of the payment of a due. There is
// none where the agency has no ERP.
type ConfirmationRequest struct {
	Kind ConfirmationKind
	Due  Item
}

// ConfirmationRequests returns what the event asks of the deliveries to the ERP.
func (e Event) ConfirmationRequests() (out []ConfirmationRequest) {
	switch e.Type {
	case EventCompleted:
		for _, due := range e.Session.Dues() {
			if due.ERPDueRef != "" {
				out = append(out, ConfirmationRequest{RequestConfirm, due})
			}
		}
	case EventConfirmationRetried, EventConfirmationRecorded:
		kind := RequestAgain
		if e.Type == EventConfirmationRecorded {
			kind = RequestWithdraw
		}
		if due, ok := e.Session.Due(e.Detail[DetailTransactionID]); ok {
			out = append(out, ConfirmationRequest{kind, due})
		}
	default: // no event of a confirmation
	}
	return out
}
