package roles

import (
	"context"
	"net"

	surface "quittance/ingress/cashin"
	"quittance/internal/address"
	"quittance/internal/cashin"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/drafts"
	"quittance/internal/quota"
	"quittance/internal/registry"
	sink "quittance/sinks/cashin"
)

// cashinSurface makes the deprecated cash-in surface of an ingress.
func (b *Base) cashinSurface(h *commands.Checkout, drafted *drafts.Maker, quotas *quota.Reads, connectors map[string]connector.Connector, checkoutURL string) (*surface.API, error) {
	credentials, err := cashin.New(cashin.Config{Pool: b.Pool, Now: b.Now, Demo: b.PlainSecrets})
	if err != nil {
		return nil, err
	}
	usage, err := cashin.NewUsage(cashin.UsageConfig{Pool: b.Pool, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return nil, err
	}
	b.Run("cash-in usage", usage.Run)
	// The last calls are answered while the instance drains.
	b.close = append(b.close, func() { usage.Flush(context.WithoutCancel(b.ctx)) })
	payers := map[string]surface.Payer{}
	for offer, c := range connectors {
		if reader, ok := c.(connector.PayerReader); ok {
			payers[offer] = reader
		}
	}
	return surface.New(surface.Config{
		Commands: h, Expect: func() surface.Expectation { return h.Expect() }, Credentials: credentials, Configuration: partners{b.configuration()}, Quotas: quotas, Usage: usage, Drafts: drafted,
		Personal: b.Personal, Payers: payers, Webhooks: address.Rule{Loopback: b.Loopback}, Resolver: net.DefaultResolver, CheckoutURL: checkoutURL,
		Stopping: b.ctx, PerClient: b.KeylessPerClient, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
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

// cashin is the sink that tells partners of the deprecated cash-in surface.
func (b *Base) cashin() error {
	policy, err := sink.NewPolicy(sink.Config{Applications: b.Registry, Loopback: b.Loopback})
	if err != nil {
		return err
	}
	return b.deliver(sink.Kind, policy)
}
