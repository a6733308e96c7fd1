package roles

import (
	"context"

	"quittance/ingress/citizen"
	"quittance/internal/drafts"
	"quittance/internal/quota"
	"quittance/internal/registry"
	readmodel "quittance/internal/sessions"
)

// citizenSurface makes the citizen API of an ingress and the portal's pages. The mode of a portal is that of its
// installation: live in quittance, test in quittance-dev.
func (b *Base) citizenSurface(drafted *drafts.Maker, sessions *readmodel.Reader, quotas *quota.Reads, checkoutURL string) (*citizen.API, *citizen.Portal, error) {
	if _, err := b.signInSMSPerHour(); err != nil {
		return nil, nil, err
	}
	accounts, err := b.citizenStore()
	if err != nil {
		return nil, nil, err
	}
	messages, err := b.Messages()
	if err != nil {
		return nil, nil, err
	}
	dues, err := b.Dues()
	if err != nil {
		return nil, nil, err
	}
	service, err := citizen.NewService(citizen.Config{
		Citizens: accounts, Messages: messages, Registry: portals{b.configuration()}, Dues: dues, Sessions: sessions, Drafts: drafted,
		Quotas: quotas, Live: !b.Developer(), PublicURL: checkoutURL, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return nil, nil, err
	}
	b.Run("citizens", service.Run)
	// The last sign-ins are answered while the instance drains.
	b.close = append(b.close, func() { service.Flush(context.WithoutCancel(b.ctx)) })
	api, err := citizen.NewAPI(service, b.KeylessPerClient)
	if err != nil {
		return nil, nil, err
	}
	portal, err := citizen.NewPortal(service, b.KeylessPerClient)
	return api, portal, err
}

// portals is the configuration as the citizen portal needs it.
type portals struct{ configuration }

// PortalOf returns the application of a portal with the origins to which its citizens return.
func (p portals) PortalOf(agencyID string) (registry.Application, bool) {
	app, ok := p.configuration.PortalOf(agencyID)
	app.SuccessOrigins = p.moved(app.SuccessOrigins)
	return app, ok
}
