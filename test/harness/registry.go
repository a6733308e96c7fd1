package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"quittance/dev/stack/program"
)

// Keys and agencies of the demo registry.
const (
	GuichetKey     = program.DemoKey
	GuichetLiveKey = "sk_live_GuichetDemoKey00000000000"
	DouanesKey     = "sk_test_DouaneDemoKey000000000000"
	PlatformKey    = "sk_test_PlatformDemoKey0000000000"
	GuichetAgency  = "018f0000-0000-7000-8000-000000000001"
	DouanesAgency  = "018f0000-0000-7000-8000-000000000002"
)

// demoRegistry returns the registry file of `quittance-dev up`.
func demoRegistry(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(Absolute(t, program.DemoRegistry))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// WithoutQuota writes a copy of the demo registry into dir, with quotas that no suite
// reaches. It returns the file of the copy.
func WithoutQuota(t testing.TB, dir string) string {
	t.Helper()
	file, err := program.WithoutQuota(filepath.Join(Root, program.DemoRegistry), dir)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// PublishedSecrets returns the keys, signing secrets and tokens of the demo registry.
func PublishedSecrets(t testing.TB) (out []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?:sk|ak|as)_(?:test|live)_\w+|whsec_\w+|token: (\w+)`).FindAllStringSubmatch(demoRegistry(t), -1) {
		if m[1] != "" {
			out = append(out, m[1])
			continue
		}
		out = append(out, m[0])
	}
	if len(out) < 10 {
		t.Fatalf("the demo registry has only the secrets %q", out)
	}
	return out
}
