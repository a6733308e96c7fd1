// Package cashin is the kind of delivery that tells partners of the deprecated cash-in
// surface about their payments, without a signature (contract, "Events", rule 6).
//
// The destination of a delivery is the application, which the notification names. The
// address is read again at every attempt: the application's current one, otherwise the
// payment's own. Steps, breaker and suspension are those of signed webhooks.
package cashin

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	"quittance/checkout"
	"quittance/internal/address"
	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/webhook"
)

// Kind is the name of this kind of delivery.
const Kind deliveries.Kind = "cashin"

// Applications is the part of the registry that this kind needs. It answers from memory and
// is safe for concurrent use.
type Applications interface {
	Application(id string) (registry.Application, bool)
}

// Registration returns the registration of unsigned webhooks. applications may be nil for
// operations on rows, which use no directory.
func Registration(applications Applications) deliveries.Registration {
	r := deliveries.Registration{
		Kind: Kind, Notifications: schemas.TopicPartners, Deliveries: schemas.TopicPartnersDeliveries, Suspends: true, Redelivers: true, Final: string(checkout.EventCompleted),
		Addressed: func(d *record.Delivery) bool { return d.DestinationID == d.ApplicationID },
		Entries: func(dir registry.Directory) (entries []deliveries.Entry) {
			for _, p := range dir.Partners {
				entries = append(entries, entry(p))
			}
			return entries
		},
	}
	if applications != nil {
		r.Directory = directory{applications}
	}
	return r
}

// entry returns a partner as operators see it.
func entry(p registry.PartnerEntry) deliveries.Entry {
	e := deliveries.Entry{
		Kind: Kind, ID: p.ID, Name: p.ID, Title: "The partner " + p.Owner(), Owner: p.Owner(), Agency: p.Agency, ApplicationID: p.ID, Application: p.Name,
		URL: p.Cashin.WebhookURL, Modes: []string{registry.Mode(false), registry.Mode(true)}, MaxInFlight: registry.DefaultMaxInFlight,
		Facts: [][2]string{{"Signature", "none: the deprecated cash-in surface"}},
	}
	if e.URL == "" {
		e.Facts = append(e.Facts, [2]string{"Address", "that of each payment"})
	}
	return e
}

// directory is the applications as destinations.
type directory struct{ applications Applications }

// Destinations returns the application, unless neither it nor the payment has an address.
func (d directory) Destinations(n *record.Notification) []string {
	if n.URL == "" && d.url(n.ApplicationID) == "" {
		return nil
	}
	return []string{n.ApplicationID}
}

// Destination returns the cap of an application.
func (d directory) Destination(id string) (deliveries.Destination, bool) {
	_, ok := d.applications.Application(id)
	return deliveries.Destination{MaxInFlight: registry.DefaultMaxInFlight}, ok
}

// url returns the application's current address, empty when it has none.
func (d directory) url(applicationID string) string {
	if app, ok := d.applications.Application(applicationID); ok && app.Cashin != nil {
		return app.Cashin.WebhookURL
	}
	return ""
}

// Config of a Policy. Applications is required.
type Config struct {
	Applications Applications
	// Loopback allows loopback addresses over http.
	Loopback bool
	// Roots are the trusted certificate authorities; nil: the system's.
	Roots *x509.CertPool
}

// Policy sends unsigned webhooks. Safe for concurrent use.
type Policy struct {
	directory  directory
	test, live *call.Client
}

// NewPolicy makes the policy of the worker.
func NewPolicy(cfg Config) (*Policy, error) {
	if cfg.Applications == nil {
		return nil, errors.New("cash-in worker: Applications is required")
	}
	client := func(plain bool) *call.Client {
		return call.New(call.Config{Rule: address.Rule{Loopback: cfg.Loopback, Plain: plain}, Roots: cfg.Roots})
	}
	return &Policy{directory: directory{cfg.Applications}, test: client(true), live: client(false)}, nil
}

// address returns where to send a delivery: the application's current address, or the
// payment's own. own is true for the latter.
func (p *Policy) address(d *record.Delivery) (url string, own bool) {
	if url := p.directory.url(d.ApplicationID); url != "" {
		return url, false
	}
	return d.URL, d.URL != ""
}

// Send posts the stored bytes. Of headers that describe the sender it has none.
func (p *Policy) Send(ctx context.Context, d *record.Delivery) call.Result {
	url, _ := p.address(d)
	if url == "" {
		return call.Result{Fault: call.FaultUnusable}
	}
	client := p.test
	if d.Livemode {
		client = p.live
	}
	// net/http leaves out a User-Agent that is empty.
	return client.Post(ctx, url, http.Header{"Content-Type": {"application/json"}, "User-Agent": {""}}, d.Body)
}

// Judge decides what an answer means, as for signed webhooks. An answer of a payment's own
// address is about that payment alone: it neither suspends nor slows down the application's
// other webhooks. If it asks never to be called again, the webhook is parked.
func (p *Policy) Judge(d *record.Delivery, r call.Result, now time.Time) delivery.Verdict {
	v := webhook.Judge(d, r, now)
	if _, v.OwnAddress = p.address(d); !v.OwnAddress {
		return v
	}
	if v.Gone {
		v.Outcome, v.NextAttemptAt = deliveries.OutcomeExhausted, time.Time{}
	}
	v.Gone, v.Unhealthy = false, false
	return v
}
