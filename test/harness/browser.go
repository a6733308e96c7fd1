package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/test/servers"
)

// Browse runs a script of test/tools/browser with a task. It adds the paths of the browser
// and of its driver to the task, and calls told with each line that the script prints.
func Browse(t *testing.T, patience time.Duration, script string, task map[string]any, told func(line []byte)) {
	t.Helper()
	modules := Absolute(t, ".deps/browser")
	if _, err := os.Stat(filepath.Join(modules, "node_modules/playwright-core")); err != nil {
		t.Fatalf("the driver of the browser is missing, `make deps/test` fetches it: %v", err)
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("Chromium is missing, `make deps/test` installs it: %v", err)
	}
	task = maps.Clone(task)
	task["modules"], task["chromium"] = modules, chromium
	if shell, err := exec.LookPath("chromium-headless-shell"); err == nil {
		task["shell"] = shell
	}
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(Root, "test/tools/browser", script), string(text))
	cmd.Env = append(os.Environ(), "HOME="+servers.Dir(t)) // a fresh user's
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	const longest = 8 << 20 // a picture
	for lines.Buffer(nil, longest); lines.Scan(); {
		told(lines.Bytes())
	}
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Fatalf("%s: %v %v\n%s", script, err, lines.Err(), strings.TrimSpace(errs.String()))
	}
}
