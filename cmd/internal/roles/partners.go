package roles

import (
	"context"
	"net"

	surface "quittance/ingress/cashin"
	"quittance/ingress/web"
	"quittance/internal/address"
	"quittance/internal/cashin"
	"quittance/internal/connector"
	"quittance/internal/registry"
)

// cashinSurface is the deprecated cash-in surface.
func cashinSurface(e *edge, at Host) (Surface, error) {
	drafted, err := e.sessionDrafts()
	if err != nil {
		return Surface{}, err
	}
	credentials, err := cashin.New(cashin.Config{Pool: e.Pool, Keys: e.Keys, Now: e.Now, Demo: e.PlainSecrets})
	if err != nil {
		return Surface{}, err
	}
	usage, err := cashin.NewUsage(cashin.UsageConfig{Pool: e.Pool, Log: e.Log, Metrics: e.Metrics})
	if err != nil {
		return Surface{}, err
	}
	e.Run("cash-in usage", usage.Run)
	// The last calls are answered while the instance drains.
	e.close = append(e.close, func() { usage.Flush(context.WithoutCancel(e.ctx)) })
	payers := map[string]surface.Payer{}
	for offer, c := range e.offers {
		if reader, ok := c.(connector.PayerReader); ok {
			payers[offer] = reader
		}
	}
	api, err := surface.New(surface.Config{
		Commands: e.processor, Expect: func() surface.Expectation { return e.processor.Expect() }, Credentials: credentials,
		Configuration: partners{e.configuration()}, Quotas: e.reads, Usage: usage, Drafts: drafted, Personal: e.Personal,
		Payers: payers, Webhooks: address.Rule{Loopback: e.Loopback}, Resolver: net.DefaultResolver,
		CheckoutURL: at.URL, Stopping: e.ending.waits, Limits: web.Shares(e.KeylessPerClient, e.KeylessPerInstance),
		Now: e.Now, Log: e.Log, Metrics: e.Metrics,
	})
	return Surface{at, api.Routes}, err
}

// partners is the configuration as the deprecated cash-in surface needs it.
type partners struct{ configuration }

// Application returns an application with the origins to which its citizens return.
func (p partners) Application(id string) (registry.Application, bool) {
	app, ok := p.configuration.Application(id)
	if app.Cashin != nil {
		access := *app.Cashin
		access.RedirectOrigins = p.moved(access.RedirectOrigins)
		app.Cashin = &access
	}
	return app, ok
}
