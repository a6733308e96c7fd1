package checkout

import "time"

// Command asks for a change of one session. At is the sender's stamp and the
// only time that deciding looks at.
type Command struct {
	At time.Time
	// SessionID is the session meant; of a Create the one to be.
	SessionID string
	// ApplicationID and Live narrow it to what the caller may see; with an empty
	// ApplicationID (pages, callbacks, ticks) any application's session counts.
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

// Action is what a command asks for: Create, Cancel, Collect, Outcome, Enquire,
// IssueToken, ConsumeToken or Tick.
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
}

// Source is how an outcome was learnt.
type Source string

// The sources of an outcome.
const (
	SourceRequest  Source = "request"
	SourceEnquiry  Source = "enquiry"
	SourceCallback Source = "callback"
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
func (Outcome) action()      {}
func (Enquire) action()      {}
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
