package erpcheck

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"quittance/cmd/internal/cli/clitest"
	"quittance/dev/simulator"
)

// A vendor checks an ERP with the production program, at http on the own machine. The secret
// comes from a file or the environment, and is in no output.
func TestERPCheck(t *testing.T) {
	const secret = "s3cret-of-the-erp"
	s, err := simulator.New(simulator.Config{
		Now: func() time.Time { return time.Now().UTC() }, Log: slog.New(slog.DiscardHandler),
		ERPAuth: func(string) []simulator.Auth {
			return []simulator.Auth{{Type: simulator.AuthBasic, Username: "quittance", Password: secret}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(want int, says string, args ...string) (stdout string) {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, Command(), append([]string{"erp", "check"}, args...)...)
		if code != want || !strings.Contains(stdout+stderr, says) || strings.Contains(stdout+stderr, secret) {
			t.Errorf("%q ends with %d and says %q, %q; want %d and %q", args, code, stdout, stderr, want, says)
		}
		return stdout
	}
	to := []string{"--base-url", server.URL + "/erp/impots", "--auth", "basic", "--auth-name", "quittance"}
	with := append(to, "--erp-secret-file", file)

	check(2, "--base-url: give the address")
	check(2, "--base-url: the address must be https", "--base-url", "http://erp.example", "--auth", "bearer")
	check(2, "--auth: say how", "--base-url", server.URL)
	check(2, "--auth-name: give the header", "--base-url", server.URL, "--auth", "api_key")
	check(2, "never among the arguments", to...)
	check(2, "--ca-file", append(with, "--ca-file", file)...)
	check(0, "ok    confirmation.repeated.balance", with...)
	t.Setenv("QUITTANCE_ERP_SECRET", secret)
	var report struct {
		Passed   bool
		Failed   int
		Findings []struct{ Check, Outcome, Said, Mend string }
	}
	if err := json.Unmarshal([]byte(check(0, "", append(to, "--json")...)), &report); err != nil || !report.Passed || len(report.Findings) < 10 {
		t.Errorf("%+v, %v", report, err)
	}
	if resp, err := httpclient.Default.Post(server.URL+"/control/erp/impots", "", strings.NewReader(`{"misbehave": ["counts_twice"]}`)); err != nil || resp.Body.Close() != nil {
		t.Fatal(err)
	}
	check(1, "FAIL  confirmation.repeated.balance", to...)
	if err := json.Unmarshal([]byte(check(1, "1 of 16 checks failed", append(to, "--json")...)), &report); err != nil || report.Passed || report.Failed != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	t.Setenv("QUITTANCE_ERP_SECRET", "wrong")
	check(1, "does not accept the credentials", to...)
}
