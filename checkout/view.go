package checkout

import "time"

// View is what deciding may look at: the state of one partition. Values are
// read only. An implementation that meets an error remembers it and returns the
// zero value; its owner drops the decision.
type View interface {
	Session(id string) (Session, bool)
	Order(OrderKey) Order
	Idempotency(IdempotencyKey) (Idempotency, bool)
	Quota(applicationID string) Quota
	Token(hash string) (Token, bool)
}

// OrderKey scopes an order to application and mode (decisions § 1).
type OrderKey struct {
	ApplicationID string
	Live          bool
	OrderID       string
}

// Order is what is known of an order. The zero value is an order never seen.
type Order struct {
	OpenSessionID string
	PaidSessionID string
	// Undecided are ended sessions whose collection the operator has not decided.
	Undecided []string
	// Late are sessions whose money arrived after their end.
	Late []string
}

// IdempotencyKey scopes an Idempotency-Key to application and mode.
type IdempotencyKey struct {
	ApplicationID string
	Live          bool
	Key           string
}

// IdempotencyRetention is how long a key is remembered.
const IdempotencyRetention = 30 * 24 * time.Hour

// Idempotency is the answer that a key was given.
type Idempotency struct {
	BodyHash  []byte
	Code      Code
	SessionID string
	Faults    []Fault
	ForgetAt  time.Time
}

// Quota counts an application's creations in two UTC minutes, those that were met
// last: stamps of two senders whose clocks differ, be it by far, each count where
// they belong.
type Quota [2]MinuteCount

// MinuteCount is the creations of one minute.
type MinuteCount struct {
	Minute int64 // since 1970
	Count  int
}

// TokenRetention is how long a token's hash is remembered.
const TokenRetention = 30 * 24 * time.Hour

// Token is a completion token.
type Token struct {
	SessionID  string
	ExpiresAt  time.Time
	ConsumedAt time.Time
	ForgetAt   time.Time
}
