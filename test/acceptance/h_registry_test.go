package acceptance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// withoutQuota is the demo registry with room for more than thirty creations a
// minute.
func withoutQuota(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/dev/registry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const at = "        integrator: true\n"
	raised := strings.Replace(string(text), at, at+"        creations_per_minute: 100000\n        reads_per_minute: 100000\n", 1)
	if raised == string(text) {
		t.Fatal("the demo registry has no integrator")
	}
	file := filepath.Join(dir, "registry.yaml")
	if err := os.WriteFile(file, []byte(raised), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// publishedSecrets are those of the demo registry.
func publishedSecrets(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/dev/registry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`sk_(?:test|live)_\w+|whsec_\w+|token: (\w+)`).FindAllSubmatch(text, -1)
	var out []string
	for _, m := range found {
		if len(m[1]) > 0 {
			out = append(out, string(m[1]))
			continue
		}
		out = append(out, string(m[0]))
	}
	if len(out) < 10 {
		t.Fatalf("the demo registry has the secrets %q only", out)
	}
	return out
}

// guichetAgency is the agency of the demo registry's first application.
const guichetAgency = "018f0000-0000-7000-8000-000000000001"

// unlimited is the demo registry with quotas that nobody reaches.
func (u *up) unlimited(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(absolute(t, "deploy/dev/registry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const mark = "        name: Guichet fiscal\n"
	raised := strings.Replace(string(text), mark, mark+"        creations_per_minute: 1000000\n        reads_per_minute: 1000000\n", 1)
	if raised == string(text) {
		t.Fatal("the demo registry has no application Guichet fiscal")
	}
	path := filepath.Join(u.dir, "registry.yaml")
	if err := os.WriteFile(path, []byte(raised), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The demo registry's keys.
const (
	guichetKey     = "sk_test_GuichetDemoKey00000000000"
	guichetLiveKey = "sk_live_GuichetDemoKey00000000000"
	douanesKey     = "sk_test_DouaneDemoKey000000000000"
	platformKey    = "sk_test_PlatformDemoKey0000000000"
	douanesAgency  = "018f0000-0000-7000-8000-000000000002"
)
