package checkout

import "time"

// Command asks for a change of one session. At is the sender's stamp and the
// only time that deciding looks at.
type Command struct {
	At time.Time
	// TenantID is the agency, which the record of the command is keyed by. It may be
	// empty where SessionID is set: a session id carries the agency's partition.
	// Deciding does not look at it, and it does not travel in the record.
	TenantID string
	// SessionID is the session meant, or for a Create the new one.
	SessionID string
	// ApplicationID and Live narrow it to what the caller may see. An empty
	// ApplicationID (pages, callbacks, ticks) allows every application's sessions.
	ApplicationID string
	Live          bool
	// ReplyTo is where an answer is awaited; nil when none is.
	ReplyTo *ReplyTo
	Do      Action
}

// ReplyTo finds the waiting request.
type ReplyTo struct {
	CorrelationID string
	Partition     int32
}

// Action is what a command asks for: Create, Cancel, Collect, Redirected, Outcome,
// Enquire, Reserve, Take, Release, Reverse, IssueToken, ConsumeToken or Tick.
type Action interface{ action() }

// Create asks for a new session. Configuration is resolved by the sender.
type Create struct {
	// Session as it will be when accepted; its CreatedAt is the command's At.
	Session        Session
	IdempotencyKey string
	// BodyHash is SHA-256 of the request's canonical JSON.
	BodyHash []byte
	// CreationsPerMinute is the application's quota.
	CreationsPerMinute int
	// Faults of configuration (inactive service, no embed origins…): they count
	// after the idempotency key and the quota (decisions § 1).
	Faults []Fault
}

// Fault is one thing wrong with a request.
type Fault struct {
	Code    Code
	Field   string // dotted path
	Rule    string
	Message string
}

// Canceller is who cancels.
type Canceller string

// Who cancels. The citizen cannot while a collection is in flight.
const (
	ByIntegrator Canceller = "integrator"
	ByCitizen    Canceller = "citizen"
)

// Cancel ends an open session.
type Cancel struct{ By Canceller }

// Collect asks the payer for the money, once: the same CollectionID again (a
// double click, a reload) is the same collection.
type Collect struct {
	CollectionID string
	OfferID      string
	Account      string // fingerprint of the merchant account
	Payer        string // as the connector wants it; empty for card
	PayerMasked  string
	// Total is what the citizen confirmed: due and fee.
	Total          int64
	ApprovalWindow time.Duration
	// SendWithin bounds how late the operator may be asked.
	SendWithin time.Duration
	// Language is the page's, for the way back from an acquirer; may be empty.
	Language string
}

// Redirected reports where the citizen goes on to pay: the acquirer's page
// (contract, "Card payment").
type Redirected struct {
	CollectionID string
	// Sealed is the redirect as its reporter and the page know it, a ciphertext here.
	Sealed []byte
}

// Reserve is a clerk's look-up: the session waits for cash at a counter, for as
// long as Window, and nothing else can pay it meanwhile. The holder's own look-up
// again is the same reservation, with its first end.
type Reserve struct {
	CollectionID string
	By           string // the clerk
	Window       time.Duration
}

// Take is a clerk's word that the cash is in the till. It is never refused for
// being late: the money is there.
type Take struct {
	CollectionID string
	By           string
	Total        int64 // due and fee, minor units of the session's currency
	// Receipt is the counter's own number of it; may be empty.
	Receipt string
}

// Release gives a reservation up before its window ends.
type Release struct{ CollectionID, By string }

// Reverse is a second clerk's word, on the same day, that cash was given back. It
// is an entry and an operator case; the session stays what it is.
type Reverse struct {
	CollectionID string
	By           string
	Reason       string
}

// Source is how an outcome was learnt.
type Source string

// The sources of an outcome.
const (
	SourceRequest  Source = "request"
	SourceEnquiry  Source = "enquiry"
	SourceCallback Source = "callback"
	SourceCounter  Source = "counter"
)

