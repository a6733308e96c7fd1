// Package mtnsms sends SMS by MTN's SMS API, version 3 (POST /v3/sms/messages/sms/outbound).
//
// A token for the application comes first (client credentials, 60 minutes). The message has
// our id as clientCorrelatorId. An answer 200 has a statusCode of MTN's own: 0000 means that
// the message is accepted. Public description: https://developers.mtn.com, "SMS V3".
//
// MTN reports on messages with requestDeliveryReceipt, to one address for a service code. It
// is registered once (POST /v3/sms/messages/sms/subscription, deliveryReportUrl), not with
// each message. Nothing here registers it, because the description does not say what the
// required targetSystem is. The setting receipts=true says that it is registered. All of
// this, and the body of a report, is as others have copied it from MTN's description; none
// of it is confirmed with an account.
package mtnsms

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"quittance/internal/connector"
	"quittance/internal/provider"
)

// Name is the provider's short name.
const Name = "mtnsms"

// Registration is the registration of MTN.
var Registration = provider.Registration{
	Name: Name, Channel: provider.ChannelSMS, Schemes: []string{Name + "+http"},
	Form: "mtnsms://api.mtn.com?client_id=ID&sender=NAME&service_code=CODE&receipts=true (the secret is the client secret; without service_code it is the sender; receipts=true when MTN has the address for delivery reports)",
	New:  func(s provider.Settings) (provider.Provider, error) { return New(s) }, Reports: readReports,
}

// MTN sends SMS. Safe for concurrent use.
type MTN struct {
	base                *connector.Base[provider.Account]
	account             provider.Account
	sender, serviceCode string
	receipts            bool
}

// New makes the provider of an installation.
func New(s provider.Settings) (*MTN, error) {
	base, err := s.BaseURL()
	m := &MTN{sender: s.Text("sender"), serviceCode: s.Text("service_code"), account: provider.Account{BaseURL: connector.BaseURL(base), User: s.Text("client_id"), Key: s.Secret.Reveal()}}
	receipts := s.Text("receipts")
	m.receipts = receipts == "true"
	err = errors.Join(err, s.Unknown())
	switch {
	case err != nil:
		return nil, err
	case m.account.User == "":
		return nil, errors.New("client_id: is missing; it is the consumer key of the application at MTN")
	case m.sender == "" && m.serviceCode == "":
		return nil, errors.New("sender: is missing; it is the name that phones show, as agreed with MTN (or give service_code)")
	case receipts != "" && receipts != "true" && receipts != "false":
		return nil, errors.New("receipts: must be true or false; true when MTN has the address for delivery reports")
	case s.Secret.Empty():
		return nil, errors.New("the secret is missing: the consumer secret of the application at MTN")
	}
	if m.serviceCode == "" {
		m.serviceCode = m.sender // MTN wants the sender in both fields
	}
	m.base, err = connector.NewBase(Name, connector.Config{Now: s.Now, Timeout: s.Timeout}, func(a provider.Account) connector.Call {
		return connector.Call{
			Path:   "/v1/oauth/access_token/accesstoken?grant_type=client_credentials",
			Body:   []byte(url.Values{"client_id": {a.User}, "client_secret": {a.Key}}.Encode()),
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
		}
	})
	return m, err
}

// Name returns the provider's short name.
func (*MTN) Name() string { return Name }

// Reports is true when MTN has the address for delivery reports (receipts=true).
func (m *MTN) Reports() bool { return m.receipts }

type request struct {
	SenderAddress      string   `json:"senderAddress,omitempty"`
	ReceiverAddress    []string `json:"receiverAddress"`
	Message            string   `json:"message"`
	ClientCorrelatorID string   `json:"clientCorrelatorId"`
	ServiceCode        string   `json:"serviceCode"`
	// RequestDeliveryReceipt is false when it is missing.
	RequestDeliveryReceipt bool `json:"requestDeliveryReceipt,omitempty"`
}

type answer struct {
	StatusCode string `json:"statusCode"`
	Data       struct {
		Status string `json:"status"`
	} `json:"data"`
}

// accepted is the statusCode of an accepted message.
const accepted = "0000"

// final are the statuses of a message that will not be sent.
var final = []string{"DELETED", "EXPIRED", "REJECTED", "UNDELIVERED"}

const doing = "sending an SMS by MTN"

// Send hands a message over.
func (m *MTN) Send(ctx context.Context, msg provider.Message) error {
	body, err := json.Marshal(request{
		SenderAddress: m.sender, ReceiverAddress: []string{msg.To}, Message: msg.Text, ClientCorrelatorID: msg.ID, ServiceCode: m.serviceCode,
		RequestDeliveryReceipt: m.receipts && msg.ReportURL != "",
	})
	if err != nil {
		return &provider.Error{Doing: doing, Fault: provider.FaultRefused, Code: "unencodable"}
	}
	a, err := m.base.Authorized(ctx, m.account, connector.Call{Doing: doing, Method: http.MethodPost, Path: "/v3/sms/messages/sms/outbound", Body: body})
	if err != nil {
		return provider.OfCall(doing, err)
	}
	var got answer
	decoded := a.Decode(&got)
	switch {
	case a.Status < 200 || a.Status > 299:
		return provider.OfAnswer(doing, a, got.StatusCode)
	case decoded != nil || got.StatusCode == "":
		return &provider.Error{Doing: doing, Fault: provider.FaultUnknown, Code: "malformed"}
	case got.StatusCode != accepted:
		// MTN does not say which of its codes last.
		return &provider.Error{Doing: doing, Fault: provider.FaultBusy, Code: provider.Code(got.StatusCode)}
	case slices.Contains(final, got.Data.Status):
		return &provider.Error{Doing: doing, Fault: provider.FaultRefused, Code: got.Data.Status}
	}
	return nil
}

// Check asks for a token.
func (m *MTN) Check(ctx context.Context) error {
	const doing = "signing in at MTN"
	if _, err := m.base.Token(ctx, m.account); err != nil {
		return provider.OfCall(doing, err)
	}
	return nil
}
