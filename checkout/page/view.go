package page

import (
	"time"

	"quittance/money"
)

// Names of the form fields that the page makes itself. The caller's fields, in
// View.Hidden, must have other names; only FieldOffer may be there, in steps without a
// choice of offers.
const (
	FieldLanguage = "lang"  // "fr" or "en", in every form
	FieldOffer    = "offer" // an offer_id
	FieldPhone    = "phone" // the number as typed

	FieldReference = "ref" // a payment reference as typed

	FieldAddress = "address" // where to send the receipt, as typed
	FieldTo      = "to"      // ToPayer: to the number that paid
	ToPayer      = "payer"
)

// State says which page a citizen sees.
type State string

// The pages of the journey. Choose, phone, review, cash and transfer are steps of an open
// session without a collection in flight.
const (
	StateChoose     State = "choose"     // choose an offer; without offers it says that none is configured
	StatePhone      State = "phone"      // enter the mobile money number
	StateReview     State = "review"     // see due, fee and total, and confirm
	StateWaiting    State = "waiting"    // a collection is in flight
	StateCompleted  State = "completed"  // the receipt
	StateFailed     State = "failed"     // refused, with FailureCode
	StateExpired    State = "expired"    // the session's lifetime ended
	StateCancelled  State = "cancelled"  // by the integrator or the citizen
	StateUndecided  State = "undecided"  // ended unpaid, but the operator has not yet decided the collection
	StateLate       State = "late"       // ended unpaid, and the operator approved the collection afterwards
	StateReversed   State = "reversed"   // the money was given back
	StateMismatched State = "mismatched" // ended unpaid, and the operator reported a payment that does not fit
	StateCash       State = "cash"       // the reference to pay with at a counter
	StateTransfer   State = "transfer"   // the account and the reference for a bank transfer
	StateCancel     State = "cancel"     // the question before the citizen's cancel
	StateReload     State = "reload"     // a frame that has lost its client_secret, and asks for it
	// The pages of somebody who knows the payment reference only: the form to type one, and what
	// there is to say of a payment that somebody else makes, has made or can no longer make.
	StateReference State = "reference"
	StateBusy      State = "busy"   // a collection is in flight
	StatePaid      State = "paid"   // completed
	StateHeld      State = "held"   // ended, with money that must be looked at
	StateClosed    State = "closed" // ended without a payment that counts

	StateUnknown     State = "unknown"     // no such session, HTTP 404
	StateUnavailable State = "unavailable" // cannot answer now, HTTP 503
)

// States lists every State.
var States = []State{
	StateChoose, StatePhone, StateReview, StateCash, StateTransfer, StateCancel, StateWaiting, StateCompleted,
	StateFailed, StateExpired, StateCancelled, StateUndecided, StateLate, StateReversed, StateMismatched,
	StateReference, StateBusy, StatePaid, StateHeld, StateClosed, StateReload, StateUnknown, StateUnavailable,
}

