package pages_test

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/test/httpclient"
)

const (
	secretOfFrame = "chs_secret_0123456789abcdefghijABCDEFGHIJ0123456789abc"
	guichet       = "https://guichet.example"
)

func inFrame(s *checkout.Session) {
	every(s)
	sum := sha256.Sum256([]byte(secretOfFrame))
	s.Mode, s.ClientSecretHash = checkout.ModeEmbedded, sum[:]
}

// address returns the address to which the SDK navigates the frame.
func address(id, secret, parent string) string {
	q := url.Values{"parent_origin": {parent}, "layout": {"large"}, "locale": {"en"}}
	if secret != "" {
		q.Set("client_secret", secret)
	}
	return "/embed/" + id + "?" + q.Encode()
}

// The whole journey works in a frame of a configured page. After the first request the
// secret is in the header only.
func TestEmbeddedJourney(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", inFrame)
	b := browse(t, server)
	b.header.Set("Sec-Fetch-Dest", "iframe")
	b.get(address(id, secretOfFrame, guichet)).want(200, "How do you want to pay?").holds(`data-parent="`+guichet+`"`, `class="embed large"`)
	if got := b.answer.Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors https://guichet.example https://autre.example") {
		t.Errorf("policy is %s", got)
	}
	if b.answer.Get("X-Frame-Options") != "" || b.answer.Get("Cross-Origin-Resource-Policy") != "cross-origin" || b.answer.Get("Cache-Control") != "no-store" {
		t.Errorf("headers are %v", b.answer)
	}
	if strings.Contains(b.html, secretOfFrame) || strings.Contains(b.html, "guichet.example/merci") {
		t.Error("the page holds the secret, or leads out of the frame")
	}

	b.header.Set("Sec-Fetch-Dest", "empty")
	b.forward("offer", "momo").want(401)
	b.header.Set("Authorization", "Bearer "+secretOfFrame)
	b.get("/embed/"+id+"?lang=en").want(200, "How do you want to pay?")
	b.forward("offer", "momo").want(200, "Your mobile money number").forward("phone", "06 600 00 02").want(200, "Check before you pay")
	b.forward().want(200, "Confirm on your phone")
	if b.at.Path != "/embed/"+id {
		t.Errorf("the journey left the frame for %s", b.at)
	}
	w.outcome(id, checkout.OutcomeApproved, "")
	b.link("Check").want(200, "Payment successful").holds(`data-state="completed"`, "/embed/"+id+"/completion-token")
	for _, address := range b.visited[1:] {
		if strings.Contains(address, "secret") {
			t.Errorf("the secret is in %s", address)
		}
	}

	// The secret is valid until the session expires, or ten minutes after it has ended.
	w.Change(func() { w.Time = w.Time.Add(23 * time.Hour) })
	b.get("/embed/"+id).want(200, "Paiement réussi")
	w.Change(func() { w.Time = w.Time.Add(2 * time.Hour) })
	b.get("/embed/" + id).want(404)
}

// The page was open when the session's lifetime ended. Until the processor's end reached
// the read model, the citizen read that the payment is unknown.
func TestFrameOfAnExpiredSession(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", inFrame)
	b := browse(t, server)
	b.header.Set("Authorization", "Bearer "+secretOfFrame)
	expired := func() {
		t.Helper()
		b.get("/embed/"+id+"?lang=en").want(200, "expired").holds(`data-state="expired"`)
	}
	b.get("/embed/"+id+"?lang=en").want(200, "How do you want to pay?")
	w.Change(func() { w.Time = w.Time.Add(24 * time.Hour) })
	expired()
	w.Change(func() { w.Time = w.Time.Add(time.Hour) }) // the read model lags behind
	expired()
	if a := w.Do(id, checkout.Tick{}); a.Session.Status != checkout.StatusExpired {
		t.Fatalf("the session is %s", a.Session.Status)
	}
	expired()
	w.Change(func() { w.Time = w.Time.Add(10 * time.Minute) })
	b.get("/embed/" + id).want(404)
}

