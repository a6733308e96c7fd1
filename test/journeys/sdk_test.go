package journeys_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"quittance/dev/stack/program"
	"quittance/sdk"
	"quittance/test/harness"
)

// The SDK and the frame script run in a real browser, on pages of the test that embed a
// checkout page of the test. That page sends the messages that each case needs.
func TestSDKInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	var host *httptest.Server
	checkout := httptest.NewServer(embedStub(func() string { return host.URL }))
	hosts := func() http.Handler {
		r := chi.NewRouter()
		sdk.Routes(r) // an integrator may serve the script itself
		r.Get("/*", func(w http.ResponseWriter, r *http.Request) {
			script := fmt.Sprintf(`<script src="%s/sdk/%s/quittance.js" crossorigin integrity="%s"></script>`,
				checkout.URL, sdk.Version, sdk.Integrity()[sdk.Version]["quittance.js"])
			switch r.URL.Path {
			case "/module":
				script = `<script type="module" src="` + checkout.URL + `/sdk/v1.js"></script>`
			case "/own":
				script = `<script src="/sdk/v1.js"></script>`
			case "/spoof":
				script = `<script src="` + checkout.URL + `/spoof.js"></script>`
			case "/favicon.ico":
				w.WriteHeader(http.StatusNoContent)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, `<!doctype html><html lang="fr-CG"><title>An agency's page</title><div id="pay"></div><div id="other"></div>`+script)
		})
		return r
	}
	stranger := httptest.NewUnstartedServer(hosts())
	host = httptest.NewUnstartedServer(hosts())
	for _, s := range []*httptest.Server{host, stranger} {
		// The browser first rejects the certificate, which the server would log.
		s.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
		s.StartTLS()
	}
	for _, s := range []*httptest.Server{host, stranger, checkout} {
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	}
	runCases(t, "sdk.mjs", map[string]any{
		"host": host.URL, "stranger": stranger.URL, "checkout": checkout.URL, "dead": "http://" + deadAddress(t),
	})
}

// The demo shop has the real checkout in its frame. Only the shop's back end unlocks a
// case, and the page around the checkout gets nothing that could unlock it.
func TestShopInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and a browser")
	}
	t.Parallel()
	u := harness.Shared(t)
	var s harness.Session
	u.Post(t, harness.GuichetKey, fmt.Sprintf(`{"order_id":"not-here-%s","amount":5000,"mode":"embedded"}`, uuid.NewString())).Into(t, &s)
	if s.ClientSecret == nil {
		t.Fatal("the embedded session has no client_secret")
	}
	// The stranger is not in the embed origins of any application.
	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><html lang="fr"><title>Another site</title><body>`)
	}))
	stranger.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	secrets := runCases(t, "sdk-shop.mjs", map[string]any{
		"shop": "https://" + program.Local(u.Port+atShop), "checkout": u.URL(harness.AtService, ""), "control": u.URL(harness.AtSimulators, "/control"),
		"stranger": stranger.URL, "session": s.ID + ":" + *s.ClientSecret,
	})
	if len(secrets) == 0 {
		t.Error("the script reports no secret that the browser got")
	}
	log, err := os.ReadFile(u.Stderr())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(append(secrets, *s.ClientSecret, "66000001", "67700051"), harness.PublishedSecrets(t)...) {
		if at := bytes.Index(log, []byte(secret)); at >= 0 {
			t.Errorf("the log holds %q: …%s…", secret, log[max(0, at-200):min(len(log), at+100)])
		}
	}
}

// atShop is the demo shop's port, from the service's.
const atShop = 8

// runCases runs a script of named cases and fails unless each of them passes. It returns
// the secrets that the script reports.
func runCases(t *testing.T, script string, task map[string]any) (secrets []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root, "test/tools/browser", script))
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, m := range regexp.MustCompile(`(?m)^  async '([^']+)'\(\)`).FindAllSubmatch(text, -1) {
		missing = append(missing, string(m[1]))
	}
	if len(missing) == 0 {
		t.Fatalf("%s has no cases", script)
	}
	harness.Browse(t, 6*time.Minute, script, task, func(line []byte) {
		var result struct {
			Passed, Fault string
			Secrets       []string
		}
		if err := json.Unmarshal(line, &result); err != nil {
			t.Fatalf("the browser's line %q: %v", line, err)
		}
		if result.Secrets != nil {
			secrets = result.Secrets
			return
		}
		if result.Fault != "" {
			t.Errorf("in the browser: %s", result.Fault)
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return strings.HasPrefix(result.Passed+result.Fault, m) })
	})
	if len(missing) > 0 {
		t.Errorf("%s did not run %q", script, missing)
	}
	return secrets
}

