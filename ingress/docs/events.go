package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"quittance/checkout"
	"quittance/disbursement"
	"quittance/schemas/payload"
)

// event is a webhook with a sample of its body.
type event struct {
	hook
	Sample string
}

// sampleAt is the time of the samples.
var sampleAt = time.Date(2026, 11, 22, 10, 15, 30, 0, time.UTC)

// sampleEvent is an event of a type, of one payment of 5,000 FCFA by mobile money.
func sampleEvent(t checkout.EventType) checkout.Event {
	s := checkout.Session{
		ID: "chs_06gvsbc8s8005g6dk23laobls1sakuhnf3qrqno", ApplicationID: "018f0000-0000-7000-8000-00000000000a", TenantID: "018f0000-0000-7000-8000-000000000001",
		OrderID: "DOSSIER-2026-0001", Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted, Status: checkout.StatusOpen, PaymentRef: "4175020683362214",
		ServiceCode: "patente", ServiceLabel: "Contribution de la patente", Metadata: map[string]string{"case": "2026-0001"},
		NoticeID: "019aaba5-3a10-7c44-9d1b-5f0c2b7e9a01", TransactionID: "019aaba5-3a10-7c44-9d1b-5f0c2b7e9a02", NoticeRef: "AV20260000000017",
		CreatedAt: sampleAt.Add(-3 * time.Minute), ExpiresAt: sampleAt.Add(24*time.Hour - 3*time.Minute), EndedAt: sampleAt, Sequence: 3,
		Collection: &checkout.Collection{OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, OperatorRef: "1398432101", Fee: 75, Amount: 5075},
	}
	e := checkout.Event{ID: "evt_06gvsbc8s8005g6dk23laobls1", Type: t, SessionID: s.ID, Sequence: 3, OccurredAt: sampleAt}
	switch t { //nolint:exhaustive // the others are no webhooks
	case checkout.EventCompleted:
		s.Status = checkout.StatusCompleted
	case checkout.EventFailed:
		s.Status, s.FailureCode = checkout.StatusFailed, checkout.FailureInsufficientFunds
		s.FailureMessage = s.FailureCode.Message()
	case checkout.EventCancelled:
		s.Status = checkout.StatusCancelled
	case checkout.EventExpired:
		s.Status = checkout.StatusExpired
	case checkout.EventLatePayment:
		s.Status, s.Sequence, e.Sequence = checkout.StatusExpired, 4, 4
	case checkout.EventReversed:
		s.Status, s.Sequence, e.Sequence = checkout.StatusCompleted, 4, 4
		s.ReversedAt, s.ReversalReason, s.ReversalRef = sampleAt, checkout.ReversalRefunded, "OV-2026-118"
		e.Detail = map[string]string{checkout.DetailWasCompleted: "true", checkout.DetailOrderPaid: "false"}
	case checkout.EventPartiallyReversed:
		s.Status, s.Sequence, e.Sequence = checkout.StatusCompleted, 4, 4
		s.Items = []checkout.Item{
			{ERPDueRef: "PAT-2026-000412", Amount: 4000, Fee: 60, TransactionID: s.TransactionID, NoticeID: s.NoticeID, NoticeRef: s.NoticeRef},
			{ERPDueRef: "PAT-2026-000413", Amount: 1000, Fee: 15, TransactionID: "019aaba5-3a10-7c44-9d1b-5f0c2b7e9a04", NoticeID: "019aaba5-3a10-7c44-9d1b-5f0c2b7e9a03", NoticeRef: "AV20260000000018"},
		}
		e.Detail = map[string]string{checkout.DetailTransactionIDs: s.Items[1].TransactionID, checkout.DetailReason: string(checkout.ReversalRefunded), checkout.DetailReference: "OV-2026-118"}
	}
	e.Session = s
	return e
}

