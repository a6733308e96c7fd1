package connector

import (
	"context"
	"net/http"
	"time"

	"quittance/checkout"
)

// Connector asks one operator for money. Safe for concurrent use.
type Connector interface {
	// Operator is the operator's short name, as in its Registration.
	Operator() string
	// Collect asks the payer for the money. The same Request.ID again is the same
	// collection, whatever became of the first call. An approval or a refusal that
	// it returns is final; an accepted request is pending, with a Redirect where the
	// payer goes on at the operator's own page. Errors are *Error: with Sent unset
	// the operator has certainly done nothing, else it may have.
	Collect(ctx context.Context, account Account, request Request) (Outcome, error)
	// Enquire asks what became of a collection; OutcomeUnknown when the operator
	// has none of that id. Errors are *Error and say nothing of the collection.
	Enquire(ctx context.Context, account Account, ref Reference) (Outcome, error)
	// ParseReport reads what the operator sent to a callback address. Whether the
	// report is genuine is for the caller to check, by its address and its signature
	// (ReportVerifier). Errors wrap ErrReport and repeat nothing of the report but
	// codes.
	ParseReport(header http.Header, body []byte) (Report, error)
}

// PayerReader is a Connector whose operator reaches payers by their number.
type PayerReader interface {
	// Payer turns what a citizen typed into the number as the operator wants it.
	// Errors wrap ErrPayerMalformed or ErrPayerElsewhere.
	Payer(input string) (string, error)
}

// ReportVerifier is a Connector whose operator signs its reports with a secret of
// the merchant account.
type ReportVerifier interface {
	// VerifyReport says whether the account's operator signed the report. Errors
	// wrap ErrSignature.
	VerifyReport(account Account, header http.Header, body []byte) error
}

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

// Outcome is what an operator says of a collection.
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

// Decided says that the outcome is final.
func (o Outcome) Decided() bool {
	return o.Status == checkout.OutcomeApproved || o.Status == checkout.OutcomeRefused
}

// OfKnown is the outcome of a collection that the operator says it has already, by
// what an enquiry about it brought. Without a usable answer it is pending: the
// collection may not be readable yet, or not everywhere, and is asked about later.
func OfKnown(enquired Outcome, err error) Outcome {
	if err != nil || enquired.Status == checkout.OutcomeUnknown {
		return Outcome{Status: checkout.OutcomePending}
	}
	return enquired
}

// OfRefused is the outcome of a request that the operator refuses, by what an enquiry
// about the same id brought: an earlier request, whose answer was lost, may have been
// accepted. The refusal counts only if the operator has no such collection.
func OfRefused(refusal, enquired Outcome, err error) (Outcome, error) {
	switch {
	case err != nil:
		return Outcome{}, WithSent(err, true)
	case enquired.Status == checkout.OutcomeUnknown:
		return refusal, nil
	}
	return enquired, nil
}

// Report is what an operator says of a collection without being asked.
type Report struct {
	// ID is the collection's as the report names it; empty when it has none and only
	// the address tells.
	ID      string
	Outcome Outcome
	// Ask says that the operator's reports lack what a decision needs, such as the
	// amount or the reason: the operator must be asked, Outcome decides nothing.
	Ask bool
}
