// Package call makes HTTP calls to servers of other organisations: endpoints of
// integrators and systems of agencies. It limits the addresses that are called, the
// time a call takes and the size of the answer that is read. It classifies failures.
package call

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"quittance/internal/address"
	probed "quittance/internal/transport"
)

const (
	dialTimeout  = 5 * time.Second
	callTimeout  = 15 * time.Second
	answerWait   = 2 * time.Second // for the body; the status is already known
	answerLimit  = 16 << 10
	answerKept   = 1 << 10
	headerLimit  = 64 << 10
	idleInAll    = 2048 // more than the calls that a worker has under way, even to one host
	idleFor      = 90 * time.Second
	redirectFrom = 300
	redirectTo   = 399
)

// Classes of failures without an answer. They contain no host, no address and no text
// of a library's error.
const (
	FaultTimeout     = "timeout"
	FaultAddress     = "address_refused" // the detail is an address.Reason
	FaultName        = "name_not_resolved"
	FaultTLS         = "tls" // the detail is one of TLS…
	FaultConnect     = "connection_refused"
	FaultConnection  = "connection_broken"
	FaultUnusable    = "destination_unusable" // a secret, credential or setting is missing
	FaultInterrupted = "interrupted"          // the caller's context ended; the result is unknown
	FaultTooLarge    = "answer_too_large"     // Fetch only
)

// Details of FaultTLS.
const (
	TLSExpired          = "certificate_expired"
	TLSNotYetValid      = "certificate_not_yet_valid"
	TLSUnknownAuthority = "unknown_authority" // self-signed, or an intermediate certificate is not sent
	TLSWrongHost        = "wrong_host"        // the certificate is for other names
	TLSOther            = "other"             // older than TLS 1.2, no TLS at all, another fault of the certificate
)

// Result is the result of one call: the status of the answer, or a fault.
type Result struct {
	Status int
	// Fault is a class of failure, empty when there was an answer.
	Fault string
	// Detail refines some classes: an address.Reason, or one of TLS….
	Detail string
	// Answer is at most the first 1 KiB of the answer's body, as valid UTF-8.
	Answer string
	// RetryAfter is the delay that the answer asked for; zero: none.
	RetryAfter time.Duration
	Duration   time.Duration
}

// OK reports whether the answer was a 2xx.
func (r Result) OK() bool { return r.Status >= 200 && r.Status <= 299 }

// Timeout reports whether the call ended without an answer in time.
func (r Result) Timeout() bool { return r.Fault == FaultTimeout }

// Reason returns a short text for people: the fault with its detail behind a colon
// (address_refused:private_address), or the kind of status.
func (r Result) Reason() string {
	switch {
	case r.Fault != "" && r.Detail != "":
		return r.Fault + ":" + r.Detail
	case r.Fault != "":
		return r.Fault
	case r.OK():
		return ""
	case r.Status >= redirectFrom && r.Status <= redirectTo:
		return "redirect"
	default:
		return "http_" + strconv.Itoa(r.Status)
	}
}

// Config configures a Client. The zero value calls public names only.
type Config struct {
	// Rule decides which addresses may be called.
	Rule address.Rule
	// Roots are the trusted certificate authorities; nil: the system's.
	Roots *x509.CertPool
	// Resolver resolves names; nil: the system's.
	Resolver *net.Resolver
	// Timeout of the whole call; zero: 15 s.
	Timeout time.Duration
}

// Client calls untrusted servers under a rule about addresses. It uses no proxy,
// follows no redirects and decompresses nothing. It requires TLS 1.2 or later. A call
// takes at most 5 s to connect, 5 s for TLS and 15 s in all. The client reads at most
// 16 KiB of the answer's body, for at most 2 s. Safe for concurrent use.
type Client struct {
	check     func(raw string) (*url.URL, error)
	timeout   time.Duration
	transport tripper
	loopback  tripper // developer mode only
}

// tripper is the part of a transport that a Client uses.
type tripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

