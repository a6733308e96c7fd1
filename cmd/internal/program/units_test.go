package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quittance/cmd/internal/roles"
	"quittance/cmd/internal/systemd"
)

// The samples of deploy/systemd, with secrets as an operator makes them, are settings with which each role starts: each role
// gets the keys that it needs and no others, and no variable is unknown.
func TestSamplesOfUnits(t *testing.T) {
	t.Parallel()
	const key = "bm90IGEga2V5LCBidXQgMzIgYnl0ZXMgb2YgdGV4dCE="
	files := systemd.Files()
	for _, r := range roles.Table() {
		folder := t.TempDir()
		code, derived, stderr := run(t, "secrets", "derive", r.Name, "--master-keys", "1:"+key)
		if code != 0 {
			t.Fatalf("secrets derive %s: %s", r.Name, stderr)
		}
		for name, value := range map[string]string{
			"kafka-password": "geheim", "schema-registry": "https://registry.example:8081", "postgres": "postgres://" + r.Name + ":geheim@db.example/quittance?sslmode=verify-full",
			"clickhouse": "https://" + r.Name + ":geheim@click.example:8443/quittance", "master-keys": strings.TrimSpace(derived), "reference-key": key, "sms-secret": "geheim", "mail-secret": "geheim",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		unit := files["quittance-"+r.Name+".service"] + files["quittance-"+r.Name+"@.service"]
		env := files["env/common.env"] + "\n" + files["env/"+r.Name+".env"] + "\n"
		for _, line := range regexp.MustCompile(`(?m)^Environment=(.*)$`).FindAllStringSubmatch(unit, -1) {
			env += strings.NewReplacer("%d", folder, "%i", "a", "%S", folder).Replace(line[1]) + "\n"
		}
		file := filepath.Join(folder, "env")
		if err := os.WriteFile(file, []byte(env), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := run(t, "config", "check", r.Name, "--env-file", file, "--json")
		var got struct{ Faults []string }
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || len(got.Faults) > 0 {
			t.Errorf("%s: %q, %v %s\n%s", r.Name, got.Faults, err, stderr, env)
		}
	}
}
