package roles

import (
	client "quittance/internal/erp"
	"quittance/sinks/erp"
)

func (b *Base) erp() error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	calls := b.ERPs()
	prober, err := erp.NewProber(erp.ProberConfig{Agencies: b.Registry, Client: calls, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return err
	}
	b.Run("erp prober", prober.Run)
	return b.deliver(erp.Kind, erp.NewPolicy(b.Registry, calls))
}

// ERPs calls the agencies' ERPs.
func (b *Base) ERPs() *client.Client { return client.New(client.Config{Loopback: b.Loopback}) }
