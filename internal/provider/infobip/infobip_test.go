package infobip_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/internal/provider"
	"quittance/internal/provider/infobip"
	"quittance/internal/secret"
	"quittance/test/providers"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	providers.Run(t, providers.Subject{
		Registration: infobip.Registration, To: "242066000001", Text: "123456 est votre code : à é è ù £ € {}\n@pay.example #123456",
		Start: func(t *testing.T) providers.World {
			s := providers.NewSimulator(t)
			return s.SMS(s.Infobip())
		},
	})
}

// Infobip answers 200 for a message that it rejects. What decides is the error inside, and its
// field permanent.
func TestAnswers(t *testing.T) {
	t.Parallel()
	status, body := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	p, err := infobip.Registration.New(settings(t, strings.Replace(server.URL, "http", "infobip+http", 1)+"?sender=Impots"))
	if err != nil {
		t.Fatal(err)
	}
	one := func(rest string) string {
		return `{"messages":[{"messageId":"m","destination":"242066000001",` + rest + `}]}`
	}
	for _, row := range []struct {
		status int
		body   string
		want   provider.Fault // empty: accepted
		code   string
	}{
		{200, one(`"status":{"groupId":1,"name":"PENDING_ENROUTE"}`), "", ""},
		{200, one(`"status":{"groupId":1,"name":"PENDING_ENROUTE"},"error":{"groupId":0,"name":"NO_ERROR","permanent":false}`), "", ""},
		{200, one(`"status":{"groupId":5,"name":"REJECTED_NETWORK"}`), provider.FaultRefused, "REJECTED_NETWORK"},
		{200, one(`"status":{"groupId":5,"name":"X"},"error":{"groupId":2,"name":"EC_SENDER","permanent":true}`), provider.FaultRefused, "EC_SENDER"},
		{200, one(`"status":{"groupId":5,"name":"X"},"error":{"groupId":2,"name":"EC_CREDITS","permanent":false}`), provider.FaultBusy, "EC_CREDITS"},
		{200, one(`"status":{"groupId":1,"name":"X"},"error":{"groupId":3,"name":"EC_SYSTEM","permanent":false}`), provider.FaultBusy, "EC_SYSTEM"},
		{200, one(`"status":{"groupId":5,"name":"Number 242066000001 is blocked"}`), provider.FaultRefused, "group_5"},
		{200, one(`"status":{"groupId":5,"name":"242066000001"}`), provider.FaultRefused, "group_5"},
		{200, `{}`, provider.FaultUnknown, "malformed"},
		{200, `<html>`, provider.FaultUnknown, "malformed"},
		{400, `{"requestError":{"serviceException":{"messageId":"BAD_REQUEST"}}}`, provider.FaultRefused, "BAD_REQUEST"},
		{401, `{}`, provider.FaultCredentials, "http_401"},
		{429, ``, provider.FaultBusy, "http_429"},
		{500, `<html>`, provider.FaultUnknown, "http_500"},
		{503, ``, provider.FaultBusy, "http_503"},
		{302, ``, provider.FaultUnknown, "http_302"},
	} {
		status, body = row.status, row.body
		err := p.Send(t.Context(), provider.Message{ID: "m", To: "242066000001", Text: "x", At: time.Now()})
		var e *provider.Error
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%d %s: %v", row.status, row.body, err)
		case row.want != "" && (!errors.As(err, &e) || e.Fault != row.want || e.Code != row.code):
			t.Errorf("%d %s: %v, want %s (%s)", row.status, row.body, err, row.want, row.code)
		case row.status == 429 && e.RetryAfter != 7*time.Second:
			t.Errorf("Retry-After is %v", e.RetryAfter)
		}
	}
}

// In production a message never travels over http.
func TestProductionIsHTTPS(t *testing.T) {
	t.Parallel()
	_, err := provider.Table{infobip.Registration}.Open(provider.ChannelSMS, "infobip+http://127.0.0.1?sender=X", provider.Settings{Secret: secret.NewText("k"), Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "developers") {
		t.Errorf("http: %v", err)
	}
}

func settings(t *testing.T, address string) provider.Settings {
	t.Helper()
	return providers.Settings(t, address, "key")
}
