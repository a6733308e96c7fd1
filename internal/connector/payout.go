package connector

import (
	"context"
	"time"

	"quittance/money"
)

// Purpose is what an account with an operator is for. Operators give other credentials, and
// often another product, for each.
type Purpose string

// The purposes.
const (
	// PurposeCollect: money of payers arrives on the account.
	PurposeCollect Purpose = "collect"
	// PurposePayout: people are paid from the account.
	PurposePayout Purpose = "payout"
)

// Disburser is the capability of an operator to pay people from an agency's account. Its
// operator knows a payout by our id and answers an enquiry by it: otherwise nobody could
// tell after a lost answer whether somebody is paid.
type Disburser struct {
	// Account is the type of the accounts from which people are paid. Its name is that of no
	// account of a Collector.
	Account AccountType
	// Takes reports whether an account pays in a currency. Nil: every account pays in XAF
	// alone.
	Takes func(account Account, currency money.Currency) bool
	// New makes the connector.
	New func(Config) (PayoutConnector, error)
}

// PayoutConnector has one operator pay people. Safe for concurrent use.
//
// What an operator's answer means is the same for all (docs/design/payouts.md, "Answers"):
// only money that moved is paid, only a refusal that an enquiry confirms is refused, and
// everything else is undecided.
type PayoutConnector interface {
	// Operator returns the operator's short name, as in its Registration.
	Operator() string
	// Payee turns a number, as an agency writes it, into the operator's form. Errors wrap
	// contact.ErrNotMobile or contact.ErrOtherOperator.
	Payee(input string) (string, error)
	// Pay has the operator pay. Calls with the same Payout.ID are the same payout, even after
	// an error. When the operator says that it knows the id already, whatever its form, that
	// is our own request, and Pay enquires. A refusal of the request is Unconfirmed: the caller
	// enquires, by PayoutOfRefused. Pay does not, because an account may make few enquiries a
	// second, and calls that wait for them would hold the places of others. Errors are *Error:
	// with Sent unset the operator has certainly done nothing, otherwise somebody may be paid.
	Pay(ctx context.Context, account Account, payout Payout) (PayoutOutcome, error)
	// EnquirePayout asks for the state of a payout. The status is PayoutUnknown when the
	// operator says, in its own protocol, that it has no payout of that id. Errors are *Error
	// and decide nothing.
	EnquirePayout(ctx context.Context, account Account, ref PayoutReference) (PayoutOutcome, error)
}

// Payout is an attempt to pay one line of a batch.
type Payout struct {
	PayoutReference
	// PayoutRef is the reference that statements show.
	PayoutRef string
	// Purpose says what is paid for. It may be empty; it is ASCII.
	Purpose string
	// CallbackURL is the address for the operator's reports; empty for none.
	CallbackURL string
}

// PayoutReference names a payout to its operator.
type PayoutReference struct {
	// ID is the attempt's: a UUID of version 4, unique for ever.
	ID string
	// Payee as PayoutConnector.Payee returned it.
	Payee string
	// Amount is in minor units of Currency. It and Payee are compared with what the operator
	// says that it has paid.
	Amount   int64
	Currency string
}

// PayoutStatus is the state of a payout as its operator names it.
type PayoutStatus string

// The states.
const (
	// PayoutPending: the operator has the payout, and nothing is decided.
	PayoutPending PayoutStatus = "pending"
	// PayoutPaid: the money has left the account. Final.
	PayoutPaid PayoutStatus = "paid"
	// PayoutRefused: the operator has not paid. Final, unless it is Unproven.
	PayoutRefused PayoutStatus = "refused"
	// PayoutUnknown: the operator has no payout of the id.
	PayoutUnknown PayoutStatus = "unknown"
)

// PayoutStatuses lists all states.
var PayoutStatuses = []PayoutStatus{PayoutPending, PayoutPaid, PayoutRefused, PayoutUnknown}

// PayoutCause is whose fault a refusal is.
type PayoutCause string