// View is everything that one page shows. Texts are plain text, never HTML: the page
// escapes them. The comment of a field names the states that need it. Other states
// ignore it, so that a caller may fill in all that it knows.
type View struct {
	Lang  money.Language // anything but English is French
	State State
	Test  bool // a test session: a banner, and TEST on the receipt
	// Embed is set for a page in an integrator's frame.
	Embed *Embed

	// What is paid, in every state but StateReference, StateReload, StateUnknown and
	// StateUnavailable. Service, Description and SubjectEnds may be empty. SubjectEnds are the last
	// characters of the references of those who owe it; it is shown without a Description.
	Agency      string
	Logo        []byte // a PNG beside the agency's name, at most 2 KiB; nil for none
	Contact     Contact
	Service     string
	Description string
	SubjectEnds []string
	// ByReference is set for somebody who knows the payment reference only: each step shows it, so
	// that the visitor can compare it with the slip.
	ByReference bool
	// Items are the dues that are paid together, and stand in the place of Description; empty for
	// one due.
	Items      []Item
	PaymentRef string // 16 digits; shown on the receipt and where a citizen may have to ask about a payment

	// Amounts in minor units of Currency. Fee and Total are for the chosen
	// offer; StateReview, StateCash, StateTransfer, StateWaiting, StateCompleted, StateUndecided,
	// StateLate and StateReversed show them and refuse a Total other than Due + Fee.
	Currency money.Currency
	Due      int64
	Fee      int64
	Total    int64

	// Offers to choose from in StateChoose. In StateCancel they decide whether the page
	// says what becomes of the reference for the counter, and of a transfer that is on its way.
	Offers []Offer
	// Offer is the chosen offer_id, in StatePhone and StateReview; OfferLabel
	// is its name for citizens.
	Offer      string
	OfferLabel string
	// Kind is the kind of the chosen offer, from StateReview on; empty means mobile money.
	Kind Kind
	// Phone is the number as typed in StatePhone, and the number in any form in
	// StateReview. No other state shows it.
	Phone string
	// Payer is the number with its middle masked, for StateWaiting and
	// StateCompleted; see [MaskPhone]. The page masks a number that is not masked.
	Payer string

	// Hidden are fields that the forward form has: the chosen offer, the
	// number as typed, and in StateReview the id under which a confirmation
	// counts once, so that a double click or a reload confirms the same
	// collection.
	Hidden []Field
	// Errors are the faults of the form that was sent, in StateChoose, StatePhone, StateReview,
	// StateReference, and StateCompleted with Send. With ErrorOrderPaid a review has no form.
	Errors []FieldError

	// ExpiresAt is the end of the session's lifetime, UTC, Counters are the names of the agency's
	// counters, PayURL is the address under which anybody with the reference can pay, and NoticeURL
	// that of the payment notice; both are empty when there is none; for StateCash. StateTransfer has the end and the notice, too.
	ExpiresAt time.Time
	Counters  []string
	PayURL    string
	NoticeURL string
	// Transfer is the agency's bank account, for StateTransfer.
	Transfer Transfer
	// Redirect is the address of the acquirer's page, for StateWaiting of a card. It is
	// empty until the acquirer has answered.
	Redirect string

	// Typed is the payment reference as typed, for StateReference.
	Typed string

	// Returned says that the citizen comes back from the acquirer's page, for StateWaiting of a card.
	Returned bool
	// ReportedAt is when the agency is told of a collection that nobody has decided, UTC; zero when
	// it was told or never is. For StateUndecided.
	ReportedAt time.Time

	// For StateWaiting. WindowEnds is the end of the approval window, zero when
	// there is none to show. Now is the same clock. Both are UTC.
	Now        time.Time
	WindowEnds time.Time
	USSD       string // code that shows pending payments at the operator, such as "*105#"; may be empty
	Version    string // see "Live status" in the package's documentation; also for StateCash, StateTransfer and StateBusy
	LiveURL    string // empty: no live status, the citizen verifies by hand
	// Refresh is for StateWaiting, StateCash, StateTransfer and StateBusy of a browser without JavaScript.
	Refresh Refresh

	// Send is for StateCompleted outside of a frame; nil: the receipt is not sent.
	Send        *Send
	Receipt     Receipt // StateCompleted; of StateLate, StateReversed and StateMismatched the OperatorRef
	FailureCode string  // StateFailed; a code of contract docs/design/decisions.md § 6
	// NotDebited says that the session has taken no money and can take none: nothing was sent to
	// an operator, or the operator itself refused. It is for StateFailed, StateExpired and
	// StateCancelled. Without it the page says what to do if the account was debited.
	NotDebited bool

	// Addresses. Action receives the forward form. CancelAction must end in /cancel: a GET
	// with CancelFields shows StateCancel, a POST cancels. Without it no cancel is offered.
	// SelfURL is this page with its language, for « Vérifier » (StateWaiting,
	// StateUndecided) and « Réessayer ».
	// BackURL is the step before, in StateCancel the step that the citizen comes from;
	// OffersURL the choice of offer, LanguageURL
	// this page in the other language. SuccessURL and CancelURL are the
	// integrator's. An empty link is not shown. StateUndecided, StateLate,
	// StateReversed and StateMismatched never lead to CancelURL, where a citizen may pay again.
	Action       string
	CancelAction string
	CancelFields []Field
	SelfURL      string
	BackURL      string
	OffersURL    string
	LanguageURL  string
	SuccessURL   string
	CancelURL    string
	// DuesURL is where the citizen sees what they owe. With it StateCancelled says that the
	// payment was cancelled because a due has changed, and does not show the amount.
	DuesURL string
}

