package openid_test

import (
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/dev/simulator"
	"quittance/internal/openid"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// world is a provider over HTTP, and a client that asks it.
type world struct {
	*openid.Client
	issuer  openid.Issuer
	address string
	http    *http.Client
}

func open(t *testing.T) world {
	t.Helper()
	s, err := simulator.New(simulator.Config{Now: time.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return world{openid.New(openid.Config{Loopback: true}), openid.Issuer{
		Address: server.URL + "/idp/a", ClientID: "quittance", Secret: secret.NewText("client-secret"), Algorithms: []string{"RS256"}, Callback: "https://staff.example/sign-in/issuers/1",
	}, server.URL, client}
}

func (w world) send(t *testing.T, to, contentType, body string) (location string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := w.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s: %d %s", to, answer.StatusCode, text)
	}
	return answer.Header.Get("Location")
}

func (w world) fault(t *testing.T, body string) {
	t.Helper()
	_ = w.send(t, w.address+"/control/idp/a", "application/json", body)
}

// answer is what the provider sends the browser of a visit back with.
func (w world) answer(t *testing.T, turn openid.Turn, subject string) url.Values {
	t.Helper()
	at, err := w.Begin(t.Context(), w.issuer, turn)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(html.UnescapeString(at))
	if err != nil {
		t.Fatal(err)
	}
	q := to.Query()
	for name, want := range map[string]string{"response_type": "code", "scope": "openid email", "code_challenge_method": "S256", "redirect_uri": w.issuer.Callback} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	q.Set("subject", subject)
	to.RawQuery = ""
	back, err := url.Parse(w.send(t, to.String(), "application/x-www-form-urlencoded", q.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

func refused(t *testing.T, what string, err error, code string) {
	t.Helper()
	var refusal *operation.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// A token is the answer to the sign-in of one browser: without that browser's nonce it names nobody.
func TestAnswersAreOfTheirBrowser(t *testing.T) {
	t.Parallel()
	w := open(t)
	one, two := openid.TurnOf(secret.Mint("")), openid.TurnOf(secret.Mint(""))
	answer := w.answer(t, one, "248289761001")
	if !one.Is(answer.Get("state")) || two.Is(answer.Get("state")) || one.Is("") || openid.TurnOf(secret.Text{}).Is(answer.Get("state")) {
		t.Errorf("the state %q is not that of its browser alone", answer.Get("state"))
	}
	claims, err := w.Finish(t.Context(), w.issuer, one, answer)
	if err != nil || claims.Subject != "248289761001" || claims.Issuer != w.issuer.Address {
		t.Fatalf("%+v, %v", claims, err)
	}
	_, err = w.Finish(t.Context(), w.issuer, one, answer)
	refused(t, "a code for the second time", err, openid.CodeCode)
	_, err = w.Finish(t.Context(), w.issuer, two, w.answer(t, one, "248289761001"))
	refused(t, "the code of another browser", err, openid.CodeCode)
	expired := w.issuer
	expired.Secret = secret.NewText("") // the simulator takes any other one
	_, err = w.Finish(t.Context(), expired, one, w.answer(t, one, "248289761001"))
	refused(t, "a secret of ours that the provider does not take", err, openid.CodeAway)
	for _, fault := range []string{simulator.IdPNoNonce, simulator.IdPOtherNonce} {
		w.fault(t, `{"fault": "`+fault+`"}`)
		_, err = w.Finish(t.Context(), w.issuer, one, w.answer(t, one, "248289761001"))
		refused(t, fault, err, openid.CodeNonce)
	}
}

// Addresses of this machine are refused outside of developer mode, and a provider that says that it is another one.
func TestProvidersThatMayNotBeAsked(t *testing.T) {
	t.Parallel()
	w := open(t)
	turn := openid.TurnOf(secret.Mint(""))
	_, err := openid.New(openid.Config{}).Begin(t.Context(), w.issuer, turn)
	refused(t, "an address of this machine", err, openid.CodeAway)
	w.issuer.Address += "/"
	_, err = w.Begin(t.Context(), w.issuer, turn)
	refused(t, "another issuer", err, openid.CodeAway)
}
