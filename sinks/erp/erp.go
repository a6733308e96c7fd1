// Package erp is the kind of delivery that sends payment confirmations to the agencies'
// own systems (integration contract, "ERP payment confirmation"; contract-decisions
// § 10). A confirmation is never dropped and an ERP is never suspended.
package erp

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/payload"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
)

// DefaultMaxInFlight is the number of calls to an ERP at once, unless the registry has
// another number.
const DefaultMaxInFlight = 4

// Kind is the name of this kind of delivery.
const Kind deliveries.Kind = "erp"

// ERPs is the part of the registry that this kind needs. It answers from memory and is
// safe for concurrent use.
type ERPs interface {
	// ERP returns the agency's ERP for live or test payments; false when it has none.
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
}

// Registration returns the registration of confirmations. A destination's id is erp.ID
// of an agency's id and a mode. erps may be nil for operations on rows, which use no
// directory.
func Registration(erps ERPs) deliveries.Registration {
	r := deliveries.Registration{
		Kind: Kind, Notifications: schemas.TopicConfirmations, Deliveries: schemas.TopicERPDeliveries, Confirms: true,
		Addressed: func(d *record.Delivery) bool { return d.DestinationID == erp.ID(d.TenantID, d.Livemode) },
		Entries: func(dir registry.Directory) (entries []deliveries.Entry) {
			for _, e := range dir.ERPs {
				entries = append(entries, entry(e))
			}
			return entries
		},
	}
	if erps != nil {
		r.Directory = directory{erps}
	}
	return r
}

// entry returns an ERP as operators see it.
func entry(e registry.ERPEntry) deliveries.Entry {
	return deliveries.Entry{
		Kind: Kind, ID: erp.ID(e.AgencyID, e.Live), Name: e.Name(), Title: "The ERP " + e.Name(), Owner: e.Agency, Agency: e.Agency, URL: e.BaseURL,
		Modes: []string{registry.Mode(e.Live)}, MaxInFlight: e.MaxInFlight, Facts: [][2]string{{"Signs in with", string(e.Auth.Type)}},
	}
}

// directory is the registry's ERPs as destinations.
type directory struct{ erps ERPs }

// Destinations returns the id of the ERP of a confirmation. It returns none when the
// agency has no ERP in the payment's mode; the planner counts such confirmations.
func (d directory) Destinations(n *record.Notification) []string {
	if _, ok := d.erps.ERP(n.TenantID, n.Livemode); !ok {
		return nil
	}
	return []string{erp.ID(n.TenantID, n.Livemode)}
}

// Destination returns the cap of an agency's ERP.
func (d directory) Destination(id string) (deliveries.Destination, bool) {
	s, ok := d.settings(id)
	return deliveries.Destination{MaxInFlight: cmp.Or(s.MaxInFlight, DefaultMaxInFlight), Locked: s.Locked}, ok
}

func (d directory) settings(id string) (registry.ERPSettings, bool) {
	agency, live, ok := erp.ParseID(id)
	if !ok {
		return registry.ERPSettings{}, false
	}
	return d.erps.ERP(agency, live)
}

// Policy sends confirmations and judges the ERPs' answers. Safe for concurrent use.
type Policy struct {
	directory directory
	client    *erp.Client
}

// NewPolicy makes a policy.
func NewPolicy(erps ERPs, client *erp.Client) *Policy {
	return &Policy{directory: directory{erps}, client: client}
}

// Send posts the confirmation, with its channel as the ERP calls it. The event's id is the transaction_id.
func (p *Policy) Send(ctx context.Context, d *record.Delivery) call.Result {
	s, ok := p.directory.settings(d.DestinationID)
	if !ok {
		return call.Result{Fault: call.FaultUnusable}
	}
	return p.client.Confirm(ctx, s, d.EventID, payload.WithChannel(d.Body, s.Channel))
}

// refusedProbe is the time between two calls to an ERP that refuses our credentials.
const refusedProbe = 15 * time.Minute

// Judge decides what an answer means. A 2xx is success. A 409 is success if the agency's
// settings say so. After 401 and 403 the ERP refuses our credentials, and all its confirmations
// wait. After 408, 425, 429, 5xx and faults of the network the schedule
// tries again. After its last step, and after any other answer, an operator decides.
func (p *Policy) Judge(d *record.Delivery, r call.Result, now time.Time) delivery.Verdict {
	if r.OK() {
		return delivery.Verdict{Outcome: deliveries.OutcomeDelivered}
	}
	if r.Status == http.StatusConflict {
		if s, ok := p.directory.settings(d.DestinationID); ok && s.ConflictIsDone {
			return delivery.Verdict{Outcome: deliveries.OutcomeDelivered}
		}
	}
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden {
		return delivery.Verdict{
			Outcome: deliveries.OutcomeDeferred, NextAttemptAt: now.Add(refusedProbe), Unhealthy: true, Refused: true, Park: deliveries.OutcomeNeedsOperator,
		}
	}
	v := delivery.Verdict{Outcome: deliveries.OutcomeNeedsOperator, Unhealthy: temporary(r)}
	if v.Unhealthy && int(d.Attempt) < deliveries.LastStep {
		v.Outcome, v.NextAttemptAt = deliveries.OutcomeFailed, now.Add(deliveries.RetryDelay(int(d.Attempt), r))
	}
	return v
}

// temporary reports whether the same request may succeed later.
func temporary(r call.Result) bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return r.Fault != "" || r.Status >= 500
}
