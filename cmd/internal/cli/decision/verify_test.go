package decision

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quittance/casework"
	"quittance/cmd/internal/cli/clitest"
	"quittance/internal/identity"
	"quittance/test/office"
	"quittance/test/registries"
)

// What the command prints is verified by programs that are not ours, proposals and approvals. One byte that is changed is
// refused by all of them.
func TestDecisionsAreVerifiedByOthers(t *testing.T) {
	o := office.Open(t, "impots", []identity.Role{identity.RoleApprover}, "Awa", "Ben")
	t.Setenv("QUITTANCE_POSTGRES", o.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", o.Keys.Reveal())
	for name, subject := range map[string]string{"Awa": "case_one#1", "Ben": "case_two#3"} {
		s := office.Statement(subject)
		if name == "Ben" {
			s.Verdict = string(casework.DecisionProposed)
		}
		if _, err := o.Prove(t, o.Signs(t, o.Acting(t, name), name, s), s); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := clitest.Run(t, Command(), "decisions", "verify")
	if code != 0 || !strings.Contains(stdout, "Verified: 2 decisions. Not as signed: 0.") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	if code, stdout, _ := clitest.Run(t, Command(), "decisions", "verify", "--subject", "case_two", "--kind", "case", "--since", registries.Epoch.Format("2006-01-02")); code != 0 || !strings.Contains(stdout, "Verified: 1 decision.") {
		t.Errorf("%d %s", code, stdout)
	}
	code, stdout, stderr = clitest.Run(t, Command(), "decisions", "verify", "--json")
	if code != 0 {
		t.Fatal(stderr)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list) != 2 {
		t.Fatalf("%s %v", stdout, err)
	}
	folder, err := filepath.Abs("../../../../docs/operating/decisions")
	if err != nil {
		t.Fatal(err)
	}
	// holds has a script verify one decision.
	holds := func(script []string, d map[string]any, known ...string) (bool, string) {
		text, err := json.Marshal([]any{d})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "decisions.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), script[0], append([]string{filepath.Join(folder, script[1]), file}, known...)...).CombinedOutput()
		return err == nil, string(out)
	}
	flipped := func(text string) string { // one bit of base64url
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)-2] ^= 1
		return base64.RawURLEncoding.EncodeToString(data)
	}
	key := list[0]["public_key"].(string)
	for name, script := range map[string][]string{"Node": {"node", "verify.mjs"}, "Python": {"python3", "verify.py"}} {
		if _, err := exec.LookPath(script[0]); err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			if ok, out := holds(script, d); !ok || !strings.Contains(out, "holds") || !strings.Contains(out, d["name"].(string)) {
				t.Errorf("%s: %s", name, out)
			}
		}
		if ok, out := holds(script, list[0], key); !ok {
			t.Errorf("%s with the key: %s", name, out)
		}
		if ok, out := holds(script, list[1], key); ok {
			t.Errorf("%s takes a key that nobody knows: %s", name, out)
		}
		for field, value := range map[string]any{
			"statement": strings.Replace(list[0]["statement"].(string), list[0]["verdict"].(string), "rejected", 1), "verdict": "rejected", "subject": "case_other#1",
			"kind": "close", "person": o.IDs["Ben"], "challenge": flipped(list[0]["challenge"].(string)), "public_key": list[1]["public_key"], "client_data": flipped(list[0]["client_data"].(string)),
			"authenticator_data": flipped(list[0]["authenticator_data"].(string)), "signature": flipped(list[0]["signature"].(string)), "host": "pay.example",
		} {
			if list[0]["name"] == "Ben" && field == "person" {
				value = o.IDs["Awa"]
			}
			changed := maps.Clone(list[0])
			changed[field] = value
			if ok, out := holds(script, changed); ok {
				t.Errorf("%s takes another %s: %s", name, field, out)
			}
		}
	}
	o.Exec(t, `UPDATE decisions SET verdict = 'rejected' WHERE subject = 'case_one#1'`)
	code, stdout, stderr = clitest.Run(t, Command(), "decisions", "verify")
	if code != 1 || !strings.Contains(stdout, "other_statement") || !strings.Contains(stdout, "Awa") || !strings.Contains(stderr, "not every decision") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
