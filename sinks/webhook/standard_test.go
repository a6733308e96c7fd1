package webhook_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	deliverytest "quittance/test/deliveries"
)

// verifiers are receivers that use the Standard Webhooks libraries. Each verifies a
// request to /N with the Nth secret and answers 204 or 401.
func verifiers(t *testing.T, secrets ...string) map[string]string {
	t.Helper()
	absolute := func(path string) string {
		path, err := filepath.Abs(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	folder := absolute(".deps/standardwebhooks")
	python := filepath.Join(folder, "python/bin/python")
	for _, needed := range []string{python, filepath.Join(folder, "node_modules/standardwebhooks")} {
		if _, err := os.Stat(needed); err != nil {
			t.Fatalf("the Standard Webhooks libraries are missing, `make deps/test` fetches them: %v", err)
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("Node.js is missing, `make deps/test` installs it: %v", err)
	}
	inGo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil || n >= len(secrets) {
			http.Error(w, "no such secret", http.StatusInternalServerError)
			return
		}
		wh, err := standardwebhooks.NewWebhook(secrets[n])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if err := wh.Verify(body, r.Header); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(inGo.Close)
	return map[string]string{
		"Go":         inGo.URL,
		"Python":     receiver(t, python, append([]string{absolute("test/tools/standardwebhooks/receive.py")}, secrets...)),
		"JavaScript": receiver(t, node, append([]string{absolute("test/tools/standardwebhooks/receive.mjs"), folder}, secrets...)),
	}
}

// receiver runs a program that prints its port and ends with its standard input.
func receiver(t *testing.T, program string, args []string) (url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("starting a receiver: %v", err)
	}
	return "http://127.0.0.1:" + strings.TrimSpace(line)
}

// Receivers with the libraries of the standard accept our webhooks: before a rotation;
// during its overlap with the old secret and with the new one; after it, or at once without
// an overlap, with the new one alone. They refuse a webhook that was changed on the way.
func TestStandardWebhooksLibraries(t *testing.T) {
	t.Parallel()
	b := bench(t)
	const older, newer = 0, 1
	secrets := []string{secret1, secret2}
	urls := verifiers(t, secrets...)
	e := newEndpoints()
	for language, url := range urls {
		for n := range secrets {
			e.add("app", registry.WebhookEndpoint{ID: fmt.Sprintf("%s/%d", language, n), URL: fmt.Sprintf("%s/%d", url, n)})
		}
	}
	witness := deliverytest.NewReceiver(t, eventID)
	e.add("app", registry.WebhookEndpoint{ID: "witness", URL: witness.URL})
	rotate := func(active ...int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for id, ep := range e.by {
			ep.Secrets = nil
			for _, n := range active {
				ep.Secrets = append(ep.Secrets, secret.NewText(secrets[n]))
			}
			e.by[id] = ep
		}
	}
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg))

	for _, phase := range []struct {
		event    string
		active   []int
		old, new int32
	}{
		{"evt_before", []int{older}, 204, 401},
		{"evt_overlap", []int{newer, older}, 204, 204},
		{"evt_none", []int{newer}, 401, 204}, // an overlap of zero, or after one
	} {
		rotate(phase.active...)
		n := b.Notification(phase.event, "app")
		n.Body = []byte(`{"event_id": "` + phase.event + `",  "service_label":"Contribution à la patente \u20ac 🧾", "amount":25000}`)
		b.Notify(t, schemas.TopicWebhooks, true, n)
		got := map[string]int32{}
		deliverytest.Eventually(t, phase.event+" is everywhere", func() bool {
			for _, a := range b.Attempts(t) {
				if a.Delivery.EventID == phase.event && a.HTTPStatus != 0 {
					got[a.Delivery.DestinationID] = a.HTTPStatus
				}
			}
			return len(got) == len(e.by)
		})
		for language := range urls {
			if o, n := got[language+"/0"], got[language+"/1"]; o != phase.old || n != phase.new {
				t.Errorf("%s, %s: %d with the old secret and %d with the new, want %d and %d", phase.event, language, o, n, phase.old, phase.new)
			}
		}
	}

	var genuine deliverytest.Request
	for _, r := range witness.Got() {
		if r.EventID == "evt_overlap" {
			genuine = r
		}
	}
	if n := len(strings.Fields(genuine.Header.Get("webhook-signature"))); n != 2 {
		t.Fatalf("%d signatures during the overlap", n)
	}
	sent, err := strconv.ParseInt(genuine.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	signatures := strings.Fields(genuine.Header.Get("webhook-signature"))
	for language, url := range urls {
		for what, forge := range map[string]func(h http.Header, body *string){
			"":                   func(http.Header, *string) {},
			"body":               func(_ http.Header, body *string) { *body = strings.Replace(*body, "25000", "25001", 1) },
			"body's spaces":      func(_ http.Header, body *string) { *body = strings.Replace(*body, ": ", ":", 1) },
			"empty body":         func(_ http.Header, body *string) { *body = "" },
			"id":                 func(h http.Header, _ *string) { h.Set("webhook-id", "evt_before") },
			"timestamp":          func(h http.Header, _ *string) { h.Set("webhook-timestamp", strconv.FormatInt(sent+1, 10)) },
			"old timestamp":      func(h http.Header, _ *string) { h.Set("webhook-timestamp", strconv.FormatInt(sent-3600, 10)) },
			"no signature":       func(h http.Header, _ *string) { h.Del("webhook-signature") },
			"other's signature":  func(h http.Header, _ *string) { h.Set("webhook-signature", signatures[1]) }, // the old secret's
			"version of nothing": func(h http.Header, _ *string) { h.Set("webhook-signature", "v0"+signatures[0][2:]) },
		} {
			h, body, want := genuine.Header.Clone(), genuine.Body, http.StatusUnauthorized
			if forge(h, &body); what == "" {
				want = http.StatusNoContent
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/%d", url, newer), strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			h.Del("Content-Length")
			req.Header = h
			resp, err := (&http.Client{Transport: httpclient.Transport, Timeout: 10 * time.Second}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s answers %d to a forged %q, want %d", language, resp.StatusCode, what, want)
			}
		}
	}
}
