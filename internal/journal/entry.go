package journal

import (
	"fmt"
	"time"

	"quittance/internal/kafka/consume"
)

// EntryType is the kind of fact that an entry records.
type EntryType = string

// Types of entries.
const (
	// EntryTypeEvent is an event of a session, with the session after the event.
	EntryTypeEvent EntryType = "event"
	// EntryTypeDelivery is the outcome of one attempt to deliver a webhook or an ERP
	// confirmation.
	EntryTypeDelivery EntryType = "delivery"
	// EntryTypeCall is a call to an operator about a collection, and its answer.
	EntryTypeCall EntryType = "call"
	// EntryTypeStatement is a line of an operator's or a bank's statement.
	EntryTypeStatement EntryType = "statement"
	// EntryTypeFinding is a match, a proposal or a break of the matcher, or its end.
	EntryTypeFinding EntryType = "finding"
)

// EntryTypes lists all types.
var EntryTypes = []EntryType{EntryTypeEvent, EntryTypeDelivery, EntryTypeCall, EntryTypeStatement, EntryTypeFinding}

// Entry is a row of the journal. Every field, above all ID and OccurredAt, is derived
// from a Kafka record only, so the same record gives the same entry each time it is
// read. Absent text is empty, absent amounts are 0, absent times are nil. Amounts are
// minor units of Currency. Times are UTC to the millisecond. Phone numbers are masked.
type Entry struct {
	// ID is unique among all entries, and the same whenever the entry is written.
	ID   string    `ch:"entry_id"`
	Type EntryType `ch:"entry_type"`
	// OccurredAt selects the partition by its month and is part of the sorting key by
	// its day.
	OccurredAt time.Time `ch:"occurred_at"`
	// Event is checkout.completed and the like.
	Event   string `ch:"event"`
	EventID string `ch:"event_id"`
	// Sequence of the event in its session, from 1; 0 when it has none.
	Sequence int64 `ch:"sequence"`

	TenantID      string `ch:"tenant_id"`
	ApplicationID string `ch:"application_id"`
	Livemode      bool   `ch:"livemode"`
	SessionID     string `ch:"session_id"`
	OrderID       string `ch:"order_id"`
	PaymentRef    string `ch:"payment_ref"`
	NoticeID      string `ch:"notice_id"`
	NoticeRef     string `ch:"notice_ref"`
	TransactionID string `ch:"transaction_id"`
	// Mode is hosted or embedded.
	Mode string `ch:"mode"`
	// Status of the session after the event.
	Status string `ch:"status"`
	// Amount due, without fees.
	Amount       int64             `ch:"amount"`
	Currency     string            `ch:"currency"`
	ServiceCode  string            `ch:"service_code"`
	ServiceLabel string            `ch:"service_label"`
	Metadata     map[string]string `ch:"metadata"`
	CreatedAt    *time.Time        `ch:"created_at"`
	ExpiresAt    *time.Time        `ch:"expires_at"`
	EndedAt      *time.Time        `ch:"ended_at"`
	CompletedAt  *time.Time        `ch:"completed_at"`
	FailureCode  string            `ch:"failure_code"`

	// CollectionID is the reference that the operator has.
	CollectionID string `ch:"collection_id"`
	// Account is the fingerprint of the merchant account that was asked; of cash, the counter.
	Account          string `ch:"account"`
	CollectionStatus string `ch:"collection_status"`
	Channel          string `ch:"channel"`
	OfferID          string `ch:"offer_id"`
	OperatorRef      string `ch:"operator_ref"`
	PayerMasked      string `ch:"payer_masked"`
	FeeAmount        int64  `ch:"fee_amount"`
	// TotalAmount is what the citizen pays: amount and fee.
	TotalAmount int64 `ch:"total_amount"`
	// Detail has the event's own facts, beside the session.
	Detail map[string]string `ch:"detail"`

	DeliveryID string `ch:"delivery_id"`
	// DestinationKind is webhook or erp.
	DestinationKind string     `ch:"destination_kind"`
	EndpointID      string     `ch:"endpoint_id"`
	Attempt         int32      `ch:"attempt"`
	Outcome         string     `ch:"outcome"`
	HTTPStatus      int32      `ch:"http_status"`
	DurationMS      int64      `ch:"duration_ms"`
	Reason          string     `ch:"reason"`
	NextAttemptAt   *time.Time `ch:"next_attempt_at"`

	// SourcePartition and SourceOffset are where an event is in checkout.events; 0 for other entries,
	// and for those that an earlier release wrote.
	SourcePartition int32 `ch:"source_partition"`
	SourceOffset    int64 `ch:"source_offset"`
}

// ErrInvalidEntry is the error of an entry that the journal cannot store. Writing it
// again gives the same error.
var ErrInvalidEntry = fmt.Errorf("invalid journal entry: %w", consume.ErrRefused)

// Bounds of the times that the table's partitions are made for. A time outside of them
// is a mistake of the writer, which DateTime64 would change silently.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Validate returns an error that wraps ErrInvalidEntry unless the entry can be
// written.
func (e *Entry) Validate() error {
	switch {
	case e.ID == "":
		return fmt.Errorf("%w: no id", ErrInvalidEntry)
	case e.Type == "":
		return fmt.Errorf("%w: %s has no type", ErrInvalidEntry, e.ID)
	}
	return validTimes(e.ID, &e.OccurredAt, e.CreatedAt, e.ExpiresAt, e.EndedAt, e.CompletedAt, e.NextAttemptAt)
}

var entryTable = tableOf[Entry]("journal").by("occurred_at", "tenant_id", "entry_id")

func (e *Entry) table() *table { return entryTable }
func (e *Entry) key() string   { return e.ID }

// validTimes checks the times of a row. Nil times are absent.
func validTimes(id string, times ...*time.Time) error {
	for _, at := range times {
		if at != nil && (at.Before(earliest) || !at.Before(latest)) {
			return fmt.Errorf("%w: %s has the time %s", ErrInvalidEntry, id, at.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
