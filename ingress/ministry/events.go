package ministry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/ministry/internal/api"
	"quittance/ingress/problem"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/schemas/record"
)

// redeliveriesPerMinute of an application and mode, or of a platform key.
const redeliveriesPerMinute = 10

// ListSessionEvents answers GET /checkout/sessions/{id}/events.
func (a *API) ListSessionEvents(ctx context.Context, r api.ListSessionEventsRequestObject) (api.ListSessionEventsResponseObject, error) {
	s, events, err := a.events(ctx, r.ID, r.Params.TenantID)
	if err != nil {
		return nil, err
	}
	items, err := a.toEvents(ctx, s, events)
	if err != nil {
		return nil, err
	}
	out := api.ListSessionEvents200JSONResponse{Body: api.SessionEvents{Items: items}}
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(callerOf(ctx).quota)
	return out, nil
}

// RedeliverEvent answers POST /checkout/sessions/{id}/events/{event_id}/redeliver.
func (a *API) RedeliverEvent(ctx context.Context, r api.RedeliverEventRequestObject) (api.RedeliverEventResponseObject, error) {
	s, events, err := a.events(ctx, r.ID, r.Params.TenantID)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(events, func(e sessions.Event) bool { return e.ID == r.EventID })
	if i < 0 {
		return nil, problem.New("checkout.event_not_found")
	}
	e, p := events[i], callerOf(ctx).Principal
	if e.Body == nil {
		return nil, problem.New("checkout.event_erased")
	}
	var own []string
	for _, endpoint := range a.ownEndpoints(p, s, e) {
		own = append(own, endpoint.ID)
	}
	if len(own) == 0 {
		return nil, problem.New("checkout.no_endpoint")
	}
	quota, err := a.count(ctx, "redeliveries", redeliveriesOf(p), redeliveriesPerMinute)
	if err != nil {
		return nil, err
	}
	err = a.cfg.Deliveries.Redeliver(ctx, operation.Actor{Kind: operation.ActorKey, Name: p.KeyID}, deliveries.Redelivery{
		Kind: a.cfg.Webhooks, Notification: notificationOf(s, e), Destinations: own, Bodies: a.cfg.Bodies, Name: rand.Text(),
	}, a.cfg.Now())
	if err != nil {
		return nil, err
	}
	items, err := a.toEvents(ctx, s, events[i:i+1])
	if err != nil {
		return nil, err
	}
	out := api.RedeliverEvent202JSONResponse{Body: items[0]}
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(quota)
	return out, nil
}

// redeliveriesOf is what a caller's redeliveries are counted for: a UUID of the key or of the
// application and mode, which is none of a key, whose reads are counted in the same table.
func redeliveriesOf(p identity.Principal) string {
	of := p.KeyID
	if !p.Platform {
		of = fmt.Sprint(p.ApplicationID, " live ", p.Live)
	}
	return uuid.NewSHA1(uuid.Nil, []byte("redeliveries of "+of)).String()
}

// events returns a session that the caller's key sees and its events.
func (a *API) events(ctx context.Context, id string, tenantID *api.TenantID) (checkout.Session, []sessions.Event, error) {
	q, err := a.query(ctx, id, tenantID)
	if err != nil {
		return checkout.Session{}, nil, err
	}
	s, events, err := a.cfg.Sessions.Events(ctx, q)
	if errors.Is(err, sessions.ErrNotFound) {
		return checkout.Session{}, nil, notFound()
	}
	return s, events, err
}

// ownEndpoints returns the caller's endpoints that subscribe to an event. Those of an application
// are no business of the platform's, and the other way round.
func (a *API) ownEndpoints(p identity.Principal, s checkout.Session, e sessions.Event) []registry.WebhookEndpoint {
	if p.Platform {
		return a.cfg.Registry.Endpoints("", s.Platform, s.Live, string(e.Type))
	}
	return a.cfg.Registry.Endpoints(s.ApplicationID, false, s.Live, string(e.Type))
}

// notificationOf returns the notification that the event's webhook was made of.
func notificationOf(s checkout.Session, e sessions.Event) *record.Notification {
	return &record.Notification{
		EventID: e.ID, Event: string(e.Type), ApplicationID: s.ApplicationID, TenantID: s.TenantID,
		SessionID: s.ID, Livemode: s.Live, Platform: s.Platform, OccurredAt: e.OccurredAt, Body: e.Body,
	}
}

// toEvents maps events and their deliveries to the caller's endpoints.
func (a *API) toEvents(ctx context.Context, s checkout.Session, events []sessions.Event) ([]api.SessionEvent, error) {
	p, out := callerOf(ctx).Principal, make([]api.SessionEvent, len(events))
	refs := make([]deliveries.EventRef, len(events))
	for i, e := range events {
		refs[i] = deliveries.EventRef{ID: e.ID, OccurredAt: e.OccurredAt}
	}
	found, err := a.cfg.Deliveries.OfEvents(ctx, a.cfg.Webhooks, refs...)
	if err != nil {
		return nil, err
	}
	forgotten := a.cfg.Now().AddDate(0, 0, -deliveries.KeepDays)
	for i, e := range events {
		out[i] = api.SessionEvent{EventID: e.ID, Event: string(e.Type), CreatedAt: e.OccurredAt.UTC().Format(millisecond), Deliveries: []api.EventDelivery{}}
		known := map[string]bool{}
		for _, d := range found {
			endpoint, ok := a.cfg.Registry.Endpoint(d.DestinationID)
			if d.EventID != e.ID || !ok || endpoint.Platform() != p.Platform || !p.Platform && endpoint.ApplicationID != p.ApplicationID {
				continue
			}
			known[endpoint.ID] = true
			out[i].Deliveries = append(out[i].Deliveries, toDelivery(endpoint, d))
		}
		for _, endpoint := range a.ownEndpoints(p, s, e) {
			if !known[endpoint.ID] && e.OccurredAt.After(forgotten) {
				out[i].Deliveries = append(out[i].Deliveries, api.EventDelivery{Endpoint: endpoint.ID, URL: endpoint.URL, State: api.Unsent})
			}
		}
	}
	return out, nil
}

// millisecond is the form of the time of an event, as in its webhook.
const millisecond = "2006-01-02T15:04:05.000Z"

func toDelivery(endpoint registry.WebhookEndpoint, d deliveries.Delivery) api.EventDelivery {
	out := api.EventDelivery{Endpoint: endpoint.ID, URL: endpoint.URL, Attempts: d.Attempts, State: api.Exhausted}
	if d.HTTPStatus != 0 {
		out.LastStatus = &d.HTTPStatus
	}
	switch {
	case d.State == deliveries.StateDelivered:
		out.State = api.Delivered
	case d.State == deliveries.StateQueued:
		out.State = api.Queued
	case d.State == deliveries.StateWaiting && d.Suspended:
		out.State = api.Suspended
	case d.State == deliveries.StateWaiting:
		out.State, out.NextAt = api.Waiting, moment(d.NextCall())
	}
	return out
}
