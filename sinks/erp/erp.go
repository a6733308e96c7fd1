// Package erp confirms payments to the agencies' own systems: the policy of
// package delivery for POST {base_url}/payment-confirmations (integration
// contract, "ERP payment confirmation"; contract-decisions § 10). A confirmation
// is never dropped and an ERP is never disabled.
package erp

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/address"
	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
)

// DefaultMaxInFlight is how many calls an agency's ERP gets at once unless the
// registry says otherwise.
const DefaultMaxInFlight = 4

const userAgent = "Quittance-ERP/1.0"

// ERPs is what the sink asks of the registry, which answers from memory. Safe
// for concurrent use.
type ERPs interface {
	// ERP is the agency's ERP for live or test payments; false when it has none.
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
}

// Config is what planner and worker need. Fields without a default are required.
type Config struct {
	Kafka   kafka.Config
	Codec   *schemas.Codec
	ERPs    ERPs
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// The rest is the worker's.

	// History is what the schedule knows (deliveries.NewHistory).
	History delivery.History
	// Now is the service's clock.
	Now func() time.Time
	// Developer allows loopback ERPs over http.
	Developer bool
	// Roots are the certificate authorities to trust; nil takes the system's.
	Roots *x509.CertPool
	// SessionTimeout of the worker's group; 0 takes the engine's default.
	SessionTimeout time.Duration
}

// DestinationID names an agency's ERP in a mode.
func DestinationID(agencyID string, live bool) string {
	if live {
		return agencyID + "/live"
	}
	return agencyID + "/test"
}

func parse(destinationID string) (agencyID string, live, ok bool) {
	agencyID, mode, ok := strings.Cut(destinationID, "/")
	return agencyID, mode == "live", ok && agencyID != "" && (mode == "live" || mode == "test")
}

// Kind is the name of this kind of delivery.
const Kind deliveries.Kind = "erp"

// Registration is this kind of delivery. erps may be nil for operations on rows.
func Registration(erps ERPs) deliveries.Registration {
	r := deliveries.Registration{Kind: Kind, Notifications: schemas.TopicConfirmations, Deliveries: schemas.TopicERPDeliveries, Confirms: true}
	if erps != nil {
		r.Directory = directory{erps}
	}
	return r
}

// directory is the registry's ERPs as the engine sees them.
type directory struct{ erps ERPs }

// Destinations is the ERP that a confirmation goes to; none when the agency has
// none in the payment's mode, which is counted.
func (d directory) Destinations(n *record.Notification) []string {
	if _, ok := d.erps.ERP(n.TenantID, n.Livemode); !ok {
		return nil
	}
	return []string{DestinationID(n.TenantID, n.Livemode)}
}

// Destination is an agency's ERP.
func (d directory) Destination(id string) (deliveries.Destination, bool) {
	s, ok := d.settings(id)
	return deliveries.Destination{MaxInFlight: cmp.Or(s.MaxInFlight, DefaultMaxInFlight), Locked: s.Locked}, ok
}

func (d directory) settings(id string) (registry.ERPSettings, bool) {
	agency, live, ok := parse(id)
	if !ok {
		return registry.ERPSettings{}, false
	}
	return d.erps.ERP(agency, live)
}

// NewPlanner makes what turns confirmations into deliveries.
func NewPlanner(cfg Config) (*delivery.Planner, error) {
	return delivery.NewPlanner(delivery.PlannerConfig{Kafka: cfg.Kafka, Codec: cfg.Codec, Kind: Registration(cfg.ERPs), Log: cfg.Log, Metrics: cfg.Metrics})
}

// NewWorker makes what sends them.
func NewWorker(cfg Config) (*delivery.Worker, error) {
	p, err := NewPolicy(cfg)
	if err != nil {
		return nil, err
	}
	return delivery.NewWorker(delivery.WorkerConfig{
		Kafka: cfg.Kafka, Codec: cfg.Codec, Kind: Registration(cfg.ERPs), Policy: p, History: cfg.History, Now: cfg.Now, Log: cfg.Log, Metrics: cfg.Metrics,
		SessionTimeout: cfg.SessionTimeout,
	})
}

