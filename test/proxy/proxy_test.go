package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/bench/client"
	"quittance/test/harness"
)

const (
	phone = "066000001"
	mac   = "MACofNobodyMACofNobodyMACofNobodyMACofNobod"
)

// The examples carry payments and live streams over TLS, and nothing that opens a page or
// proves a report gets into their logs.
func TestProxies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an ingress and proxies")
	}
	t.Parallel()
	for name, start := range map[string]func(*front, *testing.T) *exec.Cmd{"nginx": nginx, "caddy": caddy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t, start)
			f.secrets = []string{phone, mac, harness.GuichetKey}
			f.redirects(t)
			f.pays(t)
			embedded, secret := f.opensFrames(t)
			f.passesReports(t, embedded.ID, http.StatusAccepted)
			f.namesClients(t)
			f.ingress.Kill()
			f.saysThatItIsAway(t, embedded.ID, secret)
			f.keepsSecrets(t)
		})
	}
}

// create makes a session through the proxy.
func (f *front) create(t *testing.T, mode string) client.Session {
	t.Helper()
	s, err := f.Client.Create(t.Context(), harness.GuichetKey, fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","mode":%q}`, uuid.NewString(), mode))
	if err != nil {
		t.Fatal(err)
	}
	f.secrets = append(f.secrets, s.ID)
	return s
}

// call sends a request through the proxy. Every answer must have HSTS once.
func (f *front) call(t *testing.T, method, path, body string, headers ...string) client.Answer {
	t.Helper()
	a, err := f.Send(t.Context(), method, f.Service+path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != "max-age=31536000" {
		t.Errorf("%s %s: HSTS is %q", method, path, got)
	}
	return a
}

// redirects checks that http leads to https.
func (f *front) redirects(t *testing.T) {
	t.Helper()
	a, err := f.Send(t.Context(), http.MethodGet, "http://"+f.plain+"/docs", "")
	if err != nil {
		t.Fatal(err)
	}
	if to := a.Header.Get("Location"); a.Status/100 != 3 || !strings.HasPrefix(to, "https://127.0.0.1") {
		t.Errorf("http is answered %d to %q", a.Status, to)
	}
}

// pays pays a session, and sees it on an open stream.
func (f *front) pays(t *testing.T) {
	t.Helper()
	s := f.create(t, "hosted")
	if want := f.Service + "/c/" + s.ID; s.CheckoutURL != want {
		t.Errorf("checkout_url is %s, want %s", s.CheckoutURL, want)
	}
	if f.call(t, http.MethodGet, "/c/"+s.ID, "").Status != http.StatusOK {
		t.Error("the page is not shown")
	}
	changed := f.streams(t, s.ID)
	if err := f.Citizen(s.ID).Pay(t.Context(), phone); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-changed:
		if err != nil {
			t.Errorf("the stream: %v", err)
		}
	case <-time.After(harness.Soon):
		t.Error("the stream tells of no change")
	}
	harness.Eventually(t, "reading the paid session", func() error {
		a := f.call(t, http.MethodGet, "/api/v1/checkout/sessions/"+s.ID, "", "Authorization", "Bearer "+harness.GuichetKey)
		if a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"paid":true`) {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return nil
	})
}

// streams opens a stream of live status. The channel gets nil at the first change, or why
// there is none. When streams returns, the proxy has passed on the beginning of the stream.
func (f *front) streams(t *testing.T, id string) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.Service+"/c/"+id+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", "1")
	resp, err := f.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != ": here" {
		t.Fatalf("the stream begins %d %q, %v", resp.StatusCode, lines.Text(), lines.Err())
	}
	changed := make(chan error, 1)
	go func() {
		for lines.Scan() {
			if lines.Text() == "data: changed" {
				changed <- nil
				return
			}
		}
		changed <- fmt.Errorf("ended: %w", lines.Err())
	}()
	return changed
}

// opensFrames opens the frame of an embedded session, with its secret in the address.
func (f *front) opensFrames(t *testing.T) (client.Session, string) {
	t.Helper()
	s := f.create(t, "embedded")
	f.secrets = append(f.secrets, *s.ClientSecret)
	if a := f.call(t, http.MethodGet, frame(s.ID, *s.ClientSecret), "", "Sec-Fetch-Dest", "iframe"); a.Status != http.StatusOK {
		t.Errorf("the frame is answered %d", a.Status)
	}
	if a := f.call(t, http.MethodPost, "/embed/"+s.ID+"/completion-token", "", "Authorization", "Bearer "+*s.ClientSecret); a.Status != http.StatusConflict {
		t.Errorf("a completion token before the payment is answered %d %s", a.Status, a.Body)
	}
	return s, *s.ClientSecret
}

// frame is the address of a frame.
func frame(id, secret string) string {
	return "/embed/" + id + "?" + url.Values{"client_secret": {secret}, "parent_origin": {"https://guichet.example"}}.Encode()
}

// passesReports sends an operator's report.
func (f *front) passesReports(t *testing.T, session string, want int) {
	t.Helper()
	if a := f.call(t, http.MethodPost, "/callbacks/mtn/"+session+"/"+uuid.NewString()+"/"+mac, `{}`); a.Status != want {
		t.Errorf("a report is answered %d, want %d", a.Status, want)
	}
}

// namesClients checks that each client has its own limit, whatever it writes into
// X-Forwarded-For.
func (f *front) namesClients(t *testing.T) {
	t.Helper()
	visit := func(as *http.Client, claim string) int {
		c := client.Client{HTTP: as}
		a, err := c.Send(t.Context(), http.MethodGet, f.Service+"/c/nobody/live", "", "X-Forwarded-For", claim)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status
	}
	busy, shed := f.from("127.0.0.2"), false
	for n := 0; n < 2000 && !shed; n++ { // the limit is 5 a second and 50 at once
		shed = visit(busy, fmt.Sprintf("198.51.100.%d", n%250)) == http.StatusTooManyRequests
	}
	if !shed {
		t.Error("a client that claims many addresses has no limit")
	}
	if status := visit(f.from("127.0.0.3"), "127.0.0.2"); status != http.StatusNotFound {
		t.Errorf("another client is answered %d", status)
	}
}

// saysThatItIsAway checks answers of the proxy itself.
func (f *front) saysThatItIsAway(t *testing.T, session, secret string) {
	t.Helper()
	for _, a := range []client.Answer{
		f.call(t, http.MethodGet, frame(session, secret), "", "Sec-Fetch-Dest", "iframe"),
		f.call(t, http.MethodGet, "/c/"+session, ""),
		f.call(t, http.MethodPost, "/callbacks/mtn/"+session+"/"+uuid.NewString()+"/"+mac, `{}`),
		f.call(t, http.MethodPost, "/c/"+session+"/phone", "phone="+phone, "Content-Type", "application/x-www-form-urlencoded"),
	} {
		if a.Status != http.StatusBadGateway {
			t.Errorf("without an ingress the proxy answers %d, want 502", a.Status)
		}
	}
}

// keepsSecrets reads everything that the proxy wrote.
func (f *front) keepsSecrets(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "reading the log of requests", func() error {
		text, err := os.ReadFile(f.path("access.log"))
		if err != nil {
			return err
		}
		for _, part := range []string{"/c/", "/embed/", "/callbacks/", "/api/v1/checkout/sessions", "502", "200"} {
			if !strings.Contains(string(text), part) {
				return fmt.Errorf("it has no %s", part)
			}
		}
		return nil
	})
	read := 0
	err := filepath.WalkDir(f.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		read++
		for _, secret := range f.secrets {
			if at := strings.Index(string(text), secret); at >= 0 {
				t.Errorf("%s holds a secret: %q", filepath.Base(path), text[max(0, at-200):min(len(text), at+100)])
			}
		}
		return err
	})
	if err != nil || read < 5 {
		t.Errorf("%d files read: %v", read, err)
	}
}
