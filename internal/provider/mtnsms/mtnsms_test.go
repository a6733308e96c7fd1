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
			return s.SMS(s.MTN())
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