// OutcomeStatus is the operator's word on a collection.
type OutcomeStatus string

// The outcomes. Pending and ambiguous are no decision; unknown means that the
// operator has no such payment.
const (
	OutcomeApproved  OutcomeStatus = "approved"
	OutcomeRefused   OutcomeStatus = "refused"
	OutcomePending   OutcomeStatus = "pending"
	OutcomeAmbiguous OutcomeStatus = "ambiguous"
	OutcomeUnknown   OutcomeStatus = "unknown"
)

// Outcome reports what the operator said. Only a sender that has the word from
// the operator itself (its answer, its signature, our own callback address)
// may report one.
type Outcome struct {
	CollectionID string
	Source       Source
	Status       OutcomeStatus
	Amount       int64 // minor units
	Currency     string
	OperatorRef  string
	FailureCode  FailureCode
}

// Enquire asks for an enquiry now, because somebody claims to know more: a
// callback that proves nothing.
type Enquire struct{ CollectionID string }

// IssueToken mints a completion token for the holder of the client_secret.
type IssueToken struct {
	Hash             []byte // SHA-256 of the token
	ClientSecretHash []byte
	Lifetime         time.Duration
}

// ConsumeToken is verify-completion.
type ConsumeToken struct{ Hash []byte }

// Tick lets time pass for one session.
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
func (Tick) action()         {}

// Code is an answer's code: ok or one that callers map to a status.
type Code string

// The answers' codes. The contract's own keep its spelling.
const (
	CodeOK                Code = "ok"
	CodeSessionNotFound   Code = "checkout.session_not_found"
	CodeSessionEnded      Code = "checkout.session_ended"
	CodeOrderOpen         Code = "checkout.order_open"
	CodeOrderPaid         Code = "checkout.order_paid"
	CodeKeyReused         Code = "idempotency.key_reused"
	CodeRateLimited       Code = "generic.rate_limited"
	CodeValidationFailed  Code = "generic.validation_failed"
	CodeOriginsRequired   Code = "embed.origins_required"
	CodeInFlight          Code = "checkout.collection_in_flight"
	CodePreviousUndecided Code = "checkout.previous_undecided"
	CodeOfferUnknown      Code = "checkout.offer_unknown"
	CodeTotalChanged      Code = "checkout.total_changed"
	CodeNotCompleted      Code = "checkout.not_completed"
	CodeSecretRefused     Code = "checkout.client_secret_refused"
	CodeTokenNotFound     Code = "checkout.completion_token_not_found"
	CodeTokenExpired      Code = "checkout.completion_token_expired"
	CodeTokenConsumed     Code = "checkout.completion_token_consumed"

	// CodeReserved: another clerk holds the session.
	CodeReserved Code = "counter.reserved"
	// CodeNotTaken: no cash of that id was taken, so none is given back.
	CodeNotTaken Code = "counter.not_taken"
	// CodeCase: the cash is on record, but the session is paid, or being paid, by
	// other means. A person decides.
	CodeCase Code = "counter.operator_case"
	// CodeTooMany: so much cash was reported for a paid session that a program must
	// be at fault. Nothing was put on record.
	CodeTooMany Code = "counter.too_many_entries"
	// CodeSecondPerson: whoever took the cash cannot reverse it.
	CodeSecondPerson Code = "counter.second_person_required"
	// CodeReversalLate: the day on which the cash was taken is over.
	CodeReversalLate Code = "counter.reversal_too_late"
)

// Answer is what the asker is told.
type Answer struct {
	Code    Code
	Session *Session // as it stands now, where the asker may see it
	// Replayed is set when an earlier answer or collection is given again.
	Replayed bool
	Faults   []Fault
	// RetryAfter, QuotaLimit and QuotaRemaining describe the creation quota.
	RetryAfter     time.Duration
	QuotaLimit     int
	QuotaRemaining int
	TokenExpiresAt time.Time
}
