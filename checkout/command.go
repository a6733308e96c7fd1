package checkout

import "time"

// Command asks for a change of one session. At is the sender's time stamp, in UTC, and
// the only time that Decide uses.
type Command struct {
	At time.Time
	// TenantID is the agency, which keys the record of the command. It may be empty
	// where SessionID is set: a session id carries the agency's partition. Decide does
	// not use it, and the record does not carry it.
	TenantID string
	// SessionID names the session; for Create, the new session.
	SessionID string
	// ApplicationID and Live narrow it to what the caller may see. An empty
	// ApplicationID (pages, callbacks, ticks) allows every application's sessions.
	ApplicationID string
	Live          bool
	// ReplyTo says where the sender waits for an answer; nil when nobody waits.
	ReplyTo *ReplyTo
	Do      Action
}

// ReplyTo identifies the waiting request.
type ReplyTo struct {
	CorrelationID string
	Partition     int32
}

// Action is what a command asks for: Create, Cancel, Collect, Redirected, Outcome,
// Enquire, Reserve, Take, Release, Reverse, IssueToken, ConsumeToken, OpenRefundRequest,
// Resolve, NoteProposal, Confirmed, Credit, CreditWithdrawn, InitCheckout, PartnerPay, LookUp, Erase or Tick.
type Action interface{ action() }

// Create asks for a new session. Configuration is resolved by the sender.
type Create struct {
	// Session is the new session as it will be stored; its CreatedAt is the command's At.
	Session        Session
	IdempotencyKey string
	// BodyHash is SHA-256 of the request's canonical JSON.
	BodyHash []byte
	// CreationsPerMinute is the application's quota. Sessions of the citizen portal have none.
	CreationsPerMinute int
	// Replace cancels portal sessions that hold a due of the new session, unless they have a
	// collection or a reservation (contract, "Citizen API").
	Replace bool
	// Faults of configuration (inactive service, no embed origins…), and of a citizen's cart.
	// Decide checks them after the idempotency key and the quota (docs/design/decisions.md § 1).
	Faults []Fault
}

// Fault is one fault of a request.
type Fault struct {
	Code    Code
	Field   string // dotted path
	Rule    string
	Message string
}

// Canceller says who cancels a session.
type Canceller string

// The cancellers. The citizen cannot cancel while a collection is in flight.
const (
	ByIntegrator Canceller = "integrator"
	ByCitizen    Canceller = "citizen"
	// ByReplacement is a citizen who makes a new cart with a due of this one.
	ByReplacement Canceller = "replacement"
	// ByDueChange is the agency's ERP, which says something else of a due than when the
	// session was made. It cannot cancel once somebody collects or reserves: the payment is
	// then for the due as it was, and its confirmation tells the ERP so.
	ByDueChange Canceller = "due_changed"
	// ByCase is an operator case that completes another session of the order.
	ByCase Canceller = "operator_case"
)

// Cancel ends an open session.
type Cancel struct{ By Canceller }

// Collect asks the payer for the money once. A repeated CollectionID (a double click, a
// reload) is the same collection.
type Collect struct {
	CollectionID string
	OfferID      string
	Account      string // fingerprint of the merchant account
	// PayerSealed is the payer's number as the connector wants it, sealed with a key of its
	// own (internal/personal); empty for card.
	PayerSealed []byte
	// Payer is the number in a command of a version without seals.
	Payer       string
	PayerMasked string
	// Total is the amount that the citizen confirmed: due plus fee, in minor units.
	Total          int64
	ApprovalWindow time.Duration
	// SendWithin is the time, from At, within which the operator may be asked.
	SendWithin time.Duration
	// Language is the page's, for the way back from an acquirer; may be empty.
	Language string
	// ByReference says that the citizen knows the payment reference only. The operator gets no
	// description, the way back from an acquirer is the reference's page, and a refusal does
	// not end the session.
	ByReference bool
}

// Redirected reports the acquirer's page, on which the citizen continues the payment
// (contract, "Card payment").
type Redirected struct {
	CollectionID string
	// Sealed is the encrypted redirect. Only the sender of this command and the page can
	// open it.
	Sealed []byte
}

// Reserve is a clerk's look-up. The session waits for cash at a counter for the time
// Window, and nothing else can pay it in that time. A repeated look-up by the same clerk
// is the same reservation and does not extend it.
type Reserve struct {
	CollectionID string
	By           string // the clerk
	Window       time.Duration
	Limits       Limits
}

// Limits are the amounts that a clerk may put on record, in minor units. Zero means that
// there is no limit.
type Limits struct {
	// Payment limits the total of one payment.
	Payment int64
	// Day limits the sum of all totals of a local day, in the session's mode. Cash that
	// was given back still counts.
	Day int64
}

