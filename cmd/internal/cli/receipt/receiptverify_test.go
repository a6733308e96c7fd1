package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/cmd/internal/cli/clitest"
	"quittance/ingress/verify"
	"quittance/internal/receipts"
)

// A shell checks a receipt with files alone, and with the service.
func TestVerifyReceipt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)
	var status verify.Status
	var recorded verify.Answer
	var keys receipts.Keys
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+verify.PathKeys, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys.JWKS(at)) })
	var paid *receipts.Claims // the record; nil at a service of an earlier release
	mux.HandleFunc("GET /q/status/{jti}", func(w http.ResponseWriter, r *http.Request) {
		if status.Agrees = nil; paid != nil && status.Status != verify.StatusUnknown {
			status.Agrees = new(paid.HasPayment(r.URL.Query().Get(verify.QueryPayment)))
		}
		_ = json.NewEncoder(w).Encode(status)
	})
	mux.HandleFunc("POST /q", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("receipt") == "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_ = json.NewEncoder(w).Encode(recorded)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	claims := receipts.Claims{
		Version: 1, Issuer: host, ID: "AZqxwgAAeryN7wEjRWeJqw", IssuedAt: at.Unix(), PaidAt: at.Unix(), NoticeRef: "AV1", PaymentRef: "4821903344556672", Agency: "impots", Service: "Timbre",
		Amount: 5000, Currency: "XAF", Channel: "CASH",
	}
	signer := func(live bool, seed byte) *receipts.Signer {
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
		k, err := receipts.NewKey(live, private.Public().(ed25519.PublicKey), time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		s, err := receipts.NewSigner(k, private)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	live, test := signer(true, 1), signer(false, 2)
	keys = receipts.Keys{live.Key(), test.Key()}
	sign := func(s *receipts.Signer) string {
		token, err := s.Sign(claims)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	token, testToken := sign(live), sign(test)
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	listOf := func(s *receipts.Signer, r map[string]int64) string {
		body, err := s.SignReversals(receipts.Reversals{Issuer: host, At: at.Unix(), Count: len(r), Reversed: r})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	list := func(r map[string]int64) string { return listOf(live, r) }
	set, empty, full := file("jwks.json", string(keys.JWKS(at))), file("empty.json", list(map[string]int64{})), file("full.json", list(map[string]int64{claims.ID: at.Unix()}))
	scanned := file("scanned.txt", server.URL+"/q#"+token+"\n")
	check := func(code int, says string, args ...string) {
		t.Helper()
		got, stdout, stderr := clitest.Run(t, Command(), append([]string{"receipts", "verify"}, args...)...)
		if text := strings.Join(strings.Fields(stdout+stderr), " "); got != code || !strings.Contains(text, says) {
			t.Errorf("%v ends with %d, want %d and %q: %s", args[1:], got, code, says, text)
		}
	}
	check(0, "Valid signature; cancellation not checked (no list) FCFA 5,000 to impots (Timbre)", token, "--keys", set)
	check(0, "Valid signature; cancellation not checked (list of 23 November 2026, 10:30)", scanned, "--keys", set, "--reversed", empty)
	check(1, "Payment cancelled on 23 November 2026 at 10:30", scanned, "--keys", set, "--reversed", full)
	check(1, "TEST receipt, without value FCFA", testToken, "--keys", set)
	check(1, "TEST receipt, without value; payment cancelled on 23 November 2026 at 10:30", testToken, "--keys", set, "--reversed", file("test.json", listOf(test, map[string]int64{claims.ID: at.Unix()})))
	check(1, "This is not a receipt of this service quittance: the receipt proves no payment", token+"x", "--keys", set)
	check(1, "--reversed: not a list of reversals", token, "--keys", set, "--reversed", set)
	check(1, "is a PDF, whose code only a camera", file("receipt.pdf", "%PDF-1.7"), "--keys", set)

	status, paid = verify.Status{Status: verify.StatusPaid, At: at.Unix()}, &claims
	check(0, "Authentic, checked online at 10:30 on 23 November 2026", scanned, "--service", server.URL)
	check(0, `"verdict": "authentic"`, scanned, "--service", server.URL, "--json")
	check(1, "This is not a receipt", token[:len(token)-8]+"AAAAAAAA", "--service", server.URL)
	for name, change := range map[string]func(*receipts.Claims){
		"amount":    func(c *receipts.Claims) { c.Amount = 9000 },
		"currency":  func(c *receipts.Claims) { c.Currency = "EUR" },
		"reference": func(c *receipts.Claims) { c.PaymentRef = "4821903344556673" },
		"notice":    func(c *receipts.Claims) { c.NoticeRef = "AV2" },
	} {
		other := claims
		change(&other)
		paid = &other
		check(1, "This receipt does not agree with the recorded payment quittance: the receipt proves no payment", scanned, "--service", server.URL)
		check(1, `"verdict": "differs"`, scanned, "--service", server.URL, "--json")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	// A service of an earlier release ignores the digest: it is given the receipt.
	paid, recorded = nil, verify.Answer{Verdict: receipts.VerdictNone}
	check(1, "This is not a receipt", scanned, "--service", server.URL)
	paid = &claims
	status = verify.Status{Status: verify.StatusReversed, At: at.Unix(), ReversedAt: at.Unix()}
	check(1, "Payment cancelled on", scanned, "--service", server.URL)
	check(1, "TEST receipt, without value; payment cancelled on 23 November 2026 at 10:30", testToken, "--service", server.URL)
	status = verify.Status{Status: verify.StatusUnknown, At: at.Unix()}
	check(1, "This is not a receipt", scanned, "--service", server.URL)
	// A revoked key is not in the set: the service compares with its record.
	keys, recorded = receipts.Keys{test.Key()}, verify.Answer{Verdict: receipts.VerdictAuthentic, At: at.Unix(), Claims: &claims}
	check(0, "Authentic, checked online", scanned, "--service", server.URL)
	recorded = verify.Answer{Verdict: receipts.VerdictNone}
	check(1, "This is not a receipt", scanned, "--service", server.URL)
	check(1, "Key unknown offline: connect to the network", scanned, "--keys", file("without.json", string(keys.JWKS(at))))
}
