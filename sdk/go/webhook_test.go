package quittance_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	quittance "quittance.example/go"
)

const (
	secret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	another = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	common  = `"event_id":"evt_1","api_version":"v1","created_at":"2026-11-22T10:15:00.000Z","livemode":false,"sequence":3,"application_id":"a","tenant_id":"t","session_id":"chs_1","order_id":"o","amount":5000000000,"currency":"XAF","status":"completed","paid":true,"payment_ref":"4175020683362214","metadata":{"case":"4"},"service_code":null,"service_label":null`
	payment = `,"notice_id":"n","transaction_id":"x","channel":"MOBILE_MONEY","offer_id":"momo","operator_ref":"op","fee_amount":75,"total_amount":5000000075,"completed_at":"2026-11-22T10:15:00.000Z"`
)

// The fields of an event of a batch, and of one of its lines.
const (
	batch = `,"batch":"dsb_1","batch_ref":"R-1","revision":1,"counts":{"total":3,"ready":0,"sent":0,"paid":3,"refused":0,"cancelled":0,"returned":0},"sums":{"total":5000000000,"ready":0,"sent":0,"paid":5000000000,"refused":0,"cancelled":0,"returned":0}`
	line  = `,"line_ref":"A-1","payout_ref":"QD1","code":"NO"`
)

func sign(secret, id, timestamp, body string) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func headers(id, timestamp, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", timestamp)
	h.Set("webhook-signature", signature)
	return h
}

