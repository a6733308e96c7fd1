package connector

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"quittance/internal/form"
)

const (
	// maxAnswer is how many bytes of an answer are read at most.
	maxAnswer     = 64 << 10
	maxRetryAfter = 5 * time.Minute
)

// Call is one HTTP request to an operator.
type Call struct {
	// Doing describes the call, as in Error.
	Doing  string
	Method string
	// Path is appended to the account's address. It may have a query.
	Path string
	// Body is a JSON text, unless Header has another Content-Type; nil for none.
	Body []byte
	// Header is what is sent besides the account's token. Headers with an empty value are
	// left out.
	Header map[string]string
	// Forbidden means that the operator answers 403 to requests that it does not carry out, not only to
	// accounts that it does not know: Authorized returns such an answer.
	Forbidden bool
	token     string
}

// Do makes one HTTP call. Without an answer the error is an *Error that says whether the
// request may have been sent. A GET changes nothing, so its errors have Sent unset.
func (b *Base[A]) Do(ctx context.Context, account A, q Call) (Answer, error) {
	var left atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { left.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, q.Method, account.At(q.Path), bytes.NewReader(q.Body))
	if err != nil {
		return Answer{}, NetworkError(q.Doing, false, err)
	}
	for k, v := range q.Header {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	if q.Body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.token != "" {
		req.Header.Set("Authorization", "Bearer "+q.token)
	}
	changes := q.Method != http.MethodGet
	m := b.merchant(account)
	if m.fault != nil {
		return Answer{}, m.fault
	}
	resp, err := m.client.Do(req)
	if refusesCertificate(err) {
		return Answer{}, &Error{Doing: q.Doing, Fault: FaultCredentials, Err: errors.New("the operator refuses the client certificate")}
	}
	if err != nil {
		return Answer{}, NetworkError(q.Doing, changes && left.Load(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := Answer{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		// A 202 is an answer even if its body is lost.
		if resp.StatusCode == http.StatusAccepted {
			return a, nil
		}
		return Answer{}, NetworkError(q.Doing, changes, err)
	}
	if len(a.Body) > maxAnswer {
		a.Body = nil // longer than any answer of the protocols: Decode refuses nil
	}
	return a, nil
}

// refusesCertificate reports whether the operator ended a connection because of the client certificate (RFC 8446, 6.2):
// it has read no request. The alert in the error has a type of its own in crypto/tls, which no other package can name.
func refusesCertificate(err error) bool {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return false
	}
	// bad, unsupported, revoked, expired, unknown, of an unknown authority, without access, required
	return slices.ContainsFunc([]tls.AlertError{42, 43, 44, 45, 46, 48, 49, 116}, func(a tls.AlertError) bool { return remote.Err.Error() == a.Error() })
}

// Answer is the answer to a Call, with at most maxAnswer bytes of its body.
type Answer struct {
	Status     int
	Body       []byte
	RetryAfter time.Duration
}

// Fault returns the Error of an answer that gives no outcome. sent says whether the
// request may have changed something. code is a code of the operator, never prose.
func (a Answer) Fault(doing string, sent bool, code string) *Error {
	e := &Error{Doing: doing, Sent: sent, RetryAfter: a.RetryAfter, Err: fmt.Errorf("status %d %s", a.Status, code)}
	switch {
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		e.Fault, e.Sent = FaultCredentials, false
	case a.Status == http.StatusTooManyRequests:
		e.Fault, e.Sent = FaultBusy, false
	case a.Status == http.StatusRequestTimeout || a.Status == http.StatusGatewayTimeout:
		e.Fault = FaultTimeout
	case a.Status >= 500:
		e.Fault = FaultServer
	default:
		e.Fault = FaultMalformed
	}
	return e
}

// Decode reads the answer's body, see DecodeObject.
func (a Answer) Decode(v any) error { return DecodeObject(a.Body, v) }

// ErrNotObject says that a body is not the expected JSON object. Unlike a decoder's error
// it does not quote the body.
var ErrNotObject = errors.New("not the JSON expected")

// DecodeObject reads exactly one JSON object. Its error is ErrNotObject.
func DecodeObject(body []byte, v any) error {
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return ErrNotObject
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(v); err != nil {
		return ErrNotObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return ErrNotObject
	}
	return nil
}

// DecodeReport is DecodeObject for reports. It refuses a report that has a field twice
// with ErrNotObject, because the service can ask the operator for the right value. Answers
// may have a field twice: a refusal would leave the payment undecided.
func DecodeReport(body []byte, v any) error {
	if _, err := form.Decode(bytes.ToValidUTF8(body, []byte("\uFFFD"))); err != nil {
		return ErrNotObject
	}
	return DecodeObject(body, v)
}

// seconds is a JSON number, or a string of digits.
type seconds int64

// UnmarshalJSON reads both spellings.
func (n *seconds) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	*n = seconds(v)
	return err
}

// ReadOutcome decodes an answer and reads it as an outcome. Errors are *Error with
// Sent unset.
func ReadOutcome[T any](a Answer, doing string, read func(T) (Outcome, error)) (Outcome, error) {
	var answer T
	var o Outcome
	err := a.Decode(&answer)
	if err == nil {
		o, err = read(answer)
	}
	if err != nil {
		return Outcome{}, Malformed(doing, err)
	}
	return o, nil
}

// ReadReport decodes the body of a report of an operator, such as "MTN", and reads it.
// Errors wrap ErrReport.
func ReadReport[T any](operator string, body []byte, read func(T) (Report, error)) (Report, error) {
	var message T
	var r Report
	err := DecodeReport(body, &message)
	if err == nil {
		r, err = read(message)
	}
	if err != nil {
		return Report{}, fmt.Errorf("reading a report of %s: %w: %w", operator, ErrReport, err)
	}
	return r, nil
}

// WithSent returns err with another Sent. It copies the error, because calls that waited
// for the same token share it.
func WithSent(err error, sent bool) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	other := *e
	other.Sent = sent
	return &other
}

// retryAfter reads the header in seconds; zero for anything else.
func retryAfter(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}
