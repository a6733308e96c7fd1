package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A variable with a typing error was ignored, and a role ran without its limit for a year. What is wrong
// with a file of variables is found before a role starts, without a connection, and without a secret in
// what is printed.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	const key = "bm90IGEga2V5LCBidXQgMzIgYnl0ZXMgb2YgdGV4dCE="
	good := `# the edge
QUITTANCE_KAFKA="127.0.0.1:1"
QUITTANCE_SCHEMA_REGISTRY=http://127.0.0.1:1
QUITTANCE_POSTGRES=postgres://ingress:geheim@127.0.0.1:1/quittance
QUITTANCE_CHECKOUT_URL=https://pay.example
QUITTANCE_MASTER_KEYS=1:` + key + `
QUITTANCE_REFERENCE_KEY='` + key + `'
QUITTANCE_PORT=tcp://10.96.0.7:8080
QUITTANCE_INGRESS_SERVICE_PORT_HTTP=8080
GOMEMLIMIT=1GiB
QUITTANCE_ACCEPT_MASTER_KEYS=true
`
	for name, c := range map[string]struct {
		role, text string
		faults     []string
	}{
		"good":                   {"ingress", good, nil},
		"typing error":           {"ingress", good + "QUITTANCE_MAX_CONECTIONS=10\n", []string{"no setting is called QUITTANCE_MAX_CONECTIONS"}},
		"no number":              {"ingress", good + "QUITTANCE_MAX_CONNECTIONS=many\n", []string{`QUITTANCE_MAX_CONNECTIONS: "many" is not a value of --max-connections`}},
		"long drain":             {"ingress", good + "QUITTANCE_DRAIN=1m\n", []string{"--drain 1m0s: must be from 0 to 10s"}},
		"plain address":          {"ingress", strings.Replace(good, "https://pay", "http://pay", 1), []string{"--checkout-url http://pay.example: must be https"}},
		"master keys":            {"ingress", strings.Replace(good, "ACCEPT_MASTER_KEYS=true", "ACCEPT_MASTER_KEYS=false", 1), []string{"a role has its own keys only"}},
		"processor":              {"processor", good + "QUITTANCE_INSTANCE=0\n", nil},
		"processor without name": {"processor", good, []string{"--instance (or QUITTANCE_INSTANCE)"}},
		"another machine":        {"webhook", strings.Replace(good, "127.0.0.1:1/quittance", "db:5432/quittance", 1), []string{"--postgres: the connection is plaintext to another machine"}},
		"nothing":                {"webhook", "", []string{"--kafka (or QUITTANCE_KAFKA), --postgres (or QUITTANCE_POSTGRES), --schema-registry", "QUITTANCE_MASTER_KEYS is not set"}},
	} {
		file := filepath.Join(t.TempDir(), "role.env")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := run(t, "config", "check", c.role, "--env-file", file, "--json")
		var got struct{ Faults []string }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Errorf("%s: %v, %s%s", name, err, out, stderr)
		}
		if len(got.Faults) != len(c.faults) || (code == 0) != (len(c.faults) == 0) {
			t.Errorf("%s ends with %d and finds %q, want %q", name, code, got.Faults, c.faults)
			continue
		}
		for n, want := range c.faults {
			if !strings.Contains(got.Faults[n], want) {
				t.Errorf("%s finds %q, want %q", name, got.Faults[n], want)
			}
		}
		if strings.Contains(out+stderr, "geheim") || strings.Contains(out+stderr, key) {
			t.Errorf("%s prints a secret: %s%s", name, out, stderr)
		}
	}
}

// A role does not start with a variable that nobody knows, such as the one that switched the first
// release into developer mode. Commands are not as strict: whoever types them has variables of samples.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("QUITTANCE_DEVELOPER", "1")
	const want = "no setting is called QUITTANCE_DEVELOPER"
	for _, args := range []string{"ingress", "processor --instance 0", "sink webhook"} {
		if code, _, stderr := run(t, strings.Fields(args)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s ends with %d and says %q, want 2 and %q", args, code, stderr, want)
		}
	}
	if code, _, stderr := run(t, "version"); code != 0 {
		t.Errorf("version ends with %d and says %q", code, stderr)
	}
}