func receiver(t *testing.T, secrets ...string) *quittance.Receiver {
	t.Helper()
	r, err := quittance.NewReceiver(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerify(t *testing.T) {
	t.Parallel()
	r := receiver(t, secret)
	at := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).Unix(), 10) }
	now, stale, early := at(0), at(-6*time.Minute), at(6*time.Minute)
	body := `{"event":"checkout.completed",` + common + payment + `}`
	good := sign(secret, "evt_1", now, body)
	for name, h := range map[string]http.Header{
		"nothing":               {},
		"no signature":          headers("evt_1", now, ""),
		"no id":                 headers("", now, sign(secret, "", now, body)),
		"no time":               headers("evt_1", "", sign(secret, "evt_1", "", body)),
		"a time that is none":   headers("evt_1", "now", sign(secret, "evt_1", "now", body)),
		"another key":           headers("evt_1", now, sign(another, "evt_1", now, body)),
		"another id":            headers("evt_2", now, good),
		"another body":          headers("evt_1", now, sign(secret, "evt_1", now, body+" ")),
		"too old":               headers("evt_1", stale, sign(secret, "evt_1", stale, body)),
		"from the future":       headers("evt_1", early, sign(secret, "evt_1", early, body)),
		"a part of a signature": headers("evt_1", now, good[:20]),
		"an empty signature":    headers("evt_1", now, "v1,"),
		"another version":       headers("evt_1", now, "v2"+good[2:]),
		"no base64":             headers("evt_1", now, "v1,*** é"),
	} {
		if e, err := r.Verify(h, []byte(body)); !errors.Is(err, quittance.ErrSignature) || e.Data != nil {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
	// While a secret is rotated there are two signatures; the receiver may have both secrets.
	two := sign(another, "evt_1", now, body) + " " + good
	for _, r := range []*quittance.Receiver{r, receiver(t, another, secret)} {
		for _, h := range []http.Header{headers("evt_1", now, two), headers("evt_1", now, good), headers("evt_1", at(-4*time.Minute), sign(secret, "evt_1", at(-4*time.Minute), body))} {
			e, err := r.Verify(h, []byte(body))
			if paid, ok := e.Data.(*quittance.CompletedEvent); err != nil || !ok || paid.TotalAmount != 5_000_000_075 || e.OrderID != "o" || e.Type != "checkout.completed" {
				t.Errorf("%+v %v", e, err)
			}
		}
	}

	request := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	request.Header = headers("evt_1", now, good)
	if e, err := r.Read(request); err != nil || e.SessionID != "chs_1" || e.Metadata["case"] != "4" || !e.CreatedAt.Equal(time.Date(2026, 11, 22, 10, 15, 0, 0, time.UTC)) {
		t.Errorf("%+v %v", e, err)
	}
	request = httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(strings.Repeat("x", 2<<20)))
	if _, err := r.Read(request); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a long body: %v", err)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	r, now := receiver(t, secret), strconv.FormatInt(time.Now().Unix(), 10)
	for event, c := range map[string]struct {
		fields string
		holds  func(data any) bool
	}{
		"checkout.completed": {payment + `,"late":true`, func(d any) bool { e, ok := d.(*quittance.CompletedEvent); return ok && e.Late && e.FeeAmount == 75 }},
		"checkout.failed": {`,"failure_code":"collect.wrong_pin","failure_message":"m"`, func(d any) bool {
			e, ok := d.(*quittance.FailedEvent)
			return ok && e.FailureCode == quittance.FailureCodeCollectWrongPin
		}},
		"checkout.cancelled": {"", func(d any) bool { e, ok := d.(*quittance.CancelledEvent); return ok && e.Amount == 5_000_000_000 }},
		"checkout.expired":   {"", func(d any) bool { e, ok := d.(*quittance.ExpiredEvent); return ok && e.SessionID == "chs_1" }},
		"checkout.late_payment": {payment, func(d any) bool {
			e, ok := d.(*quittance.LatePaymentEvent)
			return ok && e.TotalAmount == 5_000_000_075
		}},
		"checkout.reversed": {
			`,"transaction_id":"x","items":[{"erp_due_ref":null,"amount":5000000000,"transaction_id":"x","notice_id":"n","notice_ref":"AV"}],"reversed_at":"2026-11-22T10:15:00.000Z","reversal_reason":"refunded","reversal_ref":null,"was_completed":true,"order_paid":false`,
			func(d any) bool {
				e, ok := d.(*quittance.ReversedEvent)
				return ok && e.WasCompleted && e.Items[0].Amount == 5_000_000_000
			},
		},
		"disbursement.completed": {batch, func(d any) bool {
			e, ok := d.(*quittance.DisbursementCompletedEvent)
			return ok && e.Batch == "dsb_1" && e.Counts.Total == 3 && e.Sums.Paid == 5_000_000_000
		}},
		"disbursement.line_refused": {batch + line, func(d any) bool {
			e, ok := d.(*quittance.DisbursementLineRefusedEvent)
			return ok && e.LineRef == "A-1" && e.PayoutRef == "QD1" && e.Code == "NO"
		}},
		"disbursement.line_returned": {batch + line, func(d any) bool {
			e, ok := d.(*quittance.DisbursementLineReturnedEvent)
			return ok && e.LineRef == "A-1"
		}},
		"disbursement.line_return_withdrawn": {batch + line, func(d any) bool {
			e, ok := d.(*quittance.DisbursementLineReturnWithdrawnEvent)
			return ok && e.LineRef == "A-1"
		}},
		"disbursement.held": {batch, func(d any) bool { e, ok := d.(*quittance.DisbursementHeldEvent); return ok && e.BatchRef == "R-1" }},
		"checkout.of_2030":  {`,"new":1`, func(d any) bool { return d == nil }},
	} {
		body := `{"event":"` + event + `",` + common + c.fields + `}`
		e, err := r.Verify(headers("evt_1", now, sign(secret, "evt_1", now, body)), []byte(body))
		if err != nil || e.Type != event || e.EventID != "evt_1" || e.Sequence != 3 || !c.holds(e.Data) {
			t.Errorf("%s: %+v %v", event, e, err)
		}
	}
	for _, body := range []string{"", "[]", `{"event":1}`, `{"event":"checkout.completed",` + common + `,"total_amount":"x"}`} {
		if _, err := r.Verify(headers("evt_1", now, sign(secret, "evt_1", now, body)), []byte(body)); err == nil || errors.Is(err, quittance.ErrSignature) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {""}, {"whsec_"}, {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, {"whsec_***"}, {secret, "sk_test_x"}} {
		if _, err := quittance.NewReceiver(secrets...); err == nil || strings.Contains(err.Error(), "MfKQ") {
			t.Errorf("%d secrets: %v", len(secrets), err)
		}
	}
	for _, short := range []string{"whsec_", "whsec_MfKQ", secret[:len(secret)-4]} {
		if _, err := quittance.NewReceiver(another, short); err == nil || !strings.Contains(err.Error(), "secret 2 is too short") || strings.Contains(err.Error(), "MfKQ") {
			t.Errorf("a secret of %d characters: %v", len(short), err)
		}
	}
}
