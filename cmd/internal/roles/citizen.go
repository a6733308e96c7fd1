package roles

import (
	"context"

	"quittance/ingress/citizen"
	"quittance/internal/citizens"
)

// citizenSurface makes the citizen API of an ingress. The mode of a portal is that of its
// installation: live in quittance, test in quittance-dev.
func (b *Base) citizenSurface(checkoutURL string) (*citizen.API, error) {
	accounts, err := citizens.New(citizens.Config{Pool: b.Pool, Keys: b.Keys, Reference: b.References, Now: b.Now})
	if err != nil {
		return nil, err
	}
	messages, err := b.Messages()
	if err != nil {
		return nil, err
	}
	service, err := citizen.NewService(citizen.Config{
		Citizens: accounts, Messages: messages, Registry: b.Registry, Live: !b.Developer(), PublicURL: checkoutURL, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
	})
	if err != nil {
		return nil, err
	}
	b.Run("citizens", service.Run)
	// The last sign-ins are answered while the instance drains.
	b.close = append(b.close, func() { service.Flush(context.WithoutCancel(b.ctx)) })
	return citizen.NewAPI(service, b.KeylessPerClient)
}
