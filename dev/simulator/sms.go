package simulator

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

// sms is a message that a simulated provider of SMS has accepted. It never changes.
type sms struct {
	ID         int64     `json:"id"`
	ReceivedAt time.Time `json:"received_at"`
	// To is the number in the international form, without a plus sign.
	To   string `json:"to"`
	Text string `json:"text"`
	From string `json:"from"`
	// Provider is infobip or mtn, and MessageID the id that the sender gave.
	Provider  string `json:"provider"`
	MessageID string `json:"message_id"`
}

func (m sms) row() []string { return []string{spelled(m.ReceivedAt), "+" + m.To, m.From, m.Text} }

// smsNumber is a number in the international form.
var smsNumber = regexp.MustCompile(`^[1-9][0-9]{7,14}$`)

// Values of "refuse" in POST /control/sms.
const (
	smsRefusePermanent = "permanent"
	smsRefuseTemporary = "temporary"
	smsRefuseUnknown   = "unknown" // by Infobip: no such subscriber
)

// Names of the providers.
const (
	smsInfobip = "infobip"
	smsMTN     = "mtn"
)

func (s *Simulator) smsRoutes(r chi.Router) {
	r.Post("/infobip/sms/3/messages", s.infobipSend)
	r.Get("/infobip/account/1/balance", s.infobipBalance)
	r.Post("/mtn/v1/oauth/access_token/accesstoken", s.mtnSMSToken)
	r.Post("/mtn/v3/sms/messages/sms/outbound", s.mtnSMSSend)
	r.Post("/mtn/v3/sms/messages/sms/subscription", s.mtnSMSSubscribe)
}

// keep keeps an accepted SMS.
func (s *Simulator) keepSMS(m sms) {
	s.sms.add(func(id int64) sms {
		m.ID, m.ReceivedAt = id, s.cfg.Now()
		return m
	})
}

// smsAnswer answers as set by /control: with a status and nothing done, after a delay, or
// never. It returns false when it has answered, or never will.
func (s *Simulator) smsAnswer(w http.ResponseWriter, r *http.Request, now conduct) bool {
	if now.hang {
		select {
		case <-r.Context().Done():
		case <-s.stopping:
		}
		w.WriteHeader(http.StatusServiceUnavailable) // as in pause
		return false
	}
	return s.pause(w, r, now.delay)
}

// infobipSent is the body of POST /sms/3/messages.
type infobipSent struct {
	Messages []struct {
		Sender       string `json:"sender"`
		Destinations []struct {
			To        string `json:"to"`
			MessageID string `json:"messageId"`
		} `json:"destinations"`
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
		Webhooks struct {
			Delivery struct {
				URL string `json:"url"`
			} `json:"delivery"`
		} `json:"webhooks"`
	} `json:"messages"`
}

func infobipRefuse(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, map[string]any{"requestError": map[string]any{"serviceException": map[string]string{"messageId": code, "text": http.StatusText(status)}}})
}

// infobipAuthorized reports whether the caller has the key, or refuses it.
func (s *Simulator) infobipAuthorized(w http.ResponseWriter, r *http.Request) bool {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "App ")
	if !ok || key == "" || s.cfg.SMSKey != "" && key != s.cfg.SMSKey {
		infobipRefuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
		return false
	}
	return true
}

func (s *Simulator) infobipBalance(w http.ResponseWriter, r *http.Request) {
	if s.infobipAuthorized(w, r) {
		writeJSON(w, http.StatusOK, map[string]any{"balance": 100.0, "currency": "EUR"})
	}
}

// infobipSend is POST /sms/3/messages. Infobip answers 200 also for a message that it
// rejects: the answer has an error then.
func (s *Simulator) infobipSend(w http.ResponseWriter, r *http.Request) {
	if !s.infobipAuthorized(w, r) {
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	now := s.sms.behaviour.next()
	if now.status != 0 {
		if s.smsAnswer(w, r, now) {
			infobipRefuse(w, now.status, "SERVICE_UNAVAILABLE")
		}
		return
	}
	var in infobipSent
	if json.Unmarshal(body, &in) != nil || !isJSON(r) || len(in.Messages) != 1 || len(in.Messages[0].Destinations) != 1 || in.Messages[0].Content.Text == "" || in.Messages[0].Sender == "" ||
		in.Messages[0].Webhooks.Delivery.URL != "" && !isAbsoluteURL(in.Messages[0].Webhooks.Delivery.URL) {
		infobipRefuse(w, http.StatusBadRequest, "BAD_REQUEST")
		return
	}
	m, to := in.Messages[0], in.Messages[0].Destinations[0]
	out := map[string]any{"messageId": to.MessageID, "destination": to.To, "status": infobipStatus(1, "PENDING", 26, "PENDING_ACCEPTED")}
	refused := func(id int, name string, permanent bool) {
		out["status"] = infobipStatus(5, "REJECTED", id, name)
		out["error"] = map[string]any{"groupId": 2, "groupName": "USER_ERRORS", "id": id, "name": "EC_" + name, "description": name, "permanent": permanent}
	}
	switch {
	case now.refuseCode == smsRefusePermanent:
		refused(6, "REJECTED_NETWORK", true)
	case now.refuseCode == smsRefuseUnknown:
		refused(9, "UNKNOWN_SUBSCRIBER", true)
	case now.refuseCode == smsRefuseTemporary:
		refused(12, "REJECTED_NOT_ENOUGH_CREDITS", false)
	case !smsNumber.MatchString(to.To):
		refused(52, "REJECTED_DESTINATION", true)
	default:
		s.keepSMS(sms{To: to.To, Text: m.Content.Text, From: m.Sender, Provider: smsInfobip, MessageID: to.MessageID})
		s.reportSMS(r.Context(), smsReport{provider: smsInfobip, url: m.Webhooks.Delivery.URL, messageID: to.MessageID, which: now.report, body: infobipReport(to.To, s.cfg.Now())})
	}
	if s.smsAnswer(w, r, now) {
		writeJSON(w, http.StatusOK, map[string]any{"bulkId": uuid.NewString(), "messages": []any{out}})
	}
}

func infobipStatus(groupID int, group string, id int, name string) map[string]any {
	return map[string]any{"groupId": groupID, "groupName": group, "id": id, "name": name, "description": name}
}

func mtnSMSRefuse(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, map[string]any{"statusCode": code, "statusMessage": http.StatusText(status), "transactionId": uuid.NewString()})
}

