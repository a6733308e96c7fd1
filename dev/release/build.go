package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The machine that a release is for.
const (
	system       = "linux"
	architecture = "amd64"
)

// release is a release that is being made.
type release struct {
	tree, out string
	// name is that of all files, quittance-DATE-COMMIT.
	name    string
	version string
	program string // its file
	info    *buildinfo.BuildInfo
	// at is the time of the commit, UTC.
	at time.Time
}

// build builds the program: static, without the paths of this machine, optimised by its profile. It names the release by
// what the program says of itself.
func build(ctx context.Context, tree, out string, further []string) (*release, error) {
	at, err := filepath.Abs(filepath.Join(out, "quittance"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-pgo=cmd/quittance/default.pgo", "-ldflags=-s -w", "-o", at, "./cmd/quittance") //nolint:gosec // our own arguments
	cmd.Dir, cmd.Stderr = tree, os.Stderr
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+architecture, "GOAMD64=v1", "GOEXPERIMENT=")
	cmd.Env = append(cmd.Env, further...)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	r := &release{tree: tree, out: out, program: at}
	if r.info, err = buildinfo.ReadFile(at); err != nil {
		return nil, err
	}
	for _, s := range r.info.Settings {
		if s.Key == "vcs.time" {
			r.at, err = time.Parse(time.RFC3339, s.Value)
		}
	}
	if err != nil || r.at.IsZero() {
		return nil, fmt.Errorf("the program does not say the time of its commit: %w", err)
	}
	r.at = r.at.UTC()
	if r.version, err = r.ask(ctx); err != nil {
		return nil, err
	}
	r.name = "quittance-" + strings.ReplaceAll(r.version, "+", "-")
	r.program = filepath.Join(filepath.Dir(at), r.name+"-"+system+"-"+architecture)
	return r, os.Rename(at, r.program)
}

// ask asks the program for its version.
func (r *release) ask(ctx context.Context) (string, error) {
	if runtime.GOOS != system || runtime.GOARCH != architecture {
		return "", fmt.Errorf("a release is made on %s/%s, whose program says its version", system, architecture)
	}
	out, err := exec.CommandContext(ctx, r.program, "version", "--json").Output() //nolint:gosec // the program that was just built
	var said struct{ Version string }
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil || said.Version == "" || strings.Contains(said.Version, "modified") {
		return "", fmt.Errorf("the program says of its version %q: %w", out, err)
	}
	return said.Version, nil
}

// path returns the place of a file of the release.
func (r *release) path(suffix string) string { return filepath.Join(r.out, r.name+suffix) }

// sums writes SHA256SUMS, which `sha256sum --check` reads.
func (r *release) sums(context.Context) error {
	text, err := digests(r.out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text), 0o644) //nolint:gosec // everybody reads a release
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}
