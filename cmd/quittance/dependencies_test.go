package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The production program contains no part of a developer's installation: no package below
// dev or test, no broker or database that runs in the process, no simulator.
func TestProductionDependencies(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "quittance/cmd/quittance").Output()
	if err != nil {
		t.Fatalf("listing dependencies: %v", err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 100 {
		t.Fatalf("there are only %d dependencies: %v", len(packages), packages)
	}
	for _, p := range packages {
		for _, forbidden := range []string{
			"quittance/dev/", "quittance/test/", "quittance/cmd/quittance-dev",
			"github.com/twmb/franz-go/pkg/kfake", "github.com/fergusstrange/embedded-postgres", "github.com/ebitengine/purego",
			"testing", "pgregory.net/rapid",
		} {
			if p == strings.TrimSuffix(forbidden, "/") || strings.HasPrefix(p, strings.TrimSuffix(forbidden, "/")+"/") {
				t.Errorf("cmd/quittance depends on %s", p)
			}
		}
	}
}
