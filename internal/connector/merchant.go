package connector

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/time/rate"
)

type comparableAccount interface {
	Account
	comparable
}

// Merchants keeps what a connector needs of each merchant account between calls: its
// token and its pace. It is in memory only; a restart loses nothing. Safe for
// concurrent use.
type Merchants[A comparableAccount] struct {
	cfg   Config
	issue func(context.Context, A) (Token, error)

	mu        sync.Mutex
	byAccount map[A]*Merchant[A]
}

// Merchant is one account of type A. Safe for concurrent use.
type Merchant[A any] struct {
	Account A
	// Tokens is the account's access token; of operators that give out tokens.
	Tokens    *Tokens
	enquiries *rate.Limiter
}

// NewMerchants makes a Merchants. issue asks an account's operator for a token, see
// Tokens.Issue; nil where calls carry none.
func NewMerchants[A comparableAccount](cfg Config, issue func(context.Context, A) (Token, error)) *Merchants[A] {
	return &Merchants[A]{cfg: cfg, issue: issue, byAccount: map[A]*Merchant[A]{}}
}

// Of is the merchant of an account. An account of another connector's type is an
// *Error.
func (m *Merchants[A]) Of(account Account) (*Merchant[A], error) {
	a, ok := account.(A)
	if !ok {
		return nil, &Error{Doing: "reading the merchant account", Fault: FaultCredentials, Err: errors.New("it is another operator's")}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byAccount[a]
	if known == nil {
		known = &Merchant[A]{Account: a, enquiries: rate.NewLimiter(rate.Limit(m.cfg.EnquiriesPerSecond), 1)}
		if m.issue != nil {
			known.Tokens = &Tokens{Now: m.cfg.Now, Issue: func(ctx context.Context) (Token, error) { return m.issue(ctx, a) }}
		}
		m.byAccount[a] = known
	}
	return known, nil
}

// AwaitEnquiry waits until the account may make another enquiry, at most
// Config.EnquiriesPerSecond. The error is an *Error.
func (m *Merchant[A]) AwaitEnquiry(ctx context.Context, doing string) error {
	if err := m.enquiries.Wait(ctx); err != nil {
		return &Error{Doing: doing, Fault: FaultBusy, Err: err}
	}
	return nil
}
