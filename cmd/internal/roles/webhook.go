package roles

import (
	"time"

	"quittance/sinks/webhook"
)

func (b *Base) webhook() error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	policy, err := webhook.NewPolicy(webhook.Config{Endpoints: b.Registry, Now: b.Now, Timestamp: time.Now, Loopback: b.Loopback})
	if err != nil {
		return err
	}
	return b.deliver(webhook.Kind, policy)
}
