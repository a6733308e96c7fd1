package systemd

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quittance/cmd/internal/roles"
)

var update = flag.Bool("update", false, "write deploy/systemd anew")

const folder = "../../../deploy/systemd"

// The folder has the files that the table of roles makes, and no others.
func TestFolder(t *testing.T) {
	t.Parallel()
	made := Files()
	if *update {
		for name, text := range made {
			at := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := map[string]string{}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.service", "*.target", "env/*"} {
		names, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, name := range names {
			name, _ = filepath.Rel(folder, name)
			text, err := root.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = string(text)
		}
	}
	if !maps.Equal(found, made) {
		t.Error("deploy/systemd is not what the table of roles makes: go test ./cmd/internal/systemd -update")
	}
}

// Every role has one unit, its own secrets and its own health address. What a role does not need it is not given.
func TestUnits(t *testing.T) {
	t.Parallel()
	made := Files()
	ports := map[string]bool{}
	for _, r := range roles.Table() {
		u := unitOf(r, 0)
		text := made[u.File()]
		want := " " + string(r.Kind)
		if r.Kind == roles.KindSink || r.Kind == roles.KindProcessor {
			want += " " + r.Name
		}
		if !strings.Contains(text, "ExecStart="+program+want+"\n") {
			t.Errorf("the unit of %s does not start it:\n%s", r.Name, text)
		}
		for need, secret := range map[roles.Need]string{roles.NeedPostgres: "postgres", roles.NeedMasterKeys: "master-keys", roles.NeedReferenceKey: "reference-key"} {
			if given := strings.Contains(text, "LoadCredential="+secret+":"); given != slices.Contains(r.Needs, need) {
				t.Errorf("%s is given %s: %v", r.Name, secret, given)
			}
		}
		// The closes of a large agency are computed in some gigabyte of temporary files, which on a tmpfs are memory. Processors
		// write none.
		if large := r.MemoryLimit > 0 && r.Kind == roles.KindSink; large != strings.Contains(text, "\nCacheDirectory=quittance/"+r.Name+"\n") || large != strings.Contains(text, "\nEnvironment=TMPDIR=%C/quittance/"+r.Name+"\n") {
			t.Errorf("temporary files of %s on disk: want %v:\n%s", r.Name, large, text)
		}
		port := regexp.MustCompile(`(?m)^QUITTANCE_HEALTH=127\.0\.0\.1:(\d+)$`).FindStringSubmatch(made["env/"+r.Name+".env"])
		if port == nil || ports[port[1]] {
			t.Errorf("%s has no health address of its own", r.Name)
			continue
		}
		ports[port[1]] = true
	}
}

// systemd reads the units without a word, and finds nothing that a process of them could do to the machine.
func TestSystemdReadsTheUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	root := t.TempDir()
	units, bin := filepath.Join(root, "etc/systemd/system"), filepath.Join(root, filepath.Dir(program))
	for _, at := range []string{units, bin} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(at, text string, mode os.FileMode) {
		if err := os.WriteFile(at, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(bin, "quittance"), "#!/bin/sh\n", 0o755)
	for _, name := range []string{"network-online.target", "multi-user.target", "sysinit.target", "basic.target", "shutdown.target", "network.target"} {
		write(filepath.Join(units, name), "[Unit]\nDescription=of the system\nDefaultDependencies=no\n", 0o644)
	}
	var services []string
	for name, text := range Files() {
		if strings.HasPrefix(name, "env/") {
			continue
		}
		write(filepath.Join(units, name), text, 0o644)
		name = strings.Replace(name, "@.", "@0.", 1)
		if strings.HasSuffix(name, ".service") {
			services = append(services, name)
		}
	}
	for _, name := range services {
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--root="+root, "--man=no", "--recursive-errors=yes", name).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "" {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
		out, err = exec.CommandContext(t.Context(), analyze, "security", "--root="+root, "--offline=yes", "--threshold=15", "--no-pager", name).CombinedOutput()
		level := regexp.MustCompile(`Overall exposure level for \S+: ([\d.]+)`).FindStringSubmatch(string(out))
		if err != nil || level == nil {
			t.Errorf("systemd-analyze security %s: %v\n%s", name, err, out)
			continue
		}
		if is, _ := strconv.ParseFloat(level[1], 64); is > 1.5 {
			t.Errorf("%s is exposed at %s, more than 1.5", name, level[1])
		}
	}
	if len(services) != len(roles.Table()) {
		t.Errorf("%d services for %d roles", len(services), len(roles.Table()))
	}
}
