package connector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"time"

	"quittance/checkout"
)

// Connector is the way to one who takes money, and reads what they say of it. Every
// offer has one. Safe for concurrent use.
type Connector interface {
	// Operator is a short name, such as "mtn". A Collector's is a path element of
	// callback addresses and a label of metrics.
	Operator() string
	// ParseReport reads what was reported of a collection: to a callback address, or
	// at a counter. Whether the report is to be believed is the caller's to know, from
	// its address, its signature (ReportVerifier) or its bearer. Errors wrap ErrReport
	// and tell nothing of what was written but codes.
	ParseReport(header http.Header, body []byte) (Report, error)
}

// Collector is a Connector whose operator is asked for the money.
type Collector interface {
	Connector
	// Collect asks the payer for the money. The same Request.ID again is the same
	// collection, whatever became of the first call. An approval or a refusal that
	// it returns is final; an accepted request is pending, with a Redirect where the
	// payer goes on at the operator's own page. Errors are *Error: with Sent unset
	// the operator surely did nothing, else it may have.
	Collect(ctx context.Context, account Account, request Request) (Outcome, error)
	// Enquire asks what became of a collection; OutcomeUnknown when the operator
	// has none of that id. Errors are *Error and say nothing of the collection.
	Enquire(ctx context.Context, account Account, ref Reference) (Outcome, error)
}

// PayerReader is a Connector whose operator reaches payers by their number.
type PayerReader interface {
	// Payer turns what a citizen typed into what the operator wants. Errors wrap
	// ErrPayerMalformed or ErrPayerElsewhere.
	Payer(input string) (string, error)
}

// ReportVerifier is a Connector whose operator signs its reports with a secret of
// the merchant account.
type ReportVerifier interface {
	// VerifyReport says whether the account's operator signed the report. Errors
	// wrap ErrSignature.
	VerifyReport(account Account, header http.Header, body []byte) error
}

// Account is an agency's own merchant account with an operator, of one mode.
// Which fields count depends on the operator. It prints as its address alone.
type Account struct {
	BaseURL string

	// Mobile money A.
	TargetEnvironment string
	SubscriptionKey   string
	APIUser           string
	APIKey            string

	// Mobile money B.
	ClientID     string
	ClientSecret string

	// Card acquirer.
	Merchant string
	Secret   string
}

// Fingerprint tells one merchant account from another, without its secrets, which
// may be rotated: what the operator knows of a payment it tells to the account
// that asked for it only. Running collections hold fingerprints, so what an
// operator's account has none of must not change them.
func (a Account) Fingerprint() string {
	text := a.BaseURL + "\x00" + a.TargetEnvironment + "\x00" + a.APIUser
	if a.ClientID != "" {
		text += "\x00" + a.ClientID
	}
	if a.Merchant != "" {
		text += "\x00" + a.Merchant
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// String is the account without its secrets.
func (a Account) String() string { return "account at " + a.BaseURL }

// GoString is String, for %#v.
func (a Account) GoString() string { return a.String() }

// LogValue is String, for slog.
func (a Account) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Request asks for money.
type Request struct {
	// ID is the collection's: a UUID of version 4, unique for ever.
	ID string
	// Payer as PayerReader.Payer returned it; empty where the operator asks itself.
	Payer string
	// Amount is the total in minor units of Currency.
	Amount   int64
	Currency string
	// PaymentRef is the reference that payer and agency know.
	PaymentRef string
	// Description is what is paid for; may be empty, may be in any script.
	Description string
	// CallbackURL is where the operator may report; see CallbackURL the function.
	CallbackURL string
	// ReturnURL is where the operator's own page sends the payer afterwards.
	ReturnURL string
	// ExpiresAt ends the payer's time to approve, UTC.
	ExpiresAt time.Time
}

// Reference names a collection to its operator.
type Reference struct {
	// ID is the collection's, as in Request.
	ID string
	// Amount and Currency are what was asked for, as in Request: what an operator
	// took that answers by id alone and names no amount.
	Amount   int64
	Currency string
}

// Outcome is the operator's word on a collection.
type Outcome struct {
	Status checkout.OutcomeStatus
	// Amount is what the operator says it took, in minor units of Currency, or what
	// it was asked for when its protocol names no amount (Reference). Zero and
	// empty when it says nothing readable: an approval of such an amount fits no
	// collection and becomes an operator case.
	Amount   int64
	Currency string
	// OperatorRef is the operator's own number of the payment.
	OperatorRef string
	// FailureCode is set when Status is OutcomeRefused.
	FailureCode checkout.FailureCode
	// Reason is the operator's code behind Status, for logs: never prose.
	Reason string
	// Redirect is where the payer goes on, of a pending collection; nil where the
	// operator finds the payer itself.
	Redirect *Redirect
}

// Decided says that the operator will not change its mind.
func (o Outcome) Decided() bool {
	return o.Status == checkout.OutcomeApproved || o.Status == checkout.OutcomeRefused
}

// Report is what was said of a collection without having been asked for.
type Report struct {
	// ID is the collection's as the report names it; empty when it has none and only
	// the address tells.
	ID      string
	Outcome Outcome
	// Ask says that the operator's reports leave out what a decision needs, such as
	// the amount or the reason: the operator is asked, Outcome decides nothing.
	Ask bool
}
