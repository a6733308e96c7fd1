package journal

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Movement says what happened to money.
type Movement = string

// Movements of money. Completed and late have a row for each item of the session, a
// reversal of them as well. The others are about a whole collection.
const (
	// MovementCompleted is money that completed its session in time.
	MovementCompleted Movement = "completed"
	// MovementLate is money that arrived after its session ended, or a mismatch that was
	// honoured after it. Honouring moves no money: late money has no further row, and an
	// honoured mismatch has a negative one.
	MovementLate Movement = "late"
	// MovementReversal is money that was given back, or a report that its operator replaced
	// by another. Its amounts are negative.
	MovementReversal Movement = "reversal"
	// MovementOrphan is money that was reported for a collection that is not the session's.
	MovementOrphan Movement = "orphan"
	// MovementMismatch is money of another amount or currency than its collection.
	MovementMismatch Movement = "mismatch"
)

// Movements lists all movements.
var Movements = []Movement{MovementCompleted, MovementLate, MovementReversal, MovementOrphan, MovementMismatch}

// Receipt is a row of receipt_rows: a movement of money. Like an Entry it is derived from
// its Kafka record only. Absent text is empty. Amounts are minor units of Currency, and
// negative in a reversal.
type Receipt struct {
	// ID is derived from the event and the item (ReceiptID).
	ID       uuid.UUID `ch:"row_id"`
	Movement Movement  `ch:"movement"`
	// OccurredAt is when the service recorded the movement, in UTC.
	OccurredAt time.Time `ch:"occurred_at"`
	// LocalDate is its day in Africa/Brazzaville. It selects the partition by its month and is
	// part of the sorting key.
	LocalDate time.Time `ch:"local_date"`
	// ApprovedOn is the local day on which the operator approved the collection, or on which
	// its approval became known if the operator told no date. A reversal has the day of the
	// money that it gives back.
	ApprovedOn time.Time `ch:"approved_on"`

	TenantID      string `ch:"tenant_id"`
	ApplicationID string `ch:"application_id"`
	Livemode      bool   `ch:"livemode"`
	// Account is the fingerprint of the merchant account that has the money; of cash, the
	// counter.
	Account string `ch:"account"`
	// Mode is hosted or embedded.
	Mode    string `ch:"mode"`
	Channel string `ch:"channel"`
	OfferID string `ch:"offer_id"`

	SessionID    string `ch:"session_id"`
	OrderID      string `ch:"order_id"`
	PaymentRef   string `ch:"payment_ref"`
	CollectionID string `ch:"collection_id"`
	OperatorRef  string `ch:"operator_ref"`
	// Item is the position of the item in its session, from 1; 0 for a whole collection.
	Item          uint16 `ch:"item"`
	ERPDueRef     string `ch:"erp_due_ref"`
	TransactionID string `ch:"transaction_id"`
	NoticeRef     string `ch:"notice_ref"`
	ServiceCode   string `ch:"service_code"`
	ServiceLabel  string `ch:"service_label"`

	Currency string `ch:"currency"`
	// Amount is the due, without fees; of a whole collection, what was reported.
	Amount      int64 `ch:"amount"`
	FeeAmount   int64 `ch:"fee_amount"`
	TotalAmount int64 `ch:"total_amount"`

	// Reason says why money was given back, or why a report does not fit.
	Reason string `ch:"reason"`
	// Reference names the refund.
	Reference string `ch:"reference"`
	CaseID    string `ch:"case_id"`
	// RecordedBy is the clerk who took or gave back cash, or the staff who resolved the case.
	RecordedBy string `ch:"recorded_by"`
}

// receipts is the namespace of the ids of receipts. It never changes.
var receipts = uuid.MustParse("5c0a6f4e-7d0b-5b43-9a55-3d1f0b7f6a01")

// ReceiptID returns the id of the receipt of an item, or of the whole collection for item
// 0, that an event causes.
func ReceiptID(eventID string, item uint16) uuid.UUID {
	return uuid.NewSHA1(receipts, fmt.Appendf(nil, "%s/%d", eventID, item))
}

// Validate returns an error that wraps ErrInvalidEntry unless the receipt can be written.
func (r *Receipt) Validate() error {
	switch {
	case r.ID == uuid.Nil:
		return fmt.Errorf("%w: a receipt without an id", ErrInvalidEntry)
	case r.Movement == "":
		return fmt.Errorf("%w: receipt %s has no movement", ErrInvalidEntry, r.ID)
	case r.TotalAmount != r.Amount+r.FeeAmount:
		return fmt.Errorf("%w: receipt %s has the total %d of %d and %d", ErrInvalidEntry, r.ID, r.TotalAmount, r.Amount, r.FeeAmount)
	}
	return validTimes(r.ID.String(), &r.OccurredAt, &r.LocalDate, &r.ApprovedOn)
}

var receiptTable = tableOf[Receipt]("receipt_rows").by("local_date", "tenant_id", "account", "row_id")

func (r *Receipt) table() *table { return receiptTable }
func (r *Receipt) key() string   { return r.ID.String() }
