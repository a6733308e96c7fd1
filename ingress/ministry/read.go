package ministry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/checkout"
	"quittance/ingress/ministry/internal/api"
	"quittance/ingress/problem"
	"quittance/internal/commands"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/internal/sessions"
)

// GetSession answers GET /checkout/sessions/{id}.
func (a *API) GetSession(ctx context.Context, r api.GetSessionRequestObject) (api.GetSessionResponseObject, error) {
	s, err := a.session(ctx, r.ID, r.Params.TenantID)
	if err != nil {
		return nil, err
	}
	out := api.GetSession200JSONResponse{Body: toSession(s, a.cfg.CheckoutURL)}
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(callerOf(ctx).quota)
	return out, nil
}

// session returns a session that the caller's key sees.
func (a *API) session(ctx context.Context, id string, tenantID *api.TenantID) (checkout.Session, error) {
	q, err := a.query(ctx, id, tenantID)
	if err != nil {
		return checkout.Session{}, err
	}
	s, err := a.cfg.Sessions.Session(ctx, q)
	if errors.Is(err, sessions.ErrNotFound) {
		return checkout.Session{}, notFound()
	}
	return s, err
}

// query asks for a session on behalf of the caller's key.
func (a *API) query(ctx context.Context, id string, tenantID *api.TenantID) (sessions.Query, error) {
	c := callerOf(ctx)
	apps, err := a.scope(c.Principal, tenant(tenantID))
	if err != nil {
		return sessions.Query{}, err
	}
	if _, _, err := a.cfg.IDs.CheckSession(id); err != nil || len(apps) == 0 {
		return sessions.Query{}, notFound()
	}
	return sessions.Query{ID: id, ApplicationIDs: applicationIDs(apps), Live: c.Live}, nil
}

// ListSessions answers GET /checkout/sessions.
func (a *API) ListSessions(ctx context.Context, r api.ListSessionsRequestObject) (api.ListSessionsResponseObject, error) {
	c, q := callerOf(ctx), r.Params
	f := sessions.Filter{
		Live: c.Live, OrderID: or(q.OrderID, ""), Status: checkout.Status(or(q.Status, "")), CustomerID: or(q.CustomerID, ""),
		PaymentRef: or(q.PaymentRef, ""), Page: or(q.Page, 1), PageSize: or(q.PageSize, a.pageSize(c.Principal)),
	}
	f.CompletedFrom, f.CompletedTo = bounded(q.CompletedFrom), bounded(q.CompletedTo)
	apps, err := a.scope(c.Principal, tenant(q.TenantID))
	if err != nil {
		return nil, err
	}
	f.ApplicationIDs = applicationIDs(apps)
	for _, app := range apps {
		f.TenantIDs = append(f.TenantIDs, app.AgencyID)
	}
	out := api.ListSessions200JSONResponse{Body: api.SessionPage{Items: []api.Session{}, Page: f.Page, PageSize: f.PageSize}}
	if len(f.ApplicationIDs) > 0 {
		items, total, err := a.cfg.Sessions.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, s := range items {
			out.Body.Items = append(out.Body.Items, toSession(s, a.cfg.CheckoutURL))
		}
		out.Body.Total = total
	}
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(c.quota)
	return out, nil
}

// countRead counts a read of a key.
func (a *API) countRead(ctx context.Context, p identity.Principal) (*problem.Quota, error) {
	return a.count(ctx, "reads", p.KeyID, p.ReadsPerMinute)
}

// count counts a call over all instances. name is the quota's name, of its key, limit the calls of a
// minute. The error is a rate_limited problem when the quota is used up.
func (a *API) count(ctx context.Context, name, of string, limit int) (*problem.Quota, error) {
	left, ok, err := a.cfg.Reads.Admit(ctx, of, limit)
	if err != nil {
		return nil, fmt.Errorf("counting %s: %w: %w", name, commands.ErrUnavailable, err)
	}
	q := &problem.Quota{Name: name, Limit: left.Limit, Remaining: left.Remaining, Reset: left.Reset}
	if !ok {
		return nil, rateLimited(q, left.Reset)
	}
	return q, nil
}

func (a *API) pageSize(p identity.Principal) int {
	if app, ok := a.cfg.Registry.Application(p.ApplicationID); ok {
		return app.PageSize
	}
	return registry.DefaultPageSize
}

func tenant(id *api.TenantID) string {
	if id == nil {
		return ""
	}
	return id.String()
}

// bounded returns the time of a parameter that checkQuery has accepted; nil for none.
func bounded(text *string) *time.Time {
	if text == nil {
		return nil
	}
	at, _ := instant(*text)
	return &at
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
