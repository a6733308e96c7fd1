package providers

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/test/httpclient"

	"quittance/dev/simulator"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// Account of the simulated providers.
const (
	User   = "quittance"
	Secret = "a-secret-of-the-simulator"
)

// Simulator is a simulator of the test's own.
type Simulator struct {
	*httptest.Server
	t testing.TB
	*simulator.Simulator
}

// NewSimulator starts a simulator that knows the account.
func NewSimulator(t testing.TB) *Simulator {
	t.Helper()
	sim, err := simulator.New(simulator.Config{Now: func() time.Time { return time.Now().UTC() }, Log: servers.Logger(t), SMSKey: Secret})
	if err != nil {
		t.Fatal(err)
	}
	out := &Simulator{Server: httptest.NewServer(sim.Handler()), t: t, Simulator: sim}
	out.run(func(ctx context.Context) error { return sim.Run(ctx) })
	t.Cleanup(out.Server.Close)
	t.Cleanup(out.Server.CloseClientConnections)
	return out
}

// run runs a part until the test ends.
func (s *Simulator) run(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := part(ctx); err != nil {
			s.t.Errorf("simulator: %v", err)
		}
	})
	s.t.Cleanup(func() { cancel(); wg.Wait() })
}

// Mail starts the simulated mail server and returns its host:port.
func (s *Simulator) Mail(cfg simulator.MailServer) string {
	s.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.run(func(ctx context.Context) error { return s.ServeMail(ctx, l, cfg) })
	return l.Addr().String()
}

// Control posts to /control.
func (s *Simulator) Control(path, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+"/control/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusNoContent {
		s.t.Fatalf("/control/%s: %d", path, resp.StatusCode)
	}
}

// inboxes are the names of the channels' inboxes.
var inboxes = map[provider.Channel]string{provider.ChannelSMS: "sms", provider.ChannelEmail: "mail"}

// Clear forgets the accepted messages of a channel.
func (s *Simulator) Clear(channel provider.Channel) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodDelete, s.URL+"/inbox/"+inboxes[channel], http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// Inbox returns the accepted messages of a channel.
func (s *Simulator) Inbox(channel provider.Channel) (out []Received) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+"/inbox/"+inboxes[channel], http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got []struct {
		MessageID string `json:"message_id"`
		To        string `json:"to"`
		Subject   string `json:"subject"`
		Text      string `json:"text"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		s.t.Fatal(err)
	}
	for _, m := range got {
		out = append(out, Received{m.MessageID, m.To, m.Subject, m.Text})
	}
	return out
}

// Infobip returns the address of the simulated Infobip.
func (s *Simulator) Infobip() string {
	return "infobip+http://" + strings.TrimPrefix(s.URL, "http://") + "/sms/infobip?sender=Quittance"
}

// MTN returns the address of the simulated SMS API of MTN.
func (s *Simulator) MTN() string {
	return "mtnsms+http://" + strings.TrimPrefix(s.URL, "http://") + "/sms/mtn?client_id=" + User + "&sender=Quittance"
}

// MTNReporting returns the address of the simulated SMS API of MTN, which has an address for
// delivery reports.
func (s *Simulator) MTNReporting() string { return s.MTN() + "&receipts=true" }

// SubscribeMTN registers an address for the delivery reports of MTN, as an operator of the
// service does.
func (s *Simulator) SubscribeMTN(address string) {
	s.t.Helper()
	call := func(path, contentType, body, token string) (out struct {
		AccessToken string `json:"access_token"`
		StatusCode  string `json:"statusCode"`
	},
	) {
		r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+"/sms/mtn"+path, strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := httpclient.Default.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
			s.t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
		return out
	}
	granted := call("/v1/oauth/access_token/accesstoken?grant_type=client_credentials", "application/x-www-form-urlencoded",
		url.Values{"client_id": {User}, "client_secret": {Secret}}.Encode(), "")
	body, err := json.Marshal(map[string]string{"serviceCode": "Quittance", "callbackUrl": address, "deliveryReportUrl": address, "targetSystem": "quittance"})
	if err != nil {
		s.t.Fatal(err)
	}
	if a := call("/v3/sms/messages/sms/subscription", "application/json", string(body), granted.AccessToken); a.StatusCode != "0000" {
		s.t.Fatalf("the subscription is refused: %s", a.StatusCode)
	}
}

// SMS returns the world of a provider of SMS.
func (s *Simulator) SMS(address string) World {
	return World{
		Address: address, Secret: Secret, Received: func() []Received { return s.Inbox(provider.ChannelSMS) },
		Elsewhere: func(hostPort string) string {
			return strings.Replace(address, strings.TrimPrefix(s.URL, "http://"), hostPort, 1)
		},
		Temporary: func() { s.Control("sms", `{"refuse":"temporary","times":1}`) },
		Permanent: func() { s.Control("sms", `{"refuse":"permanent","times":1}`) },
		Silent:    func() { s.Control("sms", `{"hang":true,"times":1}`) },
		Report:    func(which string) { s.Control("sms", `{"report":"`+which+`","times":1}`) },
	}
}

// Settings returns the settings of a provider at an address.
func Settings(t testing.TB, address, key string) provider.Settings {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return provider.Settings{Address: u, Secret: secret.NewText(key), Plain: true, Timeout: waits, Now: func() time.Time { return time.Now().UTC() }}
}