// Policy calls ERPs and judges their answers. Safe for concurrent use.
type Policy struct {
	directory directory
	developer bool
	roots     *x509.CertPool

	mu      sync.Mutex
	clients map[string]client // by destination: a connection made under one agency's rule serves no other
}

type client struct {
	networks []netip.Prefix
	client   *call.Client
}

// NewPolicy makes the policy of the worker.
func NewPolicy(cfg Config) (*Policy, error) {
	if cfg.ERPs == nil {
		return nil, errors.New("erp worker: ERPs are required")
	}
	return &Policy{directory: directory{cfg.ERPs}, developer: cfg.Developer, roots: cfg.Roots, clients: map[string]client{}}, nil
}

// Send posts the confirmation with its Idempotency-Key, the transaction_id.
func (p *Policy) Send(ctx context.Context, d *record.Delivery) call.Result {
	s, ok := p.directory.settings(d.DestinationID)
	if !ok {
		return call.Result{Fault: call.FaultUnusable}
	}
	h, ok := header(s)
	if !ok {
		return call.Result{Fault: call.FaultUnusable}
	}
	h.Set("Content-Type", "application/json")
	h.Set("Idempotency-Key", d.EventID)
	return p.client(d.DestinationID, s.Networks).Post(ctx, at(s, "/payment-confirmations"), h, d.Body)
}

// at is the address of a path of the ERP.
func at(s registry.ERPSettings, path string) string { return strings.TrimRight(s.BaseURL, "/") + path }

// header is what every call has; false when its credential cannot be had.
func header(s registry.ERPSettings) (http.Header, bool) {
	h := http.Header{}
	h.Set("Accept", "application/json")
	h.Set("User-Agent", userAgent)
	return h, !s.Locked && authenticate(h, s.Auth)
}

func authenticate(h http.Header, a registry.ERPAuth) bool {
	switch a.Type {
	case registry.AuthBearer:
		h.Set("Authorization", "Bearer "+a.Secret.Reveal())
	case registry.AuthAPIKey:
		h.Set(a.Name, a.Secret.Reveal())
	case registry.AuthBasic:
		req := http.Request{Header: h}
		req.SetBasicAuth(a.Name, a.Secret.Reveal())
	default:
		return false
	}
	return true
}

func (p *Policy) client(id string, networks []netip.Prefix) *call.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.clients[id]
	if ok && slices.Equal(c.networks, networks) {
		return c.client
	}
	if ok {
		c.client.Close() // the registry changed
	}
	c = client{slices.Clone(networks), call.New(call.Config{
		Rule: address.Rule{Developer: p.developer, Backend: true, Networks: networks}, Roots: p.roots,
	})}
	p.clients[id] = c
	return c.client
}

// Judge tells what an answer means: a 2xx is done, and a 409 where the agency says so. 408, 425, 429, 5xx
// and faults of the network are retried by the schedule; past its last step, and
// at any other answer, an operator decides.
func (p *Policy) Judge(d *record.Delivery, r call.Result, now time.Time) delivery.Verdict {
	if r.OK() {
		return delivery.Verdict{Outcome: deliveries.OutcomeDelivered}
	}
	if r.Status == http.StatusConflict {
		if s, ok := p.directory.settings(d.DestinationID); ok && s.ConflictIsDone {
			return delivery.Verdict{Outcome: deliveries.OutcomeDelivered}
		}
	}
	if !passing(r) {
		return delivery.Verdict{Outcome: deliveries.OutcomeNeedsOperator}
	}
	v := delivery.Verdict{Outcome: deliveries.OutcomeNeedsOperator, Unhealthy: true}
	if int(d.Attempt) < deliveries.LastStep {
		v.Outcome, v.NextAttemptAt = deliveries.OutcomeFailed, now.Add(deliveries.RetryDelay(int(d.Attempt), r))
	}
	return v
}

// passing says that the same request may succeed later.
func passing(r call.Result) bool {
	switch {
	case r.Fault != "":
		return true
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly, r.Status == http.StatusTooManyRequests:
		return true
	default:
		return r.Status >= 500
	}
}
