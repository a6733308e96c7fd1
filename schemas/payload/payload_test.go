package payload_test

import (
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/disbursement"
	"quittance/schemas/payload"
)

func completed() checkout.Event {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8_900_000, time.UTC)
	s := checkout.Session{
		ID: "chs_1", ApplicationID: "app", TenantID: "agency", OrderID: "order", Amount: 5000, Currency: "XAF",
		Status: checkout.StatusCompleted, EndedAt: at, Sequence: 3, PaymentRef: "1234567890123456", NoticeID: "notice", NoticeRef: "AV-1",
		TransactionID: "tx", ServiceCode: "service", Metadata: map[string]string{checkout.MetadataERPDueRef: "due"},
		Collection: &checkout.Collection{Channel: checkout.ChannelMobileMoney, OfferID: checkout.OfferMomo, OperatorRef: "op", Fee: 50, Amount: 5050},
	}
	return checkout.Event{ID: "evt_1", Type: checkout.EventCompleted, SessionID: s.ID, Sequence: 3, OccurredAt: at, Session: s}
}

// ofPartner makes the event one of a payment of the deprecated cash-in surface.
func ofPartner(e checkout.Event) checkout.Event {
	e.Session.Cashin, e.Session.Description = &checkout.Cashin{PaymentID: 7, Number: "T2603000001"}, "a <b> & c"
	return e
}

