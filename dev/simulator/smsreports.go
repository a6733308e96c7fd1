package simulator

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Values of "report" in POST /control/sms: which delivery reports follow an accepted SMS.
const (
	smsReportDelivered   = "delivered"
	smsReportUndelivered = "undelivered" // the number has no subscriber
	smsReportAbsent      = "absent"      // the phone is off
	smsReportTwice       = "twice"       // delivered
	smsReportDisordered  = "disordered"  // delivered, then undelivered
	smsReportStranger    = "stranger"    // of a message that was never sent
	smsReportEarly       = "early"       // delivered, before the answer
	smsReportNone        = "none"
)

// smsReports lists them, the default first.
var smsReports = []string{
	smsReportDelivered, smsReportUndelivered, smsReportAbsent, smsReportTwice, smsReportDisordered, smsReportStranger, smsReportEarly, smsReportNone,
}

// smsDisorder is the time between two reports of one message in the wrong order.
const smsDisorder = time.Second

// smsReport says how a provider reports on a message.
type smsReport struct {
	provider, url, messageID string
	which                    string // one of smsReports; empty for the default
	// body returns a report: what is delivered, undelivered or absent.
	body func(messageID, what string) any
}

// reportSMS sends the reports on a message; none if the sender gave no address.
func (s *Simulator) reportSMS(ctx context.Context, q smsReport) {
	if q.url == "" {
		return
	}
	call := func(messageID, what string) callback {
		body, _ := json.Marshal(q.body(messageID, what)) //nolint:errchkjson // strings, numbers and maps of them
		return callback{collection: q.messageID, operator: "sms_" + q.provider, method: http.MethodPost, url: q.url, body: body}
	}
	now := s.cfg.Now()
	send := func(at time.Time, messageID, what string) { s.callbacks.queue.add(at, call(messageID, what)) }
	switch q.which {
	case smsReportNone:
	case smsReportUndelivered, smsReportAbsent:
		send(now, q.messageID, q.which)
	case smsReportTwice:
		send(now, q.messageID, smsReportDelivered)
		send(now, q.messageID, smsReportDelivered)
	case smsReportDisordered:
		send(now, q.messageID, smsReportDelivered)
		send(now.Add(smsDisorder), q.messageID, smsReportUndelivered)
	case smsReportStranger:
		send(now, "msg_never2sent2never2sent2neve", smsReportDelivered)
	case smsReportEarly:
		_, _, _ = s.callbacks.put(context.WithoutCancel(ctx), call(q.messageID, smsReportDelivered)) // the receiver's answer changes nothing
	default:
		send(now, q.messageID, smsReportDelivered)
	}
}

// infobipReport returns the bodies of Infobip's reports on messages to a number.
func infobipReport(to string, now time.Time) func(messageID, what string) any {
	return func(messageID, what string) any {
		status := infobipStatus(3, "DELIVERED", 5, "DELIVERED_TO_HANDSET")
		fault := map[string]any{"groupId": 0, "groupName": "OK", "id": 0, "name": "NO_ERROR", "description": "No Error", "permanent": false}
		switch what {
		case smsReportUndelivered:
			status = infobipStatus(2, "UNDELIVERABLE", 9, "UNDELIVERABLE_NOT_DELIVERED")
			fault = map[string]any{"groupId": 1, "groupName": "HANDSET_ERRORS", "id": 1, "name": "EC_UNKNOWN_SUBSCRIBER", "description": "Unknown Subscriber", "permanent": true}
		case smsReportAbsent:
			status = infobipStatus(4, "EXPIRED", 15, "EXPIRED_EXPIRED")
			fault = map[string]any{"groupId": 1, "groupName": "HANDSET_ERRORS", "id": 27, "name": "EC_ABSENT_SUBSCRIBER", "description": "Absent Subscriber", "permanent": false}
		}
		const form = "2006-01-02T15:04:05.000-0700"
		return map[string]any{"results": []any{map[string]any{
			"bulkId": uuid.NewString(), "messageId": messageID, "to": to, "sentAt": now.Format(form), "doneAt": now.Format(form), "smsCount": 1,
			"price": map[string]any{"pricePerMessage": 0.01, "currency": "EUR"}, "status": status, "error": fault,
		}}}
	}
}

// mtnSMSReport is a body of MTN's reports.
func mtnSMSReport(messageID, what string) any {
	status := map[string]string{smsReportDelivered: "DELIVERED", smsReportUndelivered: "UNDELIVERED", smsReportAbsent: "EXPIRED"}[what]
	return map[string]any{"clientCorrelatorId": messageID, "deliveryStatus": status}
}

// receiptAddresses are the addresses that were registered for MTN's delivery reports. Safe for
// concurrent use.
type receiptAddresses struct {
	mu            sync.Mutex
	byServiceCode map[string]string
}

func (a *receiptAddresses) register(serviceCode, url string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byServiceCode == nil {
		a.byServiceCode = map[string]string{}
	}
	a.byServiceCode[serviceCode] = url
}

// of returns the address for a service code; empty for none.
func (a *receiptAddresses) of(serviceCode string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byServiceCode[serviceCode]
}

// mtnSMSSubscribe is POST /v3/sms/messages/sms/subscription.
func (s *Simulator) mtnSMSSubscribe(w http.ResponseWriter, r *http.Request) {
	if !s.mtnSMSAuthorized(w, r) {
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	var in struct {
		ServiceCode       string `json:"serviceCode"`
		CallbackURL       string `json:"callbackUrl"`
		TargetSystem      string `json:"targetSystem"`
		DeliveryReportURL string `json:"deliveryReportUrl"`
	}
	if json.Unmarshal(body, &in) != nil || !isJSON(r) || in.ServiceCode == "" || in.TargetSystem == "" || !isAbsoluteURL(in.CallbackURL) || !isAbsoluteURL(in.DeliveryReportURL) {
		mtnSMSRefuse(w, http.StatusBadRequest, "4000")
		return
	}
	s.receipts.register(in.ServiceCode, in.DeliveryReportURL)
	writeJSON(w, http.StatusOK, map[string]any{"statusCode": "0000", "statusMessage": "", "transactionId": uuid.NewString(), "data": map[string]string{"subscriptionId": uuid.NewString()}})
}
