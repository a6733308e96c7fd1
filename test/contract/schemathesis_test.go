package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/test/harness"
	"quittance/test/servers"

	"github.com/google/uuid"
)

// Schemathesis generates valid and invalid requests from the OpenAPI file and validates
// all answers against it.
//
// QUITTANCE_SCHEMATHESIS=full makes at least 5,000 cases with a new seed each time.
// QUITTANCE_SCHEMATHESIS_SEED=N repeats a seed. The last line is cases=N failures=N.
func TestSchemathesis(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and sends it some hundred requests")
	}
	t.Parallel()
	perOperation, least, seed := 6, 200, uint64(1)
	if os.Getenv("QUITTANCE_SCHEMATHESIS") == "full" {
		// Half of the operations have too few different requests, so the other half gets more.
		perOperation, least, seed = 2200, 5000, rand.Uint64N(1<<31)
	}
	if text := os.Getenv("QUITTANCE_SCHEMATHESIS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			t.Fatalf("QUITTANCE_SCHEMATHESIS_SEED: %v", err)
		}
		seed = n
	}
	python := harness.Absolute(t, ".deps/schemathesis/bin/python")
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("schemathesis is missing, `make deps/test` fetches it: %v", err)
	}

	u, dir := harness.Shared(t), servers.Dir(t)
	config, report := schemathesisConfig(t, u, dir), filepath.Join(dir, "report.json")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-m", "schemathesis.cli", "--config-file", config, "--no-color", "run", harness.Absolute(t, "ingress/ministry/openapi.yaml"),
		"--url", u.URL(harness.AtService, ""), "--seed", strconv.FormatUint(seed, 10), "--max-examples", strconv.Itoa(perOperation),
		"--report", "json", "--report-json-path", report)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "SCHEMATHESIS_TENANT_ID="+harness.GuichetAgency)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	failed := cmd.Run()

	var got struct {
		Complete bool `json:"complete"`
		Cases    struct {
			Generated int `json:"generated"`
			Failures  int `json:"unique_failures"`
			Errored   int `json:"errored"`
		} `json:"test_cases"`
	}
	text, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if failed != nil || err != nil || !got.Complete || got.Cases.Failures > 0 || got.Cases.Errored > 0 {
		t.Errorf("seed %d: %v\n%s", seed, errors.Join(failed, err), out.Bytes())
	}
	if got.Cases.Generated < least {
		t.Errorf("%d cases were generated, want at least %d", got.Cases.Generated, least)
	}
	t.Logf("seed %d\ncases=%d failures=%d", seed, got.Cases.Generated, got.Cases.Failures+got.Cases.Errored)
}

// schemathesisConfig completes test/tools/schemathesis/schemathesis.toml with sessions in
// several states, the client_secret of a paid embedded session, and its completion token.
func schemathesisConfig(t *testing.T, u *harness.Up, dir string) string {
	t.Helper()
	order := func(state string) string { return "schemathesis-" + state + "-" + uuid.NewString() }
	embedded := func(state string) (s harness.Session) {
		u.Post(t, harness.GuichetKey, fmt.Sprintf(`{"order_id":%q,"amount":5000,"mode":"embedded"}`, order(state))).Into(t, &s)
		if s.ClientSecret == nil {
			t.Fatalf("the embedded session has no client_secret: %+v", s)
		}
		return s
	}
	paid, open, hosted, cancelled := embedded("paid"), embedded("open"), u.Create(t, order("hosted")), u.Create(t, order("cancelled"))
	if a := u.Call(t, http.MethodPost, u.Sessions("/"+cancelled.ID+"/cancel"), "", "Authorization", "Bearer "+harness.GuichetKey); a.Status != http.StatusOK {
		t.Fatalf("cancelling: %d %s", a.Status, a.Body)
	}
	u.Citizen(paid.ID).Pay(t, "06 600 00 01")
	u.Becomes(t, paid.ID, "completed")
	var token struct {
		Token string `json:"completion_token"`
	}
	a := u.Call(t, http.MethodPost, u.URL(harness.AtService, "/embed/"+paid.ID+"/completion-token"), "", "Authorization", "Bearer "+*paid.ClientSecret)
	if a.Into(t, &token); token.Token == "" {
		t.Fatalf("asking for a completion token: %d %s", a.Status, a.Body)
	}

	base, err := os.ReadFile(harness.Absolute(t, "test/tools/schemathesis/schemathesis.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "hooks = %q\n%s\n", harness.Absolute(t, "test/tools/schemathesis/hooks.py"), base)
	fmt.Fprintf(&b, "[auth.openapi]\napiKey = {bearer = %q}\nclientSecret = {bearer = %q}\n", harness.GuichetKey, *paid.ClientSecret)
	for name, values := range map[string][]string{
		"sessions": {paid.ID, open.ID, hosted.ID, cancelled.ID}, "embedded": {paid.ID, paid.ID, open.ID},
		"tokens": {token.Token}, "agency": {harness.GuichetAgency},
	} {
		fmt.Fprintf(&b, "[dictionaries.%s]\nvalues = [\"%s\"]\n", name, strings.Join(values, `", "`))
	}
	path := filepath.Join(dir, "schemathesis.toml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