// New makes a client.
func New(cfg Config) *Client {
	c := &Client{check: cfg.Rule.Check, timeout: cmp.Or(cfg.Timeout, callTimeout), transport: transport(cfg, cfg.Rule.Control())}
	if cfg.Rule.Loopback {
		c.loopback = transport(cfg, address.ControlLoopback)
	}
	return c
}

// NewLoopback makes a client that calls this machine only, at addresses that check
// accepts. Integrators try events on their own machine with it.
func NewLoopback(check func(raw string) (*url.URL, error)) *Client {
	via := transport(Config{}, address.ControlLoopback)
	return &Client{check: check, timeout: callTimeout, transport: via, loopback: via}
}

// transport makes a transport that limits idle connections for all hosts together.
// With a limit per host, endpoints that share a host would open and close a connection
// at every call.
func transport(cfg Config, control func(network, address string, c syscall.RawConn) error) tripper {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: control, Resolver: cfg.Resolver}
	t := probed.HTTP(dialer)
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialTLS(ctx, dialer, cfg.Roots, network, addr)
	}
	t.DisableCompression, t.MaxResponseHeaderBytes = true, headerLimit
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = idleInAll, idleInAll, idleFor
	return t
}

// errTLS marks faults of a handshake: crypto/tls has no type for most of them.
var errTLS = errors.New("TLS handshake")

func dialTLS(ctx context.Context, dialer *net.Dialer, roots *x509.CertPool, network, addr string) (net.Conn, error) {
	plain, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		_ = plain.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn := tls.Client(plain, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: strings.TrimSuffix(host, "."), NextProtos: []string{"h2", "http/1.1"}})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, errors.Join(errTLS, err)
	}
	return conn, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	if c.loopback != nil {
		c.loopback.CloseIdleConnections()
	}
}

// HTTP returns a client for a library that makes calls itself, under the same rule. It follows no redirect, and the body of an
// answer ends after limit bytes.
func (c *Client) HTTP(limit int64) *http.Client {
	return &http.Client{
		Transport:     ruled{c, limit},
		Timeout:       c.timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ruled is a Client as a transport.
type ruled struct {
	client *Client
	limit  int64
}

// RoundTrip implements http.RoundTripper.
func (r ruled) RoundTrip(req *http.Request) (*http.Response, error) {
	to, err := r.client.check(req.URL.String())
	if err != nil {
		return nil, err
	}
	resp, err := r.client.via(to).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&limited{from: resp.Body, left: r.limit}, resp.Body}
	return resp, nil
}

// via is the transport to an address that was checked.
func (c *Client) via(to *url.URL) tripper {
	if c.loopback != nil && address.IsLoopback(to) {
		return c.loopback
	}
	return c.transport
}

// Post sends a body with exactly these headers and Content-Length, and reads the
// answer. A failure is a Result with a Fault.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) Result {
	return c.call(ctx, http.MethodPost, url, header, body)
}

// Get sends a GET with exactly these headers, and reads the answer.
func (c *Client) Get(ctx context.Context, url string, header http.Header) Result {
	return c.call(ctx, http.MethodGet, url, header, nil)
}

// Fetch sends a GET with exactly these headers, and returns the whole body of a 2xx. A
// body of more than limit bytes, or one that is not complete within the timeout of the
// whole call, is a Result with a Fault. The body is not in Result.Answer.
func (c *Client) Fetch(ctx context.Context, url string, header http.Header, limit int64, timeout time.Duration) (r Result, body []byte) {
	r, _ = c.Stream(ctx, url, header, limit, timeout, func(from io.Reader) (err error) {
		body, err = io.ReadAll(from)
		return err
	})
	if !r.OK() {
		return r, nil
	}
	return r, body
}

// Stream is Fetch for a body that is read as it comes: read gets that of a 2xx. A body that
// is too long or not complete ends in an error of the reader, and the Result has the Fault,
// whatever read has returned. Otherwise the error is that of read, which need not read to
// the end.
func (c *Client) Stream(ctx context.Context, url string, header http.Header, limit int64, timeout time.Duration, read func(body io.Reader) error) (r Result, err error) {
	r = c.roundTrip(ctx, timeout, http.MethodGet, url, header, nil, func(r *Result, resp *http.Response, cancel context.CancelFunc) {
		if !r.OK() {
			readAnswer(r, resp, cancel)
			return
		}
		body := &limited{from: resp.Body, left: limit}
		err = read(body)
		switch {
		case body.broken != nil:
			*r, err = fault(ctx, body.broken), nil
		case body.left < 0:
			*r, err = Result{Fault: FaultTooLarge}, nil
		}
	})
	return r, err
}

