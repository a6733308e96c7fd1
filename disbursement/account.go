package disbursement

import (
	"slices"
	"time"
)

// AccountKey names a payout account of an agency in a mode.
type AccountKey struct {
	TenantID string
	Live     bool
	Code     string
}

// Account is the state of a payout account: who waits for it and which lines are enquired about.
type Account struct {
	AccountKey

	// InFlight is the number of requests that are not answered.
	InFlight int
	// Ring are the batches with waiting lines. They send in turn, so that a small batch does not wait for a large one.
	Ring []string
	// Reason says why the account is paused, PausedAt since when; both are empty for an open account.
	Reason   string
	PausedAt time.Time
	// Closed is the fingerprint of the settings that the operator refused, such as a wrong PIN or revoked keys; empty for an
	// account that is not closed. A closed account is paused, and tries no line by itself: operators lock an account after a few
	// wrong PINs. Closings counts how often it was closed. The sender carries out no request that was made before the last time.
	Closed   string
	Closings int
	// SendAt is when the next line may be sent: at once, or the next probe of a paused account.
	SendAt time.Time
	// Suspects counts refusals in a row that may be for want of funds.
	Suspects int

	// Head and Tail are the numbers of the first entry of the queue of enquiries and after the last one. EnquireAt is when
	// the first one is due.
	Head, Tail int64
	EnquireAt  time.Time
	// PerSecond is how many enquiries the operator takes.
	PerSecond int
}

// maxSuspects is the number of payees in a row whose refusals may be for want of the agency's funds, after which the
// account pauses.
const maxSuspects = 3

// Paused reports whether the account has no funds or is closed.
func (a Account) Paused() bool { return !a.PausedAt.IsZero() }

// admits reports whether a line may be sent at a time.
func (a Account) admits(at time.Time) bool {
	return a.InFlight < MaxInFlight && a.Closed == "" && (!a.Paused() || !at.Before(a.SendAt))
}

// Deadline returns when the account needs a tick; the zero time if it needs none.
func (a Account) Deadline() time.Time {
	var at time.Time
	if a.Head < a.Tail {
		at = a.EnquireAt
	}
	if len(a.Ring) > 0 && a.InFlight < MaxInFlight && a.Closed == "" && (at.IsZero() || a.SendAt.Before(at)) {
		at = a.SendAt
	}
	return at
}

func (a Account) copied() Account {
	a.Ring = slices.Clone(a.Ring)
	return a
}

// QueueKey names an entry of a queue. The queues are counters in their owner, since a state has no range reads.
type QueueKey struct {
	// Owner is a batch and the number of its account, for lines that wait; an account, for lines to enquire about.
	Owner string
	N     int64
}

// Queued is an entry of a queue. The zero value deletes it.
type Queued struct {
	LineKey

	// Attempt and Due are those of an enquiry.
	Attempt int
	Due     time.Time
}

// AgencyKey names an agency in a mode.
type AgencyKey struct {
	TenantID string
	Live     bool
}

// BatchRefKey names a batch_ref of an agency in a mode.
type BatchRefKey struct {
	AgencyKey

	BatchRef string
}

// BatchRef is the newest batch of a batch_ref.
type BatchRef struct {
	Batch    string
	Revision int
}

// RefKey names a line_ref by its hash.
type RefKey [32]byte
