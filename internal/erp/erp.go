// Package erp calls the agencies' own systems (integration contract, "ERP REST"). It
// authenticates, calls only the networks that the agency names, confirms payments, asks for
// health, and reads dues and disbursement lines. No other package uses an ERP's credentials,
// and no role but `sink erp` holds them: the others have it ask (package erpquery).
//
// Pages and the citizen API read dues with [Dues], which shares calls and answers and adds
// the services of the catalogue. No error, result or metric of this package holds a secret
// or a subject_ref.
package erp

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	rules "quittance/internal/address"
	"quittance/internal/call"
	"quittance/internal/registry"
)

const userAgent = "Quittance-ERP/1.0"

// ID returns the name of an agency's ERP in a mode: impots/test. Stored names contain
// the agency's id. Names that people read contain its slug.
func ID(agency string, live bool) string {
	if live {
		return agency + "/live"
	}
	return agency + "/test"
}

// ParseID returns the agency and the mode of an ID. ok is false for other texts.
func ParseID(id string) (agency string, live, ok bool) {
	agency, mode, ok := strings.Cut(id, "/")
	return agency, mode == "live", ok && agency != "" && (mode == "live" || mode == "test")
}

// Config configures a Client. Production uses the zero value.
type Config struct {
	// Loopback allows loopback ERPs over http.
	Loopback bool
	// Roots are the trusted certificate authorities; nil: the system's.
	Roots *x509.CertPool
}

// Client calls ERPs. Safe for concurrent use.
type Client struct {
	cfg Config

	mu  sync.Mutex
	via map[string]restricted // by ID, so that agencies with different networks share no connection
}

// restricted is a client that calls some networks only.
type restricted struct {
	networks []netip.Prefix
	client   *call.Client
}

// New makes a client.
func New(cfg Config) *Client { return &Client{cfg: cfg, via: map[string]restricted{}} }

// Confirm posts a payment confirmation. The Idempotency-Key is the transaction_id.
func (c *Client) Confirm(ctx context.Context, s registry.ERPSettings, transactionID string, body []byte) call.Result {
	h, ok := header(s)
	if !ok {
		return call.Result{Fault: call.FaultUnusable}
	}
	h.Set("Content-Type", "application/json")
	h.Set("Idempotency-Key", transactionID)
	return c.to(s).Post(ctx, address(s, "/payment-confirmations"), h, body)
}

// Health asks the ERP for its health. A 2xx means that it is up.
func (c *Client) Health(ctx context.Context, s registry.ERPSettings) call.Result {
	h, ok := header(s)
	if !ok {
		return call.Result{Fault: call.FaultUnusable}
	}
	return c.to(s).Get(ctx, address(s, "/health"), h)
}

func address(s registry.ERPSettings, path string) string {
	return strings.TrimRight(s.BaseURL, "/") + path
}

// header returns the header fields of a call. ok is false when the credential is not
// usable.
func header(s registry.ERPSettings) (h http.Header, ok bool) {
	h = http.Header{}
	h.Set("Accept", "application/json")
	h.Set("User-Agent", userAgent)
	secret := s.Auth.Secret.Reveal()
	switch s.Auth.Type {
	case registry.AuthBearer:
		h.Set("Authorization", "Bearer "+secret)
	case registry.AuthAPIKey:
		h.Set(s.Auth.Name, secret)
	case registry.AuthBasic:
		(&http.Request{Header: h}).SetBasicAuth(s.Auth.Name, secret)
	default:
		return nil, false
	}
	return h, !s.Locked
}

// to returns the client for the networks of an ERP, as configured now.
func (c *Client) to(s registry.ERPSettings) *call.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := ID(s.AgencyID, s.Live)
	via, ok := c.via[id]
	if ok && slices.Equal(via.networks, s.Networks) {
		return via.client
	}
	if ok {
		via.client.Close() // the networks have changed
	}
	via = restricted{slices.Clone(s.Networks), call.New(call.Config{
		Rule: rules.Rule{Loopback: c.cfg.Loopback, Backend: true, Networks: s.Networks}, Roots: c.cfg.Roots,
	})}
	c.via[id] = via
	return via.client
}