// errTooLong ends the reading of a body that is longer than its limit.
var errTooLong = errors.New("the body is too long")

// limited reads at most left bytes and remembers why reading ended.
type limited struct {
	from   io.Reader
	left   int64 // below zero once there was more
	broken error // an error of the connection
}

// Read reads on. One byte beyond the limit tells a body that is too long from one that ends
// there.
func (l *limited) Read(p []byte) (n int, err error) {
	if l.left < 0 {
		return 0, errTooLong
	}
	n, err = l.from.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLong
	}
	if err != nil && err != io.EOF {
		l.broken = err
	}
	return n, err
}

func (c *Client) call(ctx context.Context, method, raw string, header http.Header, body []byte) Result {
	return c.roundTrip(ctx, c.timeout, method, raw, header, body, readAnswer)
}

// readAnswer reads the beginning of an answer whose status decides. A body that is cut off
// or slow is not a failure.
func readAnswer(r *Result, resp *http.Response, cancel context.CancelFunc) {
	defer time.AfterFunc(answerWait, cancel).Stop()
	read, _ := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	r.Answer = keep(read)
}

// roundTrip makes a call and lets read take the body of the answer. cancel ends the call.
func (c *Client) roundTrip(ctx context.Context, timeout time.Duration, method, raw string, header http.Header, body []byte,
	read func(r *Result, resp *http.Response, cancel context.CancelFunc),
) (r Result) {
	begun := time.Now()
	defer func() { r.Duration = time.Since(begun) }()
	to, err := c.check(raw)
	if err != nil {
		return fault(ctx, err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return Result{Fault: FaultUnusable}
	}
	req.Header = header
	// RoundTrip and not http.Client: it follows no redirect and keeps no cookies.
	resp, err := c.via(to).RoundTrip(req)
	if err != nil {
		return fault(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	r = Result{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header)}
	if r.Status == http.StatusSwitchingProtocols {
		return r // the body is the connection itself, and no deadline would end its reading
	}
	read(&r, resp, cancel)
	return r
}

// fault classifies an error; ctx is the caller's.
func fault(ctx context.Context, err error) Result {
	var (
		refused *address.Error
		timeout interface{ Timeout() bool }
		dns     *net.DNSError
	)
	switch {
	case ctx.Err() != nil:
		return Result{Fault: FaultInterrupted}
	case errors.As(err, &refused):
		return Result{Fault: FaultAddress, Detail: string(refused.Reason)}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Result{Fault: FaultTimeout}
	case errors.As(err, &dns):
		return Result{Fault: FaultName}
	case errors.Is(err, syscall.ECONNREFUSED):
		return Result{Fault: FaultConnect}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Result{Fault: FaultConnection} // also during a handshake
	case errors.Is(err, errTLS):
		return Result{Fault: FaultTLS, Detail: tlsDetail(err)}
	default:
		return Result{Fault: FaultConnection}
	}
}

func tlsDetail(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return TLSUnknownAuthority
	case errors.As(err, &name):
		return TLSWrongHost
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return TLSNotYetValid // Go has one reason for this and for TLSExpired
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return TLSExpired
	default:
		return TLSOther
	}
}

// retryAfter reads the header of RFC 9110, which has seconds or a date.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(h.Get("Date")) // by the destination's own clock
	if err != nil {
		from = time.Now()
	}
	return max(at.Sub(from), 0)
}

// keep returns the beginning of an answer as text that Postgres and Avro accept.
func keep(b []byte) string {
	if len(b) > answerKept {
		b = b[:answerKept]
		for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
		if len(b) > 0 && b[len(b)-1] >= utf8.RuneSelf {
			b = b[:len(b)-1]
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "")
}
