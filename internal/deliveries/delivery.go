package deliveries

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"quittance/schemas/record"
)

// Outcome is the result of a delivery's turn.
type Outcome string

// Outcomes. Delivered is final: no later outcome reopens it.
const (
	// OutcomeDelivered: the destination accepted the delivery.
	OutcomeDelivered Outcome = "delivered"
	// OutcomeFailed: the attempt failed; the next one is at NextAttemptAt.
	OutcomeFailed Outcome = "failed"
	// OutcomeDeferred: no call was made; this costs no attempt.
	OutcomeDeferred Outcome = "deferred"
	// OutcomeNeedsOperator: a person decides whether to try again.
	OutcomeNeedsOperator Outcome = "needs_operator"
	// OutcomeExhausted: the last attempt of the schedule failed.
	OutcomeExhausted Outcome = "exhausted"
)

// Outcomes lists them all.
var Outcomes = []Outcome{OutcomeDelivered, OutcomeFailed, OutcomeDeferred, OutcomeNeedsOperator, OutcomeExhausted}

// Reasons of deferred outcomes.
const (
	ReasonMailboxFull   = "mailbox_full"
	ReasonRateLimited   = "rate_limited"
	ReasonBreakerOpen   = "breaker_open"
	ReasonSuspended     = "suspended"
	ReasonNoDestination = "destination_unknown"
	ReasonLocked        = "destination_locked"
)

// Reasons lists them all.
var Reasons = []string{ReasonMailboxFull, ReasonRateLimited, ReasonBreakerOpen, ReasonSuspended, ReasonNoDestination, ReasonLocked}

// Ref names a delivery in one round of the schedule.
type Ref struct {
	DeliveryID string
	// OccurredAt is the time of the event: the tables are by its day.
	OccurredAt time.Time
	Round      int32
}

// ID is the id of an event's delivery to a destination. It is always the same for
// the same pair, so planning twice changes nothing.
func ID(kind Kind, eventID, destinationID string) string {
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + eventID + "\x00" + destinationID))
	return "dlv_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// RedeliveryID is the id under which an accepted delivery is sent once more: one
// for each name of a redelivery.
func RedeliveryID(kind Kind, eventID, destinationID, redelivery string) string {
	return ID(kind, eventID, destinationID+"\x00"+redelivery)
}

// Plan is the delivery of a notification to a destination.
func Plan(kind Kind, n *record.Notification, destinationID string) *record.Delivery {
	return &record.Delivery{
		DeliveryID: ID(kind, n.EventID, destinationID), Kind: string(kind), DestinationID: destinationID,
		EventID: n.EventID, Event: n.Event, ApplicationID: n.ApplicationID, TenantID: n.TenantID,
		SessionID: n.SessionID, Livemode: n.Livemode, OccurredAt: n.OccurredAt, Attempt: 1, Body: n.Body,
	}
}
