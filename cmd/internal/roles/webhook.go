package roles

import (
	"time"

	"quittance/internal/registry"
	"quittance/sinks/webhook"
)

func webhookRole() Role {
	return deliveryRole(webhook.Kind, Role{Short: "sends webhooks", Keys: seals(registry.LabelWebhook), Run: (*Base).webhook})
}

func (b *Base) webhook() error {
	policy, err := webhook.NewPolicy(webhook.Config{Endpoints: b.Registry, Now: b.Now, Timestamp: time.Now, Loopback: b.Loopback})
	if err != nil {
		return err
	}
	return b.deliver(webhook.Kind, policy)
}
