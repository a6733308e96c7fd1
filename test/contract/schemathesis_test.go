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
// all answers against it. TestCashin does the same for the deprecated cash-in surface.
//
// QUITTANCE_SCHEMATHESIS=full makes at least 5,000 cases with a new seed each time.
// QUITTANCE_SCHEMATHESIS_SEED=N repeats a seed. The last line is cases=N failures=N.
func TestSchemathesis(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and sends it some hundred requests")
	}
	t.Parallel()
	u, dir := harness.Shared(t), servers.Dir(t)
	// Half of the operations have too few different requests, so the other half gets more.
	run := schemathesis{
		spec: "ingress/ministry/openapi.yaml", url: u.URL(harness.AtService, ""), config: schemathesisConfig(t, u, dir), dir: dir,
		environment: []string{"SCHEMATHESIS_TENANT_ID=" + harness.GuichetAgency},
		short:       cases{perOperation: 6, least: 200}, full: cases{perOperation: 2200, least: 5000},
	}
	run.check(t)
}

// cases is the size of a run: examples of each operation, and the least number of requests.
type cases struct{ perOperation, least int }

// schemathesis is a run of schemathesis.
type schemathesis struct {
	spec, url, config, dir string
	environment, args      []string
	short, full            cases
	accepted               []string // operations of which some requests must be accepted
}

// check runs it. The test fails if an answer is not as the OpenAPI file says.
func (s schemathesis) check(t *testing.T) {
	t.Helper()
	size, seed := s.short, uint64(1)
	if os.Getenv("QUITTANCE_SCHEMATHESIS") == "full" {
		size, seed = s.full, rand.Uint64N(1<<31)
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
	report := filepath.Join(s.dir, "report.json")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, append([]string{
		"-m", "schemathesis.cli", "--config-file", s.config, "--no-color", "run", harness.Absolute(t, s.spec),
		"--url", s.url, "--seed", strconv.FormatUint(seed, 10), "--max-examples", strconv.Itoa(size.perOperation),
		"--report", "json", "--report-json-path", report,
	}, s.args...)...)
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), s.environment...)
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
		// Rates are the requests that were meant to be valid, by operation and phase.
		Rates map[string]map[string]struct {
			Accepted int `json:"accepted"`
		} `json:"valid_rates"`
	}
	text, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if failed != nil || err != nil || !got.Complete || got.Cases.Failures > 0 || got.Cases.Errored > 0 {
		t.Errorf("seed %d: %v\n%s", seed, errors.Join(failed, err), out.Bytes())
	}
	if got.Cases.Generated < size.least {
		t.Errorf("%d cases were generated, want at least %d", got.Cases.Generated, size.least)
	}
	for _, operation := range s.accepted {
		n := 0
		for _, phase := range got.Rates[operation] {
			n += phase.Accepted
		}
		if n == 0 {
			t.Errorf("no request of %s was accepted", operation)
		}
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
	return writeConfig(t, dir, b.String())
}

func writeConfig(t *testing.T, dir, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "schemathesis.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// schemathesisCashin sends requests made from the OpenAPI file of the deprecated cash-in
// surface, with tokens of many partners and without any.
func schemathesisCashin(t *testing.T, c *contract) {
	c2 := &cashin{c, "/api", nil}
	number := ""
	pairs := make([]json.RawMessage, 0, partners-fuzzedPartners)
	for n := fuzzedPartners; n < partners; n++ {
		pairs = append(pairs, json.RawMessage(c2.pair(n)))
		if n < fuzzedPartners+5 { // each has the payment number 1 of its month
			s := c2.open(t, n)
			number = s.pay(t, c2.charge("mobile_money_a", "066000003"))["number"].(string)
		}
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(harness.Absolute(t, "test/tools/schemathesis/cashin.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "hooks = %q\n%s\n", harness.Absolute(t, "test/tools/schemathesis/cashin_hooks.py"), base)
	for name, value := range map[string]string{
		"numbers": number, "apiKeys": fmt.Sprintf("ak_test_Contract%04d", partners-1), "secretKeys": fmt.Sprintf("as_test_Contract%04d", partners-1),
	} {
		fmt.Fprintf(&b, "[dictionaries.%s]\nvalues = [%q]\n", name, value)
	}
	dir := servers.Dir(t)
	run := schemathesis{
		spec: "ingress/cashin/openapi.yaml", url: c.URL(harness.AtService, ""), dir: dir,
		config:      writeConfig(t, dir, b.String()),
		environment: []string{"SCHEMATHESIS_URL=" + c.URL(harness.AtService, ""), "SCHEMATHESIS_PAIRS=" + string(list)},
		short:       cases{perOperation: 6, least: 120}, full: cases{perOperation: 2200, least: 2500},
		accepted: []string{
			"POST /api/revoke-application-access-token", "POST /api/init-checkout", "POST /api/partners/payments", "GET /api/transactions/{number}/check-status", "GET /api/partners/payment-gateways",
		},
	}
	t.Run("authenticated", run.check)
	run.accepted = nil
	run.environment = append(run.environment, "SCHEMATHESIS_ANONYMOUS=1")
	run.args = []string{"--exclude-checks", "positive_data_acceptance", "--phases", "coverage"}
	run.short, run.full = cases{perOperation: 2, least: 30}, cases{perOperation: 200, least: 500}
	t.Run("without a token", run.check)
}
