// Package infobip sends SMS by Infobip's HTTP API (POST /sms/3/messages).
//
// Infobip answers 200 also when it rejects the message. The answer has a status for each
// message, and an error where there was one; its field permanent says whether the same
// message can be accepted later. Public descriptions: https://www.infobip.com/docs/api.
//
// Delivery reports come to the address that the message names (webhooks.delivery.url), as
// results with the same status and error ("Receive outbound SMS message report"). Infobip may
// put several results into one call. Not confirmed with an account: how often Infobip calls
// again after an answer other than 2xx, and whether it also reports on messages that its
// answer rejected.
package infobip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"quittance/internal/connector"
	"quittance/internal/provider"
)

// Name is the provider's short name.
const Name = "infobip"

// Registration is the registration of Infobip.
var Registration = provider.Registration{
	Name: Name, Channel: provider.ChannelSMS, Schemes: []string{Name + "+http"},
	Form: "infobip://HOST?sender=NAME (HOST is the base URL of the account; the secret is the API key)",
	New:  func(s provider.Settings) (provider.Provider, error) { return New(s) }, Reports: readReports,
}

// Infobip sends SMS. Safe for concurrent use.
type Infobip struct {
	base    *connector.Base[provider.Account]
	account provider.Account
	sender  string
	now     func() time.Time
}

// New makes the provider of an installation.
func New(s provider.Settings) (*Infobip, error) {
	base, err := s.BaseURL()
	sender := s.Text("sender")
	err = errors.Join(err, s.Unknown())
	switch {
	case err != nil:
		return nil, err
	case sender == "":
		return nil, errors.New("sender: is missing; it is the name that phones show, as agreed with Infobip")
	case s.Secret.Empty():
		return nil, errors.New("the secret is missing: the API key of the account")
	}
	i := &Infobip{sender: sender, now: s.Now, account: provider.Account{BaseURL: connector.BaseURL(base), Key: s.Secret.Reveal()}}
	i.base, err = connector.NewBase[provider.Account](Name, connector.Config{Now: s.Now, Timeout: s.Timeout}, nil)
	return i, err
}

// Name returns the provider's short name.
func (*Infobip) Name() string { return Name }

// Reports is true: each message names the address of its reports.
func (*Infobip) Reports() bool { return true }

type (
	request struct {
		Messages []message `json:"messages"`
	}
	message struct {
		Sender       string        `json:"sender"`
		Destinations []destination `json:"destinations"`
		Content      content       `json:"content"`
		Options      *options      `json:"options,omitempty"`
		Webhooks     *webhooks     `json:"webhooks,omitempty"`
	}
	destination struct {
		To        string `json:"to"`
		MessageID string `json:"messageId"`
	}
	content struct {
		Text string `json:"text"`
	}
	webhooks struct {
		Delivery    delivery `json:"delivery"`
		ContentType string   `json:"contentType"`
	}
	delivery struct {
		URL string `json:"url"`
	}
	options struct {
		ValidityPeriod validity `json:"validityPeriod"`
	}
	validity struct {
		Amount   int    `json:"amount"`
		TimeUnit string `json:"timeUnit"`
	}
)

type (
	answer struct {
		Messages []struct {
			MessageID string  `json:"messageId"`
			Status    *status `json:"status"`
			Error     *fault  `json:"error"`
		} `json:"messages"`
		RequestError struct {
			ServiceException struct {
				MessageID string `json:"messageId"`
			} `json:"serviceException"`
		} `json:"requestError"`
	}
	status struct {
		GroupID int    `json:"groupId"`
		Name    string `json:"name"`
	}
	fault struct {
		GroupID   int    `json:"groupId"`
		Name      string `json:"name"`
		Permanent *bool  `json:"permanent"`
	}
)

// Groups of statuses (response status and error codes).
const (
	groupOK        = 0
	groupPending   = 1
	groupDelivered = 3
	groupExpired   = 4
	// groupHandset is a group of errors: those of the phone or its subscription.
	groupHandset = 1
)

const doing = "sending an SMS by Infobip"

// Send hands a message over.
func (i *Infobip) Send(ctx context.Context, m provider.Message) error {
	out := message{Sender: i.sender, Destinations: []destination{{To: m.To, MessageID: m.ID}}, Content: content{Text: m.Text}}
	if !m.NotAfter.IsZero() {
		out.Options = &options{ValidityPeriod: validity{Amount: max(1, int(m.NotAfter.Sub(i.now())/time.Minute)), TimeUnit: "MINUTES"}}
	}
	if m.ReportURL != "" {
		out.Webhooks = &webhooks{Delivery: delivery{URL: m.ReportURL}, ContentType: "application/json"}
	}
	body, err := json.Marshal(request{Messages: []message{out}})
	if err != nil {
		return &provider.Error{Doing: doing, Fault: provider.FaultRefused, Code: "unencodable"}
	}
	a, err := i.call(ctx, doing, http.MethodPost, "/sms/3/messages", body)
	if err != nil {
		return err
	}
	var got answer
	if err := a.Decode(&got); err != nil || len(got.Messages) != 1 || got.Messages[0].Status == nil {
		return &provider.Error{Doing: doing, Fault: provider.FaultUnknown, Code: "malformed"}
	}
	return judge(*got.Messages[0].Status, got.Messages[0].Error)
}

// judge returns nil for a message that is accepted.
func judge(s status, e *fault) error {
	failed := e != nil && e.GroupID != groupOK
	if (s.GroupID == groupOK || s.GroupID == groupPending || s.GroupID == groupDelivered) && !failed {
		return nil
	}
	out := &provider.Error{Doing: doing, Fault: provider.FaultRefused, Code: provider.Code(s.Name)}
	switch {
	case failed && e.Permanent != nil:
		out.Code = provider.Code(e.Name)
		if !*e.Permanent {
			out.Fault = provider.FaultBusy
		}
	case s.GroupID == groupExpired:
		out.Fault = provider.FaultBusy
	}
	out.Unknown = out.Fault == provider.FaultRefused && unreachable(e, out.Code)
	if out.Code == "" {
		out.Code = fmt.Sprintf("group_%d", s.GroupID)
	}
	return out
}

// Check asks for the balance of the account.
func (i *Infobip) Check(ctx context.Context) error {
	_, err := i.call(ctx, "asking Infobip for the balance", http.MethodGet, "/account/1/balance", nil)
	return err
}

// call makes a call. An answer other than 2xx is an error.
func (i *Infobip) call(ctx context.Context, doing, method, path string, body []byte) (connector.Answer, error) {
	a, err := i.base.Do(ctx, i.account, connector.Call{
		Doing: doing, Method: method, Path: path, Body: body,
		Header: map[string]string{"Authorization": "App " + i.account.Key, "Accept": "application/json"},
	})
	if err != nil {
		return a, provider.OfCall(doing, err)
	}
	if a.Status < 200 || a.Status > 299 {
		var got answer
		_ = a.Decode(&got) // without a code the status says it
		return a, provider.OfAnswer(doing, a, got.RequestError.ServiceException.MessageID)
	}
	return a, nil
}