// deadAddress returns an address at which nothing listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	return program.Local(harness.Ports(t, 1)[0])
}

// embedStub plays the service of an embedded page. The session's id selects a page that
// works or one with a fault. Only pages of host may embed it.
func embedStub(host func() string) http.Handler {
	r := chi.NewRouter()
	sdk.Routes(r)
	page := func(w http.ResponseWriter, attributes string, scripts ...string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = fmt.Fprintf(w, "<!doctype html><html lang=\"fr\"%s><title>Payment</title><body style=\"margin:0\"><p>Pay here", attributes)
		for _, s := range scripts {
			_, _ = fmt.Fprintf(w, "<script defer src=%q></script>", s)
		}
	}
	// The origin is registered; the refused frame of a stranger stands for a policy of its own page.
	r.Post("/embed/origin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(http.StatusNoContent)
	})
	var recovered atomic.Bool
	r.Get("/recover", func(http.ResponseWriter, *http.Request) { recovered.Store(true) })
	r.Get("/embed/{session_id}", func(w http.ResponseWriter, r *http.Request) {
		query, id := r.URL.Query(), chi.URLParam(r, "session_id")
		parent := query.Get("parent_origin")
		scripts := []string{"/asked.js", "/frame.js", "/page.js"}
		switch id {
		case "chs_hangs":
			<-r.Context().Done()
			return
		case "chs_flaky":
			if !recovered.Load() {
				panic(http.ErrAbortHandler)
			}
		case "chs_dumb":
			scripts = scripts[:2]
		case "chs_newer":
			scripts = []string{"/newer.js"}
		}
		if parent != host() && !query.Has("unguarded") {
			w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'")
			http.Error(w, "not here", http.StatusForbidden)
			return
		}
		if !query.Has("unguarded") {
			w.Header().Set("Content-Security-Policy", "frame-ancestors "+host())
		}
		attributes := ` data-parent="` + html.EscapeString(parent) + `" data-id="` + id + `"`
		if !query.Has("client_secret") {
			attributes += ` data-need="navigate"`
		}
		page(w, attributes, scripts...)
	})
	r.Get("/plain", func(w http.ResponseWriter, _ *http.Request) { page(w, "", "/sdk/v1.js") })
	r.Get("/spoof", func(w http.ResponseWriter, _ *http.Request) { page(w, "", "/spoof.js") })
	for path, script := range map[string]string{
		"/frame.js": string(sdk.Frame()),
		"/asked.js": `window.asked = location.href;`,
		"/page.js": `window.say = (type, data) => document.dispatchEvent(new CustomEvent("quittance:say", { detail: { type, data } }));
if (quittanceSecret) say("ready");
if (document.documentElement.dataset.id === "chs_early") say("pending", { reason: "card" });`,
		"/newer.js": `parent.postMessage({ ns: "quittance.checkout", v: 1, cid: "", seq: 0, type: "hello", data: { versions: [2] } }, document.documentElement.dataset.parent);`,
		// Sends the frame's messages to the page that embeds or opened it, and the page's
		// messages to each other frame.
		"/spoof.js": `window.heard = [];
addEventListener("message", (e) => { if (!e.data.spoof) heard.push(e.data); });
const whom = parent !== window ? parent : opener;
const message = (type, data) => ({ ns: "quittance.checkout", v: 1, cid: "0".repeat(32), seq: 99, type, data, spoof: true });
if (!location.search) for (const m of [message("hello", { versions: [1] }), message("hello", { versions: [1], need: "navigate" }), message("complete", { completion_token: "cpt_spoofed" })]) whom.postMessage(m, "*");
for (let i = 0; i < whom.frames.length; i++) {
  const channel = new MessageChannel();
  channel.port1.onmessage = (e) => heard.push(e.data);
  whom.frames[i].postMessage(message("connect", {}), "*", [channel.port2]);
}`,
	} {
		r.Get(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			_, _ = io.WriteString(w, script)
		})
	}
	r.Get("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return r
}
