package deliveries

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/schemas/record"
)

// Outcome is the result of one attempt, or the reason why no attempt was made.
type Outcome string

// Outcomes.
const (
	// OutcomeDelivered: the destination accepted the delivery. This is final: no later
	// outcome changes it.
	OutcomeDelivered Outcome = "delivered"
	// OutcomeFailed: the attempt failed. The next one is at NextAttemptAt.
	OutcomeFailed Outcome = "failed"
	// OutcomeDeferred: no call was made, or the destination refused our credentials, which the
	// outcome's HTTP status tells. The attempt is not counted.
	OutcomeDeferred Outcome = "deferred"
	// OutcomeNeedsOperator: a person decides whether to try again.
	OutcomeNeedsOperator Outcome = "needs_operator"
	// OutcomeExhausted: the last attempt of the schedule failed.
	OutcomeExhausted Outcome = "exhausted"
	// OutcomeSuperseded: no call was made, because the destination has accepted the event
	// of the session after which no other one is sent (Registration.Final).
	OutcomeSuperseded Outcome = "superseded"
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{OutcomeDelivered, OutcomeFailed, OutcomeDeferred, OutcomeNeedsOperator, OutcomeExhausted, OutcomeSuperseded}

// Reasons of deferred outcomes.
const (
	ReasonMailboxFull   = "mailbox_full"
	ReasonRateLimited   = "rate_limited"
	ReasonBreakerOpen   = "breaker_open"
	ReasonSuspended     = "suspended"
	ReasonNoDestination = "destination_unknown"
	ReasonLocked        = "destination_locked"
	// ReasonOrderUnknown: Postgres cannot say whether a later event was accepted.
	ReasonOrderUnknown = "order_unknown"
	// ReasonRetried: staff asked for one more call, which is due at once.
	ReasonRetried = "retried"
	// ReasonLimited: the address of a message has had as many as it may get for now. Messages
	// to it that the limits do not bind are sent meanwhile.
	ReasonLimited = "limited"
	// ReasonCredentials: a call was answered that the destination refuses our credentials, for
	// the first time since it accepted anything. Later such answers have their status as reason.
	ReasonCredentials = checkout.ReasonCredentials
)

// ReasonRecorded is the reason of a Delivered outcome without a call: staff recorded that
// the destination has the notification.
const ReasonRecorded = "recorded_by_hand"

// ReasonUnproven is the reason of an outcome without a call: nothing proves that the processor made the
// body, or that it is for that destination. The body is not kept.
const ReasonUnproven = "unproven_body"

// Reasons lists the reasons for which a worker defers.
var Reasons = []string{ReasonMailboxFull, ReasonRateLimited, ReasonBreakerOpen, ReasonSuspended, ReasonNoDestination, ReasonLocked, ReasonOrderUnknown}

// Ref names a delivery in one round of the schedule.
type Ref struct {
	DeliveryID string
	// OccurredAt is the time of the event. Its day selects the table.
	OccurredAt time.Time
	Round      int32
}

// ID returns the id of an event's delivery to a destination. The same arguments
// always give the same id, so an event that is planned twice has one delivery.
func ID(kind Kind, eventID, destinationID string) string {
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + eventID + "\x00" + destinationID))
	return "dlv_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// RedeliveryID returns the id under which an accepted delivery is sent once more.
// Each name of a redelivery gives another id.
func RedeliveryID(kind Kind, eventID, destinationID, redelivery string) string {
	return ID(kind, eventID, destinationID+"\x00"+redelivery)
}

// Requested returns the outcome that a notification with a request has for a delivery,
// without a call: it is due once more, or it is delivered, because staff recorded it. nil
// means that the notification has no request: it is to be delivered. The same notification
// always gives the same outcome.
func Requested(n *record.Notification, d *record.Delivery) *record.Attempt {
	a := &record.Attempt{Delivery: *d, At: n.RequestedAt}
	switch checkout.ConfirmationKind(n.Request) {
	case checkout.RequestAgain:
		a.Outcome, a.Reason, a.NextAttemptAt = string(OutcomeDeferred), ReasonRetried, n.RequestedAt
	case checkout.RequestWithdraw:
		a.Outcome, a.Reason = string(OutcomeDelivered), ReasonRecorded
		a.Delivery.Attempt, a.Delivery.Body, a.Delivery.Mac = 0, nil, nil
	case checkout.RequestConfirm:
		return nil
	default:
		return nil
	}
	return a
}

// refused reports whether the outcome is the answer of a destination that refuses our credentials.
func refused(a *record.Attempt) bool {
	return Outcome(a.Outcome) == OutcomeDeferred && a.HTTPStatus != 0
}

// called reports whether the outcome is that of a call.
func called(a *record.Attempt) bool {
	return (Outcome(a.Outcome) != OutcomeDeferred || refused(a)) && Outcome(a.Outcome) != OutcomeSuperseded && a.Reason != ReasonRecorded && a.Reason != ReasonUnproven
}

// Plan returns the delivery of a notification to a destination. A notification of a payment
// that staff have told again although it was accepted has a delivery of its own.
func Plan(kind Kind, n *record.Notification, destinationID string) *record.Delivery {
	id := ID(kind, n.EventID, destinationID)
	if n.Again > 0 {
		id = RedeliveryID(kind, n.EventID, destinationID, "again-"+strconv.Itoa(int(n.Again)))
	}
	return &record.Delivery{
		DeliveryID: id, Kind: string(kind), DestinationID: destinationID,
		EventID: n.EventID, Event: n.Event, ApplicationID: n.ApplicationID, TenantID: n.TenantID,
		SessionID: n.SessionID, Livemode: n.Livemode, OccurredAt: n.OccurredAt, Attempt: 1, Body: n.Body, URL: n.URL, Mac: n.Mac,
	}
}
