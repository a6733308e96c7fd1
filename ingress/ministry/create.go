package ministry

import (
	"context"
	"slices"
	"time"

	"quittance/checkout"
	"quittance/ingress/ministry/internal/api"
	"quittance/ingress/problem"
	"quittance/internal/commands"
	"quittance/internal/drafts"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/money"
)

// CreateSession answers POST /checkout/sessions.
func (a *API) CreateSession(ctx context.Context, r api.CreateSessionRequestObject) (api.CreateSessionResponseObject, error) {
	p := callerOf(ctx).Principal
	if !drafts.ValidKey(r.Params.IdempotencyKey) {
		return nil, problem.New("idempotency.key_invalid")
	}
	q, faults, err := parseCreate(callerOf(ctx).body, p.Live)
	if err != nil {
		return nil, err
	}
	app, faults, err := a.target(p, q.TenantID, faults)
	if err != nil {
		return nil, err
	}
	cmd := checkout.Create{IdempotencyKey: r.Params.IdempotencyKey, BodyHash: q.hash}
	now := a.now()
	if app.ID != "" {
		cmd.Session, cmd.Faults = a.draft(q.Session, app, p, now)
		cmd.CreationsPerMinute = app.CreationsPerMinute
	}
	if len(faults) > 0 { // refused here, together with the faults of configuration: the key stays unused
		for _, f := range cmd.Faults {
			if !slices.ContainsFunc(faults, func(g form.Fault) bool { return g.Field == f.Field }) {
				faults = append(faults, form.Fault{Field: f.Field, Rule: f.Rule, Message: f.Message})
			}
		}
		return nil, problem.Invalid(faults)
	}
	if after, ok := a.flood.admit("create "+app.ID, commandsOf(app.CreationsPerMinute), now); !ok {
		return nil, rateLimited(creations(app.CreationsPerMinute, 0, after), after)
	}
	if err := a.cfg.Drafts.Complete(ctx, &cmd.Session); err != nil {
		return nil, err
	}
	answer, err := a.cfg.Drafts.Create(ctx, &cmd.Session, cmd, commands.DefaultTimeout)
	if err != nil {
		return nil, err
	}
	var quota *problem.Quota
	if answer.QuotaLimit > 0 {
		quota = creations(answer.QuotaLimit, answer.QuotaRemaining, untilNextMinute(now))
	}
	if answer.Code != checkout.CodeOK {
		response := refusal(answer)
		response.Quota, response.Replayed = quota, answer.Replayed
		return nil, response
	}
	if !answer.Replayed {
		answer.Session = &cmd.Session // the reply to a first creation leaves it out
		answer.Session.Status = checkout.StatusOpen
	}
	return a.created(answer, quota)
}

// created returns the answer to a creation, the first one or a replay.
func (a *API) created(answer checkout.Answer, quota *problem.Quota) (api.CreateSession201JSONResponse, error) {
	s := *answer.Session
	var clientSecret *string
	if len(s.ClientSecretSealed) > 0 && s.Status == checkout.StatusOpen {
		text, err := a.cfg.Drafts.ClientSecret(s)
		if err != nil {
			return api.CreateSession201JSONResponse{}, err
		}
		clientSecret = &text
	}
	// A replay repeats the first answer: it tells nothing of the payment.
	s.Status, s.ReversedAt, s.Collection, s.FailureCode = checkout.StatusOpen, time.Time{}, nil, ""
	out := api.CreateSession201JSONResponse{Body: toSession(s, a.cfg.CheckoutURL)}
	out.Body.ClientSecret = clientSecret
	out.Headers.Location = Prefix + "/checkout/sessions/" + s.ID
	out.Headers.IdempotentReplayed = replayed(answer)
	out.Headers.RateLimitPolicy, out.Headers.RateLimit = quotaHeaders(quota)
	return out, nil
}

// replayed returns the value of Idempotent-Replayed, nil for a first answer.
func replayed(a checkout.Answer) *string {
	if !a.Replayed {
		return nil
	}
	yes := "true"
	return &yes
}

func creations(limit, remaining int, reset time.Duration) *problem.Quota {
	return &problem.Quota{Name: "creations", Limit: limit, Remaining: remaining, Reset: reset}
}

// quotaHeaders returns the values of RateLimit-Policy and RateLimit, nil without a
// quota.
func quotaHeaders(q *problem.Quota) (policy, state *string) {
	if q == nil {
		return nil, nil
	}
	p, s := q.Policy(), q.State()
	return &p, &s
}

// draft completes the session of a request with what configuration says, and returns the
// faults that depend on configuration.
func (a *API) draft(s checkout.Session, app registry.Application, p identity.Principal, now time.Time) (checkout.Session, []checkout.Fault) {
	s.ApplicationID, s.TenantID, s.Live, s.Platform = app.ID, app.AgencyID, p.Live, p.Platform
	s.CreatedAt, s.ExpiresAt = now, now.Add(app.SessionLifetime)
	_, s.ERP = a.cfg.Registry.ERP(app.AgencyID, p.Live)
	var faults []checkout.Fault
	fault := func(code checkout.Code, field, rule, message string) {
		faults = append(faults, checkout.Fault{Code: code, Field: field, Rule: rule, Message: message})
	}
	if s.ServiceCode != "" {
		if service, ok := a.cfg.Registry.Service(app.AgencyID, s.ServiceCode); ok && service.Active {
			s.ServiceLabel = service.Label
		} else {
			fault(checkout.CodeValidationFailed, "service_code", "active_service", "service_code is not an active service of the agency's catalogue.")
		}
	}
	if s.Currency != "" {
		s.Offers = a.offers(app, s)
		switch {
		case len(s.Offers) == 0:
			fault(checkout.CodeValidationFailed, "currency", "supported", "currency is not taken by any offer of this application: mobile money and agency counters take XAF, cards take the contract's list, and XAF where the agency's acquirer is configured for it; bank transfers take the currency of the agency's account, for sessions of at least 72 hours, and for dues of an ERP that takes their channel.")
		case !slices.ContainsFunc(s.Offers, func(o checkout.Offer) bool { return a.cfg.Registry.HasChannel(app.AgencyID, p.Live, o.ID, s.Currency) }):
			fault(checkout.CodeNoChannel, "currency", "channel", "The agency has no account and no counter at which a "+registry.Mode(p.Live)+" payment in "+s.Currency+" could be made.")
		}
	}
	origins := app.EmbedOrigins
	if p.Platform {
		origins = a.cfg.Registry.Platform().EmbedOrigins
	}
	if s.Mode == checkout.ModeEmbedded && len(origins) == 0 {
		fault(checkout.CodeOriginsRequired, "mode", "origins_required", "mode embedded needs embed origins, and none are configured for this key's scope.")
	}
	return s, faults
}

// offers returns the application's offers that take the session's currency, with their fees. A payment of a due is
// confirmed to the agency's ERP, which must take the channel.
func (a *API) offers(app registry.Application, s checkout.Session) []checkout.Offer {
	erp, _ := a.cfg.Registry.ERP(app.AgencyID, s.Live)
	return app.PricedOffers(s.Amount,
		func(id string) bool {
			channel, _ := checkout.OfferChannel(id)
			return a.cfg.Registry.Takes(app.AgencyID, s.Live, id, s.Currency) && (!s.ToConfirm() || erp.Knows(channel))
		},
		func(channel checkout.Channel) (money.Schedule, bool) {
			return a.cfg.Registry.Fee(app.AgencyID, channel, s.Currency)
		})
}