// A request with a false parent origin, or for the frame as a page of its own, shows
// nothing.
func TestFrameIsRefused(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", inFrame)
	platform := w.create("A-2", func(s *checkout.Session) { inFrame(s); s.Platform = true })
	hosted := w.create("A-3", every)
	for name, row := range map[string]struct {
		path, dest string
		status     int
	}{
		"another origin":           {address(id, secretOfFrame, "https://evil.example"), "iframe", 403},
		"no origin":                {"/embed/" + id + "?client_secret=" + secretOfFrame, "iframe", 403},
		"a prefix of an origin":    {address(id, secretOfFrame, guichet+".evil.example"), "iframe", 403},
		"as a page":                {address(id, secretOfFrame, guichet), "document", 403},
		"as an object":             {address(id, secretOfFrame, guichet), "object", 403},
		"the application's list":   {address(platform, secretOfFrame, guichet), "iframe", 403},
		"the platform's list":      {address(platform, secretOfFrame, "https://portal.example"), "iframe", 200},
		"an old browser":           {address(id, secretOfFrame, guichet), "", 200},
		"another's secret":         {address(id, secretOfFrame+"x", guichet), "iframe", 404},
		"no session":               {address("chs_nobody", secretOfFrame, guichet), "iframe", 404},
		"a session without secret": {address(hosted, secretOfFrame, guichet), "iframe", 404},
	} {
		b := browse(t, server)
		if row.dest != "" {
			b.header.Set("Sec-Fetch-Dest", row.dest)
		}
		b.get(row.path)
		if b.status != row.status {
			t.Errorf("%s: %d, want %d", name, b.status, row.status)
		}
		if policy := b.answer.Get("Content-Security-Policy"); row.status == 403 && !strings.HasSuffix(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy is %s", name, policy)
		}
		if row.status != 200 && strings.Contains(b.html, "Direction générale") {
			t.Errorf("%s: the page tells of the session", name)
		}
	}
}

// A short outage must not look like a refusal. The frame says that the service is
// unavailable.
func TestFrameWhileTheServiceIsAway(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", inFrame)
	w.Change(func() { w.blind = errors.New("away") })
	b := browse(t, server)
	b.header.Set("Sec-Fetch-Dest", "iframe")
	b.get(address(id, secretOfFrame, guichet)).want(503, "Service unavailable for a moment").holds(`data-parent="`+guichet+`"`, `data-state="unavailable"`)
	if got := b.answer.Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors "+guichet) {
		t.Errorf("policy is %s", got)
	}
	b.get(address(id, secretOfFrame, "https://evil.example")).want(503)
	if got := b.answer.Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors 'none'") {
		t.Errorf("policy for a stranger is %s", got)
	}
}

// A frame that was reloaded has lost its secret and asks the SDK for it.
func TestReloadedFrame(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server)
	b.header.Set("Sec-Fetch-Dest", "iframe")
	b.get(address(w.create("A-1", inFrame), "", guichet)).want(200, "Loading the payment").holds(`data-need="navigate"`)
	if strings.Contains(b.html, "Direction générale") {
		t.Error("the page tells of the session before it knows the secret")
	}
}

// Origins that may frame a session may also request its completion token.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", inFrame)
	for origin, allowed := range map[string]bool{guichet: true, "https://autre.example": true, "https://portal.example": false, "https://evil.example": false, "null": false} {
		b := browse(t, server)
		b.header.Set("Origin", origin)
		b.header.Set("Access-Control-Request-Method", http.MethodPost)
		b.header.Set("Access-Control-Request-Headers", "authorization")
		b.request(http.MethodOptions, "/embed/"+id+"/completion-token", nil)
		if got := b.answer.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || got == "*" {
			t.Errorf("%s is answered %q", origin, got)
		}
		if b.answer.Get("Access-Control-Allow-Credentials") != "" {
			t.Error("credentials are allowed")
		}
	}
}

// A page whose origin is not registered waited 20 s over the icon of a broken frame. Its script asks, and
// is told at once; nobody learns more than the frame itself says.
func TestMayFrame(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", inFrame)
	platform := w.create("A-2", func(s *checkout.Session) { inFrame(s); s.Platform = true })
	base := browse(t, server).base
	ask := func(id, origin string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/embed/origin", strings.NewReader(id))
		if err != nil {
			t.Fatal(err)
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp, err := httpclient.Default.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(text)
	}
	for name, row := range map[string]struct {
		id, origin string
		status     int
	}{
		"a registered origin": {id, guichet, 204}, "another origin": {id, "https://evil.example", 403}, "no origin": {id, "", 403},
		"the application's, not the platform's": {platform, guichet, 403}, "the platform's": {platform, "https://portal.example", 204},
		"no session": {"chs_nobody", guichet, 404}, "too long": {strings.Repeat("x", 1000), guichet, 404},
	} {
		resp, text := ask(row.id, row.origin)
		if resp.StatusCode != row.status || resp.Header.Get("Access-Control-Allow-Origin") != "*" || text != "" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s", name, resp.StatusCode, resp.Header, text)
		}
	}
	w.Change(func() { w.blind = errors.New("away") })
	if resp, _ := ask(id, "https://evil.example"); resp.StatusCode != 503 {
		t.Errorf("while the service is away: %d", resp.StatusCode) // no refusal
	}
}
