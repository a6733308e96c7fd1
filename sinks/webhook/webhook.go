// Package webhook is the kind of delivery that sends an application's events as signed
// webhooks to the endpoints that subscribe to them (integration contract, "Events";
// docs/design/decisions.md § 5; Standard Webhooks 1.0).
package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"quittance/internal/address"
	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
)

// keepFor is the time after the first attempt at which a delivery is exhausted.
const keepFor = 30 * 24 * time.Hour

const (
	headerEventID = "X-Service-Event-Id"
	userAgent     = "Quittance-Webhooks/1.0"
)

// Endpoints is the part of the registry that this kind needs. It answers from memory
// and is safe for concurrent use.
type Endpoints interface {
	// Endpoints returns the endpoints that subscribe to an event of the application:
	// its own and, when a platform key made the session, the platform's.
	Endpoints(applicationID string, platform, live bool, event string) []registry.WebhookEndpoint
	// Endpoint finds an endpoint by its id; false when there is none.
	Endpoint(id string) (registry.WebhookEndpoint, bool)
	// IntegratorOf finds the integrator's application of an agency; false when there is none.
	IntegratorOf(agencyID string) (registry.Application, bool)
}

// Config configures a Policy. Endpoints and Now are required.
type Config struct {
	Endpoints Endpoints
	// Now is the service's clock.
	Now func() time.Time
	// Timestamp is the clock of webhook-timestamp, which receivers compare with their
	// own clock; nil: Now.
	Timestamp func() time.Time
	// Loopback allows loopback endpoints over http.
	Loopback bool
	// Roots are the trusted certificate authorities; nil: the system's.
	Roots *x509.CertPool
}

// Kind is the name of this kind of delivery.
const Kind deliveries.Kind = "webhook"

// Registration returns the registration of webhooks. endpoints may be nil for
// operations on rows, which use no directory.
func Registration(endpoints Endpoints) deliveries.Registration {
	r := deliveries.Registration{
		Kind: Kind, Notifications: schemas.TopicWebhooks, Deliveries: schemas.TopicWebhooksDeliveries, Suspends: true, Redelivers: true,
		Sources: []deliveries.Source{{Topic: schemas.Disbursement.Events, Notifications: batches{endpoints}.notifications}},
		Entries: func(dir registry.Directory) (entries []deliveries.Entry) {
			for _, e := range dir.Endpoints {
				entries = append(entries, entry(e))
			}
			return entries
		},
	}
	if endpoints != nil {
		r.Directory = directory{endpoints}
		r.Addressed = func(d *record.Delivery) bool {
			e, ok := endpoints.Endpoint(d.DestinationID)
			return !ok || e.Platform() || e.ApplicationID == d.ApplicationID // one that is gone gets nothing
		}
	}
	return r
}

// entry returns an endpoint as operators see it.
func entry(e registry.EndpointEntry) deliveries.Entry {
	out := deliveries.Entry{
		Kind: Kind, ID: e.ID, Name: e.ID, Title: "Endpoint " + e.ID + " of " + e.Owner(), Owner: e.Owner(), Agency: e.Agency, ApplicationID: e.ApplicationID, Application: e.Application,
		URL: e.URL, Events: e.Events, Modes: e.Modes(), MaxInFlight: e.MaxInFlight, MaxPerSecond: e.MaxPerSecond, Signing: e.Signing, OldEndsAt: e.OldEndsAt,
		ByCommand: e.ByCommand, RemovedAt: e.RemovedAt,
	}
	if e.Inactive {
		out.Facts = [][2]string{{"Application", "not active: it can create nothing"}}
	}
	return out
}

// directory is the registry's endpoints as the engine sees them.
type directory struct{ endpoints Endpoints }

// Destinations returns the ids of the endpoints of a notification (contract-decisions
// § 5, "Fan-out").
func (d directory) Destinations(n *record.Notification) []string {
	var ids []string
	for _, e := range d.endpoints.Endpoints(n.ApplicationID, n.Platform, n.Livemode, n.Event) {
		ids = append(ids, e.ID)
	}
	return ids
}

// Destination returns the caps of an endpoint.
func (d directory) Destination(id string) (deliveries.Destination, bool) {
	e, ok := d.endpoints.Endpoint(id)
	return deliveries.Destination{
		MaxInFlight: cmp.Or(e.MaxInFlight, registry.DefaultMaxInFlight), MaxPerSecond: e.MaxPerSecond, Locked: e.Locked,
	}, ok
}

// Policy sends webhooks and judges the answers. Safe for concurrent use.
type Policy struct {
	endpoints Endpoints
	timestamp func() time.Time
	client    *call.Client
}

// NewPolicy makes the policy of the worker.
func NewPolicy(cfg Config) (*Policy, error) {
	if cfg.Endpoints == nil || cfg.Now == nil {
		return nil, errors.New("webhook worker: Endpoints and Now are required")
	}
	timestamp := cfg.Timestamp
	if timestamp == nil {
		timestamp = cfg.Now
	}
	return &Policy{endpoints: cfg.Endpoints, timestamp: timestamp, client: call.New(call.Config{Rule: address.Rule{Loopback: cfg.Loopback}, Roots: cfg.Roots})}, nil
}

// Send signs the stored bytes and posts them.
func (p *Policy) Send(ctx context.Context, d *record.Delivery) call.Result {
	e, ok := p.endpoints.Endpoint(d.DestinationID)
	if !ok || e.Locked || len(e.Secrets) == 0 {
		return call.Result{Fault: call.FaultUnusable} // a webhook is never sent unsigned
	}
	header, err := Sign(e.Secrets, d.EventID, p.timestamp(), d.Body)
	if err != nil {
		return call.Result{Fault: call.FaultUnusable}
	}
	return p.client.Post(ctx, e.URL, header, d.Body)
}

// Sign returns the headers of an attempt, with one signature for each secret.
func Sign(secrets []secret.Text, eventID string, at time.Time, body []byte) (http.Header, error) {
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		wh, err := standardwebhooks.NewWebhookRaw(secret.WebhookKey(s))
		if err != nil {
			return nil, errors.New("signing secret is unusable") // the library's error may contain the secret
		}
		signature, err := wh.Sign(eventID, at, body)
		if err != nil {
			return nil, errors.New("signing the webhook")
		}
		signatures = append(signatures, signature)
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", userAgent)
	h.Set(standardwebhooks.HeaderWebhookID, eventID)
	h.Set(headerEventID, eventID)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return h, nil
}

// Judge implements delivery.Policy.
func (*Policy) Judge(d *record.Delivery, r call.Result, now time.Time) delivery.Verdict {
	return Judge(d, r, now)
}

// Judge decides what an answer means. Only a 2xx is success; a redirect is a failure.
// After any other answer the delivery is tried again by the schedule's steps and then
// daily, until 30 days after its first attempt. A 410 means that the endpoint is gone:
// it is suspended, and its deliveries wait.
func Judge(d *record.Delivery, r call.Result, now time.Time) delivery.Verdict {
	if r.OK() {
		return delivery.Verdict{Outcome: deliveries.OutcomeDelivered}
	}
	v := delivery.Verdict{Unhealthy: true, Gone: r.Status == http.StatusGone}
	next := now.Add(deliveries.RetryDelay(int(d.Attempt), r))
	if next.Sub(d.FirstAttemptAt) > keepFor && !v.Gone {
		v.Outcome = deliveries.OutcomeExhausted
		return v
	}
	v.Outcome, v.NextAttemptAt = deliveries.OutcomeFailed, next
	return v
}
