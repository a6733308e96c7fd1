package connector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// ErrReport is a report that cannot be read.
var ErrReport = errors.New("unreadable report")

// ErrSignature is a report that its operator did not sign.
var ErrSignature = errors.New("the report's signature does not fit")

// FaultKind is the class of an Error, a label of metrics.
type FaultKind string

// The classes of errors.
const (
	// FaultNetwork: no connection, or a broken one.
	FaultNetwork FaultKind = "network"
	// FaultTimeout: no answer in time.
	FaultTimeout FaultKind = "timeout"
	// FaultServer: the operator says that it has a problem (5xx).
	FaultServer FaultKind = "server"
	// FaultBusy: the operator asks for fewer calls (429), or our own cap was
	// reached before the call's time was over.
	FaultBusy FaultKind = "busy"
	// FaultCredentials: the operator does not accept the account.
	FaultCredentials FaultKind = "credentials"
	// FaultMalformed: an answer that is not of the protocol.
	FaultMalformed FaultKind = "malformed"
)

// Error is a call that brought no outcome. It may be tried again; it is never a
// refusal.
type Error struct {
	// Doing is what was being done: "requesting payment".
	Doing string
	Fault FaultKind
	// Sent is set when the operator may have acted on the call. Without it the
	// operator has certainly not.
	Sent bool
	// RetryAfter is how long the operator asks not to be called; 0 if it does not say.
	RetryAfter time.Duration
	// Err is the cause; it holds no number, key or address.
	Err error
}

// Error says what was being done and why it did not succeed.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Doing, e.Fault)
	}
	return fmt.Sprintf("%s: %s: %v", e.Doing, e.Fault, e.Err)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Uncertain says whether, after this error, the operator may have acted. An
// error that is not an *Error is uncertain.
func Uncertain(err error) bool {
	if err == nil {
		return false
	}
	var e *Error
	return !errors.As(err, &e) || e.Sent
}

// FaultOf is the class of an error; FaultMalformed for one that has none.
func FaultOf(err error) FaultKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Fault
	}
	return FaultMalformed
}

// Malformed is the Error of a request that the protocol cannot express, before
// anything is sent, or of an answer that is not of the protocol, to a call that
// changes nothing.
func Malformed(doing string, err error) *Error {
	return &Error{Doing: doing, Fault: FaultMalformed, Err: err}
}

// NetworkError is the Error of an HTTP call that got no answer. Sent says that
// the request may have left.
func NetworkError(doing string, sent bool, err error) *Error {
	fault := FaultNetwork
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		fault = FaultTimeout
	}
	// A url.Error repeats the address, which may contain what must not be logged.
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	return &Error{Doing: doing, Fault: fault, Sent: sent, Err: err}
}
