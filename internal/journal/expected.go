package journal

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ExpectedKind says what expected money is.
type ExpectedKind = string

// Kinds of expected money.
const (
	// ExpectedReceived is money of a collection, whether or not it pays its session.
	ExpectedReceived ExpectedKind = "received"
	// ExpectedGivenBack is money that was given back. Its amounts are negative.
	ExpectedGivenBack ExpectedKind = "given_back"
	// ExpectedUndecided is a collection of an ended session whose operator has not said
	// whether it has the money.
	ExpectedUndecided ExpectedKind = "undecided"
	// ExpectedPaidOut is money that a payout account paid for a line of a batch. Its amounts are
	// negative. ExpectedReturned is such money that came back.
	ExpectedPaidOut  ExpectedKind = "paid_out"
	ExpectedReturned ExpectedKind = "returned"
	// ExpectedRefused is an attempt to pay a line that paid nobody, by the word of its operator.
	// It is no money: no statement may show it.
	ExpectedRefused ExpectedKind = "refused"
)

// UncountedSQL is the condition that a row of expected_money is no money that anybody has.
const UncountedSQL = "kind IN ('undecided', 'refused')"

// Counted reports whether expected money of a kind is money that somebody has.
func Counted(kind ExpectedKind) bool { return kind != ExpectedUndecided && kind != ExpectedRefused }

// ExpectedKinds lists all kinds.
var ExpectedKinds = []ExpectedKind{ExpectedReceived, ExpectedGivenBack, ExpectedUndecided, ExpectedPaidOut, ExpectedReturned, ExpectedRefused}

// ExpectedState says how the money came.
type ExpectedState = string

// States of expected money.
const (
	ExpectedCompleted ExpectedState = "completed"
	ExpectedLate      ExpectedState = "late"
	ExpectedMismatch  ExpectedState = "mismatch"
	ExpectedOrphan    ExpectedState = "orphan"
	ExpectedReversed  ExpectedState = "reversed"
	ExpectedOpen      ExpectedState = "undecided"
	ExpectedPaid      ExpectedState = "paid"
	// States of undecided payouts: nobody knows, or the operator refused and that proves nothing.
	ExpectedSent     ExpectedState = "sent"
	ExpectedUnproven ExpectedState = "unproven"
	// ExpectedProven is a refused payout of which statements alone prove that it paid nobody.
	ExpectedProven ExpectedState = "proven"
)

// Expected is a row of expected_money: money that a statement must show. Like a Receipt it is
// derived from its Kafka record only. It never changes: an entry that does not count any more
// gets a second row, with Withdrawn and the negative amounts.
type Expected struct {
	// ID is derived from the collection, the case or the attempt to pay a line (ExpectedID).
	ID        uuid.UUID     `ch:"entry_id"`
	Withdrawn bool          `ch:"withdrawn"`
	Kind      ExpectedKind  `ch:"kind"`
	State     ExpectedState `ch:"state"`
	// ApprovedAt is the operator's own time of the approval, or when its approval became
	// known; of money given back or paid out, when that was recorded; of an undecided collection
	// or payout, when it was asked for.
	ApprovedAt time.Time `ch:"approved_at"`
	// LocalDate is its day in Africa/Brazzaville, at midnight UTC. It selects the partition by
	// its month and is part of the sorting key.
	LocalDate time.Time `ch:"local_date"`
	// OccurredAt is when the service recorded it, in UTC.
	OccurredAt time.Time `ch:"occurred_at"`

	TenantID string `ch:"tenant_id"`
	// ApplicationID and Channel are empty for payouts.
	ApplicationID string `ch:"application_id"`
	Livemode      bool   `ch:"livemode"`
	Channel       string `ch:"channel"`
	// OfferID of a payout is the code of the payout account.
	OfferID string `ch:"offer_id"`
	// Account is the fingerprint of the merchant account that has the money, or of the payout
	// account; of cash, the counter.
	Account string `ch:"account"`

	// SessionID, CollectionID and PaymentRef of a payout are the batch, the attempt (PayoutName) and
	// its payout_ref. It has no OrderID.
	SessionID    string `ch:"session_id"`
	OrderID      string `ch:"order_id"`
	CollectionID string `ch:"collection_id"`
	// OperatorRef is the operator's own reference of the payment; of cash, the number of the
	// receipt.
	OperatorRef string   `ch:"operator_ref"`
	PaymentRef  string   `ch:"payment_ref"`
	NoticeRefs  []string `ch:"notice_refs"`
	// Reference names a refund.
	Reference string `ch:"reference"`
	Reason    string `ch:"reason"`
	CaseID    string `ch:"case_id"`

	Currency string `ch:"currency"`
	// Gross is what the citizen paid: the items and the fee, in minor units of Currency.
	Gross int64 `ch:"gross"`
	Fee   int64 `ch:"fee"`
	// DueRefs, TransactionIDs and Amounts tell of the dues that the money pays, in the order of the
	// session: the ERP's reference or the empty text, the transaction, and the amount without fees in
	// minor units, negative for money given back. They are empty for money beside a payment.
	DueRefs        []string `ch:"due_refs"`
	TransactionIDs []string `ch:"transaction_ids"`
	Amounts        []int64  `ch:"amounts"`

	// SourceTopic is the topic of the event without the prefix of the installation.
	SourceTopic     string `ch:"source_topic"`
	SourcePartition int32  `ch:"source_partition"`
	SourceOffset    int64  `ch:"source_offset"`
	// Version is that of the offset (ExpectedVersion).
	Version uint64 `ch:"version"`
}