// Item is one of several dues that are paid together.
type Item struct {
	Label  string
	Amount int64 // minor units of the View's currency, without the fee
}

// Transfer is a bank account to which citizens transfer money. It has an IBAN or a number.
type Transfer struct {
	Holder, Bank string
	IBAN, Number string
}

// Contact is how citizens reach the agency. Empty fields are not shown.
type Contact struct {
	Address string
	Phone   string // in any form
	Email   string
	Hours   string // in words
}

// Refresh makes a browser without JavaScript load another page after a time. The zero
// value is none. A page in a frame has none.
type Refresh struct {
	After time.Duration // whole seconds
	URL   string        // its fragment is the page's status: #status
}

// Embed is what a page in a frame needs in addition.
type Embed struct {
	// Parent is the origin of the page around the frame, which gets messages. The server
	// must have found it in the session's list of embed origins.
	Parent string
	// Script is the address of the frame's messaging script.
	Script string
	// Layout is "compact" or "large".
	Layout string
	// TokenURL is the address that issues the completion token of a completed session.
	TokenURL string
	// ReceiptURL is the hosted page of the session, which prints well.
	ReceiptURL string
}

// Offer is one way to pay.
type Offer struct {
	ID    string // offer_id of the contract, such as "momo"
	Label string // its name for citizens; empty: the page's own words for the ID
	Kind  Kind
	// Fee in minor units of the View's currency, shown with the offer when FeeKnown is
	// set.
	Fee      int64
	FeeKnown bool
}

// Kind is the kind of an offer. The page has a line of explanation for each.
type Kind string

// The kinds of offers.
const (
	KindMobileMoney Kind = "mobile_money"
	KindCard        Kind = "card"
	KindCash        Kind = "cash"
	KindTransfer    Kind = "bank_transfer"
)

// Field is a hidden form field.
type Field struct {
	Name, Value string
}

// FieldError is one fault of a form. Field is the name of the field at fault,
// FieldOffer, FieldPhone, FieldReference or FieldAddress, or empty for a fault of the whole form. Message is shown as
// it is; when it is empty the page shows its own text for Code.
type FieldError struct {
	Field   string
	Code    ErrorCode
	Message string
	Offer   string // offer_id of the number's operator, for ErrorOperatorOther
	Failure string // a code of contract docs/design/decisions.md § 6, for ErrorRefused
	Minutes int    // until the payment may begin, for ErrorReferencePaused, ErrorPromptsLimited and ErrorNetworkLimited
}

// ErrorCode is a fault for which the page has a text.
type ErrorCode string

