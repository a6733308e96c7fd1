package batches

import (
	"fmt"

	"quittance/disbursement"
	"quittance/schemas/payload"
	"quittance/schemas/record"
)

// ToWebhook returns the notification of an event of a batch for an application of its agency; nil for an event of which
// integrators are not told. It stands where a session's does: SessionID is the batch's id. The processor of batches knows no
// application, so the planner of webhooks makes it, from disbursement.events.
func ToWebhook(e disbursement.Event, applicationID string) (*record.Notification, error) {
	if e.Webhook() == "" {
		return nil, nil //nolint:nilnil // most events have no webhook, and that is no error
	}
	body, err := payload.BatchWebhook(e, applicationID)
	if err != nil {
		return nil, fmt.Errorf("writing the body of %s: %w", e.Type, err)
	}
	return &record.Notification{
		EventID: payload.PrefixEvent + e.ID, Event: e.Webhook(), ApplicationID: applicationID, TenantID: e.TenantID, SessionID: e.Batch.ID,
		Livemode: e.Live, OccurredAt: e.At, Body: body,
	}, nil
}