// sampleBatchEvent is an event of a type, of a batch of three lines.
func sampleBatchEvent(t disbursement.EventType) disbursement.Event {
	b := disbursement.Batch{
		ID: "dsb_06gvsbc8s8005g6dk23laobls1sakuhnf3qrqno", TenantID: "018f0000-0000-7000-8000-000000000001", BatchRef: "SALAIRES-2026-11", Revision: 1,
		Currency: "XAF", Status: disbursement.StatusReleasing, Count: 3, Sum: 640_000, Sequence: 9,
		Lines: disbursement.Totals{Sent: disbursement.Total{Count: 1, Sum: 200_000}, Paid: disbursement.Total{Count: 2, Sum: 440_000}},
	}
	line := disbursement.Line{LineKey: disbursement.LineKey{Batch: b.ID, Position: 2}, Ref: "AGENT-000173", Amount: 200_000, Attempt: 1}
	e := disbursement.Event{ID: "5b0c2f9e3d7148a6b1c4e8d2f6a90713", Type: t, TenantID: b.TenantID, Batch: &b, At: sampleAt}
	switch t { //nolint:exhaustive // the others are no webhooks
	case disbursement.EventDone:
		b.Status, b.Sequence = disbursement.StatusDone, 11
		b.Lines.Sent, b.Lines.Refused = disbursement.Total{}, b.Lines.Sent
	case disbursement.EventLineRefused:
		e.Lines, e.Detail = []disbursement.Line{line}, map[string]string{disbursement.DetailReason: "PAYEE_NOT_FOUND"}
		b.Lines.Sent, b.Lines.Refused = disbursement.Total{}, b.Lines.Sent
	case disbursement.EventLineReturned:
		e.Lines = []disbursement.Line{line}
		b.Status, b.Sequence = disbursement.StatusDone, 12
		b.Lines.Sent, b.Lines.Returned = disbursement.Total{}, b.Lines.Sent
	case disbursement.EventReturnWithdrawn:
		e.Lines = []disbursement.Line{line}
		b.Status, b.Sequence = disbursement.StatusDone, 13
		b.Lines.Sent, b.Lines.Paid.Count, b.Lines.Paid.Sum = disbursement.Total{}, b.Lines.Paid.Count+b.Lines.Sent.Count, b.Lines.Paid.Sum+b.Lines.Sent.Sum
	}
	return e
}

// bodies returns what writes the body of each webhook's sample, by the webhook's name, as package payload writes the real
// ones.
func bodies() map[string]func() ([]byte, error) {
	out := map[string]func() ([]byte, error){}
	for _, t := range checkout.EventTypes() {
		if t.Webhook() {
			out[string(t)] = func() ([]byte, error) { return payload.Webhook(sampleEvent(t)) }
		}
	}
	for _, t := range disbursement.EventTypes() {
		if name := t.Webhook(); name != "" {
			out[name] = func() ([]byte, error) {
				return payload.BatchWebhook(sampleBatchEvent(t), "018f0000-0000-7000-8000-00000000000a")
			}
		}
	}
	return out
}

// sampleBody returns the body of a webhook, indented. One that the service does not send is an error.
func sampleBody(name string) (string, error) {
	write, ok := bodies()[name]
	if !ok {
		return "", fmt.Errorf("the OpenAPI file has the webhook %s, which the service does not send", name)
	}
	body, err := write()
	if err != nil {
		return "", fmt.Errorf("writing the sample of %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		return "", fmt.Errorf("writing the sample of %s: %w", name, err)
	}
	return b.String(), nil
}

// events returns the webhooks of the reference with their samples. A webhook that the
// service does not send is an error, and so is one that the reference lacks.
func events(hooks []hook) (out []event, err error) {
	sent := bodies()
	for _, h := range hooks {
		delete(sent, h.Event)
		sample, err := sampleBody(h.Event)
		if err != nil {
			return nil, err
		}
		out = append(out, event{hook: h, Sample: sample})
	}
	if missing := slices.Sorted(maps.Keys(sent)); len(missing) > 0 {
		return nil, fmt.Errorf("the OpenAPI file lacks the webhook %s", missing[0])
	}
	return out, nil
}
