package checkout

import "time"

// View is the state of one partition, as Decide reads it. Values are read-only. When a
// read fails, the implementation remembers the error and returns the zero value; the
// caller of Decide then drops the decision.
type View interface {
	Session(id string) (Session, bool)
	Order(OrderKey) Order
	Idempotency(IdempotencyKey) (Idempotency, bool)
	Quota(applicationID string) Quota
	Token(hash string) (Token, bool)
	// Tokens are the tokens of a session.
	Tokens(sessionID string) TokenList
	Till(TillKey) Till
	// Month is the last number of a month, 0 if it has none.
	Month(MonthKey) int
	// Numbered is the id of the session with a number, empty if there is none.
	Numbered(NumberKey) string
	External(ExternalKey) External
	Claim(ClaimKey) Claim
	RefusingERP(ERPKey) RefusingERP
}

// OrderKey scopes an order to application and mode (docs/design/decisions.md § 1).
type OrderKey struct {
	ApplicationID string
	Live          bool
	OrderID       string
}

// Order is the state of an order. The zero value is an order that was never seen.
type Order struct {
	OpenSessionID string
	PaidSessionID string
	// Undecided are the ids of ended sessions whose collection is not final.
	Undecided []string
	// Late are the ids of sessions of which an open case blocks the order: their money
	// arrived after their end, or does not fit.
	Late []string
	// Cash are the ids of collections with which clerks reported cash for the order.
	Cash []string
}

// IdempotencyKey scopes an Idempotency-Key to application and mode.
type IdempotencyKey struct {
	ApplicationID string
	Live          bool
	Key           string
}

// IdempotencyRetention is how long a key is remembered. RefusedCartRetention is that of a key
// with which a citizen's cart was refused: no quota of an application bounds their number.
const (
	IdempotencyRetention = 30 * 24 * time.Hour
	RefusedCartRetention = 24 * time.Hour
)

// Idempotency is the answer to the first request with a key.
type Idempotency struct {
	BodyHash  []byte
	Code      Code
	SessionID string
	Faults    []Fault
	ForgetAt  time.Time
}

// Quota counts an application's creations in the two UTC minutes that were used last, so
// that the stamps of two senders are each counted in their own minute even if their
// clocks differ.
type Quota [2]MinuteCount

// MinuteCount is the number of creations in one minute.
type MinuteCount struct {
	Minute int64 // since 1970
	Count  int
}

// TokenRetention is how long a token's hash is remembered.
const TokenRetention = 30 * 24 * time.Hour

// MaxTokens is the number of tokens of a session that are remembered. A further one
// replaces the oldest, which is unknown from then on. A page that is opened again and again
// always gets a token, and the state does not grow with it.
const MaxTokens = 20

// TokenList names the tokens of a session that are remembered, the oldest first.
type TokenList struct {
	Hashes   [][]byte
	ForgetAt time.Time // that of the newest token
}

// Token is a completion token.
type Token struct {
	SessionID  string
	ExpiresAt  time.Time
	ConsumedAt time.Time
	ForgetAt   time.Time
}

// TillKey names a clerk in a mode.
type TillKey struct {
	AgencyID string
	Live     bool
	Clerk    string
}

// Till counts the cash that a clerk put on record on one day. The zero value is a clerk
// without cash.
type Till struct {
	Day   string // local date, such as 2026-11-22
	Taken int64  // sum of totals, minor units; cash that was given back still counts
}