// ExpectedVersion returns the version of the row that the record at an offset makes. It is
// higher for a lower offset: an event of cases.events may be written twice, and the first
// counts.
func ExpectedVersion(offset int64) uint64 { return math.MaxInt64 - uint64(max(offset, 0)) }

// expected is the namespace of the ids of expected money. It never changes.
var expected = uuid.MustParse("0d2f3c5e-3d5b-5f0b-8a53-6b6c1c9f7e12")

// ExpectedID returns the id of expected money of a kind. of is the session and the collection,
// or the case of money that is not its session's.
func ExpectedID(kind ExpectedKind, of ...string) uuid.UUID {
	return uuid.NewSHA1(expected, fmt.Appendf(nil, "%s/%q", kind, of))
}

// ExpectedRow returns the name of a row of expected_money in findings: its day in Africa/Brazzaville,
// such as 2026-11-23, and the id of the entry.
func ExpectedRow(day, entryID string) string { return day + "/" + entryID }

// Row returns ExpectedRow of the row.
func (e *Expected) Row() string { return ExpectedRow(e.LocalDate.Format(time.DateOnly), e.ID.String()) }

// MoneyOf returns the name of whose money it is, as in MatchRun.MoneyOf and Close.MoneyOf: agency,
// currency, offer and merchant account or counter. The last part may have slashes.
func MoneyOf(tenantID, currency, offerID, account string) string {
	return strings.Join([]string{tenantID, currency, offerID, account}, "/")
}

// Withdraw returns the row after which the entry does not count any more.
func (e Expected) Withdraw(reason string) Expected {
	e.Withdrawn, e.Reason, e.Gross, e.Fee = true, reason, -e.Gross, -e.Fee
	return e
}

// Validate returns an error that wraps ErrInvalidEntry unless the row can be written.
func (e *Expected) Validate() error {
	switch {
	case e.ID == uuid.Nil:
		return fmt.Errorf("%w: expected money without an id", ErrInvalidEntry)
	case e.Kind == "" || e.State == "":
		return fmt.Errorf("%w: expected money %s has no kind or state", ErrInvalidEntry, e.ID)
	case e.SourceTopic == "" || e.Version != ExpectedVersion(e.SourceOffset):
		return fmt.Errorf("%w: expected money %s of %q at %d has the version %d", ErrInvalidEntry, e.ID, e.SourceTopic, e.SourceOffset, e.Version)
	case len(e.DueRefs) != len(e.Amounts) || len(e.TransactionIDs) != len(e.Amounts):
		return fmt.Errorf("%w: expected money %s has %d amounts, %d transactions and %d references of dues", ErrInvalidEntry, e.ID, len(e.Amounts), len(e.TransactionIDs), len(e.DueRefs))
	}
	return validTimes(e.ID.String(), &e.ApprovedAt, &e.LocalDate, &e.OccurredAt)
}

var expectedTable = tableOf[Expected]("expected_money").by("local_date", "tenant_id", "account", "collection_id", "entry_id", "withdrawn")

func (e *Expected) table() *table { return expectedTable }
func (e *Expected) key() string   { return e.ID.String() }
