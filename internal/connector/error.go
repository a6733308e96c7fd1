package connector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// ErrReport says that a report cannot be read.
var ErrReport = errors.New("unreadable report")

// ErrSignature says that the operator did not sign a report.
var ErrSignature = errors.New("the report's signature does not fit")

// FaultKind is the class of an Error, a label of metrics.
type FaultKind string

// The classes of errors.
const (
	// FaultNetwork: there is no connection, or it broke.
	FaultNetwork FaultKind = "network"
	// FaultTimeout: no answer in time.
	FaultTimeout FaultKind = "timeout"
	// FaultServer: the operator reports a problem of its own (5xx).
	FaultServer FaultKind = "server"
	// FaultBusy: the operator asks for fewer calls (429), or the call timed out while it
	// waited for the limit of enquiries.
	FaultBusy FaultKind = "busy"
	// FaultCredentials: the operator does not accept the account.
	FaultCredentials FaultKind = "credentials"
	// FaultMalformed: the answer does not follow the protocol.
	FaultMalformed FaultKind = "malformed"
)

// DoingOpenPayer is Error.Doing when the payer's number cannot be opened: the operator is not
// called.
const DoingOpenPayer = "opening the payer's number"

// DoingOpenLine is Error.Doing when the line of a batch cannot be opened: the operator is not called.
const DoingOpenLine = "opening the line"

// Error says that a call gave no outcome. The call may be tried again. An Error is never
// a refusal.
type Error struct {
	// Doing describes the call: "requesting payment".
	Doing string
	Fault FaultKind
	// Sent is set when the operator may have acted on the call. Otherwise the operator has
	// certainly done nothing.
	Sent bool
	// RetryAfter is the time to wait as the operator asks; 0 if it does not.
	RetryAfter time.Duration
	// Err is the cause. It holds no number, key or address.
	Err error
}

// Error returns the description, the class and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Doing, e.Fault)
	}
	return fmt.Sprintf("%s: %s: %v", e.Doing, e.Fault, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Uncertain reports whether the operator may have acted before this error. An error that
// is not an *Error is uncertain.
func Uncertain(err error) bool {
	if err == nil {
		return false
	}
	var e *Error
	return !errors.As(err, &e) || e.Sent
}

// FaultOf returns the class of an error; FaultMalformed for an error without one.
func FaultOf(err error) FaultKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Fault
	}
	return FaultMalformed
}

// Malformed returns the Error of a request that the protocol cannot express and that was
// not sent, or of a malformed answer to a call that changes nothing.
func Malformed(doing string, err error) *Error {
	return &Error{Doing: doing, Fault: FaultMalformed, Err: err}
}

// NetworkError returns the Error of an HTTP call without an answer. sent says that the
// request may have been sent.
func NetworkError(doing string, sent bool, err error) *Error {
	fault := FaultNetwork
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		fault = FaultTimeout
	}
	// A url.Error repeats the address, which may contain a secret.
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	return &Error{Doing: doing, Fault: fault, Sent: sent, Err: err}
}
