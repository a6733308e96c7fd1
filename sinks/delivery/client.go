package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	dialTimeout  = 5 * time.Second
	callTimeout  = 15 * time.Second
	answerLimit  = 16 << 10
	answerKept   = 1 << 10
	headerLimit  = 64 << 10
	idlePerHost  = 64
	idleInAll    = 2048
	idleFor      = 90 * time.Second
	redirectFrom = 300
	redirectTo   = 399
)

// Fault classes of calls without an answer. They name no host, no address and
// nothing that a library puts into its errors.
const (
	FaultTimeout     = "timeout"
	FaultAddress     = "address_refused"
	FaultName        = "name_not_resolved"
	FaultTLS         = "tls"
	FaultConnect     = "connection_refused"
	FaultConnection  = "connection_broken"
	FaultUnusable    = "destination_unusable" // no such secret, credential or setting
	FaultInterrupted = "interrupted"          // by us, at shutdown: nothing is known
)

// Result is what one call brought: an answer's status or a fault.
type Result struct {
	Status int
	// Fault is a class of failure, empty when there was an answer.
	Fault string
	// Answer is at most the first 1 KiB of the answer's body, valid UTF-8.
	Answer string
	// RetryAfter is what the answer asked for, zero when it did not.
	RetryAfter time.Duration
	Duration   time.Duration
}

// OK says that the answer was a 2xx.
func (r Result) OK() bool { return r.Status >= 200 && r.Status <= 299 }

// Timeout says that no answer came in time.
func (r Result) Timeout() bool { return r.Fault == FaultTimeout }

// Reason is a word for people: the fault, or the kind of status.
func (r Result) Reason() string {
	switch {
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

// Client makes calls under a Rule: no proxy, no redirects, no decompression, TLS
// from 1.2, 5 s to connect, 5 s for TLS, 15 s in all, at most 16 KiB of the
// answer read. Safe for concurrent use.
type Client struct {
	rule      Rule
	transport *http.Transport
	loopback  *http.Transport // developer mode only
}

// NewClient makes a client. roots are the certificate authorities to trust; nil
// takes the system's.
func NewClient(rule Rule, roots *x509.CertPool) *Client {
	c := &Client{rule: rule, transport: transport(rule.guard(false), roots)}
	if rule.Developer {
		c.loopback = transport(rule.guard(true), roots)
	}
	return c
}

func transport(guard func(network, address string, c syscall.RawConn) error, roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: guard}
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConns: idleInAll, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleFor,
		MaxResponseHeaderBytes: headerLimit,
	}
}

// Close lets go of idle connections.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	if c.loopback != nil {
		c.loopback.CloseIdleConnections()
	}
}

// Post sends body with exactly these headers (and Content-Length) and reads the
// answer. It never returns an error: a Result says it all.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) Result {
	begun := time.Now()
	r := c.post(ctx, url, header, body)
	r.Duration = time.Since(begun)
	return r
}

func (c *Client) post(ctx context.Context, url string, header http.Header, body []byte) Result {
	to, err := c.rule.Check(url)
	if err != nil {
		return Result{Fault: FaultAddress}
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return Result{Fault: FaultUnusable}
	}
	req.Header = header
	via := c.transport
	if to.Scheme == "http" {
		via = c.loopback // Check lets http pass in developer mode only
	}
	// RoundTrip and not a Client: it follows nothing and keeps no cookies.
	resp, err := via.RoundTrip(req)
	if err != nil {
		return Result{Fault: fault(ctx, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	r := Result{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header)}
	// The status is the answer; a body that breaks off or drips on changes nothing.
	read, _ := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	r.Answer = keep(read)
	return r
}

func fault(ctx context.Context, err error) string {
	var (
		timeout interface{ Timeout() bool }
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case ctx.Err() != nil:
		return FaultInterrupted
	case errors.Is(err, ErrAddress):
		return FaultAddress
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return FaultTimeout
	case errors.As(err, &dns):
		return FaultName
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert),
		errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return FaultTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return FaultConnect
	default:
		return FaultConnection
	}
}

// retryAfter is RFC 9110's header in seconds or as a date.
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
	from, err := http.ParseTime(h.Get("Date")) // the destination's own clock, when it says
	if err != nil {
		from = time.Now()
	}
	return max(at.Sub(from), 0)
}

// keep is the beginning of an answer as text that Postgres and Avro take.
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
