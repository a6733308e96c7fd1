package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quittance/sdk"
)

// The committed files are those that the sources make. A release is not overwritten,
// because pages name it with its hash.
func TestBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, folder := range []string{"src", "types"} {
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join("..", folder))); err != nil {
			t.Fatal(err)
		}
	}
	if err := build(dir); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join("dist", sdk.Version, "quittance.js")
	for _, name := range []string{script, filepath.Join("dist", sdk.Version, "quittance.d.ts"), "dist/frame.js"} {
		if made, committed := read(t, filepath.Join(dir, name)), read(t, filepath.Join("..", name)); made != committed {
			t.Errorf("%s is not what the sources make: run go generate ./sdk", name)
		}
	}

	before := read(t, filepath.Join(dir, script))
	source := filepath.Join(dir, "src/sdk.ts")
	changed := strings.Replace(read(t, source), "20e3", "21e3", 1)
	if err := os.WriteFile(source, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	err := build(dir)
	if err == nil || !strings.Contains(err.Error(), "raise Version") {
		t.Errorf("a changed source of a release: %v, want to be told to raise Version", err)
	}
	if read(t, filepath.Join(dir, script)) != before {
		t.Error("the release was written over")
	}
}

func TestBuildNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src/sdk.ts"), []byte("const = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := build(dir); err == nil || !strings.Contains(err.Error(), "src/sdk.ts:1:6") {
		t.Errorf("a source that cannot be read: %v, want the place", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
