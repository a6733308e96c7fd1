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
		NamesUnknown: true,
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

// What counts is the group of the status, and for a failure the error. A number that nobody has,
// or that may not receive SMS, is told from a phone that is off.
func TestReports(t *testing.T) {
	t.Parallel()
	undelivered := func(code string, unknown bool) provider.Report {
		return provider.Report{State: provider.ReportUndelivered, Code: code, Unknown: unknown}
	}
	for _, row := range []struct {
		status, fault string
		want          provider.Report
	}{
		{`{"groupId":0,"name":"ACCEPTED"}`, ``, provider.Report{State: provider.ReportPending}},
		{`{"groupId":1,"name":"PENDING_ENROUTE"}`, ``, provider.Report{State: provider.ReportPending}},
		{`{"groupId":77,"name":"NEW"}`, ``, provider.Report{State: provider.ReportPending}},
		{`{"groupId":3,"name":"DELIVERED_TO_OPERATOR"}`, ``, provider.Report{State: provider.ReportPending}},
		{`{"groupId":3,"name":"DELIVERED_TO_HANDSET"}`, `{"groupId":0,"name":"NO_ERROR","permanent":false}`, provider.Report{State: provider.ReportDelivered}},
		{`{"groupId":2,"name":"UNDELIVERABLE_NOT_DELIVERED"}`, ``, undelivered("UNDELIVERABLE_NOT_DELIVERED", false)},
		{`{"groupId":5,"name":"REJECTED_NETWORK"}`, `{"groupId":0,"name":"NO_ERROR","permanent":false}`, undelivered("REJECTED_NETWORK", false)},
		{`{"groupId":2,"name":"X"}`, `{"groupId":1,"name":"EC_UNKNOWN_SUBSCRIBER","permanent":true}`, undelivered("EC_UNKNOWN_SUBSCRIBER", true)},
		{`{"groupId":2,"name":"X"}`, `{"groupId":1,"name":"EC_TELESERVICE_NOT_PROVISIONED","permanent":true}`, undelivered("EC_TELESERVICE_NOT_PROVISIONED", true)},
		{`{"groupId":5,"name":"X"}`, `{"groupId":2,"name":"EC_BLACKLISTED_DESTINATIONADDRESS","permanent":true}`, undelivered("EC_BLACKLISTED_DESTINATIONADDRESS", true)},
		{`{"groupId":4,"name":"EXPIRED_EXPIRED"}`, `{"groupId":1,"name":"EC_ABSENT_SUBSCRIBER","permanent":false}`, undelivered("EC_ABSENT_SUBSCRIBER", false)},
		{`{"groupId":2,"name":"X"}`, `{"groupId":1,"name":"EC_UNIDENTIFIED_SUBSCRIBER","permanent":false}`, undelivered("EC_UNIDENTIFIED_SUBSCRIBER", false)},
		{`{"groupId":5,"name":"X"}`, `{"groupId":2,"name":"EC_BLACKLISTED_SENDERADDRESS","permanent":true}`, undelivered("EC_BLACKLISTED_SENDERADDRESS", false)},
		{`{"groupId":2,"name":"Number 242066000001 is off"}`, `{"groupId":1,"name":"242066000001"}`, undelivered("", false)},
	} {
		body := `{"results":[{"messageId":"m","to":"242066000001","status":` + row.status
		if row.fault != "" {
			body += `,"error":` + row.fault
		}
		row.want.MessageID = "m"
		if got, err := infobip.Registration.Reports([]byte(body + "}]}")); err != nil || len(got) != 1 || got[0] != row.want {
			t.Errorf("%s %s: %+v, %v; want %+v", row.status, row.fault, got, err, row.want)
		}
	}
	two, err := infobip.Registration.Reports([]byte(`{"results":[{"messageId":"a","status":{"groupId":3}},{"messageId":"b","status":{"groupId":4}}]}`))
	if err != nil || len(two) != 2 || two[0].State != provider.ReportDelivered || two[1].MessageID != "b" {
		t.Errorf("two results: %+v, %v", two, err)
	}
}
