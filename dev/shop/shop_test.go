package shop

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	checkoutmoney "quittance/money"
	"quittance/money/language"
	"quittance/money/language/languagetest"
)

// The tests in test/journeys cover payments, with the whole service and a browser.

func TestCertificateIsKeptAndRenewed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	now := time.Now()
	first, err := loadCertificate(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AddCert(first.Leaf)
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if _, err := first.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: trust}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "shop.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info.Mode(), err)
	}
	again, err := loadCertificate(dir, now.Add(200*24*time.Hour))
	if err != nil || !again.Leaf.Equal(first.Leaf) {
		t.Errorf("the certificate changes at the next start: %v", err)
	}
	later, err := loadCertificate(dir, now.Add(380*24*time.Hour))
	if err != nil || later.Leaf.Equal(first.Leaf) {
		t.Errorf("the certificate is not renewed shortly before its end: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shop.pem"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadCertificate(dir, now); err != nil {
		t.Errorf("a broken file: %v, want a new certificate", err)
	}
}

func TestPagesWithoutKey(t *testing.T) {
	t.Parallel()
	site := serve(t, "")
	if status, body := get(t, site+"/"); status != http.StatusOK || !strings.Contains(body, "n’a pas de clé") || !strings.Contains(body, "25\u202f000\u00a0FCFA") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get(t, site+"/?lang=en"); status != http.StatusOK || !strings.Contains(body, "has no key") || !strings.Contains(body, "FCFA\u00a025,000") {
		t.Errorf("%d %s", status, body)
	}
	for lang, want := range map[string]string{"fr": "60,00\u00a0€", "en": "€60.00"} {
		if _, body := get(t, site+"/?lang="+lang); !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	status, body := post(t, site+"/cases", url.Values{"notice": {"patente"}, "lang": {"en"}})
	if status != http.StatusOK || !strings.Contains(body, "Business licence") || !strings.Contains(body, "has no key") || strings.Contains(body, "<script") {
		t.Errorf("a case without a key: %d %s", status, body)
	}
}

func TestCase(t *testing.T) {
	t.Parallel()
	site := serve(t, "sk_test_Secret0000000000000000")
	status, body := post(t, site+"/cases", url.Values{"notice": {"vignette"}})
	if status != http.StatusOK || !strings.Contains(body, `data-case="VIGNETTE-`) || !strings.Contains(body, `data-resize="auto"`) || !strings.Contains(body, `<script src="https://pay.example/sdk/v1.js">`) {
		t.Errorf("%d %s", status, body)
	}
	if strings.Contains(body, "sk_test") {
		t.Error("the page contains the key")
	}
	if status, body := get(t, site+"/lab?layout=compact&resize=auto"); status != http.StatusOK || !strings.Contains(body, `data-layout="compact"`) || !strings.Contains(body, `data-resize="auto"`) || !strings.Contains(body, "/assets/lab.js") {
		t.Errorf("lab: %d %s", status, body)
	}
	if status, _ := get(t, site+"/cases/NOBODY"); status != http.StatusNotFound {
		t.Errorf("an unknown case: %d", status)
	}
	if status, _ := post(t, site+"/cases", url.Values{"notice": {"gold"}}); status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown notice: %d", status)
	}
	for path, contentType := range map[string]string{"shop.js": "text/javascript; charset=utf-8", "shop.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		resp, err := httpclient.Default.Get(site + "/assets/" + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != contentType {
			t.Errorf("%s: %d %s", path, resp.StatusCode, got)
		}
	}
}

func TestRefusesOtherSites(t *testing.T) {
	t.Parallel()
	req := httptest.NewRequest(http.MethodPost, "/cases", strings.NewReader("notice=patente"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	newShop(t, "").Handler().ServeHTTP(w, req)
	if w.Code != http.StatusForbidden {
		t.Errorf("a form of another site: %d, want 403", w.Code)
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "frame-src https://pay.example;") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*Config){
		"no address": func(c *Config) { c.Listen = "" }, "no folder": func(c *Config) { c.DataDir = "" }, "no log": func(c *Config) { c.Log = nil },
		"no API": func(c *Config) { c.APIBase = "" }, "a path": func(c *Config) { c.CheckoutURL = "https://pay.example/c" },
	} {
		cfg := config(t, "")
		damage(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func config(t *testing.T, key string) Config {
	t.Helper()
	return Config{
		Listen: "127.0.0.1:0", DataDir: t.TempDir(), APIBase: "https://pay.example/", CheckoutURL: "https://pay.example", Key: key,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func newShop(t *testing.T, key string) *Shop {
	t.Helper()
	s, err := New(config(t, key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t *testing.T, key string) string {
	t.Helper()
	site := httptest.NewServer(newShop(t, key).Handler())
	t.Cleanup(site.Close)
	return site.URL
}

func get(t *testing.T, address string) (status int, body string) {
	t.Helper()
	return do(t, http.MethodGet, address, "")
}

func post(t *testing.T, address string, form url.Values) (status int, body string) {
	t.Helper()
	return do(t, http.MethodPost, address, form.Encode())
}

func do(t *testing.T, method, address, form string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestBothLanguagesHaveEveryText(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, language.Table[map[string]string]{checkoutmoney.French: words["fr"], checkoutmoney.English: words["en"]})
}