// Take is a clerk's report that the cash is in the till. It is never refused for being
// late, because the agency has the money. It is refused above the clerk's limits: the
// clerk hands the cash back.
type Take struct {
	CollectionID string
	By           string
	Total        int64 // due and fee, minor units of the session's currency
	// Receipt is the counter's own receipt number; may be empty.
	Receipt string
	// Desk is the counter at which the clerk took the cash.
	Desk   string
	Limits Limits
}

// Release ends a reservation before its window ends.
type Release struct{ CollectionID, By string }

// Reverse is a second clerk's report, on the same day, that cash was given back. It adds
// a journal entry and an operator case; the session's status does not change.
type Reverse struct {
	CollectionID string
	By           string
	Reason       string
}

// Source says how an outcome became known.
type Source string

// The sources of an outcome.
const (
	SourceRequest  Source = "request"
	SourceEnquiry  Source = "enquiry"
	SourceCallback Source = "callback"
	SourceCounter  Source = "counter"
	SourceStaff    Source = "staff" // the resolution of an operator case
)

// OutcomeStatus is the operator's answer about a collection.
type OutcomeStatus string

// The outcomes. Pending and ambiguous decide nothing. Unknown means that the operator
// does not know the payment.
const (
	OutcomeApproved  OutcomeStatus = "approved"
	OutcomeRefused   OutcomeStatus = "refused"
	OutcomePending   OutcomeStatus = "pending"
	OutcomeAmbiguous OutcomeStatus = "ambiguous"
	OutcomeUnknown   OutcomeStatus = "unknown"
)

// Outcome reports an operator's answer. Only a sender that has it from the operator
// itself (its answer, its signature, our own callback address) may send an Outcome.
type Outcome struct {
	CollectionID string
	Source       Source
	// AskedAt is the time of the enquiry that the operator answers; zero where nobody
	// asked.
	AskedAt     time.Time
	Status      OutcomeStatus
	Amount      int64 // minor units
	Currency    string
	OperatorRef string
	FailureCode FailureCode
	// ApprovedAt is the operator's own date of an approval; zero if it told none.
	ApprovedAt time.Time
	// HonourLate is the agency's policy for late payments, as the sender found it.
	HonourLate bool
	// Account is the fingerprint of the merchant account that reports; of cash, the counter.
	Account string
}

// Enquire asks for an enquiry now. An unproven callback causes it.
type Enquire struct{ CollectionID string }

// IssueToken stores a new completion token for the holder of the client_secret.
type IssueToken struct {
	Hash             []byte // SHA-256 of the token
	ClientSecretHash []byte
	Lifetime         time.Duration
}

// ConsumeToken is verify-completion.
type ConsumeToken struct {
	Hash []byte
	// OrderID is the order that the caller expects, or empty. If the token belongs to a
	// session of another order, it counts as unknown and is not consumed.
	OrderID string
}

// Erase removes the personal data of an ended session before its archiving (decisions
// § 15). A repeated Erase changes nothing.
type Erase struct {
	By string // the operator who was asked to erase
}

// Tick carries out what is due in one session at the command's time.
type Tick struct{}

func (Create) action()       {}
func (Cancel) action()       {}
func (Collect) action()      {}
func (Redirected) action()   {}
func (Outcome) action()      {}
func (Enquire) action()      {}
func (Reserve) action()      {}
func (Take) action()         {}
func (Release) action()      {}
func (Reverse) action()      {}
func (IssueToken) action()   {}
func (ConsumeToken) action() {}
func (Erase) action()        {}
func (Tick) action()         {}

// Code is the code of an answer: ok, or a code that callers map to an HTTP status.
type Code string