// The causes.
const (
	// CauseFunds: the agency's account lacks the money, or may pay no more for now. Other lines
	// of the account would be refused, too, and later ones may not.
	CauseFunds PayoutCause = "funds"
	// CausePayee: this payee cannot be paid by this operator, or not this amount.
	CausePayee PayoutCause = "payee"
	// CausePayeeOrAccount: the operator has one word for both. Several payees in a row mean
	// the account.
	CausePayeeOrAccount PayoutCause = "payee_or_account"
	// CauseAccount: the account may not pay with its settings, such as a wrong PIN. Only people
	// mend that, and operators lock an account after a few wrong PINs: no other line is tried.
	CauseAccount PayoutCause = "account"
	// CauseOperator: a fault of the operator, or a word that is not known.
	CauseOperator PayoutCause = "operator"
)

// PayoutCauses lists all causes.
var PayoutCauses = []PayoutCause{CauseFunds, CausePayee, CausePayeeOrAccount, CauseAccount, CauseOperator}

// PayoutOutcome is the state of a payout.
type PayoutOutcome struct {
	Status PayoutStatus
	// Amount is what was paid, in minor units of Currency, as the operator names it; that of
	// the reference if its protocol names none. Zero and empty when the answer is not
	// readable: then it agrees with no payout.
	Amount   int64
	Currency string
	// OtherPayee is set when the operator says that it has paid somebody else.
	OtherPayee bool
	// Returned is set when Status is PayoutPaid and the operator says that the whole amount has come back since.
	Returned bool
	// OperatorRef is the operator's own number of the payout.
	OperatorRef string
	// PaidAt is the operator's own date, in UTC; zero where its protocol has none.
	PaidAt time.Time
	// Cause is set when Status is PayoutRefused.
	Cause PayoutCause
	// Unproven is set when Status is PayoutRefused by a word that operators also use when
	// they have paid. A new attempt then needs a statement without such a debit.
	Unproven bool
	// Unconfirmed is set when Status is PayoutRefused by the answer to a request, and nobody has
	// enquired. It decides nothing: an earlier request of the id may have been paid.
	Unconfirmed bool
	// Absent is set when Status is PayoutRefused by the answer to a request, and an enquiry after
	// it found that the operator has no payout of the id. An earlier request of the same id
	// whose answer was lost may still arrive.
	Absent bool
	// Reason is the operator's code behind Status, for logs: never prose.
	Reason string
}

// Decided reports whether the outcome is final.
func (o PayoutOutcome) Decided() bool {
	return o.Status == PayoutPaid || o.Status == PayoutRefused && !o.Unconfirmed
}

// Agrees reports whether a payment is that of the reference. One that is not moved money
// that nobody approved.
func (o PayoutOutcome) Agrees(ref PayoutReference) bool {
	return o.Status == PayoutPaid && o.Amount == ref.Amount && o.Currency == ref.Currency && !o.OtherPayee
}

// PayoutOfKnown returns the outcome of a request whose id the operator knows already, from
// the result of an enquiry. Without a usable result it is pending: the payout may not be
// readable yet, and it is asked about later. It is never refused because it was known.
func PayoutOfKnown(enquired PayoutOutcome, err error) PayoutOutcome {
	if err != nil || enquired.Status == PayoutUnknown {
		return PayoutOutcome{Status: PayoutPending}
	}
	return enquired
}

// PayoutOfRefused returns the outcome of a refused request from the result of an enquiry
// about its id. The operator may have paid for an earlier request whose answer was lost, so
// the refusal counts only if the operator has no such payout, or says itself that it is
// refused. Without an enquiry nothing is decided.
func PayoutOfRefused(refusal, enquired PayoutOutcome, err error) (PayoutOutcome, error) {
	switch {
	case err != nil:
		return PayoutOutcome{}, WithSent(err, true)
	case enquired.Status == PayoutUnknown:
		refusal.Absent, refusal.Unconfirmed = true, false
		return refusal, nil
	}
	return enquired, nil
}
