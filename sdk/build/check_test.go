package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The committed scripts of the page that checks receipts are those that the sources make.
func TestBuildCheck(t *testing.T) {
	t.Parallel()
	dir, to := "../../ingress/verify", t.TempDir()
	if err := buildCheck(dir, to); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"check.js", "sw.js"} {
		if made, committed := read(t, filepath.Join(to, name)), read(t, filepath.Join(dir, "dist", name)); made != committed {
			t.Errorf("%s is not what the sources make: run go generate ./sdk", name)
		}
	}
}

// TypeScript finds no fault in them.
func TestCheckTypes(t *testing.T) {
	t.Parallel()
	for _, project := range []string{"tsconfig.json", "tsconfig.sw.json"} {
		out, err := exec.CommandContext(t.Context(), "node", "../../.deps/browser/node_modules/typescript/bin/tsc", "-p", "../../ingress/verify/script/"+project).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", project, err, out)
		}
	}
}
