package mtnsms_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/internal/provider"
	"quittance/internal/provider/mtnsms"
	"quittance/test/providers"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	providers.Run(t, providers.Subject{
		Registration: mtnsms.Registration, To: "242066000001", Text: "123456 est votre code : à é è ù £ € {}\n@pay.example #123456",
		Start: func(t *testing.T) providers.World {
			s := providers.NewSimulator(t)
			w := s.SMS(s.MTNReporting())
			w.Subscribe = s.SubscribeMTN
			return w
		},
	})
}

// MTN answers 200 with a statusCode of its own: only 0000 is an acceptance. A token that ended
// is replaced, because MTN has done nothing with the message.
func TestAnswers(t *testing.T) {
	t.Parallel()
	status, body, tokens, ended := http.StatusOK, "", 0, false
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/oauth/access_token/accesstoken", func(w http.ResponseWriter, r *http.Request) {
		tokens++
		if r.PostFormValue("client_id") != "id" || r.PostFormValue("client_secret") != "key" || r.URL.Query().Get("grant_type") != "client_credentials" {
			t.Errorf("the request for a token is %s with %v", r.URL, r.PostForm)
		}
		_, _ = w.Write([]byte(`{"access_token":"t","expires_in":"3599"}`))
	})
	mux.HandleFunc("POST /v3/sms/messages/sms/outbound", func(w http.ResponseWriter, _ *http.Request) {
		if ended {
			ended = false
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p, err := mtnsms.Registration.New(providers.Settings(t, strings.Replace(server.URL, "http", "mtnsms+http", 1)+"?client_id=id&service_code=131", "key"))
	if err != nil {
		t.Fatal(err)
	}
	send := func() error {
		return p.Send(t.Context(), provider.Message{ID: "m", To: "242066000001", Text: "x", At: time.Now()})
	}
	for _, row := range []struct {
		status int
		body   string
		want   provider.Fault // empty: accepted
		code   string
	}{
		{200, `{"statusCode":"0000","data":{"status":"PENDING"}}`, "", ""},
		{201, `{"statusCode":"0000"}`, "", ""},
		{200, `{"statusCode":"0000","data":{"status":"REJECTED"}}`, provider.FaultRefused, "REJECTED"},
		{200, `{"statusCode":"3001","data":{}}`, provider.FaultBusy, "3001"},
		{200, `{}`, provider.FaultUnknown, "malformed"},
		{200, `<html>`, provider.FaultUnknown, "malformed"},
		{400, `{"statusCode":"4000"}`, provider.FaultRefused, "4000"},
		{404, ``, provider.FaultRefused, "http_404"},
		{429, ``, provider.FaultBusy, "http_429"},
		{500, `{"statusCode":"5000"}`, provider.FaultUnknown, "5000"},
		{503, ``, provider.FaultBusy, "http_503"},
	} {
		status, body = row.status, row.body
		err := send()
		var e *provider.Error
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%d %s: %v", row.status, row.body, err)
		case row.want != "" && (!errors.As(err, &e) || e.Fault != row.want || e.Code != row.code):
			t.Errorf("%d %s: %v, want %s (%s)", row.status, row.body, err, row.want, row.code)
		}
	}
	if tokens != 1 {
		t.Errorf("%d tokens for one account", tokens)
	}
	ended, status, body = true, http.StatusOK, `{"statusCode":"0000"}`
	if err := send(); err != nil || tokens != 2 {
		t.Errorf("after the end of a token: %v, %d tokens", err, tokens)
	}
}

// A status that is not known says nothing. No status says that a number reaches nobody, because
// MTN gives no reason.
func TestReports(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]provider.Report{
		"DELIVERED":   {State: provider.ReportDelivered},
		"ENROUTE":     {State: provider.ReportPending},
		"SOMETHING":   {State: provider.ReportPending},
		"UNDELIVERED": {State: provider.ReportUndelivered, Code: "UNDELIVERED"},
		"EXPIRED":     {State: provider.ReportUndelivered, Code: "EXPIRED"},
		"REJECTED":    {State: provider.ReportUndelivered, Code: "REJECTED"},
		"DELETED":     {State: provider.ReportUndelivered, Code: "DELETED"},
	} {
		want.MessageID = "m"
		got, err := mtnsms.Registration.Reports([]byte(`{"clientCorrelatorId":"m","deliveryStatus":"` + status + `","details":"242066000001"}`))
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, %v; want %+v", status, got, err, want)
		}
	}
}

// Without receipts=true nobody has told MTN where to report: no receipt is asked for.
func TestReceiptsAreSetUp(t *testing.T) {
	t.Parallel()
	s := providers.NewSimulator(t)
	for setting, want := range map[string]bool{"": false, "&receipts=false": false, "&receipts=true": true} {
		p, err := mtnsms.New(providers.Settings(t, s.MTN()+setting, providers.Secret))
		if err != nil || p.Reports() != want {
			t.Errorf("%q: %v, reports %v", setting, err, !want)
		}
	}
	if _, err := mtnsms.New(providers.Settings(t, s.MTN()+"&receipts=perhaps", providers.Secret)); err == nil || !strings.Contains(err.Error(), "receipts") {
		t.Errorf("receipts=perhaps: %v", err)
	}
}
