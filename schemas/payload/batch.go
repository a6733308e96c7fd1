package payload

import (
	"cmp"
	"encoding/json"
	"fmt"

	"quittance/disbursement"
)

// PrefixEvent begins the ids of events that integrators get.
const PrefixEvent = "evt_"

// batchWebhook is the flat body of a webhook about a disbursement batch (docs/design/disbursement.md, "Webhooks and
// notices"). It has no personal data of payees, and no text that a person has written but batch_ref and line_ref, which are
// the agency's own references.
type batchWebhook struct {
	EventID       string       `json:"event_id"`
	Event         string       `json:"event"`
	APIVersion    string       `json:"api_version"`
	CreatedAt     string       `json:"created_at"`
	Livemode      bool         `json:"livemode"`
	Sequence      int64        `json:"sequence"`
	ApplicationID string       `json:"application_id"`
	TenantID      string       `json:"tenant_id"`
	Batch         string       `json:"batch"`
	BatchRef      string       `json:"batch_ref"`
	Revision      int          `json:"revision"`
	Status        string       `json:"status"`
	Currency      string       `json:"currency"`
	Counts        batchNumbers `json:"counts"`
	Sums          batchNumbers `json:"sums"`

	*batchLine
}

// batchNumbers are numbers of lines, or sums of their amounts in minor units: of all lines, and by their status.
type batchNumbers struct {
	Total     int64 `json:"total"`
	Ready     int64 `json:"ready"`
	Sent      int64 `json:"sent"`
	Paid      int64 `json:"paid"`
	Refused   int64 `json:"refused"`
	Cancelled int64 `json:"cancelled"`
	Returned  int64 `json:"returned"`
}

// batchLine holds the additional fields of an event of a line.
type batchLine struct {
	LineRef string `json:"line_ref"`
	// PayoutRef is that of the attempt that the event is about: the one that paid, or the last one.
	PayoutRef string `json:"payout_ref"`
	// Code is the operator's code of its reason, which is never prose; null when it gave none.
	Code *string `json:"code"`
}

// BatchWebhook returns the body of the webhook about an event of a batch, for an application of its agency. The event must
// be one that integrators are told of (disbursement.Event.Webhook).
func BatchWebhook(e disbursement.Event, applicationID string) ([]byte, error) {
	name, b := e.Webhook(), e.Batch
	if name == "" || b == nil {
		return nil, fmt.Errorf("the event %s has no webhook", e.Type)
	}
	w := batchWebhook{
		EventID: PrefixEvent + e.ID, Event: name, APIVersion: apiVersion, CreatedAt: timestamp(e.At), Livemode: e.Live, Sequence: b.Sequence,
		ApplicationID: applicationID, TenantID: e.TenantID, Batch: b.ID, BatchRef: b.BatchRef, Revision: b.Revision, Status: string(b.Status), Currency: b.Currency,
		Counts: batchNumbersOf(b, int64(b.Count), func(t disbursement.Total) int64 { return int64(t.Count) }),
		Sums:   batchNumbersOf(b, b.Sum, func(t disbursement.Total) int64 { return t.Sum }),
	}
	switch e.Type { //nolint:exhaustive // the others are of the batch
	case disbursement.EventLineRefused, disbursement.EventLineReturned, disbursement.EventReturnWithdrawn, disbursement.EventLineSettled:
		if len(e.Lines) != 1 {
			return nil, fmt.Errorf("the event %s names %d lines, not one", e.Type, len(e.Lines))
		}
		l := e.Lines[0]
		attempt := disbursement.NewAttemptID(l.Batch, l.Position, cmp.Or(l.PaidBy, l.Attempt))
		w.batchLine = &batchLine{LineRef: l.Ref, PayoutRef: attempt.PayoutRef(), Code: nullable(e.Detail[disbursement.DetailReason])}
	}
	return json.Marshal(w)
}

func batchNumbersOf(b *disbursement.Batch, total int64, of func(disbursement.Total) int64) batchNumbers {
	t := b.Lines
	return batchNumbers{
		Total: total, Ready: of(t.Ready), Sent: of(t.Sent), Paid: of(t.Paid), Refused: of(t.Refused), Cancelled: of(t.Cancelled), Returned: of(t.Returned),
	}
}
