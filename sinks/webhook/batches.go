package webhook

import (
	"fmt"

	"quittance/internal/deliveries"
	"quittance/schemas"
	mapping "quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// batches makes the notifications about disbursement batches. They are for the integrator's application of the batch's
// agency alone: neither its portal nor the platform sends payments to people.
type batches struct{ endpoints Endpoints }

// notifications returns the notification of an event that has a webhook. An event that can have no body is poison, as it
// will have none later either.
func (b batches) notifications(codec *schemas.Codec, value []byte) ([]*record.Notification, error) {
	var r record.DisbursementEvent
	if err := codec.Decode(value, &r); err != nil {
		return nil, err
	}
	e := mapping.ToEvent(&r)
	if e.Webhook() == "" || b.endpoints == nil {
		return nil, nil
	}
	app, ok := b.endpoints.IntegratorOf(r.TenantID)
	if !ok {
		return nil, deliveries.ErrNoApplication
	}
	n, err := mapping.ToWebhook(e, app.ID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrUndecodable, err)
	}
	return []*record.Notification{n}, nil
}