// The faults of forms.
const (
	ErrorPhoneMissing     ErrorCode = "phone_missing"
	ErrorPhoneInvalid     ErrorCode = "phone_invalid"
	ErrorOperatorMismatch ErrorCode = "operator_mismatch" // the number belongs to an operator that is not on offer
	// ErrorOperatorOther is for a number of another operator on offer than the chosen one.
	// The page names both. The same form again pays with the number's operator.
	ErrorOperatorOther    ErrorCode = "operator_other"
	ErrorOfferMissing     ErrorCode = "offer_missing"
	ErrorOfferUnavailable ErrorCode = "offer_unavailable"
	ErrorTryAgain         ErrorCode = "try_again"  // the service could not take the form; nothing happened
	ErrorFormStale        ErrorCode = "form_stale" // the form is older than the session
	// ErrorPreviousUndecided is for a confirmation that must wait until the operator has
	// decided an earlier payment of the same order.
	ErrorPreviousUndecided ErrorCode = "previous_undecided"
	// ErrorOrderPaid is for an order whose money arrived, although too late for its
	// session: the citizen must not pay a second time.
	ErrorOrderPaid ErrorCode = "order_paid"
	// ErrorDuesUnknown is for a confirmation that must wait until the agency's system says
	// whether the dues are still as they were.
	ErrorDuesUnknown ErrorCode = "dues_unknown"
	// ErrorDueInPayment is for a confirmation of a due that another session pays or has paid.
	ErrorDueInPayment ErrorCode = "due_in_payment"

	// ErrorRefused is for a payment that did not go through and left the request open.
	ErrorRefused ErrorCode = "refused"
	// ErrorReferencePaused is for a reference by which too many payments were refused.
	ErrorReferencePaused ErrorCode = "reference_paused"

	// ErrorPromptOpen is for a confirmation by a phone that has another open request to pay,
	// ErrorPromptsLimited for one by a phone that got too many, ErrorNetworkLimited for one from a
	// network that sent too many.
	ErrorPromptOpen     ErrorCode = "prompt_open"
	ErrorPromptsLimited ErrorCode = "prompts_limited"
	ErrorNetworkLimited ErrorCode = "network_limited"

	// The faults of a payment reference. ErrorReferenceMistyped is for a number that nobody
	// issued, ErrorTooManyLookups for a reference that is not looked up now.
	ErrorReferenceMissing  ErrorCode = "reference_missing"
	ErrorReferenceMistyped ErrorCode = "reference_mistyped"
	ErrorReferenceUnknown  ErrorCode = "reference_unknown"
	ErrorTooManyLookups    ErrorCode = "too_many_lookups"

	// ErrorAddressInvalid is for a receipt that is asked for at what is no address, ErrorReceiptsLimited for one
	// that is not sent because too many were asked for.
	ErrorAddressInvalid  ErrorCode = "address_invalid"
	ErrorReceiptsLimited ErrorCode = "receipts_limited"
)

// ErrorCodes lists every ErrorCode.
var ErrorCodes = []ErrorCode{
	ErrorPhoneMissing, ErrorPhoneInvalid, ErrorOperatorMismatch, ErrorOperatorOther, ErrorOfferMissing, ErrorOfferUnavailable,
	ErrorTryAgain, ErrorFormStale, ErrorPreviousUndecided, ErrorOrderPaid, ErrorDueInPayment, ErrorDuesUnknown,
	ErrorRefused, ErrorReferencePaused, ErrorPromptOpen, ErrorPromptsLimited, ErrorNetworkLimited, ErrorReferenceMissing, ErrorReferenceMistyped, ErrorReferenceUnknown, ErrorTooManyLookups,
	ErrorAddressInvalid, ErrorReceiptsLimited,
}

// Receipt is what a completed payment adds to the View. Empty fields are not
// shown.
type Receipt struct {
	NoticeRef   string
	OperatorRef string
	PaidAt      time.Time // UTC; shown in the time of Brazzaville
	// Links lead to the receipts to keep, one a due; also of StateReversed.
	Links []ReceiptLink
}

// Send is the form by which a payer has the receipt sent to a phone number or an e-mail address.
type Send struct {
	Action string
	// Payer offers the number that paid, which the page shows masked (View.Payer).
	Payer bool
	// Typed is the address as typed, after a fault.
	Typed string
	// Asked says that a receipt was asked for, and by which way it comes; empty: none was.
	Asked Way
}

// Way is how a receipt comes.
type Way string

// The ways.
const (
	WaySMS   Way = "sms"
	WayEmail Way = "email"
)

// ReceiptLink leads to the receipt of a due. Label says what was paid, and Name tells several
// apart; both are empty for the only one.
type ReceiptLink struct{ URL, Label, Name string }
