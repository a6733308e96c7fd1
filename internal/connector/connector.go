package connector

import (
	"context"
	"net/http"
	"time"

	"quittance/checkout"
)

// Connector asks one operator for money. Safe for concurrent use.
type Connector interface {
	// Operator returns the operator's short name, as in its Registration.
	Operator() string
	// Collect asks the payer for the money. Calls with the same Request.ID are the same
	// collection, even after an error. An approval or a refusal is final. An accepted
	// request is pending; it has a Redirect if the payer continues on the operator's page.
	// Errors are *Error: with Sent unset the operator has certainly done nothing, otherwise
	// it may have acted.
	Collect(ctx context.Context, account Account, request Request) (Outcome, error)
	// Enquire asks for the state of a collection. The status is OutcomeUnknown when the
	// operator has no collection of that id. Errors are *Error and decide nothing.
	Enquire(ctx context.Context, account Account, ref Reference) (Outcome, error)
	// ParseReport reads a report that the operator sent to a callback address. The caller
	// checks by its address and its signature (ReportVerifier) that it is genuine. Errors
	// wrap ErrReport and repeat only codes of the report.
	ParseReport(header http.Header, body []byte) (Report, error)
}

// PayerReader is a Connector whose operator reaches payers by their number.
type PayerReader interface {
	// Payer turns the input of a citizen into the number in the operator's form.
	// Errors wrap contact.ErrNotMobile or contact.ErrOtherOperator.
	Payer(input string) (string, error)
}

// ReportVerifier is a Connector whose operator signs its reports with a secret of
// the merchant account.
type ReportVerifier interface {
	// VerifyReport returns nil when the account's operator signed the report. Errors wrap
	// ErrSignature, or secret.ErrNotHeld in a process that has not the account's secret of reports:
	// the report proves nothing there.
	VerifyReport(account Account, header http.Header, body []byte) error
}

// QueryReturned is in the query of the citizen's page when an operator's page leads back to it.
const QueryReturned = "returned"

// Request asks for money.
type Request struct {
	// ID is the collection's: a UUID of version 4, unique for ever.
	ID string
	// Payer as PayerReader.Payer returned it; empty where the operator identifies the payer.
	Payer string
	// Amount is the total in minor units of Currency.
	Amount   int64
	Currency string
	// PaymentRef is the reference that payer and agency know.
	PaymentRef string
	// Description says what is paid for. It may be empty and may be in any script.
	Description string
	// CallbackURL is the address for the operator's reports; see the function CallbackURL.
	CallbackURL string
	// ReturnURL is the address, with QueryReturned, to which the operator's page sends the payer at the end.
	ReturnURL string
	// ExpiresAt ends the payer's time to approve, UTC.
	ExpiresAt time.Time
}

// Reference names a collection to its operator.
type Reference struct {
	// ID is the collection's, as in Request.
	ID string
	// Amount and Currency as in Request. They are those of the outcome if the operator's
	// answers name no amount.
	Amount   int64
	Currency string
}

// Outcome is the state of a collection as its operator names it.
type Outcome struct {
	Status checkout.OutcomeStatus
	// Amount is the collected amount in minor units of Currency, as the operator names it.
	// If its protocol names no amount, it is that of the Reference. Zero and empty when the
	// answer is not readable: such an approval matches no collection and becomes an
	// operator case.
	Amount   int64
	Currency string
	// OperatorRef is the operator's own number of the payment.
	OperatorRef string
	// ApprovedAt is the operator's own date of an approval, in UTC; zero where its protocol
	// has none, as those of MTN and Airtel.
	ApprovedAt time.Time
	// FailureCode is set when Status is OutcomeRefused.
	FailureCode checkout.FailureCode
	// Reason is the operator's code behind Status, for logs: never prose.
	Reason string
	// Redirect is the page on which the payer continues a pending collection; nil where the
	// operator contacts the payer.
	Redirect *Redirect
}

// Decided reports whether the outcome is final.
func (o Outcome) Decided() bool {
	return o.Status == checkout.OutcomeApproved || o.Status == checkout.OutcomeRefused
}

// OfKnown returns the outcome of a request whose id the operator already knows, from the
// result of an enquiry. Without a usable result it is pending, because the collection may
// not be readable yet. The service asks about it later.
func OfKnown(enquired Outcome, err error) Outcome {
	if err != nil || enquired.Status == checkout.OutcomeUnknown {
		return Outcome{Status: checkout.OutcomePending}
	}
	return enquired
}

// OfRefused returns the outcome of a refused request from the result of an enquiry about
// its id. The operator may have accepted an earlier request whose answer was lost, so the
// refusal counts only if the operator has no such collection.
func OfRefused(refusal, enquired Outcome, err error) (Outcome, error) {
	switch {
	case err != nil:
		return Outcome{}, WithSent(err, true)
	case enquired.Status == checkout.OutcomeUnknown:
		return refusal, nil
	}
	return enquired, nil
}

// Report is a message of an operator about a collection, sent to its callback address.
type Report struct {
	// ID is the collection's id; empty when the report names none and only the address
	// does.
	ID      string
	Outcome Outcome
	// Ask means that the operator's reports lack what a decision needs, such as the amount
	// or the reason. The service must ask the operator; Outcome decides nothing.
	Ask bool
}