// The codes of answers. Codes of the contract keep its spelling.
const (
	CodeOK               Code = "ok"
	CodeSessionNotFound  Code = "checkout.session_not_found"
	CodeSessionEnded     Code = "checkout.session_ended"
	CodeSessionOpen      Code = "checkout.session_open" // its personal data is still needed
	CodeOrderOpen        Code = "checkout.order_open"
	CodeOrderPaid        Code = "checkout.order_paid"
	CodeOrderUnderReview Code = "checkout.order_under_review"
	// CodeDueInPayment: another session holds the claim on a due (Claim). The faults name the
	// dues; the rule of each is its state, DueInPayment or DueRecording.
	CodeDueInPayment Code = "checkout.due_in_payment"
	// CodeDueChanged and CodeSourceUnavailable are faults of a citizen's cart: a due is not what
	// the citizen was shown, and the agency's ERP does not tell what is owed.
	CodeDueChanged        Code = "citizen.due_changed"
	CodeSourceUnavailable Code = "citizen.source_unavailable"

	CodeKeyReused        Code = "idempotency.key_reused"
	CodeRateLimited      Code = "generic.rate_limited"
	CodeValidationFailed Code = "generic.validation_failed"
	CodeOriginsRequired  Code = "embed.origins_required"
	// CodeNoChannel: no offer of the application can be paid in that mode and currency.
	CodeNoChannel         Code = "checkout.no_channel"
	CodeInFlight          Code = "checkout.collection_in_flight"
	CodePreviousUndecided Code = "checkout.previous_undecided"
	CodeOfferUnknown      Code = "checkout.offer_unknown"
	CodeTotalChanged      Code = "checkout.total_changed"
	// CodeReferencePaused: payments by the session's reference were refused too often. RetryAfter
	// is when the next may begin.
	CodeReferencePaused Code = "checkout.reference_paused"
	CodeNotCompleted    Code = "checkout.not_completed"
	CodeSecretRefused   Code = "checkout.client_secret_refused"
	CodeTokenNotFound   Code = "checkout.completion_token_not_found"
	CodeTokenExpired    Code = "checkout.completion_token_expired"
	CodeTokenConsumed   Code = "checkout.completion_token_consumed"

	// CodeReserved: another clerk holds the session.
	CodeReserved Code = "counter.reserved"
	// CodeNotTaken: no cash of that id was taken, so none is given back.
	CodeNotTaken Code = "counter.not_taken"
	// CodeCase: the cash is recorded, but another payment completed the session or is in
	// flight. A person decides what happens to the cash.
	CodeCase Code = "counter.operator_case"
	// CodeTooMany: cash was reported so often for a paid session that the caller's program
	// must be faulty. Nothing was recorded.
	CodeTooMany Code = "counter.too_many_entries"
	// CodePaymentLimit: the total is above the clerk's limit of one payment. Nothing was
	// recorded.
	CodePaymentLimit Code = "counter.payment_limit"
	// CodeDayLimit: the total is above what is left of the clerk's limit of the day.
	// Nothing was recorded.
	CodeDayLimit Code = "counter.day_limit"
	// CodeSecondPerson: the clerk who took the cash cannot reverse it.
	CodeSecondPerson Code = "counter.second_person_required"
	// CodeReversalLate: the local day on which the cash was taken is over.
	CodeReversalLate Code = "counter.reversal_too_late"
	// CodeTakenElsewhere: the cash of that collection_id is recorded for another session of
	// the order.
	CodeTakenElsewhere Code = "counter.taken_elsewhere"

	// CodeNumbersExhausted: the month has no payment number left. Nothing was created.
	CodeNumbersExhausted Code = "cashin.numbers_exhausted"

	// Codes of what an operator says about a request for money, at the address that
	// PartnerPay.Word names. CodeCollectionNotSent means that surely nothing was sent, and that
	// nothing will be.
	CodeCollectionAccepted Code = "collection.accepted"
	CodeCollectionRefused  Code = "collection.refused"
	CodeCollectionNotSent  Code = "collection.not_sent"

	// CodeCaseNotFound: the session has no such case.
	CodeCaseNotFound Code = "case.not_found"
	// CodeCaseClosed: the money of the case has another exit.
	CodeCaseClosed Code = "case.closed"
	// The next ones refuse what people are said to have agreed on. CodeUnsigned: a step was not signed where
	// a person's key was checked, or for another decision. CodeOtherContent: the case or the proposal is
	// another one now. CodeOtherGroup: a person does not act for the agency. CodeSamePerson: one person took
	// both steps. CodeNotInForce: a person was not in force. CodeApprovalLapsed: a step came too late.
	// CodeNotProven: no passkey of whoever proposed or approved has signed a step that needs it.
	CodeUnsigned       Code = "approval.unsigned"
	CodeOtherContent   Code = "approval.other_content"
	CodeOtherGroup     Code = "approval.other_group"
	CodeSamePerson     Code = "approval.same_person"
	CodeNotInForce     Code = "approval.not_in_force"
	CodeApprovalLapsed Code = "approval.lapsed"
	CodeNotProven      Code = "approval.not_proven"
	// CodeCaseNotAllowed: a case of that kind, or with that report, has no such resolution.
	CodeCaseNotAllowed Code = "case.resolution_not_allowed"
	// CodeDueUnknown: the session has no due with a transaction id of the request.
	CodeDueUnknown Code = "case.due_unknown"
	// CodeDueReturned: the money of a due of the request was given back before.
	CodeDueReturned Code = "case.due_returned"
	// CodeRefundRequested: an open refund request has one of the dues. The answer has its CaseID.
	CodeRefundRequested Code = "case.refund_requested"
)

// Answer is the reply to a command.
type Answer struct {
	Code    Code
	Session *Session // the current session, if the sender may see it
	// Replayed is true when the answer repeats an earlier answer or collection.
	Replayed bool
	Faults   []Fault
	// RetryAfter, QuotaLimit and QuotaRemaining describe the creation quota. With
	// CodeReferencePaused there is only RetryAfter.
	RetryAfter     time.Duration
	QuotaLimit     int
	QuotaRemaining int
	TokenExpiresAt time.Time
	// CaseID is the case that was opened or resolved.
	CaseID string
}
