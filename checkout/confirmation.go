package checkout

import "time"

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
// accepted is a case (decisions § 14).
const confirmationPatience = 24 * time.Hour

// reasonNotAccepted is why a tick opens a case about a confirmation.
const reasonNotAccepted = "not accepted in 24 h"

// awaitsERP reports whether the ERP is to be told of the session's payment.
func (s Session) awaitsERP() bool { return s.ERP && s.Metadata[MetadataERPDueRef] != "" }

// confirmationCaseAt returns when an unaccepted confirmation becomes a case; zero for
// never. After a reversal there is none: the case of the reversal covers the ERP's part.
func (s Session) confirmationCaseAt() time.Time {
	c := s.Confirmation
	if c.Status == "" || c.settled() || !s.Paid() {
		return time.Time{}
	}
	if _, open := s.openCase(CaseConfirmation); open {
		return time.Time{}
	}
	return c.Since.Add(confirmationPatience)
}

// confirmationCase returns the case of an unaccepted confirmation.
func (s Session) confirmationCase(reason string) Case {
	return Case{Kind: CaseConfirmation, CollectionID: s.Collection.ID, Amount: s.Collection.Amount, Currency: s.Currency, Reason: reason}
}

// confirmed records an answer of the ERP. The first acceptance counts, and each refusal
// once. After the acceptance nothing counts, whatever is repeated or replayed.
func (d *decider) confirmed(do Confirmed) Answer {
	s, ok := d.visible()
	if !ok || do.TransactionID != s.TransactionID {
		return Answer{Code: CodeSessionNotFound}
	}
	c := s.Confirmation
	repeated := Answer{Code: CodeOK, Session: &s, Replayed: true}
	detail := map[string]string{DetailAnsweredAt: do.AnsweredAt.UTC().Format(time.RFC3339Nano)}
	if do.Reason != "" {
		detail[DetailReason] = do.Reason
	}
	switch {
	case s.Status != StatusCompleted:
		return Answer{Code: CodeNotCompleted, Session: &s}
	case c.settled():
		return repeated
	case do.Answer == AnswerAccepted:
		s = d.emit(s, EventConfirmationAccepted, change{answered: do.AnsweredAt}, detail)
		s = d.closeConfirmation(s, Resolve{Resolution: ResolutionAccepted})
	case do.Answer == AnswerRefused:
		if !do.AnsweredAt.After(c.AnsweredAt) {
			return repeated
		}
		ch := change{answered: do.AnsweredAt}
		if _, open := s.openCase(CaseConfirmation); open || !s.Paid() {
			s = d.emit(s, EventConfirmationRefused, ch, detail)
			break
		}
		s = d.open(s, EventConfirmationRefused, s.confirmationCase(do.Reason), ch, detail)
	case do.Answer == AnswerFailed && c.Status == "" && s.Paid():
		// The agency had no ERP when the session was created, or the session is older than
		// the memory of confirmations. From now on the ERP is awaited.
		s = d.emit(s, EventConfirmationAwaited, change{}, detail)
	default:
		return repeated
	}
	return Answer{Code: CodeOK, Session: &s}
}

// closeConfirmation closes the open case of the session's confirmation, if there is one.
func (d *decider) closeConfirmation(s Session, do Resolve) Session {
	if c, open := s.openCase(CaseConfirmation); open {
		s = d.closeCase(s, c, do)
	}
	return s
}

// retryConfirmation makes the ERP be told once more, under the same id. The ERP has the
// full time again to accept it.
func (d *decider) retryConfirmation(s Session, c Case, do Resolve) Session {
	s = d.closeCase(s, c, do)
	return d.emit(s, EventConfirmationRetried, change{}, map[string]string{DetailCaseID: c.ID, DetailBy: do.By})
}

// recordConfirmation records that the ERP has the payment, as two people say. Calls that
// are planned are withdrawn.
func (d *decider) recordConfirmation(s Session, c Case, do Resolve) Session {
	s = d.closeCase(s, c, do)
	return d.emit(s, EventConfirmationRecorded, change{reference: do.Reference}, map[string]string{
		DetailCaseID: c.ID, DetailReference: do.Reference, DetailBy: do.By,
	})
}

// applyConfirmation returns the confirmation after one of its events.
func applyConfirmation(c Confirmation, e Event) Confirmation {
	if at := e.change.answered; at.After(c.AnsweredAt) {
		c.AnsweredAt = at
	}
	switch e.Type {
	case EventConfirmationAwaited, EventConfirmationRetried:
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

// ConfirmationRequest is what an event asks of the deliveries to the agency's ERP.
type ConfirmationRequest string

// The requests. RequestWithdraw ends all calls, because the ERP has the payment.
const (
	RequestConfirm  ConfirmationRequest = "confirm"
	RequestAgain    ConfirmationRequest = "again"
	RequestWithdraw ConfirmationRequest = "withdraw"
)

// ConfirmationRequest returns what the event asks of the deliveries to the ERP, provided
// that the agency has one. ok is false for nothing.
func (e Event) ConfirmationRequest() (r ConfirmationRequest, ok bool) {
	switch {
	case e.Confirms():
		return RequestConfirm, true
	case e.Type == EventConfirmationRetried:
		return RequestAgain, true
	case e.Type == EventConfirmationRecorded:
		return RequestWithdraw, true
	}
	return "", false
}