// mtnSMSToken is POST /v1/oauth/access_token/accesstoken.
func (s *Simulator) mtnSMSToken(w http.ResponseWriter, r *http.Request) {
	id, key := r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	if r.URL.Query().Get("grant_type") != "client_credentials" || id == "" || key == "" || s.cfg.SMSKey != "" && key != s.cfg.SMSKey {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"ErrorCode": "invalid_client"})
		return
	}
	now := s.cfg.Now()
	token := s.smsGateway.grant(grant{account: id, expiresAt: now.Add(s.cfg.TokenLifetime)}, now)
	writeJSON(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "BearerToken", "expires_in": int(s.cfg.TokenLifetime / time.Second)})
}

// mtnSMS is the body of POST /v3/sms/messages/sms/outbound.
type mtnSMS struct {
	SenderAddress      string   `json:"senderAddress"`
	ReceiverAddress    []string `json:"receiverAddress"`
	Message            string   `json:"message"`
	ClientCorrelatorID string   `json:"clientCorrelatorId"`
	ServiceCode        string   `json:"serviceCode"`
	// RequestDeliveryReceipt asks for a report to the address of the service code.
	RequestDeliveryReceipt bool `json:"requestDeliveryReceipt"`
}

// mtnCorrelatorLimit is the greatest length of clientCorrelatorId.
const mtnCorrelatorLimit = 36

// mtnSMSAuthorized reports whether the caller has a token, or refuses it.
func (s *Simulator) mtnSMSAuthorized(w http.ResponseWriter, r *http.Request) bool {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	_, granted := s.smsGateway.granted(bearer, s.cfg.Now())
	if !granted {
		mtnSMSRefuse(w, http.StatusUnauthorized, "4010")
	}
	return granted
}

// mtnSMSSend is POST /v3/sms/messages/sms/outbound.
func (s *Simulator) mtnSMSSend(w http.ResponseWriter, r *http.Request) {
	if !s.mtnSMSAuthorized(w, r) {
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	now := s.sms.behaviour.next()
	if now.status != 0 {
		if s.smsAnswer(w, r, now) {
			mtnSMSRefuse(w, now.status, "5000")
		}
		return
	}
	var in mtnSMS
	if json.Unmarshal(body, &in) != nil || !isJSON(r) || len(in.ReceiverAddress) != 1 || in.Message == "" || in.ServiceCode == "" ||
		in.ClientCorrelatorID == "" || len(in.ClientCorrelatorID) > mtnCorrelatorLimit || !smsNumber.MatchString(in.ReceiverAddress[0]) {
		mtnSMSRefuse(w, http.StatusBadRequest, "4000")
		return
	}
	code, status := "0000", "PENDING"
	switch now.refuseCode {
	case smsRefusePermanent, smsRefuseUnknown:
		status = "REJECTED"
	case smsRefuseTemporary:
		code = "3001"
	default:
		s.keepSMS(sms{To: in.ReceiverAddress[0], Text: in.Message, From: in.SenderAddress, Provider: smsMTN, MessageID: in.ClientCorrelatorID})
		if in.RequestDeliveryReceipt {
			s.reportSMS(r.Context(), smsReport{provider: smsMTN, url: s.receipts.of(in.ServiceCode), messageID: in.ClientCorrelatorID, which: now.report, body: mtnSMSReport})
		}
	}
	if s.smsAnswer(w, r, now) {
		writeJSON(w, http.StatusOK, map[string]any{"statusCode": code, "statusMessage": "", "transactionId": uuid.NewString(), "data": map[string]string{"status": status}})
	}
}