// Receivers verify a signature over these bytes and parse them: a change of the bytes is a
// change of the API.
func TestBodies(t *testing.T) {
	t.Parallel()
	failed := completed()
	failed.Type, failed.Session.Status, failed.Session.Metadata = checkout.EventFailed, checkout.StatusFailed, nil
	failed.Session.FailureCode, failed.Session.FailureMessage = "insufficient_funds", "No money."
	honoured := completed()
	honoured.Session.Late = true
	dated := completed() // the operator approved it two hours before the service learned of it
	dated.Session.Collection.RequestedAt, dated.Session.Collection.ApprovedAt = dated.OccurredAt.Add(-3*time.Hour), dated.OccurredAt.Add(-2*time.Hour)
	reversed := completed()
	reversed.Type, reversed.Session.ReversedAt, reversed.Session.ReversalReason, reversed.Session.ReversalRef = checkout.EventReversed, reversed.OccurredAt, checkout.ReversalRefunded, "R-7"
	reversed.Detail = map[string]string{checkout.DetailWasCompleted: "true", checkout.DetailOrderPaid: "false"}
	partly := cart()
	partly.Type, partly.Session.Items[1].Fee, partly.Session.Items[1].ReversedAt = checkout.EventPartiallyReversed, 10, partly.OccurredAt
	partly.Detail = map[string]string{checkout.DetailTransactionIDs: "tx-2", checkout.DetailReason: "refunded", checkout.DetailReference: "R-7"}
	rest := cart()
	rest.Session.Items[1].ReversedAt = rest.OccurredAt.Add(-time.Hour)
	rest.Type, rest.Session.ReversedAt, rest.Session.ReversalReason, rest.Session.ReversalRef = checkout.EventReversed, rest.OccurredAt, checkout.ReversalRefunded, "R-8"
	rest.Detail = map[string]string{checkout.DetailWasCompleted: "true", checkout.DetailOrderPaid: "false"}
	for name, c := range map[string]struct {
		body func(checkout.Event) ([]byte, error)
		of   checkout.Event
		want string
	}{
		"completed": {payload.Webhook, completed(), `{"event_id":"evt_1","event":"checkout.completed","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"completed","paid":true,"payment_ref":"1234567890123456","metadata":{"erp_due_ref":"due"},"service_code":"service","service_label":null,"notice_id":"notice","transaction_id":"tx","channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","fee_amount":50,"total_amount":5050,"completed_at":"2026-03-04T05:06:07.008Z"}`},
		// It told when the session was completed, which it was not.
		"late":               {payload.Webhook, late(), `{"event_id":"evt_1","event":"checkout.late_payment","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"failed","paid":false,"payment_ref":"1234567890123456","metadata":{"erp_due_ref":"due"},"service_code":"service","service_label":null,"notice_id":"notice","transaction_id":"tx","channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","fee_amount":50,"total_amount":5050}`},
		"honoured":           {payload.Webhook, honoured, `{"event_id":"evt_1","event":"checkout.completed","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"completed","paid":true,"payment_ref":"1234567890123456","metadata":{"erp_due_ref":"due"},"service_code":"service","service_label":null,"notice_id":"notice","transaction_id":"tx","channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","fee_amount":50,"total_amount":5050,"completed_at":"2026-03-04T05:06:07.008Z","late":true}`},
		"reversed":           {payload.Webhook, reversed, `{"event_id":"evt_1","event":"checkout.reversed","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"completed","paid":false,"payment_ref":"1234567890123456","metadata":{"erp_due_ref":"due"},"service_code":"service","service_label":null,"transaction_id":"tx","items":[{"erp_due_ref":"due","amount":5000,"transaction_id":"tx","notice_id":"notice","notice_ref":"AV-1"}],"reversed_at":"2026-03-04T05:06:07.008Z","reversal_reason":"refunded","reversal_ref":"R-7","was_completed":true,"order_paid":false}`},
		"partially reversed": {payload.Webhook, partly, `{"event_id":"evt_1","event":"checkout.partially_reversed","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"completed","paid":true,"payment_ref":"1234567890123456","metadata":{},"service_code":"service","service_label":null,"items":[{"erp_due_ref":"D-2","amount":1000,"transaction_id":"tx-2","notice_id":"notice-2","notice_ref":"AV-2"}],"reversed_amount":1010,"reversed_at":"2026-03-04T05:06:07.008Z","reversal_reason":"refunded","reversal_ref":"R-7"}`},
		"the rest reversed":  {payload.Webhook, rest, `{"event_id":"evt_1","event":"checkout.reversed","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"completed","paid":false,"payment_ref":"1234567890123456","metadata":{},"service_code":"service","service_label":null,"transaction_id":"tx","items":[{"erp_due_ref":"D-1","amount":4000,"transaction_id":"tx","notice_id":"notice","notice_ref":"AV-1"}],"reversed_at":"2026-03-04T05:06:07.008Z","reversal_reason":"refunded","reversal_ref":"R-8","was_completed":true,"order_paid":false}`},
		"failed":             {payload.Webhook, failed, `{"event_id":"evt_1","event":"checkout.failed","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"failed","paid":false,"payment_ref":"1234567890123456","metadata":{},"service_code":"service","service_label":null,"failure_code":"insufficient_funds","failure_message":"No money."}`},
		"confirmed":          {confirmation(0), completed(), `{"erp_due_ref":"due","transaction_id":"tx","notice_ref":"AV-1","payment_ref":"1234567890123456","subject_ref":null,"amount_minor":5000,"currency":"XAF","partial":false,"paid_at":"2026-03-04T05:06:07.008Z","service_code":"service","payment":{"channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","payer_masked":null}}`},
		"confirmed, dated":   {confirmation(0), dated, `{"erp_due_ref":"due","transaction_id":"tx","notice_ref":"AV-1","payment_ref":"1234567890123456","subject_ref":null,"amount_minor":5000,"currency":"XAF","partial":false,"paid_at":"2026-03-04T03:06:07.008Z","service_code":"service","payment":{"channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","payer_masked":null}}`},
		"partner, dated":     {payload.Partner, ofPartner(dated), `{"paymentId":7,"externalNumber":"order","amount":5000,"status":"completed","paidAt":"2026-03-04T03:06:07.008Z","note":"a <b> & c"}`},
		"cart, completed":    {payload.Webhook, cart(), `{"event_id":"evt_1","event":"checkout.completed","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":false,"sequence":3,"application_id":"app","tenant_id":"agency","session_id":"chs_1","order_id":"order","amount":5000,"currency":"XAF","status":"completed","paid":true,"payment_ref":"1234567890123456","metadata":{},"service_code":"service","service_label":null,"notice_id":"notice","transaction_id":"tx","channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","fee_amount":50,"total_amount":5050,"completed_at":"2026-03-04T05:06:07.008Z","items":[{"erp_due_ref":"D-1","amount":4000,"transaction_id":"tx","notice_id":"notice","notice_ref":"AV-1"},{"erp_due_ref":"D-2","amount":1000,"transaction_id":"tx-2","notice_id":"notice-2","notice_ref":"AV-2"}]}`},
		"cart, confirmed":    {confirmation(1), cart(), `{"erp_due_ref":"D-2","transaction_id":"tx-2","notice_ref":"AV-2","payment_ref":"1234567890123456","subject_ref":"NIU-1","amount_minor":1000,"currency":"XAF","partial":true,"paid_at":"2026-03-04T05:06:07.008Z","service_code":"vignette","payment":{"channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","payer_masked":null}}`},
		"partner, completed": {payload.Partner, ofPartner(completed()), `{"paymentId":7,"externalNumber":"order","amount":5000,"status":"completed","paidAt":"2026-03-04T05:06:07.008Z","note":"a <b> & c"}`},
		"partner, failed":    {payload.Partner, ofPartner(failed), `{"paymentId":7,"externalNumber":"order","amount":5000,"status":"failed","paidAt":null,"note":"a <b> & c"}`},
	} {
		got, err := c.body(c.of)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
}

// Receivers verify and parse these bytes, too. They name no payee.
func TestBatchBodies(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8_900_000, time.UTC)
	b := disbursement.Batch{
		ID: "dsb_1", BatchRef: "SALARIES-03", Revision: 2, Currency: "XAF", Status: disbursement.StatusDone, Maker: "maker", Count: 7, Sum: 7006, Sequence: 12,
		Hold:     disbursement.Hold{Reason: "ask Jane Doe, 242060000009", By: "p1", Since: at},
		Accounts: []disbursement.Funding{{Code: "mtn", Fingerprint: "f-mtn"}},
	}
	for n, s := range disbursement.LineStatuses() {
		*b.Lines.Of(s) = disbursement.Total{Count: n, Sum: int64(1000 + n)}
	}
	line := disbursement.Line{LineKey: disbursement.LineKey{Batch: "dsb_1", Position: 4}, Ref: "AGENT-5", Amount: 1000, Attempt: 2, OperatorRef: "op", Sealed: []byte("sealed")}
	event := func(typ disbursement.EventType, detail map[string]string, lines ...disbursement.Line) disbursement.Event {
		return disbursement.Event{ID: "0123456789abcdef", Type: typ, TenantID: "agency", Live: true, Batch: &b, Lines: lines, At: at, Detail: detail}
	}
	paidBefore, settled := line, line
	paidBefore.PaidBy, settled.Status = 1, disbursement.LineRefused
	head, batch := `{"event_id":"evt_0123456789abcdef","event":"`, `","api_version":"v1","created_at":"2026-03-04T05:06:07.008Z","livemode":true,"sequence":12,"application_id":"app","tenant_id":"agency","batch":"dsb_1","batch_ref":"SALARIES-03","revision":2,"status":"done","currency":"XAF","counts":{"total":7,"ready":0,"sent":1,"paid":2,"refused":3,"cancelled":4,"returned":5},"sums":{"total":7006,"ready":1000,"sent":1001,"paid":1002,"refused":1003,"cancelled":1004,"returned":1005}`
	reason := map[string]string{disbursement.DetailReason: "PAYEE_NOT_FOUND", disbursement.DetailBy: "p1"}
	for name, c := range map[string]struct {
		of   disbursement.Event
		want string
	}{
		"completed":    {event(disbursement.EventDone, nil), head + "disbursement.completed" + batch + `}`},
		"held":         {event(disbursement.EventHeld, map[string]string{disbursement.DetailReason: b.Hold.Reason}), head + "disbursement.held" + batch + `}`},
		"line refused": {event(disbursement.EventLineRefused, reason, line), head + "disbursement.line_refused" + batch + `,"line_ref":"AGENT-5","payout_ref":"` + disbursement.NewAttemptID("dsb_1", 4, 2).PayoutRef() + `","code":"PAYEE_NOT_FOUND"}`},
		"settled":      {event(disbursement.EventLineSettled, nil, settled), head + "disbursement.line_refused" + batch + `,"line_ref":"AGENT-5","payout_ref":"` + disbursement.NewAttemptID("dsb_1", 4, 2).PayoutRef() + `","code":null}`},
		"returned":     {event(disbursement.EventLineReturned, nil, paidBefore), head + "disbursement.line_returned" + batch + `,"line_ref":"AGENT-5","payout_ref":"` + disbursement.NewAttemptID("dsb_1", 4, 1).PayoutRef() + `","code":null}`},
		"not returned": {event(disbursement.EventReturnWithdrawn, nil, paidBefore), head + "disbursement.line_return_withdrawn" + batch + `,"line_ref":"AGENT-5","payout_ref":"` + disbursement.NewAttemptID("dsb_1", 4, 1).PayoutRef() + `","code":null}`},
	} {
		got, err := payload.BatchWebhook(c.of, "app")
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
	for _, e := range []disbursement.Event{event(disbursement.EventLinePaid, nil, line), event(disbursement.EventLineSettled, nil, paidBefore), event(disbursement.EventLineRefused, nil), {Type: disbursement.EventHeld}} {
		if got, err := payload.BatchWebhook(e, "app"); err == nil {
			t.Errorf("%s has the body %s", e.Type, got)
		}
	}
}

// confirmation writes the body about the n-th due of a session.
func confirmation(n int) func(checkout.Event) ([]byte, error) {
	return func(e checkout.Event) ([]byte, error) { return payload.Confirmation(e, e.Session.Dues()[n]) }
}

// cart is a completed session of two dues, of which one is paid in part.
// late is the event of money that came after its session had failed.
func late() checkout.Event {
	e := completed()
	e.Type, e.Session.Status = checkout.EventLatePayment, checkout.StatusFailed
	return e
}

func cart() checkout.Event {
	e := completed()
	e.Session.Metadata = nil
	e.Session.Items = []checkout.Item{
		{ERPDueRef: "D-1", SubjectRef: "NIU-1", Amount: 4000, Outstanding: 4000, TransactionID: "tx", NoticeID: "notice", NoticeRef: "AV-1"},
		{ERPDueRef: "D-2", SubjectRef: "NIU-1", ServiceCode: "vignette", Amount: 1000, Outstanding: 9000, TransactionID: "tx-2", NoticeID: "notice-2", NoticeRef: "AV-2"},
	}
	return e
}

// An ERP has a word of its own for a channel that the contract does not name; all else of the confirmation stays as it is.
func TestWithChannel(t *testing.T) {
	t.Parallel()
	word := func(c checkout.Channel) (string, bool) {
		return "VIREMENT", c == checkout.ChannelSwitch
	}
	const body = `{"erp_due_ref":"D-1","transaction_id":"t","notice_ref":"AV1","payment_ref":"1234567890123456","subject_ref":null,"amount_minor":5000,"currency":"XAF","partial":false,"paid_at":"2026-11-30T09:00:00.000Z","service_code":"patente","payment":{"channel":"SWITCH","offer_id":"switch","operator_ref":"E\u00261","payer_masked":null}}`
	if got := string(payload.WithChannel([]byte(body), word)); got != strings.Replace(body, "SWITCH", "VIREMENT", 1) {
		t.Errorf("got %s", got)
	}
	for _, same := range []string{strings.Replace(body, "SWITCH", "CARD", 1), "not a confirmation"} {
		if got := string(payload.WithChannel([]byte(same), word)); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
}
