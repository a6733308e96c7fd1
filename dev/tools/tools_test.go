// Package tools_test tests the scripts of this folder.
package tools_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs a script from the root of the project.
func script(t *testing.T, env []string, name string, args ...string) (output string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "dev/tools/"+name, args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Files that were fetched are used only if they are those that the tree names.
func TestSums(t *testing.T) {
	t.Parallel()
	dir, list := t.TempDir(), filepath.Join(t.TempDir(), "sums")
	write(t, filepath.Join(dir, "a.jar"), "a")
	write(t, filepath.Join(dir, "libs/b.jar"), "b")
	if out, ok := script(t, nil, "sums", "--write", dir, list); !ok {
		t.Fatal(out)
	}
	if out, ok := script(t, nil, "sums", dir, list); !ok || out != "" {
		t.Errorf("the same files: %s", out)
	}
	for name, change := range map[string]func(){
		"differs":   func() { write(t, filepath.Join(dir, "a.jar"), "A") },
		"not named": func() { write(t, filepath.Join(dir, "c.jar"), "c") },
		"missing":   func() { _ = os.Remove(filepath.Join(dir, "libs/b.jar")) },
	} {
		change()
		out, ok := script(t, nil, "sums", dir, list)
		if ok || !strings.Contains(out, ".jar") || !strings.Contains(out, "dev/tools/sums --write") {
			t.Errorf("a file %s: %s", name, out)
		}
		write(t, filepath.Join(dir, "a.jar"), "a")
		write(t, filepath.Join(dir, "libs/b.jar"), "b")
		_ = os.Remove(filepath.Join(dir, "c.jar"))
	}
}

const vulnerability = `{"schema_version":"1.3.1","id":"GO-2026-0001","modified":"2026-11-01T00:00:00Z","published":"2026-11-01T00:00:00Z","summary":"a test","details":"a test",
"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"99.0.0"}]}],
"ecosystem_specific":{"imports":[{"path":"strconv","symbols":["SYMBOL"]}]}}],"database_specific":{"url":"https://pkg.go.dev/vuln/GO-2026-0001"}}`

// A vulnerability that the code reaches fails the check, with the mend; one that it does not
// reach passes. Without a database the check is skipped with a warning, unless the database was
// named.
func TestVulncheck(t *testing.T) {
	t.Parallel()
	database := func(symbol string) []string {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "index/db.json"), `{"modified":"2026-11-01T00:00:00Z"}`)
		write(t, filepath.Join(dir, "index/modules.json"), `[{"path":"stdlib","vulns":[{"id":"GO-2026-0001","modified":"2026-11-01T00:00:00Z","fixed":"99.0.0"}]}]`)
		write(t, filepath.Join(dir, "index/vulns.json"), `[{"id":"GO-2026-0001","modified":"2026-11-01T00:00:00Z"}]`)
		write(t, filepath.Join(dir, "ID/GO-2026-0001.json"), strings.Replace(vulnerability, "SYMBOL", symbol, 1))
		return []string{"VULNDB=file://" + dir}
	}
	if out, ok := script(t, database("FormatInt"), "vulncheck", "./money"); ok || !strings.Contains(out, "GO-2026-0001") || !strings.Contains(out, "Fixed in") {
		t.Errorf("a vulnerability: %s", out)
	}
	if out, ok := script(t, database("QuoteRuneToGraphic"), "vulncheck", "./money"); !ok {
		t.Errorf("a vulnerability of other code: %s", out)
	}
	away := []string{"VULNDB=", "HTTPS_PROXY=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1"}
	if out, ok := script(t, away, "vulncheck", "./money"); !ok || !strings.Contains(out, "WARNING: vulncheck is SKIPPED") {
		t.Errorf("without a database: %s", out)
	}
	if out, ok := script(t, append(away, "VULNDB=https://127.0.0.1:1"), "vulncheck", "./money"); ok {
		t.Errorf("with a named database that is away: %s", out)
	}
}
