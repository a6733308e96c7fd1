package registryfile

import (
	"context"
	"slices"

	"quittance/internal/registry"
	"quittance/internal/registry/db"
)

// setting is a field of the file beside its value in the database.
type setting struct {
	field string
	// given means that the file has the field, equal that it has the value of the database.
	given, equal bool
	// drop removes the field from what the file sets.
	drop func()
}

// leave drops the fields that a command has set, and notes those that differ.
func (w *writer) leave(path, id string, settings ...setting) {
	for _, s := range settings {
		if w.overrule || !s.given || !w.Before.SetByCommand(id, s.field) {
			continue
		}
		s.drop()
		if !s.equal {
			w.note(path+"."+s.field, "a command has set this field, and it stays as it is; `quittance seed --overrule` sets it")
		}
	}
}

// is reports whether a field of the file has a value. Nil is an omitted field.
func is[T comparable](given *T, value T) bool { return given != nil && *given == value }

// beside returns the application of a file without what commands have set.
func (w *writer) beside(a application) db.UpsertApplicationParams {
	p := a.UpsertApplicationParams
	now, known := w.Before.Applications[a.ID]
	if !known {
		return p
	}
	w.leave(a.path, a.ID,
		setting{"active", p.Active != nil, is(p.Active, now.Active), func() { p.Active = nil }},
		setting{"offers", p.Offers != nil, slices.Equal(p.Offers, now.Offers), func() { p.Offers = nil }},
		setting{"session_lifetime", p.SessionLifetimeMs != nil, is(p.SessionLifetimeMs, now.SessionLifetime.Milliseconds()), func() { p.SessionLifetimeMs = nil }},
		setting{"creations_per_minute", p.CreationsPerMinute != nil, is(p.CreationsPerMinute, int64(now.CreationsPerMinute)), func() { p.CreationsPerMinute = nil }},
		setting{"reads_per_minute", p.ReadsPerMinute != nil, is(p.ReadsPerMinute, int64(now.ReadsPerMinute)), func() { p.ReadsPerMinute = nil }},
		setting{"page_size", p.PageSize != nil, is(p.PageSize, int64(now.PageSize)), func() { p.PageSize = nil }},
	)
	p.EmbedOrigins = w.origins(a.path, a.ID, p.EmbedOrigins, now.EmbedOrigins)
	return p
}

// besidePortal returns the portal of a file without what commands have set.
func (w *writer) besidePortal(p portal) db.UpsertPortalParams {
	params := p.UpsertPortalParams
	if now, known := w.Before.PortalOf(p.AgencyID); known {
		w.leave(p.path, p.ID,
			setting{"active", params.Active != nil, is(params.Active, now.Active), func() { params.Active = nil }},
			setting{"offers", params.Offers != nil, slices.Equal(params.Offers, now.Offers), func() { params.Offers = nil }},
			setting{"session_lifetime", params.SessionLifetimeMs != nil, is(params.SessionLifetimeMs, now.SessionLifetime.Milliseconds()), func() { params.SessionLifetimeMs = nil }},
		)
	}
	return params
}

// besideEndpoint returns the endpoint of a file without what commands have set.
func (w *writer) besideEndpoint(e endpoint, now registry.WebhookEndpoint) db.UpdateWebhookEndpointParams {
	p := db.UpdateWebhookEndpointParams{ID: now.ID, Events: e.Events, Modes: e.Modes, MaxInFlight: e.MaxInFlight, MaxPerSecond: e.MaxPerSecond}
	modes := slices.Contains(p.Modes, registry.Mode(false)) == now.Test && slices.Contains(p.Modes, registry.Mode(true)) == now.Live
	w.leave(e.path, now.ID,
		setting{"events", p.Events != nil, slices.Equal(p.Events, now.Events), func() { p.Events = nil }},
		setting{"modes", p.Modes != nil, modes, func() { p.Modes = nil }},
		setting{"max_in_flight", p.MaxInFlight != nil, is(p.MaxInFlight, int64(now.MaxInFlight)), func() { p.MaxInFlight = nil }},
		setting{"max_per_second", p.MaxPerSecond != nil, is(p.MaxPerSecond, int64(now.MaxPerSecond)), func() { p.MaxPerSecond = nil }},
	)
	return p
}

// origins returns the embed origins of a file, without those that a command has removed and
// with those that a command has added. Nil is an omitted list. applicationID is empty for
// the platform.
func (w *writer) origins(path, applicationID string, given, now []string) []string {
	if given == nil || w.overrule {
		return given
	}
	out := []string{}
	for _, o := range given {
		if w.Before.OriginByCommand(applicationID, o) && !slices.Contains(now, o) {
			w.note(path+".embed_origins", "a command has removed the origin %s, and it stays removed; `quittance origins add` adds it", o)
			continue
		}
		out = append(out, o)
	}
	for _, o := range now {
		if w.Before.OriginByCommand(applicationID, o) && !slices.Contains(out, o) {
			w.note(path+".embed_origins", "a command has added the origin %s, and it stays; `quittance origins remove` removes it", o)
			out = append(out, o)
		}
	}
	return out
}

// mappings writes the catalogue mapping of an agency, without what commands have decided.
func (w *writer) mappings(ctx context.Context, a agency) error {
	for _, m := range a.mappings {
		now := w.Before.MappingOf(a.ID, m.ErpCode)
		if !w.overrule && w.Before.MappingByCommand(a.ID, m.ErpCode) {
			switch now {
			case m.ServiceCode:
			case "":
				w.note(m.path, "a command has removed the mapping of this erp_code, and it stays removed; `quittance mappings set` sets it")
			default:
				w.note(m.path, "a command has mapped this erp_code to %s, and it stays so; `quittance mappings set` changes it", now)
			}
			continue
		}
		if err := w.Anew(ctx, "service_mappings", m.AgencyID, m.ErpCode); err != nil {
			return err
		}
		if err := w.q.UpsertServiceMapping(ctx, m.UpsertServiceMappingParams); err != nil {
			return err
		}
	}
	w.leave(a.path, a.ID, setting{"default_service", a.defaultService != nil, is(a.defaultService, w.Before.Agencies[a.ID].DefaultService), func() { a.defaultService = nil }})
	if a.defaultService != nil {
		if err := w.q.SetDefaultService(ctx, db.SetDefaultServiceParams{ID: a.ID, DefaultService: a.defaultService}); err != nil {
			return err
		}
	}
	if !w.overrule {
		return nil
	}
	return w.q.ForgetMappings(ctx, a.ID)
}

// platformOrigins writes the embed origins of the platform. Nil is an omitted list.
func (w *writer) platformOrigins(ctx context.Context, given []string) error {
	if given == nil {
		return nil
	}
	if err := w.q.SetPlatformOrigins(ctx, w.origins("platform", "", given, w.Before.Platform.EmbedOrigins)); err != nil {
		return err
	}
	if !w.overrule {
		return nil
	}
	return w.q.ForgetPlatformCommands(ctx)
}
