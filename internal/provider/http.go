package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"

	"quittance/internal/connector"
)

// Account is the account of a provider with an HTTP API, for connector.Base. It prints as
// its address alone.
type Account struct {
	connector.BaseURL
	// User is the name that belongs to Key; empty where the key is enough.
	User string
	Key  string
}

// Fingerprint identifies the account.
func (a Account) Fingerprint() string {
	sum := sha256.Sum256([]byte(string(a.BaseURL) + "\x00" + a.User))
	return hex.EncodeToString(sum[:8])
}

// OfCall returns the Error of a call without an answer.
func OfCall(doing string, err error) *Error {
	e := &Error{Doing: doing, Fault: FaultNotSent, Code: string(connector.FaultOf(err))}
	switch {
	case connector.Uncertain(err):
		e.Fault = FaultUnknown
	case connector.FaultOf(err) == connector.FaultCredentials:
		e.Fault = FaultCredentials
	}
	return e
}

// OfAnswer returns the Error of an HTTP answer that is no 2xx. A server's error (5xx) does
// not tell what the server did before it, except for 503. code is the provider's.
func OfAnswer(doing string, a connector.Answer, code string) *Error {
	e := &Error{Doing: doing, Code: Code(code), RetryAfter: a.RetryAfter}
	if e.Code == "" {
		e.Code = "http_" + strconv.Itoa(a.Status)
	}
	switch {
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden || a.Status == http.StatusProxyAuthRequired:
		e.Fault = FaultCredentials
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		e.Fault = FaultBusy
	case a.Status >= 400 && a.Status < 500 && a.Status != http.StatusRequestTimeout:
		e.Fault = FaultRefused
	default:
		e.Fault = FaultUnknown
	}
	return e
}
