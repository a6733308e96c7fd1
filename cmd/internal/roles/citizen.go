package roles

import (
	"context"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/citizen"
	"quittance/ingress/web"
	"quittance/internal/registry"
)

// citizenSurface is the citizen API and the portal's pages. The mode of a portal is that of its
// installation: live in quittance, test in quittance-dev.
func citizenSurface(e *edge, at Host) (Surface, error) {
	if _, _, err := e.signInCodes(); err != nil {
		return Surface{}, err
	}
	drafted, err := e.sessionDrafts()
	if err != nil {
		return Surface{}, err
	}
	accounts, err := e.citizenStore()
	if err != nil {
		return Surface{}, err
	}
	messages, err := e.Messages()
	if err != nil {
		return Surface{}, err
	}
	service, err := citizen.NewService(citizen.Config{
		Citizens: accounts, Messages: messages, Registry: portals{e.configuration()}, Dues: e.dues,
		Sessions: e.reader, Drafts: drafted, Quotas: e.reads, Live: !e.Developer(), PublicURL: at.URL, Now: e.Now, Log: e.Log, Metrics: e.Metrics,
	})
	if err != nil {
		return Surface{}, err
	}
	e.Run("citizens", service.Run)
	// The last sign-ins are answered while the instance drains.
	e.close = append(e.close, func() { service.Flush(context.WithoutCancel(e.ctx)) })
	limits := web.Shares(e.KeylessPerClient, e.KeylessPerInstance)
	api, err := citizen.NewAPI(service, limits)
	if err != nil {
		return Surface{}, err
	}
	portal, err := citizen.NewPortal(service, limits)
	return Surface{at, func(r chi.Router) { api.Routes(r); portal.Routes(r) }}, err
}

// portals is the configuration as the citizen portal needs it.
type portals struct{ configuration }

// PortalOf returns the application of a portal with the origins to which its citizens return.
func (p portals) PortalOf(agencyID string) (registry.Application, bool) {
	app, ok := p.configuration.PortalOf(agencyID)
	app.SuccessOrigins = p.moved(app.SuccessOrigins)
	return app, ok
}
